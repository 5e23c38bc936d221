//! The prompt on a real terminal, with real gdbs.

use sdm_tests::place::{Compiler, Place, script};
use sdm_tests::sdm::Sdm;
use sdm_tests::terminal::Terminal;

/// Lines are executed in the order of typing: pasted at once, and typed while tasks run.
#[test]
fn typeahead_lines_execute_in_order() {
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
        "kill 2 ranks started here?",
    ] {
        let Some(found) = rest.find(part) else {
            panic!("no {part:?} in its place: {screen}");
        };
        rest = &rest[found + part.len()..];
    }
}

/// Ctrl-C discards a multi-line input that was begun at the prompt, and Ctrl-D ends it.
#[test]
fn multi_line_input_is_discarded_or_ended_by_keys() {
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
    // An empty line repeats the last command.
    terminal.ask("", "rank 1: 42");
    terminal.keys("quit\n");
    terminal.wait("kill 2 ranks started here? (y/n/detach) ");
    terminal.keys("\x03");
    terminal.wait("nothing done");
    terminal.wait("(sdm) ");
    terminal.keys("quit\ny\n");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
}

/// A pager as gdb's: Enter, `c` and `q`; `set pagination off` has none, and so has a script.
#[test]
fn long_output_is_paged() {
    const QUESTION: &str = "--Type <RET> for more, q to quit, c to continue without paging--";
    let place = Place::new();
    let program = place.compile("loop", Compiler::C);
    let mut terminal = Terminal::start(&place, &["run", "-n", "2", "./loop"], 100);
    terminal.wait("(sdm) ");
    terminal.keys("help all\n");
    let first = terminal.wait(QUESTION);
    assert!(!first.contains("source FILE"), "{first}");
    terminal.keys("\n");
    terminal.wait(QUESTION);
    terminal.keys("c");
    terminal.wait("source FILE");
    terminal.wait("(sdm) ");
    terminal.keys("help all\n");
    terminal.wait(QUESTION);
    terminal.keys("q");
    let left = terminal.wait("(sdm) ");
    assert!(!left.contains("source FILE"), "{left}");
    terminal.ask("show pagination", "State of pagination is on.");
    terminal.ask("set pagination off", "\n");
    let all = terminal.ask("help all", "source FILE");
    assert!(!all.contains(QUESTION), "{all}");
    terminal.keys("quit\ny\n");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    let done = Sdm::run(&place, 2)
        .lines(&["help all"])
        .program(&program, &[])
        .finish()
        .code(0);
    assert!(
        done.out.contains("source FILE") && !done.out.contains(QUESTION),
        "{done}"
    );
}

/// Such a terminal is Emacs's shell, or that of a pipeline: it has lines, and no movements of the cursor.
#[test]
fn dumb_terminal_gets_a_prompt_without_escape_sequences() {
    let place = Place::new();
    let _program = place.compile("loop", Compiler::C);
    // A start that takes longer than a second has a status line on other terminals.
    script(place.path(), "slow-gdb", "sleep 1.2\nexec gdb \"$@\"");
    let sh = std::path::Path::new("/bin/sh");
    let run = "TERM=dumb sdm run -n 2 --gdb ./slow-gdb ./loop";
    let mut terminal = Terminal::run(&place, sh, &["-c", run], 100);
    terminal.wait("(sdm) ");
    terminal.keys("print 6 * 7\n");
    terminal.wait("ranks 0-1 (2): 42");
    terminal.wait("(sdm) ");
    terminal.keys("kill\n");
    terminal.wait("Kill the program on ranks 0-1 (2)? (y or n) ");
    terminal.keys("y\n");
    terminal.wait("(sdm) ");
    terminal.keys("quit\n");
    let (code, bytes) = terminal.leave_raw();
    assert_eq!(code, 0, "{bytes}");
    assert!(!bytes.contains('\x1b'), "{bytes}");
}

/// Source, functions and files in colours on a terminal, and without them where NO_COLOR asks for that.
#[test]
fn source_is_highlighted_unless_no_color_is_set() {
    let place = Place::new();
    let _program = place.compile("loop", Compiler::C);
    let shell = |script: &str| {
        let sh = std::path::Path::new("/bin/sh");
        let terminal = Terminal::run(&place, sh, &["-c", script], 100);
        let (code, bytes) = terminal.leave_raw();
        assert_eq!(code, 0, "{bytes}");
        bytes
    };
    let run = "sdm run -n 2 -c 'list 5,13' -c 'break step' -c continue -c bt -c kill ./loop";
    let coloured = shell(run);
    for part in [
        "\x1b[36mint\x1b[0m step(\x1b[36mint\x1b[0m i)",
        "\x1b[1mreturn\x1b[0m i + 1;",
        "\x1b[33mstep\x1b[0m (i=1) at \x1b[32mloop.c\x1b[0m:7",
        "\x1b[33mstep\x1b[0m () at \x1b[32mloop.c\x1b[0m:7",
    ] {
        assert!(coloured.contains(part), "no {part:?} in {coloured:?}");
    }
    // A start of more than a second shows a progress line, which is erased; the erase sequence is no colour.
    let plain = shell(&format!("NO_COLOR=1 {run}")).replace("\x1b[K", "");
    assert!(!plain.contains('\x1b'), "{plain:?}");
}
