//! Tests of stacks, frames and threads.

use sdm_debug::command::{BacktraceSpec, FrameSelect, ProbeSpec};
use sdm_debug::event::Stream;
use sdm_debug::reply::{Backtrace, FrameView, TaskStacks};
use sdm_debug::{Command, FailureCode, Reply};
use sdm_system::proc;

use crate::harness::{Answer, Harness, break_spec, code, in_fortran, place, stopped};

fn frames(answer: Answer) -> Backtrace {
    match answer {
        Ok(Reply::Backtrace(backtrace)) => backtrace,
        other => panic!("{other:?}"),
    }
}

fn stacks(answer: Answer) -> TaskStacks {
    match answer {
        Ok(Reply::Stacks(stacks)) => stacks,
        other => panic!("{other:?}"),
    }
}

fn view(answer: Answer) -> FrameView {
    match answer {
        Ok(Reply::Frame(view)) => view,
        other => panic!("{other:?}"),
    }
}

#[test]
fn backtrace_limit_arguments_and_frame_selection_are_obeyed() {
    let mut harness = Harness::new();
    let program = harness.compile("steps", &[]);
    harness.start(&program, &[]);
    let spec = sdm_debug::command::BreakSpec {
        number: 1,
        location: "depth".to_owned(),
        condition: Some("n == 0".to_owned()),
        ..Default::default()
    };
    harness.ask(Command::BreakInsert(spec)).unwrap();
    stopped(harness.run_on());
    let all = frames(harness.ask(Command::Backtrace(BacktraceSpec::default())));
    assert_eq!(all.frames.len(), 7);
    assert!(!all.more);
    assert_eq!(all.frames[6].function, "main");
    assert_eq!(all.frames[6].file, "steps.c");
    assert!(all.frames[6].path.ends_with("/tests/fixtures/steps.c"));
    assert!(all.frames[0].args.is_empty());
    let args = BacktraceSpec {
        limit: 2,
        args: true,
        full: false,
    };
    let two = frames(harness.ask(Command::Backtrace(args)));
    assert_eq!((two.frames.len(), two.more), (2, true));
    assert_eq!(two.frames[1].args[0].name, "n");
    assert_eq!(two.frames[1].args[0].value.text, "1");
    let Ok(Reply::Stacks(stacks)) = harness.ask(Command::Stacks { full: false }) else {
        panic!("no stacks");
    };
    assert_eq!(stacks.threads.len(), 1);
    let shown: Vec<_> = stacks.threads[0]
        .frames
        .iter()
        .map(|f| (f.function.as_str(), f.repeat))
        .collect();
    assert_eq!(shown.first(), Some(&("main", 1)));
    assert_eq!(shown.last().unwrap().0, "depth");
    let up = view(harness.ask(Command::SelectFrame(FrameSelect::Move(2))));
    assert_eq!(
        (up.frame.level, up.frame.args[0].value.text.as_str()),
        (2, "2")
    );
    assert_eq!(harness.evaluate("n").unwrap().text, "2");
    let outermost = view(harness.ask(Command::SelectFrame(FrameSelect::Level(6))));
    assert!(outermost.source.unwrap().contains("depth(5)"));
    let current = view(harness.ask(Command::SelectFrame(FrameSelect::Current)));
    assert_eq!(current.frame.level, 6);
    for beyond in [
        FrameSelect::Level(700),
        FrameSelect::Move(1),
        FrameSelect::Move(2),
    ] {
        let failure = harness.ask(Command::SelectFrame(beyond)).unwrap_err();
        assert_eq!(failure.code, FailureCode::NoSuchThing, "{beyond:?}");
    }
    let current = view(harness.ask(Command::SelectFrame(FrameSelect::Current)));
    assert_eq!(
        current.frame.level, 6,
        "a refused selection changes nothing"
    );
    // As in gdb, a move beyond the last frame selects that.
    for (by, level) in [(-2, 4), (9, 6), (-9, 0), (9, 6)] {
        let moved = view(harness.ask(Command::SelectFrame(FrameSelect::Move(by))));
        assert_eq!(moved.frame.level, level, "{by}");
    }
    view(harness.ask(Command::SelectFrame(FrameSelect::Level(0))));
    let below = harness.ask(Command::SelectFrame(FrameSelect::Move(-2)));
    assert_eq!(code(below), FailureCode::NoSuchThing);
}

#[test]
fn user_frame_is_selected_if_the_program_waits_in_libc() {
    let mut harness = Harness::new();
    let program = harness.compile("stream", &[]);
    let mut start = crate::harness::spec(&program, &["cat"]);
    start.stdin_tasks = "0".parse().unwrap();
    stopped(harness.ask(Command::Start(start)));
    let run = harness.send(Command::Continue);
    let bytes = b"x".to_vec();
    harness
        .ask(Command::Stdin {
            offset: 0,
            bytes,
            eof: false,
        })
        .unwrap();
    harness.wait_output(Stream::Stdout, "x");
    harness.ask(Command::Interrupt).unwrap();
    let stop = stopped(harness.answer(run));
    assert_eq!(place(&stop).0, "main");
    assert_eq!(stop.inside.as_deref(), Some("read"));
    assert!(stop.source.unwrap().contains("read(0"));
    assert_eq!(harness.evaluate("total").unwrap().text, "1");
    let folded = frames(harness.ask(Command::Backtrace(BacktraceSpec::default())));
    assert_eq!(folded.frames.len(), 1);
    assert!(folded.folded >= 1, "{folded:?}");
    let full = BacktraceSpec {
        full: true,
        ..BacktraceSpec::default()
    };
    let full = frames(harness.ask(Command::Backtrace(full)));
    assert!(full.frames.len() > 1);
    assert!(
        full.frames
            .iter()
            .any(|frame| frame.module.starts_with("libc.so")),
        "{full:?}"
    );
    for frame in &full.frames {
        assert!(!frame.function.contains("??"), "{frame:?}");
    }
}

#[test]
fn step_inside_libc_steps_the_displayed_line() {
    let mut harness = Harness::new();
    let program = harness.compile("stream", &[]);
    let mut start = crate::harness::spec(&program, &["cat"]);
    start.stdin_tasks = "0".parse().unwrap();
    stopped(harness.ask(Command::Start(start)));
    let run = harness.send(Command::Continue);
    let stdin = |offset, bytes: &[u8]| Command::Stdin {
        offset,
        bytes: bytes.to_vec(),
        eof: false,
    };
    harness.ask(stdin(0, b"x")).unwrap();
    harness.wait_output(Stream::Stdout, "x");
    harness.ask(Command::Interrupt).unwrap();
    let stop = stopped(harness.answer(run));
    let (_, line) = place(&stop);
    // A `finish` that is refused changes nothing.
    let refused = harness.ask(Command::Finish).unwrap_err();
    assert!(
        refused.hint.contains("`next` leaves that function"),
        "{refused}"
    );
    harness.ask(stdin(1, b"y")).unwrap();
    let kind = sdm_debug::command::StepKind::Over;
    let stop = stopped(harness.ask(Command::Step { kind, count: 1 }));
    assert_eq!(stop.reason, sdm_debug::reply::StopReason::StepEnd);
    assert_eq!(place(&stop), ("main", line + 1));
}

#[test]
fn threads_are_listed_selected_and_folded() {
    let mut harness = Harness::new();
    let program = harness.compile("spin", &[]);
    harness.start(&program, &["threads"]);
    let run = harness.send(Command::Continue);
    harness.wait_helpers();
    harness.ask(Command::Interrupt).unwrap();
    stopped(harness.answer(run));
    let folded = stacks(harness.ask(Command::Stacks { full: false }));
    assert_eq!(folded.threads.len(), 2, "{folded:?}");
    let Ok(Reply::Threads(threads)) = harness.ask(Command::Threads) else {
        panic!("no threads");
    };
    let numbers: Vec<u32> = threads.iter().map(|thread| thread.number).collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert_eq!(threads.iter().filter(|thread| thread.current).count(), 1);
    view(harness.ask(Command::SelectThread { number: 2 }));
    let before = view(harness.ask(Command::SelectFrame(FrameSelect::Current)));
    let stacks = stacks(harness.ask(Command::Stacks { full: false }));
    assert!(stacks.threads[0].main);
    assert_eq!(stacks.threads[1].count, 2, "{stacks:?}");
    assert_eq!(stacks.threads[1].frames[0].function, "wait_for_ever");
    let after = view(harness.ask(Command::SelectFrame(FrameSelect::Current)));
    assert_eq!(before, after, "stacks leave the selection alone");
    let failure = harness
        .ask(Command::SelectThread { number: 9 })
        .unwrap_err();
    assert_eq!(failure.code, FailureCode::NoSuchThing);
}

/// Bytes that the gdb of the program has written so far.
fn written(harness: &Harness) -> u64 {
    let processes = crate::harness::processes_of(&harness.directory);
    let tracer = |(pid, _): &(i32, String)| proc::of(*pid).status().ok()?.tracer();
    let gdb = processes.iter().find_map(tracer).expect("it is held");
    let io = std::fs::read_to_string(proc::of(gdb).path("io")).unwrap();
    let line = io.lines().find_map(|line| line.strip_prefix("wchar: "));
    line.unwrap().parse().unwrap()
}

#[test]
fn gdb_output_per_frame_is_bounded_for_large_objects() {
    const FRAMES: u64 = 4;
    const FRAME_BYTES_MAX: u64 = 3 << 9;
    let mut harness = Harness::new();
    let program = harness.compile_cxx("domain");
    harness.start(&program, &[]);
    harness.break_at(1, "deepest").unwrap();
    let before = written(&harness);
    stopped(harness.run_on());
    let stop_bytes = written(&harness) - before;
    assert!(
        stop_bytes < FRAMES * FRAME_BYTES_MAX,
        "the stop: {stop_bytes}"
    );
    let args = BacktraceSpec {
        limit: 0,
        args: true,
        full: false,
    };
    let probe = ProbeSpec {
        compare: true,
        waits: true,
    };
    for (command, frames) in [
        (Command::Backtrace(args), FRAMES),
        (Command::SelectFrame(FrameSelect::Move(1)), 2),
        (Command::SelectFrame(FrameSelect::Current), 1),
        (Command::Stacks { full: false }, FRAMES),
        (Command::Probe(probe), 2 * FRAMES),
    ] {
        let before = written(&harness);
        let answer = harness.ask(command.clone());
        let bytes = written(&harness) - before;
        let name = command.name();
        assert!(bytes < frames * FRAME_BYTES_MAX, "{name}: {bytes} bytes");
        if let Ok(Reply::Backtrace(backtrace)) = answer {
            let shown = |at: usize| {
                let args = backtrace.frames[at].args.iter();
                let args = args.map(|arg| format!("{}={}", arg.name, arg.value.text));
                args.collect::<Vec<_>>().join(", ")
            };
            assert_eq!(shown(0), "domain=..., depth=2");
            assert!(shown(1).starts_with("domain=..., other=0x"), "{}", shown(1));
            let row = ", row=std::vector of length 3000, capacity 4096 = {...}, depth=1";
            assert!(shown(1).ends_with(row), "{}", shown(1));
        }
    }
}

/// The frame's variables that are not requested contain a large object.
#[test]
fn locals_query_formats_no_arguments_and_vice_versa() {
    const BYTES_MAX: u64 = 3 << 10;
    let mut harness = Harness::new();
    let program = harness.compile_cxx("domain");
    harness.start(&program, &[]);
    harness.break_at(1, "deepest").unwrap();
    stopped(harness.run_on());
    for (level, function, command, names) in [
        (2, "outer", Command::Locals, &[][..]),
        (3, "main", Command::Arguments, &["argc"]),
    ] {
        let up = view(harness.ask(Command::SelectFrame(FrameSelect::Level(level))));
        assert_eq!(up.frame.function, function);
        let before = written(&harness);
        let answer = harness.ask(command);
        let bytes = written(&harness) - before;
        let Ok(Reply::Variables(found)) = answer else {
            panic!("{answer:?}");
        };
        let found: Vec<_> = found.iter().map(|it| &*it.name).collect();
        assert_eq!(found, names, "{function}");
        assert!(bytes < BYTES_MAX, "{function}: {bytes} bytes");
    }
}

#[test]
fn corrupt_stack_ends_with_the_reason() {
    let mut harness = Harness::new();
    let program = harness.compile("stray_write", &["-fno-omit-frame-pointer"]);
    harness.start(&program, &[]);
    harness.break_at(1, "deepest").unwrap();
    for reason in [
        "Backtrace stopped: previous frame inner to this frame (corrupt stack?)",
        "Backtrace stopped: Cannot access memory at address 0xfffffffffffff008",
    ] {
        stopped(harness.run_on());
        for full in [false, true] {
            let spec = BacktraceSpec {
                full,
                ..BacktraceSpec::default()
            };
            let shown = frames(harness.ask(Command::Backtrace(spec)));
            let shown: Vec<_> = shown.frames.iter().map(|it| &*it.function).collect();
            assert_eq!(shown, ["deepest", "lost", "middle", reason]);
            let folded = stacks(harness.ask(Command::Stacks { full }));
            let folded = folded.threads[0].frames.iter().map(|it| &*it.function);
            let folded: Vec<_> = folded.collect();
            assert_eq!(folded, [reason, "middle", "lost", "deepest"]);
        }
        let first = BacktraceSpec {
            limit: 1,
            ..BacktraceSpec::default()
        };
        let first = frames(harness.ask(Command::Backtrace(first)));
        assert_eq!((first.frames.len(), first.more), (1, true));
    }
}

#[test]
fn fortran_text_length_is_read_in_the_frame_of_the_argument() {
    let at = break_spec(1, "lengths.f90:7");
    let Some((mut harness, _)) = in_fortran(Harness::new(), "lengths", at) else {
        return;
    };
    let args = BacktraceSpec {
        limit: 3,
        args: true,
        full: false,
    };
    // The selected frame makes no difference.
    for level in 0..3 {
        harness
            .ask(Command::SelectFrame(FrameSelect::Level(level)))
            .unwrap();
        let found = frames(harness.ask(Command::Backtrace(args.clone())));
        let texts = found.frames.iter().map(|frame| {
            let own = frame.args.iter().filter(|it| !it.name.starts_with('_'));
            let each = own.map(|it| format!("{}={}", it.name, it.value.text));
            each.collect::<Vec<_>>().join(", ")
        });
        let expect = [
            "k=3",
            "tag='a long name!', n=3, word='abc'",
            "name='a long name'",
        ];
        assert_eq!(texts.collect::<Vec<_>>(), expect, "at frame {level}");
    }
}
