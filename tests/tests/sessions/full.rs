//! The debugger's screen on a real terminal, with real gdb.

use nix::sys::signal::Signal;
use sdm_tests::cores::leave_core;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes;
use sdm_tests::terminal::Terminal;

const CTRL_C: &str = "\x03";
const CTRL_X: &str = "\x18";
const CTRL_Z: &str = "\x1a";

/// Four tasks on a screen, held at `main`.
fn start<'a>(place: &'a Place, what: &str) -> Terminal<'a> {
    let _program = place.compile("work", Compiler::C);
    let words = ["run", "-n", "4", "--tui", "./work", what];
    let terminal = Terminal::start(place, &words, 120);
    terminal.wait_displayed(&[
        "sdm [all 4: 4 stopped]",
        "1 work.c: main",
        "ranks 0-3 (4)",
        "aaaa",
        "c continue",
    ]);
    terminal
}

fn quit(mut terminal: Terminal<'_>) {
    terminal.keys("q");
    terminal.wait_displayed(&["kill 4 ranks started here? (y/n/detach)"]);
    terminal.keys("y\r");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
}

#[test]
fn keys_step_a_program_and_show_differing_values() {
    let place = Place::new();
    let mut terminal = start(&place, "steps");
    terminal.keys(":[1] set var rank = 5\r");
    terminal.wait_displayed(&["(sdm) [1] set var rank = 5"]);
    terminal.keys(":break twice\r");
    terminal.wait_displayed(&["breakpoint 1 at work.c:"]);
    terminal.keys("c");
    terminal.wait_displayed(&[
        "stopped at breakpoint 1",
        "1 work.c: twice",
        "rank 1: 5",
        "[all 4: 4 stopped]",
        "c continue",
    ]);
    // The breakpoint of the current line is deleted, and set again later.
    terminal.keys("b");
    terminal.wait_displayed(&["(sdm) delete 1"]);
    terminal.keys("n");
    terminal.wait_displayed(&[
        "(sdm) next &",
        "twice () at work.c:26",
        "[all 4: 4 stopped]",
        "c continue",
    ]);
    terminal.keys("f");
    terminal.wait_displayed(&["1 work.c: step_through"]);
    // One rank is the focus: the panels show only that rank.
    terminal.keys("3l\r");
    terminal.wait_displayed(&["(sdm) focus 1", "sdm [1: 1 stopped]"]);
    terminal.keys("a");
    terminal.wait_displayed(&["(sdm) focus all", "[all 4: 4 stopped]"]);
    quit(terminal);
}

#[test]
fn screen_and_prompt_share_one_session() {
    let place = Place::new();
    let mut terminal = start(&place, "spin");
    terminal.keys(&format!(":print 40{CTRL_X}a"));
    // A line that was begun is kept when the screen is switched, in both directions.
    terminal.wait_displayed(&["[all 4: 4 stopped] (sdm) print 40"]);
    terminal.keys("+2\r");
    terminal.wait_displayed(&["ranks 0-3 (4): 42"]);
    terminal.keys(&format!("print 11{CTRL_X}a"));
    terminal.wait_displayed(&["(sdm) print 11", "1 work.c: main", "6 prompt"]);
    terminal.keys("*3\r");
    terminal.wait_displayed(&["ranks 0-3 (4): 33"]);
    terminal.keys("\x1b");
    terminal.wait_displayed(&["b breakpoint"]);
    terminal.keys("c");
    terminal.wait_displayed(&[">>>>"]);
    terminal.keys("p");
    terminal.wait_displayed(&["interrupted", "[all 4: 4 stopped]"]);
    terminal.keys(":tui disable\r");
    terminal.wait_displayed(&["ranks 0-3 (4): 33", "[all 4: 4 stopped] (sdm)"]);
    terminal.keys("tui enable\r");
    terminal.wait_displayed(&["1 work.c:", "2 stacks"]);
    quit(terminal);
}

/// Suspending, resizing and stopping work as in any full-screen program.
#[test]
fn screen_redraws_after_suspension_and_resize() {
    let place = Place::new();
    let _program = place.compile("work", Compiler::C);
    let mut terminal = Terminal::run(&place, "/bin/bash".as_ref(), &["--norc", "-i"], 120);
    terminal.keys("PS1='bash> '; stty -echo\r");
    terminal.keys("sdm run -n 2 --tui ./work spin\r");
    terminal.wait_displayed(&["1 work.c: main", "aa"]);
    terminal.keys(CTRL_Z);
    terminal.wait_displayed(&["Stopped", "bash> "]);
    terminal.keys("fg\r");
    terminal.wait_displayed(&["1 work.c: main", "c continue"]);
    terminal.resize(80, 24);
    let text = terminal.wait_displayed(&["1 work.c: main", "c continue", "┘"]);
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    assert_eq!(text.lines().count(), 24, "{text}");
    // A command that is waited for: Ctrl-C stops the tasks, not sdm.
    terminal.keys(":continue\r");
    terminal.wait_displayed(&["^C cancel"]);
    terminal.keys(CTRL_C);
    terminal.wait_displayed(&["interrupted"]);
    terminal.keys("q");
    terminal.wait_displayed(&["(y/n/detach)"]);
    terminal.keys("y\r");
    terminal.wait_displayed(&["bash> "]);
    terminal.keys("exit\r");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
}

/// The session ends with its terminal, as at the prompt.
#[test]
fn hangup_or_killed_sdm_leaves_nothing() {
    let place = Place::new();
    for signal in [Signal::SIGHUP, Signal::SIGTERM, Signal::SIGKILL] {
        let terminal = start(&place, "spin");
        processes::signal(terminal.pid(), signal);
        let (code, screen) = terminal.finish();
        assert_ne!(code, 0, "{signal}: {screen}");
    }
}

#[test]
fn screen_shows_cores_processes_and_emulated_tasks() {
    let place = Place::new();
    let _program = place.compile("work", Compiler::C);
    let core = leave_core(&place, Some(0), "segv", &["run"]);
    let mut terminal = Terminal::start(&place, &["core", "--tui", "./work", &core], 120);
    terminal.wait_displayed(&["1 work.c: write_through", "(sdm)"]);
    terminal.keys("n");
    terminal.wait_displayed(&["(sdm) next &"]);
    terminal.keys("q");
    assert_eq!(terminal.finish().0, 0);
    let words = ["emulate", "-n", "1000", "--tui"];
    let mut terminal = Terminal::start(&place, &words, 120);
    terminal.wait_displayed(&["3 ranks (1000)", "999"]);
    terminal.keys("q");
    terminal.wait_displayed(&["(y/n"]);
    terminal.keys("y\r");
    assert_eq!(terminal.finish().0, 0);
}

#[test]
fn unsuitable_terminal_is_reported() {
    let place = Place::new();
    let _program = place.compile("work", Compiler::C);
    let words = ["TERM=dumb", "sdm", "run", "--tui", "./work"];
    let terminal = Terminal::run(&place, "/usr/bin/env".as_ref(), &words, 120);
    let (code, text) = terminal.finish();
    assert_eq!(code, 2, "{text}");
    assert!(
        text.contains("--tui: TERM=dumb: this terminal cannot"),
        "{text}"
    );
    assert!(
        text.contains("without --tui sdm starts at the prompt"),
        "{text}"
    );
    let done = sdm_tests::sdm::Sdm::new(&place, "run").args(["--tui", "./work"]);
    let done = done.finish().code(2);
    assert!(
        done.err.contains("--tui: a screen needs a terminal"),
        "{done}"
    );
}
