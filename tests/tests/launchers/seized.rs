//! Ranks of a batch run without a gdb until something needs one: under `mpirun`, `mpiexec` and the local launcher.

use std::fs;
use std::io::Read;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use nix::sys::signal::Signal;
use sdm_system::look_socket;
use sdm_tests::counted_gdb::CountedGdb;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes;
use sdm_tests::run::until;
use sdm_tests::sdm::{Done, Running, Sdm};

use super::chosen::chosen;

/// Ends of the program `mpi_ends`, each with its exit code and the text of the stop before it.
pub(super) const ENDS: [(&str, i32, &str); 3] = [
    ("segv", 139, "received signal SIGSEGV, Segmentation fault"),
    ("abort", 121, "about to call MPI_Abort with code 9"),
    (
        "exit",
        121,
        "about to call _exit before MPI_Finalize with code 7",
    ),
];
/// Launchers, each with an MPI that it starts.
const LAUNCHERS: [(&str, Compiler); 3] = [
    ("mpirun", Compiler::OpenMpi),
    ("mpiexec", Compiler::Mpich),
    ("local", Compiler::OpenMpi),
];

fn batch(place: &Place, launcher: &str, gdb: &str, program: &str, how: &[&str]) -> Done {
    let program = place.path().join(program);
    Sdm::run(place, 4)
        .args([
            "--launcher",
            launcher,
            "--batch",
            "--no-report",
            "--gdb",
            gdb,
        ])
        .program(&program, how)
        .finish()
}

#[test]
fn ranks_that_exit_normally_need_no_gdb() {
    for (launcher, compiler) in chosen(ranks_that_exit_normally_need_no_gdb, &LAUNCHERS) {
        let place = Place::new();
        let _program = place.compile("mpi_sum", compiler);
        let _done = batch(&place, launcher, "/nosuch/gdb", "mpi_sum", &[]).code(0);
    }
}

#[test]
fn script_that_only_looks_starts_no_gdb_under_a_launcher() {
    for (launcher, compiler) in chosen(
        script_that_only_looks_starts_no_gdb_under_a_launcher,
        &LAUNCHERS,
    ) {
        let place = Place::new();
        let program = place.compile("mpi_sum", compiler);
        let done = Sdm::run(&place, 4)
            .args(["--launcher", launcher, "--batch", "--no-report"])
            .args(["--gdb", "/nosuch/gdb"])
            .lines(&["continue &", "wait", "ranks"])
            .program(&program, &[])
            .finish()
            .code(0);
        done.expect_part("ranks", "exited");
    }
}

/// The other ranks wait for the crashed one for ever. Nobody interrupts a batch, so its script goes on.
#[test]
fn script_goes_on_after_a_crash() {
    let place = Place::new();
    let program = place.compile("mpi_ends", Compiler::OpenMpi);
    for lines in [
        &["continue", "stacks"][..],
        &["continue &", "wait", "stacks"],
        &["continue", "print 1", "[@crashed] bt", "stacks"],
    ] {
        let done = Sdm::run(&place, 4)
            .args(["--launcher", "local", "--batch", "--no-report"])
            .lines(lines)
            .program(&program, &["segv"])
            .finish()
            .code(139);
        let shown = "rank 2: received signal SIGSEGV, Segmentation fault, leave () at mpi_ends.c:";
        assert!(done.united().contains(shown), "{done}");
        done.expect_part("stacks", "MPI_Allreduce");
    }
}

#[test]
fn launcher_ends_the_job_of_a_rank_that_exits() {
    let [(_, open_mpi), (_, mpich), _] = LAUNCHERS;
    for (launcher, compiler, ways) in [
        (
            "mpirun",
            open_mpi,
            &[("unbegun", Some(3)), ("exec", None)][..],
        ),
        ("mpiexec", mpich, &[("exec", None)]),
    ] {
        let place = Place::new();
        let _program = place.compile("mpi_ends", compiler);
        for (how, code) in ways {
            let done = batch(&place, launcher, "/nosuch/gdb", "mpi_ends", &[how]);
            // Launchers choose among the codes of those that they kill.
            let ended = done.united();
            let ended = ended.split("the launcher ended: exited with code ").nth(1);
            let ended = ended.unwrap_or_else(|| panic!("{done}"));
            let ended = ended.split(|c: char| !c.is_ascii_digit()).next();
            let ended = ended.and_then(|it| it.parse().ok()).expect("a number");
            assert!(code.is_none_or(|code| code == ended), "{how}: {done}");
            let done = done.code(ended);
            for shown in [
                "rank 2: exited with code 3\n",
                "rank 2: exited with code 3, and the launcher ended the job",
            ] {
                assert!(done.united().contains(shown), "{shown}: {done}");
            }
        }
    }
}

#[test]
fn fatal_mpi_error_stops_its_rank_and_shows_its_class() {
    let (launcher, compiler) = LAUNCHERS[0];
    let place = Place::new();
    let _program = place.compile("mpi_fatal", compiler);
    let line = Place::line("mpi_fatal.c", "MPI_Send(");
    let shown = format!(
        "rank 1: about to call MPI_Abort for MPI_ERR_RANK (invalid rank), in MPI_Send, called from exchange () at mpi_fatal.c:{line}"
    );
    let gdb = CountedGdb::new(&place);
    let done = batch(&place, launcher, gdb.path(), "mpi_fatal", &[]).code(121);
    assert!(done.out.contains(&shown), "{done}");
    let stacks = done.answer("[@crashed] bt");
    assert!(
        stacks.contains("exchange (rank=1) at mpi_fatal.c"),
        "{done}"
    );
}

#[test]
fn only_fatal_error_stops_a_rank_under_gdb() {
    for (launcher, compiler) in chosen(only_fatal_error_stops_a_rank_under_gdb, &LAUNCHERS[..2]) {
        let place = Place::new();
        let program = place.compile("mpi_fatal", compiler);
        let run = |arguments: &[&str], lines: &[&str]| {
            let run = Sdm::run(&place, 2).args(["--launcher", launcher]);
            run.lines(lines).program(&program, arguments).finish()
        };
        let done = run(&[], &["continue &", "wait 1 60", "[1] bt"]);
        let shown = "rank 1: about to call MPI_Abort for MPI_ERR_RANK (invalid rank), in MPI_Send";
        assert!(done.out.contains(shown), "{done}");
        done.expect_part("[1] bt", "exchange (rank=1) at mpi_fatal.c");
        let done = run(&["returned"], &["continue"]).code(0);
        assert!(!done.out.contains("MPI_Abort"), "{done}");
    }
}

#[test]
fn fatal_error_of_mpich_has_its_code_and_its_text() {
    // MPICH tells nobody who is to be asked before its launcher kills all.
    let (launcher, compiler) = LAUNCHERS[1];
    let place = Place::new();
    let _program = place.compile("mpi_fatal", compiler);
    // The lowest byte of MPICH's code for an error of this kind.
    let invalid_rank = 6;
    let done = batch(&place, launcher, "/nosuch/gdb", "mpi_fatal", &[]).code(invalid_rank);
    for shown in [
        "(rank 1 in comm 0): Fatal error in ",
        "Invalid rank has value 99",
        "session ended: rank 1: MPI_ERR_RANK (invalid rank), in MPI_Send; the launcher killed all ranks and exited with code 6",
    ] {
        assert!(done.united().contains(shown), "{shown}: {done}");
    }
}

#[test]
fn batch_exits_with_122_if_its_tracer_is_killed() {
    let (launcher, compiler) = LAUNCHERS[1];
    let place = Place::new();
    let program = place.compile("mpi_looked", compiler);
    let folder = place.path().to_str().expect("text");
    let options = ["--launcher", launcher, "--batch", "--no-report"];
    let running = Sdm::run(&place, 1).args(options);
    let running = running.program(&program, &[folder]).spawn();
    processes::signal(tracer_of(&running), Signal::SIGKILL);
    let _done = running.finish().code(122);
}

#[test]
fn crash_abort_or_early_exit_starts_at_most_one_gdb() {
    for (launcher, compiler) in chosen(crash_abort_or_early_exit_starts_at_most_one_gdb, &LAUNCHERS)
    {
        let place = Place::new();
        let gdb = CountedGdb::new(&place);
        let _program = place.compile("mpi_ends", compiler);
        // gdb prints the text that is an argument of `leave`.
        for (how, code, starts, shown) in [
            (
                "segv",
                139,
                1,
                "rank 2: received signal SIGSEGV, Segmentation fault, leave ()",
            ),
            (
                "abort",
                121,
                1,
                "rank 2: about to call MPI_Abort with code 9, in MPI_Abort, called from leave ()",
            ),
            (
                "exit",
                121,
                0,
                "rank 2: about to call _exit before MPI_Finalize with code 7",
            ),
        ] {
            let before = gdb.starts();
            let done = batch(&place, launcher, gdb.path(), "mpi_ends", &[how]).code(code);
            assert!(done.out.contains(shown), "{launcher} {how}: {done}");
            let stacks = done.answer("[@stopped] stacks");
            assert!(stacks.contains("MPI_Allreduce"), "{launcher} {how}: {done}");
            assert_eq!(gdb.starts() - before, starts, "the others run: {done}");
        }
    }
}

#[test]
fn crash_abort_or_early_exit_is_reported_without_gdb() {
    for (launcher, compiler) in chosen(
        crash_abort_or_early_exit_is_reported_without_gdb,
        &LAUNCHERS,
    ) {
        let place = Place::new();
        let _program = place.compile("mpi_ends", compiler);
        for (how, code, shown) in ENDS {
            let done = batch(&place, launcher, "/nosuch/gdb", "mpi_ends", &[how]).code(code);
            let shown = format!("rank 2: {shown}");
            assert!(done.out.contains(&shown), "{launcher} {how}: {done}");
            let stacks = done.answer("[@stopped] stacks");
            let place = if how == "exit" { "exit ()" } else { "leave ()" };
            assert!(stacks.contains(place), "{launcher} {how}: {done}");
        }
    }
}

/// The process of SDM that traces the only rank of a batch.
fn tracer_of(running: &Running<'_>) -> u32 {
    let shown = running.out.wait_line(0, "process ");
    let words = shown.split("process ").nth(1).expect("it was waited for");
    let pid = words
        .split_whitespace()
        .next()
        .and_then(|it| it.parse().ok());
    processes::tracer(pid.expect("a pid")).expect("a batch is traced")
}

/// A look from outside at the only rank of a batch, which is released until this is dropped.
fn looked_at(running: &Running<'_>) -> UnixStream {
    let tracer = tracer_of(running);
    let mut look = look_socket::connect(tracer.cast_signed()).expect("it listens");
    look.read_exact(&mut [0]).expect("the rank is let go");
    look
}

/// Ends a look, and waits until the rank is traced again.
fn end(mut look: UnixStream) {
    look.shutdown(Shutdown::Write).expect("it is open");
    let _ = look.read_to_end(&mut Vec::new()).expect("its end");
}

#[test]
fn finalize_during_a_stack_sample_is_no_early_exit() {
    for (launcher, compiler) in chosen(finalize_during_a_stack_sample_is_no_early_exit, &LAUNCHERS)
    {
        let place = Place::new();
        let program = place.compile("mpi_looked", compiler);
        let folder = place.path().to_str().expect("text");
        let make = |name: &str| fs::write(place.path().join(name), "").expect("a file");
        let options = ["--launcher", launcher, "--batch", "--no-report"];
        let begin = || {
            let sdm = Sdm::run(&place, 1).args(options);
            sdm.program(&program, &[folder]).spawn()
        };
        let running = begin();
        let look = looked_at(&running);
        make("finalize");
        until("MPI_Finalize returns", || {
            place.path().join("finalized").exists()
        });
        end(look);
        make("leave");
        let done = running.finish().code(0);
        assert!(!done.out.contains("_exit"), "{launcher}: {done}");
        if compiler == Compiler::Mpich {
            // Its progress is in no symbol, so that the rank is not held.
            continue;
        }
        for name in ["finalize", "leave"] {
            fs::remove_file(place.path().join(name)).expect("it was made");
        }
        let running = begin();
        end(looked_at(&running));
        make("leave");
        let done = running.finish().code(121);
        let early = "rank 0: about to call _exit before MPI_Finalize with code 0";
        assert!(done.out.contains(early), "{launcher}: {done}");
    }
}
