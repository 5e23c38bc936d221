//! `sdm run --batch`: runs to the end without a user, and the exit codes.

use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::{Done, Sdm};

fn batch(place: &Place, options: &[&str], lines: &[&str], what: &str) -> Done {
    let program = place.path().join("work");
    Sdm::run(place, 2)
        .args(["--batch"])
        .args(options)
        .lines(lines)
        .program(&program, &[what])
        .finish()
}

#[test]
fn batch_exit_code_reflects_the_outcome() {
    let place = Place::new();
    let _program = place.compile("work", Compiler::C);
    let _done = batch(&place, &[], &[], "steps").code(0);
    let done = batch(&place, &[], &["[1] set var code = 7"], "exit").code(7);
    assert!(done.out.contains("exit code 7"), "{done}");
    let rows = done.err.lines().filter(|line| line.starts_with("  rank"));
    let expected = ["  rank 0: exited normally", "  rank 1: exited with code 7"];
    assert_eq!(rows.collect::<Vec<_>>(), expected, "{done}");
    let codes = ["[0] set var code = 3", "[1] set var code = 7"];
    let _done = batch(&place, &[], &codes, "exit").code(1);
    let done = batch(&place, &[], &["print nothing"], "steps").code(123);
    assert!(done.out.contains("failed"), "{done}");

    let done = batch(&place, &[], &[], "segv").code(139);
    for part in ["(sdm) [@crashed] bt", "(sdm) [@stopped] stacks", "SIGSEGV"] {
        assert!(done.out.contains(part), "{part}: {done}");
    }
    let say = ["--on-crash", "[@crashed] print rank"];
    let done = batch(&place, &say, &["[1] set var rank = 1"], "segv").code(139);
    assert!(!done.out.contains("stacks"), "{done}");
    done.expect_part("[@crashed] print rank", "rank ");
}

/// The notify command runs once the report exists, and its outcome does not change the exit code.
#[test]
fn notify_command_runs_with_the_report_path() {
    let place = Place::new();
    let _program = place.compile("work", Compiler::C);
    let notify = "test -s \"$SDM_REPORT\" && echo $SDM_EXIT_CODE > told && echo 'to stderr' && cp";
    let notify = format!("f() {{ {notify} \"$1\" copied.html; }}; f");
    let done = batch(&place, &["--notify", &notify], &[], "segv").code(139);
    let read = |name: &str| std::fs::read_to_string(place.path().join(name));
    assert_eq!(read("told").expect("it was told"), "139\n");
    let (report, copied) = (read("report.html"), read("copied.html"));
    assert_eq!(report.expect("a report"), copied.expect("its copy"));
    assert!(
        done.err.contains("to stderr") && !done.out.contains("to stderr"),
        "{done}"
    );
    let done = batch(&place, &["--notify", "exit 5 #"], &[], "steps").code(0);
    let said = "sdm: --notify: the command ended with exit status: 5";
    assert!(done.err.contains(said), "{done}");
}

#[test]
fn batch_inspects_and_ends_runs_past_time_or_hang_limit() {
    let place = Place::new();
    let _program = place.compile("work", Compiler::C);
    let done = batch(&place, &["--time-limit", "2"], &[], "spin").code(120);
    for part in [
        "the time limit was reached: 2 s",
        "(sdm) [@stopped] diagnose",
    ] {
        assert!(done.out.contains(part), "{part}: {done}");
    }
    let quiet = ["--hang-timeout", "2", "--on-timeout", "ranks"];
    let done = batch(&place, &quiet, &[], "spin").code(120);
    assert!(
        done.out
            .contains("the program had no output and no stop for 2 s"),
        "{done}"
    );
    assert!(done.answer("ranks").contains("interrupted"), "{done}");
}
