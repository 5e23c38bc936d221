//! Sessions under Slurm: four virtual nodes on this machine.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use sdm_doctor::Check;
use sdm_tests::control;
use sdm_tests::disturbed::Disturbed;
use sdm_tests::doctor::{assert_found, bad, good};
use sdm_tests::job::{Folder, HeldJob, look, look_after_kill, running};
use sdm_tests::ordinary;
use sdm_tests::parts::Part;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes;
use sdm_tests::run::{BOUND, is_full};
use sdm_tests::sdm::Sdm;
use sdm_tests::secret::{TELLS, Told};

const _: () = sdm_tests::run::test_group("slurm", "one controller, and all its nodes");

pub(crate) const CONFIG: &str = "/tmp/sdm-slurm/slurm.conf";

fn ranks_add_up(mpi: &str, compiler: Compiler, prefix: &[&str], options: &[&str], more: &[&str]) {
    let place = Place::new();
    let sum = place.compile("mpi_sum", compiler);
    let sdm = if prefix.is_empty() {
        Sdm::run(&place, 4)
    } else {
        Sdm::behind(prefix, &place, 4)
    };
    let options = options
        .iter()
        .flat_map(|option| ["--launcher-option", option]);
    let done = sdm
        .env("SLURM_CONF", CONFIG)
        .args(["--launcher", "srun", "--launcher-option", mpi])
        .args(options)
        .args(more)
        .lines(&[
            "break add_up",
            "continue",
            "print contribution",
            "next",
            "stacks",
            "continue",
        ])
        .program(&sum, &[])
        .finish()
        .code(0);
    done.expect_part(
        "continue",
        "ranks 0-3 (4): stopped at breakpoint 1, add_up ()",
    );
    done.expect(
        "print contribution",
        "rank 0: 1\nrank 1: 2\nrank 2: 3\nrank 3: 4\n",
    );
    done.expect_part("stacks", "ranks 0-3 (4): main ()");
    for rank in 0..4 {
        let said = format!("[{rank}] rank {rank} of 4: sum 10\n");
        assert!(done.out.contains(&said), "no {said:?} in {done}");
    }
}

/// One step for each run. Slurm's PMI2 does not tell a program its index in the job, with or without SDM.
fn two_programs_are_started_twice() {
    let place = Place::new();
    let ocean = place.compile_with("mpi_two", Compiler::Mpich, &["-g", "-DOCEAN"]);
    let done = Sdm::run(&place, 1)
        .env("SLURM_CONF", CONFIG)
        .args(["--launcher", "srun", "--launcher-option=--mpi=pmi2"])
        .args(["--launcher-option=-N2"])
        .lines(&["run", "run z"])
        .program(&ocean, &["x", ":", "-n", "2", "./mpi_two", "y"])
        .finish()
        .code(0);
    for line in [
        "[0] mpi_two rank 0 of 3, program -1, sum 6, arg x\n",
        "[2] mpi_two rank 2 of 3, program -1, sum 6, arg y\n",
        "[2] mpi_two rank 2 of 3, program -1, sum 6, arg z\n",
    ] {
        assert!(done.out.contains(line), "no {line:?} in {done}");
    }
}

/// Neither `srun` nor `slurmstepd` has the session's key: they have only the place of the key.
fn srun_carries_a_place_and_no_key() {
    let place = Place::new();
    let town = Disturbed::new(TELLS);
    let folder = place.path().display();
    let held = Sdm::run(&place, 2)
        .env("SLURM_CONF", CONFIG)
        .args(["--launcher", "srun", "--launcher-option=-N2"])
        .args(["--key-handover", &format!("file:{folder}")])
        .args([
            "--server-path".as_ref(),
            town.folder().join("sdm-server").as_os_str(),
        ])
        .talk()
        .program(Path::new("/bin/sleep"), &["1000"])
        .spawn();
    held.out.wait(0, "ranks 0-1 (2): at ");
    let told = Told::in_town(&town);
    told.assert_carried_by(&["srun"]);
    told.assert_gone();
    let _done = held.finish().code(0);
}

fn srun_carries_what_ranks_print() {
    let place = Place::new();
    let sum = place.compile("mpi_sum", Compiler::Mpich);
    let done = Sdm::run(&place, 4)
        .env("SLURM_CONF", CONFIG)
        .args(["--launcher", "srun", "--launcher-option=--mpi=pmi2"])
        .args(["--launcher-option=-N2", "--launcher-option=--label"])
        .args(["--output", "launcher", "--batch"])
        .program(&sum, &[])
        .finish()
        .code(0);
    for rank in 0..4 {
        let line = format!("{rank}: rank {rank} of 4: sum 10\n");
        assert!(done.out.contains(&line), "no {line:?} in {done}");
    }
}

/// A crash on another node is reported with its line. The other ranks are shown too.
fn crash_under_srun_is_reported() {
    let place = Place::new();
    let ends = place.compile("mpi_ends", Compiler::Mpich);
    for gdb in ["gdb", "/nosuch/gdb"] {
        let done = Sdm::run(&place, 4)
            .env("SLURM_CONF", CONFIG)
            .args(["--launcher", "srun", "--launcher-option=--mpi=pmi2"])
            .args(["--launcher-option=-N4", "--batch", "--no-report"])
            .args(["--gdb", gdb])
            .program(&ends, &["segv"])
            .finish()
            .code(139);
        let shown = "rank 2: received signal SIGSEGV, Segmentation fault, leave () at mpi_ends.c:";
        assert!(done.out.contains(shown), "{done}");
        done.expect_part("[@stopped] stacks", "MPI_Allreduce");
    }
}

/// Each node has one gdb for its tasks, which are stopped before their first instruction.
fn srun_holds_its_tasks_until_they_are_attached_to() {
    let place = Place::new();
    let sdm = |count| {
        Sdm::run(&place, count)
            .env("SLURM_CONF", CONFIG)
            .args(["--launcher", "srun", "--control", "mpir"])
            .args(["--launcher-option=--mpi=pmi2", "--launcher-option=-N2"])
    };
    let sum = place.compile("mpi_sum", Compiler::Mpich);
    control::four_ranks_add_up(sdm(4), &sum, &["tbreak main", "continue"]);
    control::held_ranks_end_well(&place, Compiler::Mpich, &sdm);
}

/// Checks that no job of ours is in the queue. If its `sdm` was killed, Slurm needs a moment.
fn assert_queue_is_empty() {
    let deadline = Instant::now() + BOUND;
    loop {
        let mut command = Command::new("squeue");
        let output = command.arg("-h").env("SLURM_CONF", CONFIG).output();
        let queue = String::from_utf8(output.expect("squeue runs").stdout).expect("text");
        if queue.lines().all(|line| line.contains(" CG ")) {
            return;
        }
        assert!(Instant::now() < deadline, "{queue}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn slurm_sessions_run_in_existing_and_own_allocations() {
    let Some(_slurm) = Part::slurm() else { return };
    ranks_add_up(
        "--mpi=pmi2",
        Compiler::Mpich,
        &[],
        &["-N4", "--ntasks-per-node=1"],
        &["--stage"],
    );
    ranks_add_up(
        "--mpi=pmix",
        Compiler::OpenMpi,
        &["salloc", "-N2", "-n4"],
        &[],
        &[],
    );
    // PMIx servers of SDM's own in place of Slurm's, on two nodes that have their memory in common.
    ranks_add_up(
        "--mpi=none",
        Compiler::OpenMpi,
        &[],
        &["-N2", "--ntasks-per-node=2"],
        &["--pmix", "on", "--env", "OMPI_MCA_btl=self,tcp"],
    );
    two_programs_are_started_twice();
    srun_carries_what_ranks_print();
    crash_under_srun_is_reported();
    srun_carries_a_place_and_no_key();
    a_job_is_attached_to_on_its_nodes();
    srun_holds_its_tasks_until_they_are_attached_to();
    assert_queue_is_empty();
    let copies = std::fs::read_dir("/tmp").expect("a folder").flatten();
    let is_copy = |name: &std::ffi::OsString| name.to_string_lossy().starts_with("slurm_bcast_");
    let copies: Vec<_> = copies.map(|it| it.file_name()).filter(is_copy).collect();
    assert!(copies.is_empty(), "{copies:?} stay");
}

/// True for the process that Slurm gave this rank.
fn is_rank(pid: u32, rank: u32) -> bool {
    let environment = std::fs::read(processes::of(pid).path("environ")).unwrap_or_default();
    let variable = format!("SLURM_PROCID={rank}");
    let mut variables = environment.split(|byte| *byte == 0);
    variables.any(|it| it == variable.as_bytes())
}

fn a_job_is_attached_to_on_its_nodes() {
    let folder = Folder::new("slurm");
    let program = folder.compile(Compiler::Mpich, "mpi_held");
    let mut srun = Command::new("srun");
    srun.env("SLURM_CONF", CONFIG)
        .args(["--mpi=pmi2", "-N4", "-n4", "--ntasks-per-node=1"]);
    let job = HeldJob::start(srun, &folder, &program, 4);
    let ranks = running(&program);
    let looks = || ranks.iter().map(|pid| look(*pid)).collect::<Vec<_>>();
    let before = looks();
    let place = Place::new();
    let starter = job.starter().to_string();
    let sdm = |verb| Sdm::new(&place, verb).env("SLURM_CONF", CONFIG);
    let done = sdm("stacks").args([&starter]).finish().code(1);
    assert!(done.out.contains("ranks 0,2-3 (3): main ()"), "{done}");
    assert!(done.out.contains("rank 1: main ()"), "{done}");
    assert_eq!(looks(), before);
    let halted = ranks.iter().find(|pid| is_rank(**pid, 2));
    let halted = *halted.expect("rank 2 runs");
    processes::signal(halted, Signal::SIGSTOP);
    processes::wait_state(halted, "T");
    let done = sdm("diagnose").args([&starter]).finish().code(3);
    for line in [
        "Cannot go on: likely to blame: rank 2: a signal has stopped it, and the other ranks wait for it\n",
        "\nrank 2: stopped by a signal (SIGSTOP or another stop signal)\n",
    ] {
        assert!(done.out.contains(line), "no {line:?} in {done}");
    }
    assert!(!done.out.contains("stopped, and about to end"), "{done}");
    processes::signal(halted, Signal::SIGCONT);
    assert_eq!(looks(), before);
    // Processes that Slurm kills with the servers' step could not detach.
    for _ in 0..if is_full() { 3 } else { 1 } {
        let attached = sdm("attach")
            .args([&starter, "--ranks", "1-2"])
            .talk()
            .spawn();
        attached.out.wait(0, "rank 1: attached");
        processes::signal(attached.pid(), Signal::SIGKILL);
        assert_eq!(attached.finish().code, None);
        let after: Vec<_> = ranks.iter().map(|pid| look_after_kill(*pid)).collect();
        assert_eq!(after, before);
    }
    // The job by its number, and no server on the nodes of other ranks.
    let mut squeue = Command::new("squeue");
    squeue
        // Earlier jobs may still be completing.
        .args(["-h", "-t", "R", "-o", "slurm:%i"])
        .env("SLURM_CONF", CONFIG);
    let queue = squeue.output().expect("squeue runs");
    let id = String::from_utf8(queue.stdout).expect("text");
    let done = sdm("attach")
        .args([id.trim(), "--ranks", "2-3"])
        .lines(&["print size"])
        .finish()
        .code(0);
    done.expect("print size", "ranks 2-3 (2): 4\n");
    let done = sdm("doctor").args([id.trim(), "--json"]).finish();
    assert_found(&done, &good(Check::Target, "`srun --overlap` reaches n1"));
    // No node is asked through ssh, which nothing of a Slurm job needs.
    assert!(!done.out.contains("ssh cannot connect"), "{done}");
    let done = sdm("stacks").args(["slurm:4000000"]).finish().code(2);
    assert!(
        done.err
            .contains("Slurm job 4000000: none of your srun processes"),
        "{done}"
    );
    assert_eq!(looks(), before);
    job.finish();
}

/// The controller answers, or its configuration names one that does not.
fn the_doctor_knows_whether_it_answers() {
    let place = Place::new();
    let look = |config: &Path| {
        let sdm = Sdm::new(&place, "doctor").args(["--json"]);
        sdm.env("SLURM_CONF", config).finish()
    };
    assert_found(&look(Path::new(CONFIG)), &good(Check::Slurm, "UP"));
    let text = std::fs::read_to_string(CONFIG).expect("Slurm runs by it");
    let port = |line: &str| match line.starts_with("SlurmctldPort=") {
        true => "SlurmctldPort=1".to_owned(),
        false => line.to_owned(),
    };
    let lines: Vec<String> = text.lines().map(port).collect();
    let config = place.path().join("slurm.conf");
    std::fs::write(&config, lines.join("\n")).expect("there is room");
    ordinary::give(&config);
    assert_found(
        &look(&config),
        &bad(Check::Slurm, "is DOWN", "where squeue works"),
    );
}

#[test]
fn slurm_starts_several_programs_and_holds_a_job() {
    let Some(_slurm) = Part::slurm() else { return };
    the_doctor_knows_whether_it_answers();
    let variable = ("SLURM_CONF", CONFIG);
    ordinary::several_programs_run("srun", Compiler::C, &[variable]);
    let place = Place::new();
    let sum = place.compile("mpi_sum", Compiler::Mpich);
    let sdm = ordinary::run(&place, 4)
        .env(variable.0, variable.1)
        .args(["--launcher", "srun", "--launcher-option", "--mpi=pmi2"])
        .args(["--control", "mpir"]);
    control::four_ranks_add_up(sdm, &sum, &["tbreak main", "continue"]);
}

/// A test leaves no job in Slurm; each test finds a Slurm that counts jobs from 1. It is the same Slurm, started once.
#[test]
fn job_that_a_test_leaves_in_slurm_is_named() {
    let mut keepers = BTreeSet::new();
    for _ in 0..2 {
        let Some(slurm) = Part::slurm() else { return };
        keepers.insert(slurm.keeper().expect("it is up"));
        assert!(slurm.left().is_empty(), "{:?}", slurm.left());
        let mut sbatch = Command::new("sbatch");
        sbatch.args(["--hold", "--output=/dev/null", "--wrap=true"]);
        sbatch.env("SLURM_CONF", CONFIG).current_dir("/");
        let status = ordinary::lower(&mut sbatch).status();
        assert!(status.expect("sbatch runs").success());
        let left = slurm.left();
        assert_eq!(left, ["job 1 of nobody is PENDING: wrap"]);
        let mut scancel = Command::new("scancel");
        let status = scancel.arg("1").env("SLURM_CONF", CONFIG).status();
        assert!(status.expect("scancel runs").success());
    }
    assert_eq!(keepers.len(), 1, "a service is started once in a run");
}
