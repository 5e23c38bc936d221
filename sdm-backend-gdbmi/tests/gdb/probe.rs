//! Probes: all the facts that a diagnosis needs, in one answer.

use sdm_debug::command::{FrameSelect, ProbeSpec};
use sdm_debug::event::Stream;
use sdm_debug::probe::{ArgumentRole, Known, TaskProbe, WaitFor};
use sdm_debug::{Command, FailureCode, Reply};

use crate::harness::{Harness, spec, stopped};

impl Harness {
    fn probe(&mut self, compare: bool, waits: bool) -> TaskProbe {
        match self.ask(Command::Probe(ProbeSpec { compare, waits })) {
            Ok(Reply::Probe(probe)) => *probe,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn probe_reports_call_arguments_and_changes() {
    let mut harness = Harness::new();
    let program = harness.compile("stream", &[]);
    let mut start = spec(&program, &["cat"]);
    start.stdin_tasks = "0".parse().unwrap();
    stopped(harness.ask(Command::Start(start)));
    let run = harness.send(Command::Continue);
    let bytes = b"x".to_vec();
    let stdin = Command::Stdin {
        offset: 0,
        bytes,
        eof: false,
    };
    harness.ask(stdin).unwrap();
    harness.wait_output(Stream::Stdout, "x");
    // For a running program there is only the kernel's state, nothing from gdb.
    let running = harness.probe(false, true);
    assert_eq!((running.stacks, running.waits), (None, None));
    assert!("SRD".contains(running.process.unwrap().letter));
    harness.ask(Command::Interrupt).unwrap();
    stopped(harness.answer(run));
    let first = harness.probe(false, true);
    assert_eq!((first.inner_changed, first.outer_changed), (None, None));
    assert_eq!((first.cpu_ms, first.process.unwrap().letter), (None, 't'));
    let call = first.waits.unwrap().call.unwrap();
    assert_eq!((&*call.function, &*call.place.function), ("read", "main"));
    assert!(
        call.source.starts_with("while ((count = read(0"),
        "{call:?}"
    );
    let [file] = &call.arguments[..] else {
        panic!("{call:?}");
    };
    assert_eq!((file.role, &*file.expression), (ArgumentRole::File, "0"));
    assert_eq!((file.number, file.known), (Some(0), Known::Source));
    let same = harness.probe(true, false);
    assert_eq!((same.inner_changed, &same.waits), (Some(false), &None));
    assert!(same.cpu_ms.is_some_and(|ms| ms < 60_000), "{same:?}");
    assert_eq!(same.stacks, first.stacks);
    let expression = "total = 7".to_owned();
    harness.ask(Command::SetVariable { expression }).unwrap();
    assert_eq!(harness.probe(true, false).inner_changed, Some(true));
    assert_eq!(harness.probe(true, false).inner_changed, Some(false));
    harness.ask(Command::Kill).unwrap();
    let dead = harness.ask(Command::Probe(ProbeSpec::default()));
    assert_eq!(dead.unwrap_err().code, FailureCode::NotRunning);
}

#[test]
fn probe_names_system_calls_and_keeps_the_selected_thread() {
    let mut harness = Harness::new();
    let program = harness.compile("spin", &[]);
    harness.start(&program, &["threads"]);
    let run = harness.send(Command::Continue);
    harness.wait_helpers();
    harness.ask(Command::Interrupt).unwrap();
    stopped(harness.answer(run));
    harness.ask(Command::SelectThread { number: 2 }).unwrap();
    let before = harness.ask(Command::SelectFrame(FrameSelect::Current));
    let probe = harness.probe(true, true);
    let after = harness.ask(Command::SelectFrame(FrameSelect::Current));
    assert_eq!(before, after, "a probe leaves the selection alone");
    let threads = probe.waits.unwrap().threads.into_iter();
    let waiting: Vec<_> = threads
        .filter(|wait| wait.thread > 1)
        .map(|wait| (wait.thread, wait.what))
        .collect();
    let [(2, one), (3, other)] = &waiting[..] else {
        panic!("{waiting:?}");
    };
    assert_eq!(one, other);
    // `pause` on x86-64, `ppoll` on architectures without it.
    assert!(
        matches!(one, WaitFor::SystemCall(name) if ["pause", "ppoll"].contains(&name.as_str())),
        "{one:?}"
    );
}
