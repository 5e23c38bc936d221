//! The prompt on a real terminal, with real gdbs.

use sdm_tests::place::{Compiler, Place};
use sdm_tests::terminal::Terminal;

/// Lines in the order in which they were typed, whatever was done meanwhile: pasted at once, and
/// typed while tasks run.
#[test]
fn what_is_typed_ahead_is_done_in_order() {
    let place = Place::new();
    let _program = place.compile("loop", Compiler::C);
    let mut terminal = Terminal::start(&place, &["run", "-n", "2", "--", "./loop"], 100);
    terminal.wait("(sdm) ");
    terminal.keys("break 16\ncontinue\ndelete\ny\ninfo breakpoints\nprint i+100\n");
    terminal.wait("ranks 0-1 (2): 100");
    terminal.keys("next 20\n");
    terminal.wait("next 20");
    terminal.keys("focus 1\nprint i+200\nfocus all\nprint i+300\nquit\ny\n");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    let mut rest = &screen[..];
    for part in [
        "breakpoint 1 at loop.c:16",
        "stopped at breakpoint 1",
        "Delete all breakpoints? (y or n)",
        "No breakpoints.",
        "ranks 0-1 (2): 100",
        "rank 1: 207",
        "ranks 0-1 (2): 307",
        "kill 2 tasks started here?",
    ] {
        let Some(found) = rest.find(part) else {
            panic!("no {part:?} in its place: {screen}");
        };
        rest = &rest[found + part.len()..];
    }
}

/// Ctrl-C takes back what was begun at the prompt and Ctrl-D ends it.
#[test]
fn what_is_begun_at_the_prompt_is_taken_back_or_ended() {
    let place = Place::new();
    let _program = place.compile("loop", Compiler::C);
    let mut terminal = Terminal::start(&place, &["run", "-n", "2", "--", "./loop"], 100);
    terminal.wait("(sdm) ");
    terminal.keys("define half\n");
    terminal.wait("\n>");
    terminal.keys("\x03");
    terminal.wait("(sdm) ");
    terminal.ask("half", "Undefined command: \"half\"");
    terminal.keys("define whole\n");
    terminal.wait("\n>");
    terminal.keys("print argc + $arg0\n");
    terminal.wait("\n>");
    terminal.keys("\x04");
    terminal.wait("(sdm) ");
    terminal.ask("[1] whole 41", "rank 1: 42");
    // An empty line says it again.
    terminal.ask("", "rank 1: 42");
    terminal.keys("quit\n");
    terminal.wait("kill 2 tasks started here? (y/n/detach) ");
    terminal.keys("\x03");
    terminal.wait("nothing done");
    terminal.wait("(sdm) ");
    terminal.keys("quit\ny\n");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
}
