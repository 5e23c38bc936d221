//! Expectations on `sdm run` and its prompt by users who know gdb and launchers, on real gdb.

use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::Sdm;
use sdm_tests::terminal::Terminal;

/// As with launchers, the first word that is no option is the program.
#[test]
fn program_may_follow_options_without_dashes() {
    let place = Place::new();
    let _program = place.compile("work", Compiler::C);
    let done = Sdm::run(&place, 2)
        .lines(&["print argc", "print argv[1]", "print argv[4]"])
        .args(["./work", "-x", "-c", "--", "--launcher"])
        .finish()
        .code(0);
    done.expect("print argc", "ranks 0-1 (2): 5\n");
    done.expect_part("print argv[1]", "\"-x\"");
    done.expect_part("print argv[4]", "\"--launcher\"");
}

#[test]
fn stacks_differing_only_in_arguments_merge() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let done = Sdm::run(&place, 4)
        .lines(&["break twice", "[3] set var rank = 7", "continue", "bt"])
        .lines(&["[@1] print number"])
        .program(&work, &[])
        .finish()
        .code(0);
    let stack = "ranks 0-3 (4):\n#0  twice (number=...) at work.c:";
    done.expect_part("bt", stack);
    done.expect_part(
        "bt",
        "\n      number: 0 on ranks 0-2 (3); 7 on rank 3\n#1  ",
    );
    assert_eq!(done.answer("bt").matches("#0").count(), 1, "{done}");
    // A class number names a class of the last display of all ranks.
    done.expect_part("[@1] print number", "rank 3: 7\n");
}

/// The list of breakpoints shows their commands, and the number of hits of each rank.
#[test]
fn breakpoints_are_listed_with_their_lines_and_hits() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let done = Sdm::run(&place, 3)
        .lines(&["break twice", "commands", "silent", "if number == 0"])
        .lines(&["print rank", "end", "end", "continue", "[0-1] continue"])
        .lines(&["[0] continue", "info breakpoints"])
        .program(&work, &[])
        .finish()
        .code(0);
    let hits = "\tbreakpoint already hit 3 times on rank 0, 2 times on rank 1, 1 time on rank 2\n";
    done.expect_part("info breakpoints", hits);
    let lines = "\tsilent\n\tif number == 0\n\t  print rank\n\tend\n";
    done.expect_part("info breakpoints", lines);
}

#[test]
fn empty_line_after_list_continues_the_listing() {
    let place = Place::new();
    let _work = place.compile("work", Compiler::C);
    let mut terminal = Terminal::start(&place, &["run", "-n", "2", "./work"], 100);
    terminal.wait("(sdm) ");
    terminal.ask("list 20", "\n24\t");
    let next = terminal.ask("", "\n34\t");
    assert!(
        next.contains("\n25\t") && !next.contains("\n24\t"),
        "{next}"
    );
    let last = terminal.ask("", "\n43\t");
    assert!(!last.contains("\n34\t"), "{last}");
    terminal.keys("quit\ny\n");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
}

#[test]
fn thread_command_shows_the_thread_and_typo_gets_a_hint() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let done = Sdm::run(&place, 2)
        .lines(&["break usleep", "continue", "thread", "contniue"])
        .program(&work, &["spin"])
        .finish()
        .code(123);
    let threads = done.answer("thread");
    assert!(threads.starts_with("ranks 0-1 (2):\n* 1"), "{done}");
    assert_eq!(threads.lines().count(), 2, "{done}");
    done.expect_part("contniue", "Did you mean \"continue\"?");
}

#[test]
fn breakpoint_in_some_programs_names_its_ranks() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let _loop = place.compile("loop", Compiler::C);
    let done = Sdm::run(&place, 2)
        .lines(&["break twice", "break main"])
        .program(&work, &[":", "-n", "1", "./loop"])
        .finish()
        .code(0);
    let some = "breakpoint 1: only ranks 0-1 (2) of 3 can stop at it; the other ranks have no code at the location\n";
    done.expect_part("break twice", some);
    assert!(!done.answer("break main").contains("only"), "{done}");
}

#[test]
fn sdm_emulate_shows_an_example_job() {
    let place = Place::new();
    let done = Sdm::new(&place, "emulate")
        .args(["-n", "8"])
        .lines(&["stacks", "outliers step", "stats residual", "continue"])
        .finish()
        .code(0);
    done.expect_part("stacks", "rank 3: solve () at halo.c:111  <-- 1 of 8\n");
    done.expect_part("outliers step", "rank 3: 59  <-- 1 of 8");
    done.expect_part("stats residual", "max     0.75 on rank 7");
    done.expect_part("continue", "ranks 0-7 (8): exited normally");
}
