//! MPI programs without a launcher of MPI: SDM runs a PMIx server for them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use sdm_idset::IdSet;
use sdm_tests::ordinary;
use sdm_tests::parts;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes;
use sdm_tests::sdm::{Done, Running, Sdm, command};
use sdm_tests::tool_moments::{ToolMoment, kill_at};

pub(super) fn local(place: &Place, count: u32) -> Sdm<'_> {
    ordinary::run(place, count).args(["--launcher", "local"])
}

/// The programs' lines without the labels of ranks.
pub(super) fn lines_of(out: &str) -> Vec<&str> {
    let said = out
        .lines()
        .filter_map(|line| line.find("rank ").map(|at| &line[at..]));
    let mut said: Vec<_> = said.filter(|line| line.contains(" of ")).collect();
    said.sort_unstable();
    said
}

/// Waits until all of these were reported to have exited normally, together or one by one: exits within a moment
/// share one line.
pub(super) fn wait_exited(sdm: &Running<'_>, ranks: &str) {
    const EXITED: &str = ": exited normally";
    let wanted: IdSet = ranks.parse().expect("a set");
    loop {
        let text = sdm.out.text();
        let told = text.lines().filter_map(|line| line.strip_suffix(EXITED));
        let told = told.filter_map(|who| {
            let who = &who[who.find("rank")?..];
            who.split(' ').nth(1)?.parse::<IdSet>().ok()
        });
        let told = told.fold(IdSet::new(), |all, more| all.union(&more));
        if wanted.is_subset(&told) {
            return;
        }
        sdm.out.wait(text.len(), EXITED);
    }
}

/// The pids of the PMIx servers of a place's session.
pub(super) fn hosts(place: &Place) -> Vec<u32> {
    place.pids("sdm-pmix host")
}

pub(super) fn assert_no_folder(place: &Place) {
    let left = std::fs::read_dir(place.path().join("tmp")).expect("a folder");
    let left: Vec<_> = left.flatten().map(|it| it.path()).collect();
    let ours = |path: &PathBuf| path.to_string_lossy().contains("sdm-pmix");
    assert!(!left.iter().any(ours), "{left:?}");
}

/// The output is the same as under mpirun.
#[test]
fn ranks_form_one_job_without_mpirun() {
    let place = Place::new();
    let sum = place.compile("mpi_sum", Compiler::OpenMpi);
    for count in [1, 4, 16] {
        let mut mpirun = command(&place, "mpirun.openmpi");
        mpirun.args(["--oversubscribe", "-n", &count.to_string()]);
        let expected = ordinary::lower(&mut mpirun).arg(&sum).output();
        let expected = expected.expect("Open MPI's mpirun");
        assert!(expected.status.success(), "{expected:?}");
        let expected = String::from_utf8_lossy(&expected.stdout).into_owned();
        let done = local(&place, count)
            .args(["--batch", "--no-report"])
            .program(&sum, &[])
            .finish()
            .code(0);
        assert_eq!(lines_of(&done.out), lines_of(&expected), "{done}");
        assert_eq!(lines_of(&done.out).len(), count as usize, "{done}");
        assert_no_folder(&place);
    }
}

/// Command that prints `OMPI_COMM_WORLD_LOCAL_RANK`, by which scripts choose a GPU.
const LOCAL_RANK: &str = "print ((int (*)(const char *))atoi)(((char *(*)(const char *))getenv)(\"OMPI_COMM_WORLD_LOCAL_RANK\"))";

fn four_are_debugged(place: &Place, sum: &Path, options: &[&str]) -> Done {
    let done = local(place, 4)
        .args(options)
        .lines(&["break add_up", "continue", "print contribution", "next"])
        .lines(&["stacks", "run", "delete"])
        .lines(&["up", "print rank_count", LOCAL_RANK, "continue"])
        .program(sum, &[])
        .finish()
        .code(0);
    let each = "rank 0: 1\nrank 1: 2\nrank 2: 3\nrank 3: 4\n";
    done.expect("print contribution", each);
    done.expect_part("next", "ranks 0-3 (4): add_up () at mpi_sum.c:");
    done.expect_part("stacks", "ranks 0-3 (4): main ()");
    // Another job, with a PMIx server of its own.
    done.expect_part("run", "ranks 0-3 (4): stopped at breakpoint 1, add_up ()");
    done.expect("print rank_count", "ranks 0-3 (4): 4\n");
    done.expect(LOCAL_RANK, "rank 0: 0\nrank 1: 1\nrank 2: 2\nrank 3: 3\n");
    for rank in 0..4 {
        let said = format!("[{rank}] rank {rank} of 4: sum 10\n");
        assert!(done.out.contains(&said), "no {said:?} in {done}");
    }
    done
}

#[test]
fn four_ranks_are_debugged_by_one_server_and_by_several() {
    for options in [&[][..], &["--tasks-per-server", "2"]] {
        let place = Place::new();
        let sum = place.compile("mpi_sum", Compiler::OpenMpi);
        four_are_debugged(&place, &sum, options);
        assert_no_folder(&place);
    }
}

fn ranks_meet(place: &Place, compiler: Compiler) {
    let meet = place.compile("mpi_meet", compiler);
    let done = local(place, 2)
        .args(["--batch", "--no-report"])
        .program(&meet, &[])
        .finish()
        .code(0);
    let heard = ["rank 0 heard of 1", "rank 1 heard of 0"];
    assert_eq!(lines_of(&done.out), heard, "{done}");
}

/// The linked library shows which MPI a program uses, also where the program names no handle like `MPI_COMM_WORLD`.
#[test]
fn program_naming_no_mpi_handle_runs_under_open_mpi() {
    let place = Place::new();
    let bare = place.compile("mpi_bare", Compiler::OpenMpi);
    let done = local(&place, 2)
        .args(["--batch", "--no-report", "--no-stop"])
        .program(&bare, &[])
        .finish()
        .code(0);
    assert_eq!(
        lines_of(&done.out),
        ["rank 0 of 2: bare", "rank 1 of 2: bare"],
        "{done}"
    );
}

/// Rank 0 publishes a name, rank 1 looks it up, and both connect by it.
#[test]
fn ranks_connect_by_a_published_name() {
    ranks_meet(&Place::new(), Compiler::OpenMpi);
}

#[test]
fn open_mpi_5_ranks_form_one_job_without_mpirun() {
    if parts::openmpi5().is_none() {
        return;
    }
    let place = Place::new();
    let sum = place.compile("mpi_sum", Compiler::OpenMpi5);
    four_are_debugged(&place, &sum, &[]);
    ranks_meet(&place, Compiler::OpenMpi5);
}

/// `MPI_Abort` ends all, and its status is the job's.
#[test]
fn aborting_rank_ends_the_job_with_its_status() {
    let place = Place::new();
    let ends = place.compile("mpi_ends", Compiler::OpenMpi);
    for each in ["1", "32"] {
        let done = local(&place, 4)
            .args(["--batch", "--no-report", "--no-holds"])
            .args(["--tasks-per-server", each])
            .program(&ends, &["abort"])
            .finish()
            .code(9);
        assert!(
            done.out.contains("rank 2 ends the job with status 9"),
            "{done}"
        );
        assert!(done.out.contains("rank 2: exited with code 9\n"), "{done}");
        assert!(
            done.united()
                .contains("ranks 0-1,3 (3): terminated by signal SIGTERM"),
            "{done}"
        );
    }
}

/// Variables of a shell inside another job do not reach the ranks.
#[test]
fn variables_of_an_outer_job_are_ignored() {
    let place = Place::new();
    let sum = place.compile("mpi_sum", Compiler::OpenMpi);
    let outer = [
        ("PMIX_NAMESPACE", "outer@1"),
        ("PMIX_RANK", "7"),
        ("PMIX_SERVER_URI2", "outer.0;tcp4://127.0.0.1:9"),
        ("PMIX_SERVER_URI41", "outer.0;tcp4://127.0.0.1:9"),
        ("PMIX_MCA_gds", "shmem"),
        ("OMPI_COMM_WORLD_RANK", "7"),
        ("OMPI_COMM_WORLD_SIZE", "8"),
        ("OMPI_MCA_ess_base_jobid", "77"),
        ("OMPI_MCA_orte_hnp_uri", "77.0;tcp://127.0.0.1:9"),
        ("SLURM_NODELIST", "n[1-8]"),
        ("SLURM_STEP_ID", "0"),
        ("PMI_RANK", "7"),
    ];
    let mut sdm = local(&place, 3).args(["--batch", "--no-report"]);
    for (name, value) in outer {
        sdm = sdm.env(name, value);
    }
    let done = sdm.program(&sum, &[]).finish().code(0);
    let expected = [
        "rank 0 of 3: sum 6",
        "rank 1 of 3: sum 6",
        "rank 2 of 3: sum 6",
    ];
    assert_eq!(lines_of(&done.out), expected, "{done}");
}

#[test]
fn pmix_server_is_disabled_or_its_failure_reported() {
    const ISOLATED: i32 = 118;
    let place = Place::new();
    let sum = place.compile("mpi_sum", Compiler::OpenMpi);
    let batch = ["--batch", "--no-report"];
    let alone = "rank 0 of 1: sum 1";
    let done = local(&place, 2).args(batch).args(["--pmix", "off"]);
    let done = done.program(&sum, &[]).finish().code(ISOLATED);
    assert!(lines_of(&done.out).contains(&alone), "{done}");
    let no_library = |sdm: Sdm<'static>| sdm.env("SDM_PMIX_LIBRARY", "/no/such/library.so");
    let place: &'static Place = Box::leak(Box::new(place));
    let done = no_library(local(place, 2)).args(batch);
    let done = done.program(&sum, &[]).finish().code(ISOLATED);
    assert!(lines_of(&done.out).contains(&alone), "{done}");
    let why = "ranks 0-1 (2): the PMIx server of SDM cannot be started: load /no/such/library.so: ";
    assert!(done.out.contains(why), "{done}");
    let done = no_library(local(place, 2))
        .args(batch)
        .args(["--pmix", "on"]);
    let done = done.program(&sum, &[]).finish();
    assert!(!matches!(done.code, Some(0)), "{done}");
    assert!(lines_of(&done.out).is_empty(), "{done}");
    let both = format!("{}{}", done.out, done.err);
    assert!(
        both.contains("cannot be started: load /no/such/library.so"),
        "{done}"
    );
    let done = Sdm::run(place, 2).args(["--launcher", "mpirun", "--pmix", "on"]);
    let done = done.program(&sum, &[]).finish().code(2);
    assert!(done.err.contains("--pmix on: only with"), "{done}");
    std::fs::remove_dir_all(place.path()).expect("ours");
}

const AT_ADD_UP: &str = "stopped at breakpoint 1, add_up ()";

/// The death of the PMIx server is reported, and harms neither the session nor ranks stopped in gdb.
#[test]
fn killed_pmix_server_is_reported_and_session_continues() {
    let place = Place::new();
    let sum = place.compile("mpi_sum", Compiler::OpenMpi);
    let mut sdm = local(&place, 4)
        .args(["--tasks-per-server", "2"])
        .talk()
        .program(&sum, &[])
        .spawn();
    sdm.ask("break add_up", "breakpoint 1 at");
    sdm.ask_each("continue", "0-3", AT_ADD_UP);
    let found = hosts(&place);
    assert_eq!(found.len(), 1, "one for the node: {found:?}");
    let position = sdm.out.text().len();
    processes::signal(found[0], Signal::SIGKILL);
    sdm.out.wait(
        position,
        "the PMIx server of these programs (sdm-pmix) has ended: ",
    );
    sdm.ask("print contribution", "rank 3: 4\n");
    sdm.ask("up", "mpi_sum.c");
    sdm.ask("print rank_count", "ranks 0-3 (4): 4\n");
    // A job with another one.
    sdm.ask_each("run", "0-3", AT_ADD_UP);
    assert_eq!(hosts(&place).len(), 1);
    sdm.ask("delete", "");
    sdm.ask_each("continue", "0-3", "exited normally");
    let _done = sdm.finish();
    assert_no_folder(&place);
}

/// The kill of a server of the session costs its own ranks only: the PMIx server stays, also where that server had
/// started it.
#[test]
fn the_pmix_server_outlives_each_server_of_the_session() {
    for victim in [0, 1] {
        let place = Place::new();
        let sum = place.compile("mpi_sum", Compiler::OpenMpi);
        let mut sdm = local(&place, 4)
            .args(["--tasks-per-server", "2"])
            .talk()
            .program(&sum, &[])
            .spawn();
        sdm.ask("break add_up", "breakpoint 1 at");
        sdm.ask_each("continue", "0-3", AT_ADD_UP);
        let before = hosts(&place);
        let servers = processes::servers(place.mark());
        processes::signal(servers[&victim], Signal::SIGKILL);
        let (gone, left, values) = match victim {
            0 => ("0-1", "2-3", "rank 2: 3\nrank 3: 4\n"),
            _ => ("2-3", "0-1", "rank 0: 1\nrank 1: 2\n"),
        };
        sdm.out.wait(0, &format!("ranks {gone} (2): lost"));
        sdm.ask(&format!("[{left}] print contribution"), values);
        assert_eq!(hosts(&place), before);
        sdm.ask("quit", "quit");
        let _done = sdm.finish();
        assert!(hosts(&place).is_empty());
        assert_no_folder(&place);
    }
}

/// Ranks that run on without gdb end as ever: the PMIx server stays as long as they do.
#[test]
fn detached_ranks_end_normally() {
    let place = Place::new();
    let sum = place.compile("mpi_sum", Compiler::OpenMpi);
    let done = local(&place, 4)
        .lines(&["break add_up", "continue", "delete", "detach"])
        .program(&sum, &[])
        .finish()
        .code(0);
    for rank in 0..4 {
        let said = format!("rank {rank} of 4: sum 10\n");
        assert!(done.out.contains(&said), "no {said:?} in {done}");
    }
    assert_no_folder(&place);
}

/// The death of a rank is reported; the others can be inspected.
#[test]
fn killed_rank_is_reported_and_the_others_can_be_inspected() {
    let place = Place::new();
    let held = place.compile("mpi_held", Compiler::OpenMpi);
    let mut sdm = local(&place, 3)
        .talk()
        .program(&held, &["/nonexistent", "0"])
        .spawn();
    sdm.out.wait(0, "ranks 0-2 (3): at main ()");
    // From here on gdb is not involved in any event of the job.
    sdm.ask("continue &", "[0] held 3\n");
    let is_held = |pid: &u32| {
        let variables = processes::of(*pid).environment().unwrap_or_default();
        let is_first = |(name, value): &(_, _)| name == "PMIX_RANK" && value == "0";
        processes::name(*pid) == "mpi_held" && variables.iter().any(is_first)
    };
    let victim = place.pids("mpi_held").into_iter().find(is_held);
    processes::signal(victim.expect("a rank"), Signal::SIGKILL);
    sdm.out.wait(0, "rank 0: killed (SIGKILL)");
    sdm.stop("1-2");
    sdm.ask("[1-2] stacks", "mpi_held.c");
    assert_eq!(hosts(&place).len(), 1);
    sdm.ask("quit", "quit");
    let _done = sdm.finish();
    assert_no_folder(&place);
}

/// Started by anything but a server of the session, the program only reports an error.
#[test]
fn sdm_pmix_started_by_hand_exits_with_an_error() {
    let program = sdm_tests::binaries::folder().join("sdm-pmix");
    let said = Command::new(program)
        .arg("host")
        .stdin(std::process::Stdio::null())
        .output()
        .expect("it starts");
    let text = String::from_utf8_lossy(&said.stderr);
    assert_eq!(said.status.code(), Some(1), "{text}");
    assert!(text.contains("standard input is not a socket"), "{text}");
}

/// A script of the fixtures, where the place's programs can read it.
fn script(place: &Place, name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let copy = place.path().join(name);
    std::fs::copy(source.join(name), &copy).expect("a copy");
    copy
}

/// The ranks are Python programs that use PMIx themselves, and no MPI.
#[test]
fn python_programs_exchange_data_by_pmix() {
    let place = Place::new();
    let put = script(&place, "pmix_put.py");
    let host = nix::unistd::gethostname().expect("a name");
    for length in ["10", "3000000"] {
        let done = local(&place, 3)
            .args(["--batch", "--no-report", "--no-stop", "--pmix", "on"])
            .env("EXPECTED_HOST", &host)
            .program(
                Path::new("/usr/bin/python3"),
                &[put.to_str().expect("text"), length],
            )
            .finish()
            .code(0);
        let said: Vec<_> = (0..3)
            .map(|rank| format!("rank {rank} of 3: all are there"))
            .collect();
        assert_eq!(lines_of(&done.out), said, "{done}");
    }
}

/// Foreign tools see the job; many tools, and killed ones, do no harm.
#[test]
fn foreign_tools_list_the_job_and_killed_ones_leave_it_running() {
    let place = Place::new();
    let late = place.compile("mpi_late", Compiler::OpenMpi);
    let go = place.path().join("go");
    let mut sdm = local(&place, 3)
        .args(["--no-stop", "--tasks-per-server", "2"])
        .talk()
        .program(&late, &[go.to_str().expect("text")])
        .spawn();
    for rank in 0..3 {
        sdm.out.wait(0, &format!("rank {rank} of 3: 3 here"));
    }
    let found = hosts(&place);
    let server = found[0].to_string();
    let ask = script(&place, "pmix_ask.py");
    let tool = || {
        let mut python = command(&place, "/usr/bin/python3");
        python.arg(&ask).arg(&server);
        ordinary::lower(&mut python);
        python
    };
    let told = tool().output().expect("python3");
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(told.contains("3 ranks\n"), "{told}");
    let ranks = place.pids("mpi_late").into_iter();
    let ranks: Vec<_> = ranks
        .filter(|it| processes::name(*it) == "mpi_late")
        .collect();
    assert_eq!(ranks.len(), 3);
    for pid in ranks {
        // State 6: the process has connected to the server.
        let row = format!(": mpi_late, pid {pid}, state 6\n");
        assert!(told.contains(&row), "no {row:?} in {told}");
    }
    let mut pps = command(&place, "pps");
    let listed = ordinary::lower(&mut pps).args(["--pid", &server]).output();
    let listed = listed.expect("pps");
    let listed = String::from_utf8_lossy(&[listed.stdout, listed.stderr].concat()).into_owned();
    assert!(listed.contains("Active nspaces: sdm-"), "{listed}");
    let quiet = || tool().stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let many: Vec<_> = (0..10).map(|_| quiet().expect("python3")).collect();
    for _ in 0..5 {
        for moment in ToolMoment::ALL {
            kill_at(moment, || quiet().expect("python3"));
        }
    }
    for mut tool in many {
        assert!(tool.wait().expect("it ends").success());
    }
    std::fs::write(&go, "").expect("a file");
    wait_exited(&sdm, "0-2");
    assert_eq!(hosts(&place), found);
    sdm.ask("quit", "quit");
    let _done = sdm.finish();
    assert_no_folder(&place);
}
