//! Tests of the text view.

use super::recorded_screen::RecordedScreen;
use super::*;
use crate::item::Gathered;
use sdm_debug::Reply;
use sdm_debug::reply::{Frame, FrameView, Value, Variable};

fn check(item: Item, expect: &str) {
    let recorder = RecordedScreen::new(80);
    let mut view = TextView::new(recorder.clone(), Names::ranks());
    view.show(Duration::ZERO, &item);
    assert_eq!(*recorder.text.borrow(), expect.trim_start_matches('\n'));
}

#[test]
fn status_line_keeps_its_key_hints() {
    let hint = "^C stops them, ^Z returns to the prompt";
    let run =
        |what: &str, ranks: &str| format!("{what}: 0/4 stopped, running: {ranks} (3 s); {hint}");
    for (line, room, expect) in [
        (run("continue", "0-3"), 199, run("continue", "0-3")),
        (
            run("continue", "0-3"),
            79,
            format!("continue: 0/4 stopped (3 s); {hint}"),
        ),
        (
            run("until somewhere_with_a_long_name", "0,2,4"),
            79,
            format!("until somewhere_with_a_long_name: 0...; {hint}"),
        ),
        (
            run("continue", "0-3"),
            30,
            "continue: 0/4 stopped, running".to_owned(),
        ),
        ("no hint in this line".to_owned(), 7, "no hint".to_owned()),
    ] {
        assert_eq!(status_in(&line, room), expect);
    }
}

#[test]
fn an_error_points_at_the_character() {
    check(
        Item::Error(Problem {
            message: "expected `]` after the set".to_owned(),
            line: Some("[0-3 print x".to_owned()),
            at: Some(5),
            hint: String::new(),
        }),
        "
expected `]` after the set
  [0-3 print x
       ^
",
    );
}

#[test]
fn output_is_labelled_and_escaped() {
    let item = |stream, complete| Item::Output {
        tasks: IdSet::all_below(4),
        stream,
        line: b"50%\x1b[2J".to_vec(),
        complete,
    };
    check(item(Stream::Stdout, true), "[0-3] 50%\\x1b[2J\n");
    check(item(Stream::Stderr, false), "[0-3 err] 50%\\x1b[2J\\\n");
}

#[test]
fn launcher_end_is_shown_with_lost_ranks_and_last_output() {
    check(
        Item::LauncherEnded {
            status: "exited with code 1".to_owned(),
            last_words: vec!["mpirun noticed something".to_owned()],
            lost: IdSet::all_below(8),
        },
        "
the launcher ended: exited with code 1; lost with the launcher: ranks 0-7 (8)
  | mpirun noticed something
",
    );
}

#[test]
fn selected_frames_with_differing_arguments_are_one_class() {
    let variable = |(name, text): (&str, String)| Variable {
        name: name.to_owned(),
        value: Value { text, cut: None },
    };
    let frame = |rank: u32| {
        let args = [("n", "7".to_owned()), ("rank", rank.to_string())];
        let frame = Frame {
            level: 1,
            function: "solve".to_owned(),
            file: "heat.c".to_owned(),
            line: 12,
            args: args.map(variable).to_vec(),
            ..Frame::default()
        };
        let source = Some("  halo(n, rank);".to_owned());
        (
            IdSet::single(sdm_idset::TaskId(rank)),
            Reply::Frame(FrameView { frame, source }),
        )
    };
    check(
        Item::Answer(Gathered {
            ok: (0..3).map(frame).collect(),
            ..Gathered::default()
        }),
        "
ranks 0-2 (3): #1  solve (n=7, rank=...) at heat.c:12
      rank: 0 on rank 0; 1 on rank 1; 2 on rank 2
12\t  halo(n, rank);
",
    );
}

/// The lines that a group of 20 events has, of three tasks in turn.
fn group(what: impl Fn(u32) -> Happening) -> Vec<String> {
    let screen = RecordedScreen::new(200);
    let mut view = TextView::new(screen.clone(), Names::ranks());
    view.group(true);
    for number in 0..20 {
        let tasks = IdSet::single(sdm_idset::TaskId(number % 3));
        let what = what(number);
        view.show(Duration::ZERO, &Item::Happened { tasks, what });
    }
    view.group(false);
    let text = screen.text.borrow();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn group_of_events_shortens_states_and_shows_all_printed_text() {
    let ends = group(|code| Happening::Exited {
        code: code.cast_signed(),
        before_finalize: false,
    });
    assert_eq!(ends.len(), HAPPENED_MAX + 1, "{ends:#?}");
    let last = "ranks 0-2 (3): in 4 more places; `ranks` shows all";
    assert_eq!(ends.last().map(String::as_str), Some(last));
    let printed = group(|number| Happening::Printed {
        number: 1,
        text: format!("$1 = {number}\n"),
    });
    for number in 0..20 {
        let part = format!("$1 = {number}");
        let shown = printed.iter().any(|line| line.ends_with(&part));
        assert!(shown, "{part}: {printed:#?}");
    }
}
