//! Tests of the program's output and input.

use std::time::Instant;

use sdm_core::CommandId;
use sdm_debug::command::StopAt;
use sdm_debug::event::Stream;
use sdm_debug::{Backend, Command, Event, FailureCode, Reply};

use crate::harness::{Harness, spec, stopped};

#[test]
fn ten_megabytes_of_output_arrive_whole_and_in_order() {
    let mut harness = Harness::new();
    let program = harness.compile("stream", &[]);
    let mut start = spec(&program, &["10000000"]);
    start.stop = StopAt::Nowhere;
    let id = harness.send(Command::Start(start));
    // In between the output is paused for a while.
    harness.wait("some output", |harness| {
        (harness.output(Stream::Stdout).len() > 100_000).then_some(())
    });
    harness.backend.set_output_paused(Instant::now(), true);
    harness.turn();
    harness
        .events
        .retain(|(_, event)| !matches!(event, Event::Notice { .. }));
    let before = harness.output(Stream::Stdout).len();
    for _ in 0..3 {
        harness.turn();
    }
    assert_eq!(
        harness.output(Stream::Stdout).len(),
        before,
        "output although it was paused"
    );
    harness.backend.set_output_paused(Instant::now(), false);
    let answer = harness.answer(id);
    assert!(
        matches!(answer, Ok(Reply::Exited { code: 0, .. })),
        "{answer:?}"
    );
    harness.wait_output_end();
    let output = harness.output(Stream::Stdout);
    let text = std::str::from_utf8(&output).unwrap();
    assert!(output.len() >= 10_000_000 && text.ends_with('\n'));
    for (number, line) in text.lines().enumerate() {
        let zeros = line
            .strip_prefix(&format!("line {number} "))
            .expect("in order");
        assert_eq!(zeros.len(), (number % 200).max(1));
    }
    assert_eq!(
        harness.output(Stream::Stderr),
        format!("{} bytes", output.len()).as_bytes()
    );
    for (_, event) in &harness.events {
        if let Event::Output { bytes, .. } = event {
            assert!(
                bytes.len() <= 32 << 10,
                "{} bytes in one event",
                bytes.len()
            );
        }
    }
}

#[test]
fn input_bytes_are_delivered_once_with_end_of_file() {
    let mut harness = Harness::new();
    let program = harness.compile("stream", &[]);
    let mut start = spec(&program, &["cat"]);
    start.stdin_tasks = "0,3-4".parse().unwrap();
    start.stop = StopAt::Nowhere;
    let run = harness.send(Command::Start(start));
    let stdin = |offset: usize, bytes: &[u8], eof| Command::Stdin {
        offset: offset as u64,
        bytes: bytes.to_vec(),
        eof,
    };
    let line: Vec<u8> = (0..=255u8).cycle().take(300_000).collect();
    assert_eq!(harness.ask(stdin(0, &line, false)), Ok(Reply::Done));
    assert_eq!(harness.ask(stdin(0, &line, false)), Ok(Reply::Done));
    let gap = harness.ask(stdin(300_001, b"x", false)).unwrap_err();
    assert_eq!(gap.code, FailureCode::BadCommand);
    assert_eq!(
        harness.ask(stdin(299_999, b"\xffend", true)),
        Ok(Reply::Done)
    );
    let answer = harness.answer(run);
    assert!(
        matches!(answer, Ok(Reply::Exited { code: 0, .. })),
        "{answer:?}"
    );
    harness.wait_output_end();
    let mut expect = line;
    expect.extend_from_slice(b"end");
    assert_eq!(harness.output(Stream::Stdout), expect);
    assert_eq!(harness.output(Stream::Stderr), b"eof after 300003\n");
    let late = harness.ask(stdin(300_003, b"x", false)).unwrap_err();
    assert_eq!(late.code, FailureCode::NotRunning);
}

#[test]
fn task_without_input_reads_end_of_file() {
    let mut harness = Harness::new();
    let program = harness.compile("stream", &[]);
    harness.start(&program, &["cat"]);
    let bytes = b"x".to_vec();
    let refused = harness
        .ask(Command::Stdin {
            offset: 0,
            bytes,
            eof: false,
        })
        .unwrap_err();
    assert_eq!(refused.code, FailureCode::Unsupported);
    assert!(matches!(
        harness.run_on(),
        Ok(Reply::Exited { code: 0, .. })
    ));
    harness.wait_output_end();
    assert_eq!(harness.output(Stream::Stderr), b"eof after 0\n");
}

#[test]
fn excess_input_is_acknowledged_when_the_program_reads() {
    let mut harness = Harness::new();
    let program = harness.compile("stream", &[]);
    let mut start = spec(&program, &["cat"]);
    start.stdin_tasks = "0".parse().unwrap();
    harness.ask(Command::Start(start)).unwrap();
    // The program is stopped at `main`, so it reads no input.
    let piece = vec![b'x'; 700_000];
    let mut feed = |offset| {
        let (bytes, eof) = (piece.clone(), offset > 0);
        harness.send(Command::Stdin { offset, bytes, eof })
    };
    let (first, second) = (feed(0), feed(700_000));
    let answered = |harness: &Harness, wanted| {
        let mut answers = harness.answers.iter();
        answers.any(|(id, ..)| *id == wanted)
    };
    assert!(answered(&harness, first), "there was room for it");
    assert!(!answered(&harness, second), "there is no room for more");
    let run = harness.send(Command::Continue);
    assert_eq!(harness.answer(second), Ok(Reply::Done));
    let answer = harness.answer(run);
    assert!(
        matches!(answer, Ok(Reply::Exited { code: 0, .. })),
        "{answer:?}"
    );
    harness.wait_output_end();
    assert_eq!(harness.output(Stream::Stderr), b"eof after 1400000\n");
}

#[test]
fn an_unfinished_line_is_shown_while_the_program_waits() {
    let mut harness = Harness::new();
    let program = harness.compile("stream", &[]);
    let mut start = spec(&program, &["cat"]);
    start.stdin_tasks = "0".parse().unwrap();
    start.stop = StopAt::Nowhere;
    harness.send(Command::Start(start));
    let bytes = b"name? ".to_vec();
    harness
        .ask(Command::Stdin {
            offset: 0,
            bytes,
            eof: false,
        })
        .unwrap();
    harness.wait_output(Stream::Stdout, "name? ");
}

#[test]
fn output_ends_although_a_grandchild_keeps_it_open() {
    let mut harness = Harness::new();
    let shell = std::path::Path::new("/bin/sh");
    let mut start = spec(shell, &["-c", "sleep 3600 & echo $!"]);
    start.stop = StopAt::Nowhere;
    let answer = harness.ask(Command::Start(start));
    assert!(
        matches!(answer, Ok(Reply::Exited { code: 0, .. })),
        "{answer:?}"
    );
    harness.wait_output_end();
    let output = String::from_utf8(harness.output(Stream::Stdout)).unwrap();
    let pid: i32 = output.trim().parse().unwrap();
    let pid = nix::unistd::Pid::from_raw(pid);
    // The closing of the terminal has ended the process, or this signal does.
    let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
}

/// Index of the event that marks all output before this run's stop as delivered; `None` if there is none yet.
fn complete_at(harness: &Harness, run: CommandId) -> Option<usize> {
    let wanted = Event::OutputComplete { command: run.0 };
    let mut events = harness.events.iter();
    events.position(|(_, event)| *event == wanted)
}

#[test]
fn output_before_a_stop_is_delivered_before_the_stop() {
    for paused in [false, true] {
        let mut harness = Harness::new();
        let program = harness.compile("stream", &[]);
        harness.start(&program, &["3000"]);
        // The stop is after all output, whose end is an incomplete line on stderr.
        harness.break_at(1, "stream.c:26").unwrap();
        harness.backend.set_output_paused(Instant::now(), paused);
        let run = harness.send(Command::Continue);
        stopped(harness.answer(run));
        if paused {
            (0..3).for_each(|_| harness.turn());
            assert_eq!(harness.output(Stream::Stdout), b"");
            assert_eq!(complete_at(&harness, run), None, "it is not complete");
            harness.backend.set_output_paused(Instant::now(), false);
        }
        let at = harness.wait("the end of the output", |harness| complete_at(harness, run));
        harness.events.truncate(at);
        let printed = harness.output(Stream::Stdout).len();
        assert!(printed >= 3000, "{printed} bytes before it");
        let said = format!("{printed} bytes");
        assert_eq!(harness.output(Stream::Stderr), said.as_bytes());
        harness.shut_down();
    }
}
