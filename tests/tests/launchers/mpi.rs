//! Sessions under Open MPI's `mpirun` and MPICH's `mpiexec`.

use std::path::Path;

use sdm_idset::IdSet;
use sdm_tests::control;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::{Running, Sdm};
use sdm_tests::united;

use super::chosen::{LAUNCHERS, chosen};

#[test]
fn four_ranks_stop_step_and_print_the_sum_of_mpi_allreduce() {
    let line = |text| Place::line("mpi_sum.c", text);
    let (begins, sums) = (line("int sum = 0"), line("MPI_Allreduce"));
    let (calls, prints) = (line("sum = add_up"), line("printf"));
    let until = format!("tbreak {prints}");
    for (launcher, compiler) in chosen(
        four_ranks_stop_step_and_print_the_sum_of_mpi_allreduce,
        &LAUNCHERS,
    ) {
        let place = Place::new();
        let sum = place.compile("mpi_sum", compiler);
        let done = Sdm::run(&place, 4)
            .args(["--launcher", launcher])
            .lines(&["break add_up", "continue", "[1,3] next", "bt"])
            .lines(&["print contribution", &until, "[0-3] continue", "print sum"])
            .lines(&[
                "print rank_count",
                "delete",
                "focus all",
                "continue &",
                "wait",
            ])
            .program(&sum, &[])
            .finish()
            .code(0);
        assert!(
            done.beginning().starts_with("ranks 0-3 (4): at main ()"),
            "{done}"
        );
        let stopped =
            format!("ranks 0-3 (4): stopped at breakpoint 1, add_up () at mpi_sum.c:{begins}");
        done.expect_part("continue", &stopped);
        let next = format!("ranks 1,3 (2): add_up () at mpi_sum.c:{sums}\n");
        done.expect_part("[1,3] next", &next);
        for (ranks, line) in [([0, 2], begins), ([1, 3], sums)] {
            let [a, b] = ranks;
            let top = format!(
                "ranks {a},{b} (2):\n#0  add_up (contribution=...) at mpi_sum.c:{line}\n      \
                 contribution: {} on rank {a}; {} on rank {b}\n",
                a + 1,
                b + 1
            );
            done.expect_part("bt", &top);
            done.expect_part("bt", &format!(") at mpi_sum.c:{calls}\n"));
        }
        for rank in 0..4 {
            let value = rank + 1;
            done.expect_part("print contribution", &format!("rank {rank}: {value}\n"));
        }
        let summed =
            format!("ranks 0-3 (4): stopped at breakpoint 2, main () at mpi_sum.c:{prints}\n");
        done.expect_part("[0-3] continue", &summed);
        done.expect("print sum", "ranks 0-3 (4): 10\n");
        done.expect("print rank_count", "ranks 0-3 (4): 4\n");
        for rank in 0..4 {
            let said = format!("[{rank}] rank {rank} of 4: sum 10\n");
            assert!(done.out.contains(&said), "no {said:?} in {done}");
        }
        assert!(done.out.ends_with("exited normally\n"), "{done}");
    }
}

fn start<'a>(place: &'a Place, how: &str, (launcher, compiler): (&str, Compiler)) -> Running<'a> {
    let ends = place.compile("mpi_ends", compiler);
    let sdm = Sdm::run(place, 4)
        .args(["--launcher", launcher])
        .talk()
        .program(&ends, &[how])
        .spawn();
    sdm.out.wait(0, "ranks 0-3 (4): at main ()");
    sdm
}

#[test]
fn exit_before_finalize_stops_the_rank_and_is_reported() {
    for launcher in chosen(
        exit_before_finalize_stops_the_rank_and_is_reported,
        &LAUNCHERS,
    ) {
        let place = Place::new();
        let mut sdm = start(&place, "exit", launcher);
        sdm.ask(
            "continue &",
            "rank 2: about to call _exit before MPI_Finalize",
        );
        sdm.stop("0-1,3");
        sdm.ask(
            "[2] continue",
            "rank 2: exited before MPI_Finalize with code 7\n",
        );
        sdm.ask("print rank", "rank 2: not running (exited 7)\n");
        sdm.ask("quit", "quit");
        let _done = sdm.finish().code(0);
    }
}

#[test]
fn crashed_rank_is_stopped_while_the_others_wait() {
    let place = Place::new();
    let mut sdm = start(&place, "segv", LAUNCHERS[0]);
    let line = Place::line("mpi_ends.c", "*(volatile int *)0");
    let crash = format!(
        "rank 2: received signal SIGSEGV, Segmentation fault, leave () at mpi_ends.c:{line}\n"
    );
    // Ranks that are in the sum and run on stay in it.
    sdm.ask("[0-1,3] tbreak MPI_Allreduce", "breakpoint 1 in ");
    let mark = sdm.out.mark();
    sdm.ask("continue", &crash);
    sdm.out
        .wait_each(mark, "0-1,3", "stopped at breakpoint 1, ");
    sdm.ask("[2] print how", "rank 2: 0x");
    sdm.ask("[0-1,3] continue &", "(sdm) [0-1,3] continue &");
    sdm.stop("0-1,3");
    let stacks = sdm.ask("stacks", " of a runtime not shown\n");
    for part in ["MPI_Allreduce", "ranks 0-1,3 (3): main () at mpi_ends.c"] {
        assert!(stacks.contains(part), "no {part:?} in {stacks}");
    }
    sdm.ask("quit", "quit");
    let _done = sdm.finish().code(0);
}

#[test]
fn mpi_abort_stops_its_rank_and_then_ends_the_job() {
    for launcher in chosen(mpi_abort_stops_its_rank_and_then_ends_the_job, &LAUNCHERS) {
        let place = Place::new();
        let mut sdm = start(&place, "abort", launcher);
        sdm.ask(
            "continue &",
            "rank 2: about to call MPI_Abort with code 9, in MPI_Abort, called from leave ()",
        );
        sdm.ask("[2] continue &", "the launcher ended: ");
        sdm.out.wait(0, "session ended: ");
        let done = sdm.finish().code(122);
        let (_, end) = done
            .out
            .rsplit_once("(sdm) [2] continue &\n")
            .expect("it was given");
        // The launcher kills ranks and servers together: for some ranks the end is reported, the others are lost with
        // their server.
        let (_, lost) = end
            .split_once("the launcher ended: ")
            .expect("it was waited for");
        let lost = lost
            .lines()
            .next()
            .and_then(|line| line.split_once("lost with it: "));
        let lost = lost.map(|(_, who)| format!("{who}: lost with it"));
        let told = end
            .lines()
            .chain(lost.as_deref())
            .filter_map(united::told_of);
        // Tasks that are only silent, or have not answered, may still exist.
        let gone = told.filter(|(_, what)| {
            !what.starts_with("lost, no answer") && !what.starts_with("not answering")
        });
        let gone = IdSet::union_all(gone.map(|(who, _)| who).collect::<Vec<_>>().iter());
        assert_eq!(gone.to_string(), "0-3", "{done}");
        assert!(end.contains("session ended: "), "{done}");
        assert!(!end.contains("about to call"), "held once: {done}");
    }
}

/// With `--output launcher`, the launcher itself forwards the ranks' output and input: nothing is merged, and the
/// launcher's options set the format.
#[test]
fn launcher_forwards_output_and_input_of_ranks() {
    let place = Place::new();
    let work = place.compile("work", Compiler::OpenMpi);
    let input = place.path().join("input");
    std::fs::write(&input, "one\ntwo\n").expect("written");
    let done = Sdm::run(&place, 3)
        .args(["--launcher", "mpirun", "--output", "launcher"])
        .args(["--launcher-option", "--tag-output", "--batch"])
        .reads(&input)
        .program(&work, &["echo"])
        .finish()
        .code(0);
    for line in [
        "[1,0]<stdout>:read one\n",
        "[1,0]<stdout>:read two\n",
        "[1,0]<stdout>:end of input after 2 lines\n",
        "[1,2]<stdout>:end of input after 0 lines\n",
    ] {
        assert!(done.out.contains(line), "no {line:?} in {done}");
    }
    // Records stay whole.
    let done = Sdm::run(&place, 2)
        .args(["--launcher", "mpiexec", "--output", "launcher", "--json"])
        .args(["-c", "continue &", "-c", "wait"])
        .program(&work, &["lines", "3"])
        .finish()
        .code(0);
    assert!(!done.records().is_empty());
    assert_eq!(done.err.matches(" lines\n").count(), 2, "{done}");
    let mut sdm = Sdm::run(&place, 1)
        .args(["--launcher", "mpiexec", "--output", "launcher"])
        .talk()
        .program(&work, &["echo"])
        .spawn();
    sdm.ask("continue &", "");
    sdm.ask("send 0 hello", "read hello\n");
    sdm.ask("send 0 --eof", "end of input after 1 lines\n");
    sdm.ask("wait", "exited normally");
    let done = sdm.finish().code(0);
    assert!(!done.out.contains("[0] read"), "{done}");
    // The output is not merged, as it does not pass through SDM.
    let done = Sdm::run(&place, 2)
        .args(["--output", "launcher"])
        .lines(&["continue &", "wait"])
        .program(&work, &["echo"])
        .finish()
        .code(0);
    let ends = done.out.matches("end of input after 0 lines\n").count();
    assert_eq!(ends, 2, "{done}");
}

/// Open MPI 4 holds the ranks in `MPI_Init` until SDM attaches.
#[test]
fn mpirun_holds_its_ranks_until_attach() {
    let place = Place::new();
    let sdm = |count| Sdm::run(&place, count).args(["--launcher", "mpirun", "--control", "mpir"]);
    let sum = place.compile("mpi_sum", Compiler::OpenMpi);
    let done = control::four_ranks_add_up(sdm(4), &sum, &[]);
    assert!(done.beginning().contains(": attached, in "), "{done}");
    control::held_ranks_end_well(&place, Compiler::OpenMpi, &sdm);
    for (launcher, way) in [
        ("mpiexec", "this launcher cannot stop"),
        ("local", "this launcher cannot stop"),
    ] {
        let done = Sdm::run(&place, 1)
            .args(["--launcher", launcher, "--control", "mpir"])
            .program(&sum, &[]);
        let done = done.finish().code(124);
        assert!(done.err.contains(way), "{done}");
    }
    let none = Path::new("/no/such/program");
    let done = sdm(2).program(none, &[]).finish().code(124);
    let said = "sdm: mpirun exited with code";
    assert!(
        done.err.contains(said) && done.err.contains("/no/such/program"),
        "{done}"
    );
}

/// A shell has no MPI library before it executes an MPI program. So SDM cannot count its MPI calls from the beginning.
#[test]
fn shell_that_executes_an_mpi_program_ends_normally() {
    let place = Place::new();
    let held = place.compile("mpi_held", Compiler::Mpich);
    let go = place.path().join("go");
    std::fs::write(&go, "").expect("a file for the test");
    let script = format!("exec {} {} 0", held.display(), go.display());
    let done = Sdm::run(&place, 2)
        .args(["--launcher", "local"])
        .lines(&["continue"])
        .program(Path::new("/bin/sh"), &["-c", &script])
        .finish();
    done.expect_each("continue", "0-1", "exited with code 7");
}
