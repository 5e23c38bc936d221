//! A breakpoint whose location is in no program yet: at a prompt `sdm` asks whether to make it pending, as gdb does.

use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::Sdm;
use sdm_tests::terminal::Terminal;

const QUESTION: &str = "Make breakpoint pending on future shared library load? (y or [n])";
const NOT_DEFINED: &str = "Function \"later\" not defined.";

#[test]
fn prompt_asks_about_a_pending_breakpoint() {
    let place = Place::new();
    let _program = place.compile("loop", Compiler::C);
    let mut terminal = Terminal::start(&place, &["run", "-n", "2", "--", "./loop"], 100);
    terminal.wait("(sdm) ");
    terminal.keys("break later\n");
    terminal.wait(QUESTION);
    terminal.ask("n", "\n");
    terminal.ask("info breakpoints", "No breakpoints");
    terminal.keys("tbreak later if i == 3\n");
    terminal.wait(QUESTION);
    terminal.ask("y", "breakpoint 1 is pending until its location is loaded");
    terminal.ask("set breakpoint pending on", "\n");
    terminal.ask(
        "break loop.c:5000",
        "breakpoint 2 is pending until its location is loaded",
    );
    terminal.ask("set breakpoint pending off", "\n");
    terminal.ask("break later", NOT_DEFINED);
    terminal.ask("print 6*7", "ranks 0-1 (2): 42");
    terminal.keys("quit\ny\n");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    assert_eq!(screen.matches(QUESTION).count(), 2, "{screen}");
}

#[test]
fn unknown_location_in_a_script_is_an_error() {
    let place = Place::new();
    let program = place.compile("loop", Compiler::C);
    let done = Sdm::run(&place, 2)
        .lines(&["break later", "print 6*7"])
        .program(&program, &[])
        .finish()
        .code(123);
    assert!(done.out.contains(NOT_DEFINED), "{done}");
    assert!(
        !done.out.contains(QUESTION) && !done.out.contains("42"),
        "{done}"
    );
}
