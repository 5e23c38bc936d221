//! Signals for which a program has a handler go to the program. The command `handle` has its effect from every source
//! of commands.

use std::fs;

use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::{Done, Sdm};

fn batch(place: &Place, settings: &[&str], what: &str) -> Done {
    let program = place.compile("handlers", Compiler::C);
    let settings = settings.iter().flat_map(|line| ["--gdb-setting", line]);
    Sdm::run(place, 2)
        .args(["--batch", "--no-report"])
        .args(settings)
        .program(&program, &[what])
        .finish()
}

#[test]
fn batch_passes_handled_signals_to_the_program() {
    let place = Place::new();
    let done = batch(&place, &[], "live").code(0);
    assert!(done.united().contains("5 faults, 1 probes\n"), "{done}");
    assert!(!done.out.contains("received signal"), "{done}");
}

#[test]
fn batch_stops_at_a_signal_that_a_handler_reraises() {
    let place = Place::new();
    let done = batch(&place, &[], "die").code(139);
    assert!(done.united().contains("5 faults, 1 probes\n"), "{done}");
    let held = "received signal SIGSEGV, Segmentation fault, dies () at handlers.c:";
    assert!(done.out.contains(held), "{done}");
    // The stack at the fault, without a frame of the handler.
    done.expect_part("[@crashed] bt", "#0  dies (nowhere=0x0) at handlers.c:");
    done.expect_part("[@crashed] bt", "\n#1  main (argc=2,");
}

/// The program runs under SDM's own tracer (`--batch`), and under a gdb that is there from the start.
#[test]
fn batch_leaves_abort_to_a_handler_that_continues() {
    let place = Place::new();
    let program = place.compile("handlers", Compiler::C);
    let run = || Sdm::run(&place, 2);
    let batch = || run().args(["--batch", "--no-report"]);
    for run in [batch(), run().lines(&["continue"])] {
        let done = run.program(&program, &["abort"]).finish().code(0);
        assert!(done.united().contains("went on\n"), "{done}");
        assert!(!done.out.contains("about to call"), "{done}");
    }
    let last = batch().program(&program, &["abort", "last"]);
    let done = last.finish().code(134);
    assert!(done.out.contains("received signal SIGABRT"), "{done}");
    assert!(!done.out.contains("about to call"), "{done}");
}

#[test]
fn handle_command_of_each_source_decides_which_signals_stop() {
    const STOPS: &str = "handle SIGSEGV stop print pass";
    const PASSES: &str = "handle 11 nostop noprint pass";
    let first = "received signal SIGSEGV, Segmentation fault, main () at handlers.c:";
    let place = Place::new();
    let done = batch(&place, &[STOPS], "live").code(139);
    assert!(done.out.contains(first), "{done}");
    let done = batch(&place, &[PASSES], "die").code(139);
    assert!(!done.out.contains("received signal"), "{done}");
    let ended = "terminated by signal SIGSEGV";
    assert!(done.out.contains(ended), "{done}");
    let file = place.path().join("config.toml");
    for (line, shown) in [(STOPS, first), (PASSES, ended)] {
        fs::write(&file, format!("gdb-setting = [\"{line}\"]\n")).expect("there is room");
        for variable in ["SDM_CONFIG", "SDM_SITE_CONFIG"] {
            let program = place.compile("handlers", Compiler::C);
            let done = Sdm::run(&place, 1)
                .args(["--batch", "--no-report"])
                .env(variable, &file)
                .program(&program, &["die"])
                .finish()
                .code(139);
            assert!(done.out.contains(shown), "{variable} {line}: {done}");
        }
    }
    // In a profile, and as a command of a batch.
    fs::write(
        &file,
        format!("[profile.faults]\ngdb-setting = [\"{STOPS}\"]\n"),
    )
    .expect("there is room");
    for args in [["--profile", "faults"], ["-c", STOPS]] {
        let program = place.compile("handlers", Compiler::C);
        let done = Sdm::run(&place, 1)
            .args(["--batch", "--no-report"])
            .args(args)
            .env("SDM_CONFIG", &file)
            .program(&program, &["live"])
            .finish()
            .code(139);
        assert!(done.out.contains(first), "{args:?}: {done}");
    }
    // As commands of the session, typed and passed to gdb.
    for word in ["", "gdb "] {
        let program = place.compile("handlers", Compiler::C);
        let line = format!("{word}{STOPS}");
        let done = Sdm::run(&place, 1)
            .lines(&[&line, "continue", "kill"])
            .program(&program, &["live"])
            .finish();
        done.expect_part("continue", first);
    }
}

/// The commands of a breakpoint: what one refuses, and what another sets for the rest of the run.
#[test]
fn handle_in_breakpoint_commands_changes_signal_handling() {
    let place = Place::new();
    let program = place.compile("handlers", Compiler::C);
    let run = |line: &str, what: &str| {
        Sdm::run(&place, 1)
            .lines(&[
                "break sigaction",
                "commands 1",
                "silent",
                line,
                "continue",
                "end",
            ])
            .lines(&["continue", "kill"])
            .program(&program, &[what])
            .finish()
    };
    let done = run("handle SIGSEGV stop print pass", "live");
    let first = "received signal SIGSEGV, Segmentation fault, main () at handlers.c:";
    assert!(done.out.contains(first), "{done}");
    let done = run("handle SIGTRAP nostop noprint", "live");
    assert!(
        done.out
            .contains("SIGTRAP is reserved for the debugger, so its handling cannot be changed"),
        "{done}"
    );
}

#[test]
fn handle_refuses_signals_of_the_debugger_by_name() {
    let place = Place::new();
    let line = "handle SIGTRAP nostop";
    let done = batch(&place, &[line, "handle 5-6 nostop"], "live").code(0);
    for line in [line, "handle 5-6 nostop"] {
        let said = format!(
            "{line}: SIGTRAP is reserved for the debugger, so its handling cannot be changed"
        );
        assert!(done.out.contains(&said), "{done}");
    }
}
