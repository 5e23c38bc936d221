//! Tests the queries of a diagnosis, and that their number does not grow with the tasks.

use sdm_core::limits::PAYLOAD_BYTES_MAX;
use sdm_debug::command::ProbeSpec;
use sdm_debug::probe::{Call, LockWait, ProcessState, TaskProbe, TaskWaits, ThreadWait, WaitFor};
use sdm_debug::reply::{StackFrame, StopReason, TaskStacks};
use sdm_debug::rules::{Merged, RULE_PROBE, rule};
use sdm_debug::{Command, FailureCode, Reply, wire};
use sdm_idset::{IdSet, TaskId};
use sdm_session::{Class, ClassAnswer, SessionEvent};

use super::fake::*;
use crate::shell::Options;

fn stacks(frames: &[(&str, u32)]) -> TaskStacks {
    let frame = |(function, line): &(&str, u32)| StackFrame::own(*function, "halo.c", *line);
    TaskStacks::of_main(frames.iter().map(frame).collect(), 0)
}

/// Each odd task waits in a receive of its own. Two threads of task 1 wait for each other's locks.
fn probe(task: TaskId, spec: ProbeSpec) -> TaskProbe {
    let receives = !task.0.is_multiple_of(2);
    let call = || Call {
        function: "MPI_Recv".to_owned(),
        place: StackFrame::own("exchange", "halo.c", 60),
        source: format!("MPI_Recv(..., {}, ...)", task.0),
        arguments: Vec::new(),
    };
    let lock = |thread, holder| ThreadWait {
        thread,
        what: WaitFor::Lock(LockWait {
            mutex: "&locks[1]".to_owned(),
            place: StackFrame::own("worker", "halo.c", 7),
            holder: Some(holder),
            orphaned: false,
        }),
    };
    TaskProbe {
        stacks: Some(match receives {
            true => stacks(&[("main", 80), ("exchange", 60), ("MPI_Recv", 60)]),
            false => stacks(&[("main", 80), ("total", 90), ("MPI_Allreduce", 90)]),
        }),
        inner_changed: spec.compare.then_some(false),
        outer_changed: spec.compare.then_some(false),
        waits: (spec.waits && receives).then(|| TaskWaits {
            call: Some(call()),
            threads: match task.0 {
                1 => vec![lock(1, 2), lock(2, 1)],
                _ => Vec::new(),
            },
            window_locks: Vec::new(),
        }),
        cpu_ms: spec.compare.then_some(490),
        process: Some(ProcessState {
            letter: 't',
            wait_channel: String::new(),
        }),
        ..TaskProbe::default()
    }
}

/// The merged answer of all tasks, as the tree delivers it.
fn merged(to: &IdSet, spec: ProbeSpec) -> Class {
    merged_of(to, spec, |_| false)
}

/// The merged answer of all tasks, as the tree delivers it. The stacks of tasks for which `is_cut` is true are
/// incomplete.
fn merged_of(to: &IdSet, spec: ProbeSpec, is_cut: impl Fn(TaskId) -> bool) -> Class {
    let rule = rule(RULE_PROBE, &[]).unwrap();
    let mut acc = rule.start();
    for task in to.iter() {
        let cut = || TaskProbe {
            partial: true,
            ..TaskProbe::default()
        };
        let own = if is_cut(task) {
            cut()
        } else {
            probe(task, spec)
        };
        let own = wire::encode(&Reply::Probe(Box::new(own)));
        rule.merge(&mut acc, &IdSet::single(task), &own).unwrap();
    }
    let merged = Merged::decode(to, &rule.finish(acc, PAYLOAD_BYTES_MAX)).unwrap();
    Class {
        tasks: to.clone(),
        answer: ClassAnswer::Merged(merged),
    }
}

/// Tasks that run until they are interrupted.
fn session() -> Responder {
    let mut run = None;
    Box::new(move |id, to, command| match command {
        Command::Start(_) => at_main(id, to),
        Command::Continue => {
            run = Some(id);
            Vec::new()
        }
        Command::Interrupt => {
            let run = run.take().unwrap();
            let stopped = class(
                &to.to_string(),
                stop(StopReason::Interrupted, "main", 70, "  work();"),
            );
            let mut said = all(id, vec![class(&to.to_string(), Reply::Done)]);
            said.push((2, answer(run, vec![stopped])));
            said.push((2, complete(run)));
            said
        }
        Command::Probe(spec) => {
            let answered = SessionEvent::Answer {
                id,
                classes: vec![merged(to, *spec)],
                missing: Vec::new(),
                lost: IdSet::new(),
                late: false,
            };
            vec![(1, Said::Event(answered)), (1, complete(id))]
        }
        other => panic!("a diagnosis asks for {}", other.name()),
    })
}

#[test]
fn diagnosis_sends_equally_many_commands_for_any_task_count() {
    for count in [4, 5000] {
        let lines = ["continue &", "diagnose"];
        let done = run((count, 100), Options::default(), &lines, session());
        let all = IdSet::all_below(count);
        let expect = [
            "start",
            "continue",
            "interrupt",
            "probe",
            "continue",
            "interrupt",
            "probe",
            "continue",
            "interrupt",
            "probe",
            "continue",
        ];
        let expect: Vec<String> = expect.iter().map(|name| format!("{all} {name}")).collect();
        assert_eq!(done.sent[..expect.len()], expect, "{}", done.screen);
        for part in [
            "threads wait for each other's locks in a cycle",
            "thread 1 waits in worker () at halo.c:7 for &locks[1], which thread 2 holds",
            "60: MPI_Recv(..., 1, ...)",
            "% of a processor",
            "waiting in MPI_Allreduce, called from total () at halo.c:90; nothing changed",
        ] {
            assert!(
                done.screen.contains(part),
                "{count}: {part}: {}",
                done.screen
            );
        }
    }
}

/// Task 3 does not answer the second sample in this number of rounds.
#[test]
fn task_missing_in_a_sample_is_sampled_again_or_not_judged() {
    for (rounds, looks) in [(1, 6), (9, 9)] {
        let mut probes = 0;
        let mut answers = session();
        let responder: Responder = Box::new(move |id, to, command| {
            let Command::Probe(spec) = command else {
                return answers(id, to, command);
            };
            probes += 1;
            if probes % 3 != 2 || probes > 3 * rounds {
                return answers(id, to, command);
            }
            let silent = failed("3", FailureCode::TimedOut, "gdb does not answer");
            let seen = merged(&to.difference(&set("3")), *spec);
            all(id, vec![seen, silent])
        });
        let done = run(
            (4, 100),
            Options::default(),
            &["continue &", "diagnose"],
            responder,
        );
        let asked = done.sent.iter().filter(|line| line.ends_with(" probe"));
        assert_eq!(asked.count(), looks, "{}", done.screen);
        let why =
            "rank 3: not judged: the process was not seen in each sample: gdb does not answer";
        assert_eq!(done.screen.contains(why), rounds > 1, "{}", done.screen);
    }
}

/// The stack of task 3 is incomplete at first, in this number of answers in a row.
#[test]
fn incomplete_stack_is_read_again_or_not_judged() {
    const ALWAYS: usize = usize::MAX;
    for cut in [0, 1, 8, ALWAYS] {
        let mut answers = session();
        let mut cuts = 0;
        let responder: Responder = Box::new(move |id, to, command| {
            let Command::Probe(spec) = command else {
                return answers(id, to, command);
            };
            if cuts == cut || !to.contains(TaskId(3)) {
                return answers(id, to, command);
            }
            cuts += 1;
            all(id, vec![merged_of(to, *spec, |task| task == TaskId(3))])
        });
        let lines = ["continue &", "diagnose"];
        let done = run((4, 100), Options::default(), &lines, responder);
        let alone = done.sent.iter().filter(|line| *line == "3 probe").count();
        // Eight times in each sample.
        let is_bounded = match cut {
            ALWAYS => alone >= 8 && alone.is_multiple_of(8),
            cut => alone == cut,
        };
        assert!(is_bounded, "{cut}: {alone}: {}", done.screen);
        let why = "rank 3: not judged: gdb could not read the stack to its end";
        assert_eq!(
            done.screen.contains(why),
            cut == ALWAYS,
            "{cut}: {}",
            done.screen
        );
        assert!(!done.screen.contains("no answer"), "{cut}: {}", done.screen);
    }
}

/// A diagnosis in which task 2 stops by itself while the tasks run between the first two samples.
fn with_stop(reason: StopReason, function: &'static str) -> Run {
    let mut runs = 0;
    let mut interrupted = session();
    let responder: Responder = Box::new(move |id, to, command| {
        if *command == Command::Continue {
            runs += 1;
        }
        let mut said = interrupted(id, to, command);
        if *command == Command::Continue && runs == 2 {
            let stopped = class("2", stop(reason.clone(), function, 71, "  halo();"));
            said.push((1, answer(id, vec![stopped])));
        }
        said
    });
    let lines = ["continue &", "diagnose"];
    run((4, 100), Options::default(), &lines, responder)
}

#[test]
fn task_stopping_during_a_diagnosis_stays_stopped() {
    let done = with_stop(StopReason::Breakpoint { number: 1 }, "exchange");
    let continued = done
        .sent
        .iter()
        .filter(|line| line.ends_with(" continue"))
        .map(String::as_str);
    let continued: Vec<&str> = continued.collect();
    let once = "0-3 continue";
    let but_it = "0-1,3 continue";
    // To begin with, after the first look, after the second, and when it is over.
    assert_eq!(
        continued[..4],
        [once, once, but_it, but_it],
        "{}",
        done.screen
    );
    for part in ["breakpoint 1", "during the diagnosis, and not resumed"] {
        assert!(done.screen.contains(part), "{part}: {}", done.screen);
    }
}

#[test]
fn abort_during_a_diagnosis_is_the_verdict() {
    let what = "MPI_Abort".to_owned();
    let done = with_stop(StopReason::Internal { what }, "quit");
    let verdict = "rank 2: about to call MPI_Abort";
    assert!(done.screen.contains(verdict), "{}", done.screen);
}
