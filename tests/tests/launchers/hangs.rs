//! What `sdm diagnose` says of jobs that hang, each in its own way, and of some that do not: the verdict, whom it
//! names, and on what evidence. Each is attached to as it runs, without a debugger before.
//!
//! An ordinary run has some of them, under Open MPI and MPICH in turns; `scripts/test --full` all of them under these and
//! under Open MPI 5, ten times each.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use sdm_tests::fixture;
use sdm_tests::job::{Folder, allow_root, running};
use sdm_tests::parts;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::run::{BOUND, alone};
use sdm_tests::sdm::Sdm;
use serde_json::Value;

const RANKS: usize = 8;
/// A larger job, for some of the ways.
const MANY: usize = 32;
/// Of so many ways an ordinary run takes one.
const EVERY: usize = 8;
/// How often each is repeated in a full run.
const REPEATS: usize = 10;

/// What is to be found: the way, the step, whom it names (to blame, or held up by), and what its words hold.
type Case = (&'static str, &'static str, &'static str, &'static str);

const HANGS: &[Case] = &[
    ("receive", "deadlock", "3", "from 4 (who)"),
    ("probe", "deadlock", "3", "MPI_Probe"),
    ("any_source", "deadlock", "3", "(0 -> 3 -> 0)"),
    ("request", "deadlock", "3", "MPI_Wait"),
    ("requests", "deadlock", "", "MPI_Waitall"),
    ("ring", "deadlock", "", "0 -> 7 -> 6 -> 5"),
    ("send_ring", "deadlock", "", "0 -> 1 -> 2 -> 3"),
    ("exchange", "deadlock", "", "in a circle"),
    ("pair", "deadlock", "2-3", "(2 -> 3 -> 2)"),
    ("hub", "deadlock", "", "0 -> 3 -> 0"),
    (
        "tags",
        "cannot_go_on",
        "",
        "2 sends to 3 under tag 1, which waits for tag 99",
    ),
    ("broadcast", "deadlock", "3", "MPI_Bcast"),
    (
        "collective",
        "cannot_go_on",
        "3",
        "different collective operations",
    ),
    ("gathers", "cannot_go_on", "3", "MPI_Alltoall"),
    ("duplicate", "deadlock", "3", "MPI_Comm_dup"),
    ("root", "cannot_go_on", "3", "MPI_Reduce"),
    ("halves", "deadlock", "3", "in half"),
    ("stopped", "cannot_go_on", "3", "a signal has stopped"),
    ("locks", "deadlock", "3", "each other's locks"),
    ("own_lock", "deadlock", "3", "which thread 1 holds"),
    ("orphaned", "cannot_go_on", "3", "whose holder has ended"),
    ("condition", "held_up", "3", "pthread_cond_wait"),
    ("join", "held_up", "3", "called from join ()"),
    ("loop", "held_up", "3", "running within spin ()"),
    ("loop_of_calls", "held_up", "3", "running within iterate ()"),
    ("recursion", "held_up", "3", "recursion ()"),
    ("polls", "held_up", "3", "MPI_Iprobe"),
    ("tests", "held_up", "3", "MPI_Test"),
    ("sleeps", "held_up", "3", "pause"),
    ("chain", "held_up", "0", "running within spin ()"),
    ("file_lock", "held_up", "3", "for the lock on "),
    ("file_lock_of_a_rank", "deadlock", "3", "for the lock on "),
    ("record_lock", "deadlock", "3", "for the lock on "),
    ("pipe", "held_up", "3", "what is written into pipe:"),
    ("child", "held_up", "3", "a child to end"),
    ("fence", "held_up", "3", "running within spin ()"),
    ("parallel_file", "held_up", "3", "running within spin ()"),
    (
        "finalize",
        "deadlock",
        "3",
        "MPI_Finalize, which was not reached here",
    ),
    ("two_orders", "deadlock", "2-3", "MPI_Recv"),
    (
        "a_thread_will_send",
        "held_up",
        "3",
        "another thread goes on",
    ),
    (
        "threads_in_mpi",
        "deadlock",
        "2-3",
        "called from threads_in_mpi ()",
    ),
    ("window_lock", "held_up", "3", "running within spin ()"),
    ("unread", "held_up", "3", "pipe:"),
    ("ring_of_some", "deadlock", "", "not reached here"),
    ("grid", "deadlock", "", "not reached here"),
    ("some_compute", "held_up", "5", "which compute"),
];

/// What a rank waits for outside of MPI, and what the kernel says of it.
const OUTSIDE: &[Case] = &[
    ("fifo", "held_up", "3", "who opens the other end of "),
    ("connection", "deadlock", "3", "for what 127.0.0.1:"),
    (
        "loader",
        "held_up",
        "3",
        "whose other end nobody else has since a child has ended",
    ),
    ("critical", "held_up", "3", "called from enter_critical ()"),
    ("in_kernel", "cannot_tell", "", "state D"),
];

/// What is looked at in the larger job too.
const OF_MANY: &[Case] = &[
    ("ring", "deadlock", "", "0 -> 31 -> 30 -> 29"),
    ("receive", "deadlock", "3", "from 4 (who)"),
    ("root", "cannot_go_on", "3", "MPI_Reduce"),
    ("chain", "held_up", "0", "running within spin ()"),
    ("two_orders", "deadlock", "2-3", "MPI_Recv"),
];

const HEALTHY: &[&str] = &[
    "balanced",
    "uneven",
    "long_step",
    "farm",
    "pipeline",
    "overlap",
    "writes",
    "no_variable",
    "one_core",
    "throttled",
    "served",
];

/// By what a job is run, and how large it is.
#[derive(Clone, Copy, Debug)]
struct Under {
    compiler: Compiler,
    ranks: usize,
    /// More options of the launcher.
    options: &'static [&'static str],
}

impl Under {
    fn new(compiler: Compiler) -> Self {
        Self {
            compiler,
            ranks: RANKS,
            options: &[],
        }
    }

    fn launcher(self) -> Command {
        let mut command = match (self.compiler, parts::openmpi5()) {
            (Compiler::Mpich, _) => Command::new("mpiexec.hydra"),
            (Compiler::OpenMpi5, Some(folder)) => {
                let mut command = Command::new(folder.join("bin/mpirun"));
                command.args(["--oversubscribe", "--bind-to", "none"]);
                command.args(["--mca", "pml", "ob1", "--mca", "btl", "self,sm"]);
                command
            }
            _ => {
                let mut command = Command::new("mpirun.openmpi");
                command.arg("--oversubscribe");
                command
            }
        };
        allow_root(&mut command);
        command.args(self.options);
        command.args(["-n", &self.ranks.to_string()]);
        command
    }
}

/// A job that runs, and is killed when this goes.
struct Job {
    launcher: Child,
    program: PathBuf,
}

impl Job {
    /// Starts it, and waits until every rank is about to do what it is to do.
    fn start(under: Under, program: &Path, way: &str) -> Self {
        let folder = program.parent().expect("it lies in a folder");
        let file = folder.join("file");
        std::fs::write(&file, "").expect("a file of the test's");
        // Launchers do not pass on every line of output on a busy machine.
        let fifo = folder.join("file.ready");
        let _ = std::fs::remove_file(&fifo);
        mkfifo(&fifo, Mode::S_IRUSR | Mode::S_IWUSR).expect("a FIFO of the test's");
        let both_ends = File::options().read(true).write(true).open(&fifo);
        let mut ready = both_ends.expect("it is there");
        let mut command = under.launcher();
        command.arg(program).arg(way).arg(file);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let launcher = command.spawn().expect("it is installed");
        let job = Self {
            launcher,
            program: program.to_owned(),
        };
        let mut missing = under.ranks * "ready\n".len();
        while missing > 0 {
            let bound = PollTimeout::try_from(BOUND).expect("it is short");
            let mut fds = [PollFd::new(ready.as_fd(), PollFlags::POLLIN)];
            let count = poll(&mut fds, bound).expect("it can be waited for");
            assert!(
                count > 0,
                "{way} under {under:?}: {missing} bytes are missing"
            );
            missing -= ready
                .read(&mut vec![0; missing])
                .expect("there is something");
        }
        job
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        // A rank that is stopped hears no other signal.
        for pid in running(&self.program) {
            let pid = nix::unistd::Pid::from_raw(pid.cast_signed());
            // Its launcher may have ended it by then, as another one has gone.
            let _ = nix::sys::signal::kill(pid, Signal::SIGKILL);
        }
        let _ = self.launcher.kill();
        let _ = self.launcher.wait();
    }
}

/// What is said of a way, as the record, with the exit code.
fn found(under: Under, program: &Path, way: &str) -> (Value, Option<i32>) {
    // The test has it before any rank wants it.
    let lock = (way == "file_lock").then(|| {
        let path = program.with_file_name("file");
        let lock = std::fs::File::create(path).expect("a file of the test's");
        lock.lock().expect("nobody else has it");
        lock
    });
    let job = Job::start(under, program, way);
    let found = judged(&job, way, &[]);
    drop((lock, job));
    found
}

/// As [`diagnosed`]. On a busy machine a rank may have no processor for seconds: it is said that nothing is known of it then, and one
/// looks longer.
fn judged(job: &Job, way: &str, options: &[&str]) -> (Value, Option<i32>) {
    let mut found = diagnosed(job, way, options);
    for seconds in ["5", "15"] {
        if !found.0.to_string().contains("not given a processor") {
            break;
        }
        found = diagnosed(job, way, &[options, &["--for", seconds]].concat());
    }
    found
}

fn diagnosed(job: &Job, way: &str, options: &[&str]) -> (Value, Option<i32>) {
    let place = Place::new();
    let pid = job.launcher.id().to_string();
    let line = [&["--json", &pid], options].concat();
    let done = Sdm::new(&place, "diagnose").args(line).finish();
    let records = done.records();
    let found = records.iter().find(|record| record["kind"] == "diagnosis");
    let found = found.unwrap_or_else(|| panic!("{way}: {done}")).clone();
    (found, done.code)
}

fn check(under: Under, program: &Path, case: Case) {
    let (way, step, named, part) = case;
    let (found, code) = found(under, program, way);
    let said = format!("{way} under {under:?}: {found:#}");
    assert_eq!(found["step"], step, "{said}");
    let list = match step {
        "held_up" => "held_up_by",
        _ => "suspects",
    };
    assert_eq!(found[list], named, "{said}");
    assert!(found.to_string().contains(part), "no {part:?}: {said}");
    let expect = match step {
        "deadlock" => 1,
        "cannot_go_on" => 3,
        "cannot_tell" => 2,
        _ => 4,
    };
    assert_eq!(code, Some(expect), "{said}");
}

fn is_full() -> bool {
    std::env::var_os("SDM_TEST_FULL").is_some()
}

fn repeats() -> usize {
    if is_full() { REPEATS } else { 1 }
}

/// The part of a list that this MPI has in an ordinary run, by its number among them; all in a full one.
fn chosen<T: Copy>(list: &[T], number: usize) -> Vec<T> {
    let all = list.iter().enumerate();
    let chosen = all.filter(|(index, _)| is_full() || index % EVERY == number);
    chosen.map(|(_, one)| *one).collect()
}

fn all_under(compiler: Compiler, number: usize) {
    let folder = Folder::new(&format!("hangs-{number}"));
    let program = folder.compile(compiler, "hangs");
    let under = Under::new(compiler);
    for _ in 0..repeats() {
        for case in chosen(HANGS, number) {
            check(under, &program, case);
        }
        for way in chosen(HEALTHY, number) {
            let (found, _) = found(under, &program, way);
            let step = found["step"].as_str().expect("it has one");
            let innocent = !["deadlock", "cannot_go_on"].contains(&step);
            assert!(innocent, "{way} under {compiler:?}: {found:#}");
            assert_eq!(found["suspects"], "", "{way}: {found:#}");
        }
    }
}

#[test]
fn under_open_mpi() {
    let _alone = alone();
    all_under(Compiler::OpenMpi, 0);
}

#[test]
fn under_mpich() {
    let _alone = alone();
    all_under(Compiler::Mpich, 2);
}

#[test]
fn under_open_mpi_5() {
    let _alone = alone();
    if is_full() && parts::openmpi5().is_some() {
        all_under(Compiler::OpenMpi5, 1);
    }
}

#[test]
fn with_many_ranks() {
    let _alone = alone();
    let compilers = [Compiler::OpenMpi, Compiler::Mpich];
    let all = compilers.len() * if is_full() { OF_MANY.len() } else { 0 };
    // An ordinary run has one of them.
    for number in 0..all.max(1) {
        let compiler = compilers[number % compilers.len()];
        let folder = Folder::new(&format!("hangs-many-{number}"));
        let program = folder.compile(compiler, "hangs");
        let under = Under {
            ranks: MANY,
            ..Under::new(compiler)
        };
        check(under, &program, OF_MANY[number / compilers.len()]);
    }
}

/// An ordinary run has these under one MPI; each is a matter of the kernel's.
#[test]
fn what_is_waited_for_outside_of_mpi() {
    let _alone = alone();
    let compilers = [Compiler::Mpich, Compiler::OpenMpi];
    let times = if is_full() { REPEATS } else { 1 };
    for (number, compiler) in (0..).zip(&compilers[..if is_full() { 2 } else { 1 }]) {
        let folder = Folder::new(&format!("hangs-outside-{number}"));
        let program = folder.compile(*compiler, "hangs");
        for case in OUTSIDE.iter().cycle().take(times * OUTSIDE.len()) {
            check(Under::new(*compiler), &program, *case);
        }
    }
}

/// Without source and debug information the state of frames is all there is to tell who stands.
#[test]
fn a_program_without_debug_information_is_told_too() {
    let _alone = alone();
    let folder = Folder::new("hangs-bare");
    let program = folder.0.join("hangs");
    fixture::compile(Compiler::Mpich, "hangs", &["-O2"], &program);
    for case in [
        ("ring", "deadlock", "", "MPI_Recv"),
        ("loop_of_calls", "held_up", "3", "which compute"),
    ] {
        check(Under::new(Compiler::Mpich), &program, case);
    }
}

/// Open MPI's communicators and requests are read from its memory, whose layout is learned.
#[test]
fn ranks_of_communicators_and_requests_are_those_of_the_job() {
    let _alone = alone();
    let compilers = match parts::openmpi5() {
        Some(_) => &[Compiler::OpenMpi, Compiler::OpenMpi5][..],
        None => &[Compiler::OpenMpi],
    };
    for (number, compiler) in compilers.iter().enumerate() {
        let folder = Folder::new(&format!("hangs-ranks-{number}"));
        let program = folder.compile(*compiler, "hangs");
        for case in [
            ("ring_of_some", "deadlock", "", "4 -> 7 -> 6 -> 5 -> 4"),
            ("grid", "deadlock", "", "0 -> 3 -> 7 -> 4 -> 0"),
            ("requests", "deadlock", "", "0 -> 7 -> 6 -> 5 -> 4"),
            ("request", "deadlock", "3", "with 0 (its request), tag 99"),
            ("halves", "deadlock", "3", "in half (ranks 0-3)"),
        ] {
            check(Under::new(*compiler), &program, case);
        }
    }
}

#[test]
fn a_rank_that_was_killed_is_what_the_others_wait_for() {
    let _alone = alone();
    let folder = Folder::new("hangs-killed");
    let program = folder.compile(Compiler::OpenMpi, "hangs");
    // Its launcher would end the others otherwise.
    let options = &[
        "--enable-recovery",
        "--mca",
        "orte_abort_on_non_zero_status",
        "0",
    ];
    let under = Under {
        options,
        ..Under::new(Compiler::OpenMpi)
    };
    let case = ("killed", "cannot_go_on", "3", "its process is not there");
    check(under, &program, case);
}

/// Those who are looked at wait for each other only as far as was seen: another one can be what lets them go on.
#[test]
fn who_is_not_looked_at_may_do_anything() {
    let _alone = alone();
    let folder = Folder::new("hangs-part");
    let program = folder.compile(Compiler::Mpich, "hangs");
    for (way, ranks) in [("receive", "0-3"), ("ring", "2-6"), ("any_source", "3")] {
        let job = Job::start(Under::new(Compiler::Mpich), &program, way);
        let (found, code) = judged(&job, way, &["--ranks", ranks]);
        assert_eq!(found["step"], "cannot_tell", "{way}: {found:#}");
        assert_eq!(
            (&found["suspects"], code),
            (&"".into(), Some(2)),
            "{found:#}"
        );
        assert!(found.to_string().contains("not looked at"), "{found:#}");
    }
    // What these two wait for is each other, whatever the rest does.
    let job = Job::start(Under::new(Compiler::Mpich), &program, "pair");
    let (found, _) = judged(&job, "pair", &["--ranks", "2-3"]);
    assert_eq!(found["step"], "deadlock", "{found:#}");
}

/// Frames are read in the midst of a runtime's work, where gdb now and then finds no way out: that is no progress.
#[test]
fn who_waits_is_never_said_to_go_on() {
    let _alone = alone();
    let times = if is_full() { 100 } else { 5 };
    for (number, compiler) in [(0, Compiler::OpenMpi), (1, Compiler::Mpich)] {
        let folder = Folder::new(&format!("hangs-again-{number}"));
        let program = folder.compile(compiler, "hangs");
        let job = Job::start(Under::new(compiler), &program, "receive");
        let pid = job.launcher.id().to_string();
        for time in 0..times {
            let place = Place::new();
            let done = Sdm::new(&place, "diagnose").args([&pid]).finish();
            let expect = "Deadlock: likely to blame: rank 3: ";
            assert!(done.out.starts_with(expect), "{compiler:?}, {time}: {done}");
        }
    }
}
