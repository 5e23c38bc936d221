//! Snapshots of the debugger's screen in every state, and tests of its keys.

mod looks;
mod searches;

use std::sync::Arc;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use sdm_debug::TaskState;
use sdm_debug::event::Stream;
use sdm_debug::reply::StackFrame;
use sdm_debug::rules::{StackNode, StackTree};
use sdm_idset::IdSet;
use sdm_view::item::{BreakRow, MergedStacks, RankRow};
use sdm_view::overview::{Named, Overview, Printed, Sight, SourceSight};
use sdm_view::render::Names;

use super::{Debugger, ScreenAction};
use crate::snapshot;
use crate::style::Style;

const PLAIN: Style = Style {
    color: false,
    ascii: false,
    palette: crate::Palette::Terminal,
    linear: false,
};

fn set(text: &str) -> IdSet {
    text.parse().unwrap()
}

fn row(tasks: &str, state: TaskState) -> RankRow {
    RankRow {
        program: String::new(),
        tasks: set(tasks),
        state,
        last: None,
        health: None,
        place: None,
    }
}

fn node(function: &str, line: u32, tasks: &str, here: &str, children: Vec<StackNode>) -> StackNode {
    StackNode {
        frame: StackFrame::own(function, "halo.c", line),
        tasks: set(tasks),
        threads: set(tasks).len(),
        here: set(here),
        children,
    }
}

fn named(name: &str, values: &[(&str, &str)]) -> Named {
    let values = values.iter();
    Named {
        name: name.to_owned(),
        values: values
            .map(|(tasks, value)| (set(tasks), (*value).to_owned()))
            .collect(),
    }
}

/// A board of 64 ranks: most wait in one place, one waits in another, and one has ended.
fn board() -> Overview {
    let lines: Vec<String> = (1..=80)
        .map(|line| format!("    line_{line}(cell, \"日本\", {line});"))
        .collect();
    let children = vec![
        node("exchange", 44, "0-61", "0-61", Vec::new()),
        node("solve", 61, "62", "62", Vec::new()),
    ];
    let stacks = MergedStacks {
        tasks: set("0-62"),
        tree: StackTree {
            roots: vec![node("main", 70, "0-62", "", children)],
            ..StackTree::default()
        },
    };
    let sight = Sight {
        stacks: Some(stacks),
        source: Some(SourceSight {
            path: "/home/me/halo.c".to_owned(),
            first: 1,
            lines: Arc::new(lines),
            line: 44,
            function: "exchange".to_owned(),
            is_caller: false,
            tasks: set("0-61"),
        }),
        locals: vec![
            named("step", &[("0-62", "7")]),
            named("left", &[("0-30", "-1"), ("31-61", "2"), ("62", "17")]),
        ],
        watched: vec![named("cell[0]", &[("0-61", "0.5"), ("62", "nan")])],
        ..Sight::default()
    };
    Overview {
        prompt: "[all 64: 63 stopped, 1 exited] (sdm) ".to_owned(),
        all: set("0-63"),
        focus: set("0-63"),
        running: IdSet::new(),
        ranks: vec![
            row("0-62", TaskState::Stopped),
            row("63", TaskState::Exited(3)),
        ],
        breakpoints: vec![BreakRow {
            number: 2,
            tasks: set("0-63"),
            location: "halo.c:46".to_owned(),
            condition: None,
            temporary: false,
            enabled: true,
            pending: IdSet::new(),
            places: vec![("exchange".to_owned(), "halo.c".to_owned(), 46)],
            hits: Vec::new(),
            commands: Vec::new(),
        }],
        sight: Arc::new(sight),
        is_stale: false,
    }
}

fn debugger(style: Style, board: Overview) -> Debugger {
    let mut debugger = Debugger::new(style, Names::ranks());
    let prompt = board.prompt.clone();
    debugger.handle_board(board);
    debugger.handle_text("ranks 0-62 (63): stopped\n");
    debugger.handle_printed(Printed {
        tasks: set("0-3"),
        stream: Stream::Stdout,
        line: b"sum \x1b[2J 9".to_vec(),
    });
    debugger.handle_asked(Some((prompt, false)));
    debugger
}

fn keys(debugger: &mut Debugger, keys: &str) -> Vec<ScreenAction> {
    for c in keys.chars() {
        let control = KeyModifiers::CONTROL;
        let none = KeyModifiers::NONE;
        let (code, modifiers) = match c {
            '\n' => (KeyCode::Enter, none),
            '\t' => (KeyCode::Tab, none),
            '\x1b' => (KeyCode::Esc, none),
            '↓' => (KeyCode::Down, none),
            '→' => (KeyCode::Right, none),
            c if c.is_control() => (KeyCode::Char(char::from(c as u8 + b'`')), control),
            c => (KeyCode::Char(c), none),
        };
        debugger.handle_key(KeyEvent::new(code, modifiers));
    }
    std::iter::from_fn(|| debugger.poll_action()).collect()
}

fn line(text: &str) -> Vec<ScreenAction> {
    vec![ScreenAction::Line(text.to_owned())]
}

#[test]
fn every_state_matches_its_snapshot() {
    for (name, typed) in [
        ("debug", ""),
        ("debug_help", "?"),
        ("debug_stacks", "2"),
        ("debug_ranks", "3→→"),
        ("debug_values", "4↓"),
        ("debug_output", "5"),
        ("debug_prompt", ":print cell"),
        ("debug_zoomed", "2z"),
        ("debug_refused", "x"),
    ] {
        let mut debugger = debugger(PLAIN, board());
        keys(&mut debugger, typed);
        snapshot::check(name, |frame| debugger.draw(frame));
    }
    let mut running = board();
    running.is_stale = true;
    running.running = set("0-62");
    running.ranks[0].state = TaskState::Running;
    let mut debugger = debugger(PLAIN, running);
    debugger.handle_asked(None);
    debugger.handle_status(Some("continue: 63 of 64 run, ^C stops them".to_owned()));
    snapshot::check("debug_running", |frame| debugger.draw(frame));
    debugger.handle_asked(Some(("kill 64 tasks? (y/n) ".to_owned(), true)));
    snapshot::check("debug_question", |frame| debugger.draw(frame));
    let mut empty = Debugger::new(PLAIN, Names::ranks());
    snapshot::check("debug_nothing", |frame| empty.draw(frame));
}

/// A key that is pressed while a line is carried out takes effect after it, unless the line asks a question
/// or is interrupted.
#[test]
fn key_waits_for_the_previous_command() {
    let prompt = Some(("(sdm) ".to_owned(), false));
    let question = Some(("delete all? (y/n) ".to_owned(), true));
    let up = ScreenAction::Line("up".to_owned());
    for (typed, before, next, expect) in [
        ("nu", vec![], &prompt, vec![up]),
        ("u", vec![], &question, vec![]),
        ("u\x03", vec![ScreenAction::Interrupt], &prompt, vec![]),
    ] {
        let mut debugger = debugger(PLAIN, board());
        debugger.handle_asked(None);
        assert_eq!(keys(&mut debugger, typed), before);
        let told = debugger.hint.clone();
        assert_eq!(told.contains("starts when"), before.is_empty(), "{told}");
        for asked in [next, &None, &prompt] {
            debugger.handle_asked(asked.clone());
        }
        let deeds: Vec<ScreenAction> = std::iter::from_fn(|| debugger.poll_action()).collect();
        assert_eq!(deeds, expect, "{typed}");
        // The hint disappears once no input waits.
        assert_eq!(debugger.hint, "", "{typed}");
    }
}

#[test]
fn ascii_style_draws_only_ascii() {
    let style = Style {
        color: false,
        ascii: true,
        palette: crate::Palette::Terminal,
        linear: false,
    };
    let mut board = board();
    let sight = Arc::make_mut(&mut board.sight);
    sight.source.as_mut().unwrap().lines = Arc::new(vec!["int a;".to_owned()]);
    for typed in ["1", "2", "3", "4", "5", "6", "1?", "2z"] {
        let mut debugger = debugger(style, board.clone());
        keys(&mut debugger, typed);
        let text = snapshot::drawn(|frame| debugger.draw(frame), 80, 24);
        assert!(text.is_ascii(), "{text}");
    }
}

#[test]
fn each_key_sends_a_shell_command() {
    for (typed, said) in [
        ("c", "continue &"),
        ("n", "next &"),
        ("s", "step &"),
        ("i", "stepi &"),
        ("f", "finish &"),
        ("u", "up"),
        ("D", "diagnose"),
        ("q", "quit"),
        ("b", "break halo.c:44"),
        ("↓↓b", "delete 2"),
        ("t", "advance halo.c:44 &"),
        ("3→\n", "focus 1"),
        (":print 1\n", "print 1"),
        ("wstep\n", "display step"),
    ] {
        let mut debugger = debugger(PLAIN, board());
        assert_eq!(keys(&mut debugger, typed), line(said), "{typed}");
        // The shell carries it out: the next one is refused until it asks again.
        assert_eq!(keys(&mut debugger, "n"), []);
        assert!(debugger.hint.contains("Ctrl-C"), "{}", debugger.hint);
    }
}

#[test]
fn key_without_effect_shows_the_reason() {
    let mut running = board();
    running.running = set("0-62");
    running.ranks[0].state = TaskState::Running;
    let mut debugger = debugger(PLAIN, running);
    assert_eq!(keys(&mut debugger, "n"), []);
    assert!(
        debugger.hint.contains("press p to stop them"),
        "{}",
        debugger.hint
    );
    assert_eq!(keys(&mut debugger, "p"), line("interrupt"));
    let mut ended = board();
    ended.ranks = vec![row("0-63", TaskState::Exited(0))];
    let mut debugger = super::tests::debugger(PLAIN, ended);
    assert_eq!(keys(&mut debugger, "c"), []);
    assert!(
        debugger.hint.contains("press r to start the job again"),
        "{}",
        debugger.hint
    );
    assert_eq!(keys(&mut debugger, "r"), line("run"));
}

#[test]
fn keyboard_focus_returns_after_a_line_at_the_prompt() {
    let mut debugger = debugger(PLAIN, board());
    assert_eq!(keys(&mut debugger, "2:info source\n"), line("info source"));
    assert_eq!(debugger.panel, super::Panel::Stacks);
    // A user who selected the prompt stays there.
    debugger.handle_asked(Some(("(sdm) ".to_owned(), false)));
    assert_eq!(keys(&mut debugger, "6info source\n"), line("info source"));
    assert_eq!(debugger.panel, super::Panel::Prompt);
    // Text that was typed is handed over to the plain prompt.
    assert_eq!(
        keys(&mut debugger, "pri\x18a"),
        [ScreenAction::Leave("pri".to_owned())]
    );
}

#[test]
fn only_the_last_of_many_selections_is_sent() {
    let mut debugger = debugger(PLAIN, board());
    assert_eq!(keys(&mut debugger, "2↓"), line("focus 0-61"));
    assert_eq!(keys(&mut debugger, "↓"), []);
    debugger.handle_asked(Some(("(sdm) ".to_owned(), false)));
    assert_eq!(keys(&mut debugger, ""), line("focus 62"));
}

#[test]
fn unchanged_state_is_not_redrawn() {
    let mut debugger = debugger(PLAIN, board());
    assert!(debugger.take_changed());
    debugger.handle_board(board());
    debugger.handle_status(None);
    assert!(!debugger.take_changed());
}

#[test]
fn a_million_ranks_fit_onto_a_screen() {
    let mut many = board();
    many.all = set("0-999999");
    many.ranks = vec![
        row("0-499999,500001-999999", TaskState::Running),
        row("500000", TaskState::Exited(1)),
    ];
    let mut debugger = debugger(PLAIN, many);
    let text = snapshot::drawn(|frame| debugger.draw(frame), 80, 24);
    assert!(text.contains('X'), "the one that differs is seen: {text}");
}
