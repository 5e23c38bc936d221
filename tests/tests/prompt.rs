//! The prompt on a real terminal, with real gdbs.

use std::fs;
use std::path::PathBuf;

use sdm_tests::terminal::{Terminal, compile};

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("sdm-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder for the test");
    folder
}

/// Lines in the order in which they were typed, whatever was done meanwhile: pasted at once, and
/// typed while tasks run.
#[test]
fn what_is_typed_ahead_is_done_in_order() {
    let folder = folder("ahead");
    let _program = compile("loop", &folder);
    let mut terminal = Terminal::start(&["run", "-n", "2", "--", "./loop"], &folder, 100);
    terminal.wait("(sdm) ");
    terminal.keys("break 16\ncontinue\ndelete\ninfo breakpoints\nprint i+100\n");
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
    fs::remove_dir_all(folder).expect("it is ours");
}
