//! Ranks of Python programs, by mpi4py and by PyTorch.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::libc::{SYS_clock_nanosleep, SYS_futex, SYS_read};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sdm_system::proc::{Process, State};
use sdm_tests::job::allow_root;
use sdm_tests::place::Place;
use sdm_tests::processes::{self, sleeps_in};
use sdm_tests::run::until;
use sdm_tests::screen::Screen;
use sdm_tests::sdm::Sdm;

const _: () = sdm_tests::run::test_group("crowded", "ranks that poll");

const PYTHON: &str = "/usr/bin/python3";

fn has_mpi4py() -> bool {
    has("mpi4py")
}

fn has(package: &str) -> bool {
    let found = Command::new(PYTHON)
        .args(["-c", &format!("import {package}")])
        .output()
        .is_ok_and(|output| output.status.success());
    if !found {
        println!("SKIP: no python3-{package}");
    }
    found
}

#[test]
fn stacks_and_backtraces_show_python_functions() {
    if !has_mpi4py() {
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/mpi_solver.py");
    let script = script.to_str().expect("a path of text");
    let line = |text| Place::line("mpi_solver.py", text);
    let place = Place::new();
    let mut sdm = Sdm::run(&place, 3)
        .args(["--launcher", "mpirun"])
        .talk()
        .program(Path::new(PYTHON), &[script])
        .spawn();
    sdm.out.wait(0, "ranks 0-2 (3): at");
    // Ranks that are in their MPI function and run on stay in it.
    sdm.ask("set breakpoint pending on", "");
    sdm.ask("[0,2] tbreak MPI_Barrier", "breakpoint 1 ");
    sdm.ask("[1] tbreak MPI_Mprobe", "breakpoint 2 ");
    let mark = sdm.out.mark();
    sdm.ask("[0-2] continue", "(sdm) [0-2] continue\n");
    sdm.out.wait_each(mark, "0,2", "stopped at breakpoint 1");
    sdm.out.wait_each(mark, "1", "stopped at breakpoint 2");
    sdm.ask("[0-2] continue &", "(sdm) [0-2] continue &\n");
    sdm.stop("0-2");
    let stacks = sdm.ask("stacks", "not shown\n");
    let trace = sdm.ask("[1] bt", "<module>");
    assert!(stacks.contains("MPI_Barrier"), "{stacks}");
    assert!(stacks.contains("Solver.halo"), "{stacks}");
    let (main, step) = (line("main()  # from here"), line("solver.step()"));
    let top = format!("ranks 0-2 (3): <module> () at mpi_solver.py:{main}\n");
    assert!(stacks.contains(&top), "{stacks}");
    assert!(
        stacks.contains(&format!("main () at mpi_solver.py:{step}\n")),
        "{stacks}"
    );
    for part in ["_PyEval", "python3.11+", "__pyx_"] {
        assert!(!stacks.contains(part), "{part}: {stacks}");
    }
    let halo = format!(
        "Solver.halo () at mpi_solver.py:{}\n",
        line("self.comm.recv")
    );
    assert!(trace.contains(&halo), "{trace}");
    // A diagnosis and the report are made of the same.
    sdm.ask("diagnose", "called from Solver.halo () at mpi_solver.py:");
    sdm.ask("report r.html", "r.html");
    sdm.ask("quit", "quit");
    let _done = sdm.finish().code(0);
    for name in ["r.html", "r.txt", "r.json"] {
        let report = std::fs::read_to_string(place.path().join(name)).expect(name);
        assert!(report.contains("Solver.halo"), "{name}: {report}");
        assert!(!report.contains("_PyEval"), "{name}: {report}");
    }
}

/// The way of `mpi_python_hangs.py` in which a process hangs, as the kernel sees it.
fn hang_of_python(pid: u32) -> Option<&'static str> {
    let process = processes::of(pid);
    let (number, arguments) = sleeps_in(&process.thread(pid.cast_signed()))?;
    if number == SYS_read {
        // Its child has read all that it was sent and waits for more, or has ended.
        let (child, state) = processes::below(pid).into_iter().next()?;
        let waits = sleeps_in(&processes::of(child)).is_some();
        return waits
            .then_some("server")
            .or(state.has_ended().then_some("loader"));
    }
    // Only a thread that waits for Python's lock passes a time limit; the holder of the lock sleeps.
    let waits_for_lock = number == SYS_futex && arguments[3] != 0;
    let mut ids = process.thread_ids().ok()?;
    let is_holder = |id| {
        let call = sleeps_in(&process.thread(id));
        call.is_some_and(|(number, _)| number == SYS_clock_nanosleep)
    };
    (waits_for_lock && ids.any(is_holder)).then_some("gil")
}

/// True once a rank hangs in the way `way` of `mpi_python_hangs.py`.
fn hangs(place: &Place, way: &str) -> bool {
    let mut processes = place.pids("mpi_python_hangs.py").into_iter();
    processes
        .any(|pid| processes::name(pid).starts_with("python") && hang_of_python(pid) == Some(way))
}

/// Between a rank's own function and MPI's are functions of mpi4py, whose arguments differ.
#[test]
fn call_arguments_are_those_passed_to_mpi() {
    if !has_mpi4py() {
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/mpi_scatter.py");
    let script = script.to_str().expect("a path of text");
    let place = Place::new();
    let mut sdm = Sdm::run(&place, 4)
        .args(["--launcher", "mpirun", "--no-stop"])
        .talk()
        .program(Path::new(PYTHON), &[script])
        .spawn();
    for rank in 0..4 {
        sdm.out.wait(0, &format!("rank {rank} is ready"));
    }
    // `diagnose` samples again until the ranks are at rest.
    let told = sdm.ask("diagnose", " samples in ");
    assert!(told.contains("    root 0 ("), "{told}");
    assert!(!told.contains("in another communicator"), "{told}");
    assert!(told.contains("rank 0"), "{told}");
    sdm.ask("quit", "quit");
    let _done = sdm.finish().code(0);
}

/// A job that runs already, by each way.
#[test]
fn python_rank_that_left_a_scatter_out_is_blamed() {
    if !has_mpi4py() {
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/mpi_scatter.py");
    for by in [&[][..], &["--by", "gdb"]] {
        let mut launcher = Command::new("mpirun.openmpi");
        launcher
            .args(["--oversubscribe", "-n", "4", PYTHON])
            .arg(&script);
        let launcher = allow_root(&mut launcher)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut job = Started(launcher.spawn().expect("it starts"));
        let (output, _reader) = Screen::read(job.0.stdout.take().expect("it was asked for"));
        for rank in 0..4 {
            output.wait(0, &format!("rank {rank} is ready"));
        }
        let place = Place::new();
        let target = job.0.id().to_string();
        let prefix = ["env", "--default-signal=INT"];
        let asked = Sdm::wrapped(&prefix, &place, "diagnose")
            .args([&target])
            .args(by);
        // `diagnose` samples again until the ranks are at rest.
        let done = asked.finish();
        drop(job);
        let told = &done.out;
        assert!(told.contains("likely to blame: rank 0"), "{by:?}: {done}");
        assert!(told.contains("    root 0 ("), "{by:?}: {done}");
        assert!(!told.contains("in another communicator"), "{by:?}: {done}");
        assert!(
            told.contains("hand_out () at mpi_scatter.py:"),
            "{by:?}: {done}"
        );
    }
}

/// A hang in a Python rank is explained in Python's terms: its lock (the GIL), and its worker processes.
#[test]
fn hangs_of_python_are_diagnosed() {
    if !has_mpi4py() {
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/mpi_python_hangs.py");
    let script = script.to_str().expect("a path of text");
    let (held_up, blamed) = ("eld up by rank 3", "likely to blame: rank 3");
    for (way, why, verdict) in [
        ("gil", "for Python's lock (the GIL), which thread ", held_up),
        (
            "loader",
            "whose other end no other process has open since a child ended",
            blamed,
        ),
        (
            "server",
            "for data from a local socket; the wait depends on process",
            held_up,
        ),
    ] {
        let place = Place::new();
        let mut sdm = Sdm::run(&place, 4)
            .args(["--launcher", "mpirun"])
            .talk()
            .program(Path::new(PYTHON), &[script, way])
            .spawn();
        sdm.out.wait_each(0, "0-3", "at");
        // Ranks that are in their MPI function and run on stay in it.
        sdm.ask("set breakpoint pending on", "");
        sdm.ask("[0-2] tbreak MPI_Barrier", "breakpoint 1 ");
        let mark = sdm.out.mark();
        sdm.ask("continue &", "rank 3 is ready");
        sdm.out.wait_each(mark, "0-2", "stopped at breakpoint 1");
        sdm.ask("[0-2] continue &", "(sdm) [0-2] continue &\n");
        until(way, || hangs(&place, way));
        let told = sdm.ask("diagnose", " samples in ");
        assert!(told.contains(why), "{way}: {told}");
        assert!(told.contains(verdict), "{way}: {told}");
        let called = format!("{way} () at mpi_python_hangs.py:");
        assert!(told.contains(&called), "no {called:?}: {told}");
        sdm.ask("quit", "quit");
        let _done = sdm.finish();
    }
}

/// A process of torchrun; all its processes end when it is asked to end.
struct Torchrun(Child);

/// A launcher, which ends its ranks when it is asked to end.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.0.id().cast_signed());
        let _ = kill(pid, Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

impl Torchrun {
    fn start(way: &str) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/torch_hangs.py");
        let mut command = Command::new(PYTHON);
        // With `--standalone`, two of them on a machine would use one port, and end each other.
        command.args(["-m", "torch.distributed.run", "--rdzv_backend", "c10d"]);
        command.args(["--rdzv_endpoint", "localhost:0"]);
        // Of the two numbers 0 and 3, which are usual, that of Debian knows neither with its Python.
        command.args(["--redirects", "1", "--tee", "1", "--nproc_per_node", "4"]);
        command.arg(script).arg(way).env("OMP_NUM_THREADS", "1");
        let mut job = Self(command.stdout(Stdio::piped()).spawn().expect("it starts"));
        let (output, _reader) = Screen::read(job.0.stdout.take().expect("it was asked for"));
        for rank in 0..4 {
            output.wait(0, &format!("[default{rank}]:ready"));
        }
        job
    }

    /// True once no thread of the ranks that wait runs: of three ranks where the fourth computes, else of all four. All
    /// ranks have reported before that they are ready.
    fn hangs(&self, way: &str) -> bool {
        let below = processes::below(self.0.id()).into_iter();
        let ranks = below.filter_map(|(pid, _)| {
            let process = processes::of(pid);
            let line = std::fs::read(process.path("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).into_owned();
            line.contains("torch_hangs.py").then_some(process)
        });
        let sleeps = |process: Process| {
            let mut ids = process.thread_ids().into_iter().flatten();
            ids.all(|id| process.thread(id).state() == Some(State('S')))
        };
        let (asleep, awake): (Vec<bool>, Vec<bool>) = ranks.map(sleeps).partition(|it| *it);
        let computing = usize::from(["computes", "waits"].contains(&way));
        asleep.len() == 4 - computing && awake.len() == computing
    }
}

impl Drop for Torchrun {
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.0.id().cast_signed());
        let _ = kill(pid, Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

/// PyTorch's ranks wait for each other over sockets, which threads of a library serve.
#[test]
fn ranks_of_torchrun_are_diagnosed_by_torch_operation() {
    if !has("torch") {
        return;
    }
    let diagnosed = |job: &Torchrun| {
        let place = Place::new();
        let pid = job.0.id().to_string();
        let asked = Sdm::new(&place, "diagnose").args(["--json", &pid]);
        let done = asked
            .ask_again("each of three diagnoses of ranks that go on is right")
            .finish();
        let records = done.records().into_iter();
        let mut records = records.filter(|record| record["kind"] == "diagnosis");
        records.next().unwrap_or_else(|| panic!("{done}"))
    };
    let of = "waiting in torch.distributed.";
    for (way, field, rank, lines) in [
        (
            "computes",
            "held_up_by",
            "3",
            [of, "all_reduce, called from main () at torch_hangs.py:"],
        ),
        (
            "waits",
            "held_up_by",
            "3",
            [of, "Work.wait, called from main () at torch_hangs.py:"],
        ),
        (
            "crossed",
            "suspects",
            "3",
            [
                "in different communicators",
                "in the process group `2` (ranks 0-3)",
            ],
        ),
        (
            "gradients",
            "suspects",
            "3",
            [
                "Reducer.finalize_backward and torch.distributed.barrier",
                of,
            ],
        ),
    ] {
        let job = Torchrun::start(way);
        until(way, || job.hangs(way));
        let told = diagnosed(&job);
        assert_eq!(told[field], rank, "{way}: {told:#}");
        let told = told.to_string();
        for line in lines {
            assert!(told.contains(line), "{way}: {told}");
        }
    }
    let job = Torchrun::start("healthy");
    for _ in 0..3 {
        let found = diagnosed(&job);
        assert_eq!(found["suspects"], "", "{found:#}");
        assert_eq!(found["stuck"], false, "{found:#}");
    }
}

/// Python loads mpi4py and is not linked with an MPI: the launcher shows which MPI is used.
#[test]
fn unfreed_mpi_objects_of_a_python_program_are_reported() {
    if !has_mpi4py() {
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/mpi_errors.py");
    let place = Place::new();
    let done = Sdm::run(&place, 2)
        .env("XDG_CACHE_HOME", sdm_tests::fixture::cache())
        .args(["--launcher", "mpirun", "--check", "--batch"])
        .program(
            Path::new(PYTHON),
            &[script.to_str().expect("a path of text")],
        )
        .finish()
        .code(119);
    for told in [
        "M301 MPI_Finalize: the communicator of MPI_Comm_dup at mpi_errors.py:5 was never freed",
        "M308 MPI_Finalize: the request of MPI_Isend at mpi_errors.py:7 was never completed",
    ] {
        assert!(done.out.contains(told), "no {told} in {done}");
    }
}
