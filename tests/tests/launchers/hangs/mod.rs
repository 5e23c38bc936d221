//! What `sdm diagnose` says of jobs that hang, each in its own way, and of some that do not: the verdict, whom it
//! names, and on what evidence. Each is attached to as it runs, without a debugger before.
//!
//! An ordinary run has each of them once, under Open MPI 4, MPICH and Open MPI 5 in turns; `scripts/test --full` has all
//! of them under each of these ten times, and once with 32 ranks (`SDM_TEST_REPEATS` says how often).

mod cases;
mod job;
mod ways;

use std::path::Path;

use sdm_tests::fixture;
use sdm_tests::job::Folder;
use sdm_tests::parts;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::Sdm;
use serde_json::Value;

use cases::Cases;
use job::{Job, Under};
use ways::{ALIKE, Case, HANGS, HEALTHY, OUTSIDE, in_job_of};

const _: () = sdm_tests::run::test_group("crowded", "eight to 32 ranks that poll");

const RANKS: usize = 8;
/// A larger job.
const MANY: usize = 32;
/// How often each is repeated in a full run, if nothing else is said.
const REPEATS: usize = 10;

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

/// As [`judged_behind`] nothing that changes anything.
fn judged(job: &Job, way: &str, options: &[&str]) -> (Value, Option<i32>) {
    judged_behind(&["env", "--default-signal=INT"], job, way, options)
}

/// What `PREFIX sdm diagnose` says of a job. On a busy machine a rank may have no processor for seconds: it is said that nothing is known of
/// it then, and one looks longer.
fn judged_behind(prefix: &[&str], job: &Job, way: &str, options: &[&str]) -> (Value, Option<i32>) {
    longer_where_starved(
        |more| diagnosed(prefix, job, way, &[options, more].concat()),
        |(found, _)| found.to_string(),
    )
}

/// Whoever is not let run by a full machine cannot be judged: it is looked for longer, twice at most.
fn longer_where_starved<T>(look: impl Fn(&[&str]) -> T, text: impl Fn(&T) -> String) -> T {
    let mut found = look(&[]);
    for more in [["--for", "5"], ["--for", "15"]] {
        if text(&found).contains("not given a processor") {
            found = look(&more);
        }
    }
    found
}

fn diagnosed(prefix: &[&str], job: &Job, way: &str, options: &[&str]) -> (Value, Option<i32>) {
    let place = Place::new();
    let pid = job.launcher.id().to_string();
    let line = [&["--json", &pid], options].concat();
    let done = Sdm::wrapped(prefix, &place, "diagnose").args(line).finish();
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

/// How often a full run has each. A larger job has the processors for itself for a long time.
fn repeats(under: Under) -> usize {
    let usual = if under.ranks == MANY { 1 } else { REPEATS };
    let said = std::env::var("SDM_TEST_REPEATS").ok();
    said.map_or(usual, |said| {
        said.parse().expect("SDM_TEST_REPEATS is a number")
    })
}

fn check_healthy(under: Under, program: &Path, way: &str) {
    let (found, _) = found(under, program, way);
    assert_innocent(&found, &format!("{way} under {under:?}"));
}

/// Nothing is proved, and nobody accused.
fn assert_innocent(found: &Value, what: &str) {
    let step = found["step"].as_str().expect("it has one");
    let is_proved = ["deadlock", "cannot_go_on"].contains(&step);
    assert!(!is_proved && found["suspects"] == "", "{what}: {found:#}");
}

/// The MPIs that are here.
fn installed() -> Vec<Compiler> {
    let mut all = vec![Compiler::OpenMpi, Compiler::Mpich];
    if parts::openmpi5().is_some() {
        all.push(Compiler::OpenMpi5);
    }
    all
}

/// All ways of `under`, and in an ordinary run those only whose turn it is: one of `count`, with this number.
fn all_ways(under: Under, [number, count]: [usize; 2]) {
    let folder = Folder::new(&format!("hangs-{:?}-{}", under.compiler, under.ranks));
    let program = folder.compile(under.compiler, "hangs");
    let mut cases = Cases::default();
    for _ in 0..if is_full() { repeats(under) } else { 1 } {
        let mut turn = 0..;
        let mut is_chosen = || {
            turn.next()
                .is_some_and(|turn| is_full() || turn % count == number)
        };
        for case in HANGS.iter().chain(OUTSIDE).filter(|_| is_chosen()) {
            let case = in_job_of(under.ranks, *case);
            cases.run(under, case.0, || check(under, &program, case));
        }
        for way in HEALTHY.iter().filter(|_| is_chosen()) {
            cases.run(under, way, || check_healthy(under, &program, way));
        }
    }
    cases.finish();
}

/// All ways, or those whose turn it is among the MPIs that are here.
fn in_turns(compiler: Compiler) {
    let all = installed();
    if let Some(number) = all.iter().position(|one| *one == compiler) {
        all_ways(Under::new(compiler), [number, all.len()]);
    }
}

#[test]
fn under_open_mpi() {
    in_turns(Compiler::OpenMpi);
}

#[test]
fn under_mpich() {
    in_turns(Compiler::Mpich);
}

#[test]
fn under_open_mpi_5() {
    in_turns(Compiler::OpenMpi5);
}

/// An ordinary run has some of them, under Open MPI.
fn with_many_ranks(compiler: Compiler) {
    /// Of so many ways an ordinary run takes one.
    const EVERY: usize = 50;
    let is_here = installed().contains(&compiler);
    if is_here && (is_full() || compiler == Compiler::OpenMpi) {
        let under = Under {
            ranks: MANY,
            ..Under::new(compiler)
        };
        all_ways(under, [0, EVERY]);
    }
}

#[test]
fn under_open_mpi_with_many_ranks() {
    with_many_ranks(Compiler::OpenMpi);
}

#[test]
fn under_mpich_with_many_ranks() {
    with_many_ranks(Compiler::Mpich);
}

#[test]
fn under_open_mpi_5_with_many_ranks() {
    with_many_ranks(Compiler::OpenMpi5);
}

/// Without source and debug information the state of frames is all there is to tell who stands.
#[test]
fn a_program_without_debug_information_is_told_too() {
    let folder = Folder::new("hangs-bare");
    let program = folder.0.join("hangs");
    fixture::compile(Compiler::Mpich, "hangs", &["-O2"], &program);
    for case in [
        ("ring", "deadlock", "", "MPI_Recv"),
        ("loop_of_calls", "held_up", "3", "which compute"),
        (
            "joined_locks",
            "deadlock",
            "3",
            "waits in worker () for &first",
        ),
    ] {
        check(Under::new(Compiler::Mpich), &program, case);
    }
}

/// Communicators and requests are read from the memory of MPI libraries, whose layout is learned.
#[test]
fn ranks_of_communicators_and_requests_are_those_of_the_job() {
    let mut compilers = vec![Compiler::OpenMpi, Compiler::Mpich];
    compilers.extend(parts::openmpi5().map(|_| Compiler::OpenMpi5));
    for (number, compiler) in compilers.into_iter().enumerate() {
        let folder = Folder::new(&format!("hangs-ranks-{number}"));
        let with = match compiler {
            Compiler::Mpich => "from 0 (its request), tag 99",
            _ => "with 0 (its request), tag 99",
        };
        let program = folder.compile(compiler, "hangs");
        for case in [
            ("ring_of_some", "deadlock", "", "4 -> 7 -> 6 -> 5 -> 4"),
            ("grid", "deadlock", "", "0 -> 3 -> 7 -> 4 -> 0"),
            ("ring_beside", "deadlock", "", "4 -> 7 -> 6 -> 5 -> 4"),
            ("requests", "deadlock", "", "0 -> 7 -> 6 -> 5 -> 4"),
            ("request", "deadlock", "0,3", with),
            ("requests_of_some", "deadlock", "", "4 -> 7 -> 6 -> 5 -> 4"),
            ("halves", "deadlock", "3", "in half (ranks 0-3)"),
            ("twins", "cannot_go_on", "3", "different communicators"),
        ] {
            check(Under::new(compiler), &program, case);
        }
    }
}

#[test]
fn a_rank_that_was_killed_is_what_the_others_wait_for() {
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

/// Whoever is in state D is no less in it where sdm has started the job: what is sent to it does not stop it.
#[test]
fn a_started_rank_that_nobody_can_stop_is_told_with_the_others() {
    let folder = Folder::new("hangs-started");
    let program = folder.compile(Compiler::OpenMpi, "hangs");
    let file = folder.0.join("file");
    let place = Place::new();
    let mut sdm = Sdm::run(&place, 4)
        .args(["--launcher", "mpirun", "--no-stop"])
        .talk()
        .program(
            &program,
            &["in_kernel", file.to_str().expect("a path of text")],
        )
        .spawn();
    sdm.out.wait(0, "rank 3: has forked a process");
    // The others are where they wait soon after that.
    let diagnose = || sdm.ask("diagnose", " samples in ");
    let mut told = std::iter::repeat_with(diagnose).take(10);
    let told = told.find(|said| said.contains("ranks 0-2 (3): waiting in MPI_Barrier"));
    let told = told.unwrap_or_else(|| panic!("{}", sdm.out.text()));
    for part in [
        "Cannot tell: they wait for tasks of which it is not known what they do",
        "rank 3: could not be stopped",
        "the kernel has it in state D",
    ] {
        assert!(told.contains(part), "no {part:?}: {told}");
    }
    let mark = sdm.out.mark();
    sdm.ask("kill", "killed (SIGKILL)");
    sdm.out.wait_each(mark, "3", "killed (SIGKILL)");
    sdm.ask("quit", "quit");
    let _done = sdm.finish();
}

/// Those who are looked at wait for each other only as far as was seen: another one can be what lets them go on.
#[test]
fn who_is_not_looked_at_may_do_anything() {
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

/// Whether the kernel lets an ordinary user count.
fn may_count() -> bool {
    let allowed = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    let allowed = allowed.ok().and_then(|text| text.trim().parse().ok());
    allowed.is_some_and(|level: i32| level <= 2)
}

/// Who calls the same again and again is seen in the same call each time, and does not stand. Where the kernel lets nobody count, that is not
/// known; but nobody is said to wait for ever.
#[test]
fn who_calls_the_same_again_does_not_stand() {
    let times = if is_full() { 50 } else { 2 };
    if !may_count() {
        println!("SKIP: a part: the kernel lets nobody count (kernel.perf_event_paranoid)");
    }
    let by_tcp = Under {
        options: &["--mca", "btl", "self,tcp"],
        ..Under::new(Compiler::OpenMpi)
    };
    let under = [
        by_tcp,
        Under::new(Compiler::OpenMpi),
        Under::new(Compiler::Mpich),
    ];
    for (number, under) in under.into_iter().enumerate() {
        let folder = Folder::new(&format!("hangs-alike-{number}"));
        let program = folder.compile(under.compiler, "hangs");
        let uncounted = folder.compile(Compiler::C, "uncounted");
        let uncounted = uncounted.to_str().expect("a path of text");
        // That bytes on connections are seen one way is enough to show.
        let ways = if number == 0 { &["token"] } else { ALIKE };
        for way in ways {
            let job = Job::start(under, &program, way);
            for _ in 0..times {
                let found = judged_behind(&[uncounted], &job, way, &[]);
                assert_innocent(&found.0, &format!("uncounted, {way} under {under:?}"));
                if may_count() {
                    let (found, code) = judged(&job, way, &[]);
                    let said = format!("{way} under {under:?}: {found:#}");
                    assert_eq!(found["step"], "no_hang_seen", "{said}");
                    assert_eq!(code, Some(0), "{said}");
                }
            }
        }
    }
}

/// Frames are read in the midst of a runtime's work, where gdb now and then finds no way out: that is no progress.
#[test]
fn who_waits_is_never_said_to_go_on() {
    let times = if is_full() { 100 } else { 5 };
    for (number, compiler) in [(0, Compiler::OpenMpi), (1, Compiler::Mpich)] {
        let folder = Folder::new(&format!("hangs-again-{number}"));
        let program = folder.compile(compiler, "hangs");
        let job = Job::start(Under::new(compiler), &program, "receive");
        let pid = job.launcher.id().to_string();
        for time in 0..times {
            let expect =
                "Deadlock: likely to blame: ranks 3-4 (2): one of these two: 3 waits for 4";
            let place = Place::new();
            let look = |more: &[&str]| {
                let line = [&[pid.as_str()], more].concat();
                let asked = Sdm::new(&place, "diagnose").args(line);
                asked.ask_again("each of many diagnoses is right").finish()
            };
            let done = longer_where_starved(look, |done| done.out.clone());
            assert!(done.out.starts_with(expect), "{compiler:?}, {time}: {done}");
        }
    }
}
