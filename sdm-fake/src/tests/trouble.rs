//! Any commands at any time to faulty tasks: each is answered once, and equal runs give equal output.

use proptest::prelude::*;
use sdm_core::CommandId;
use sdm_debug::command::{
    AttachSpec, BacktraceSpec, BreakSpec, FrameSelect, StartSpec, StepKind, StopAt,
};
use sdm_debug::{Backend, Command, EndPolicy};
use sdm_idset::{IdSet, TaskId};

use super::Bench;
use crate::Scenario;

/// One command of each kind.
fn commands() -> Vec<Command> {
    let number = 1;
    let text = || "rank".to_owned();
    vec![
        Command::Start(StartSpec::default()),
        Command::Start(StartSpec {
            stop: StopAt::Nowhere,
            ..Default::default()
        }),
        Command::Attach(AttachSpec {
            pids: vec![(0, 1), (1, 2)],
            ..Default::default()
        }),
        Command::Detach,
        Command::Kill,
        Command::BreakInsert(BreakSpec {
            number,
            ..Default::default()
        }),
        Command::BreakDelete { number },
        Command::BreakEnable {
            number,
            enabled: false,
        },
        Command::Continue,
        Command::Step {
            kind: StepKind::Into,
            count: 1,
        },
        Command::Finish,
        Command::Interrupt,
        Command::Backtrace(BacktraceSpec::default()),
        Command::Stacks { full: true },
        Command::SelectFrame(FrameSelect::Current),
        Command::Locals,
        Command::Arguments,
        Command::Threads,
        Command::SelectThread { number },
        Command::Evaluate { expression: text() },
        Command::SetVariable { expression: text() },
        Command::Stdin {
            offset: 0,
            bytes: vec![b'x'],
            eof: false,
        },
        Command::Status,
        Command::Console { line: text() },
    ]
}

#[test]
fn scenario_can_name_every_command() {
    for command in commands() {
        Scenario::parse(&format!("mute = {}", command.name())).unwrap();
    }
}

const TROUBLE: &str = "
start = 0..3ms
answer = 0..2ms
step = 0..2ms
interrupt = 0..2ms
shut_down = 0..4ms
continue = 1ms..3ms breakpoint
continue = 2ms stop SIGSEGV
continue = 2ms exit 1
continue = never
output = 1ms..4ms x
[tasks 1]
gdb_dies = 9ms..20ms
[tasks 2]
mute = stacks,continue
interrupt = never
[tasks 3]
fail start = no
";

/// Performs some steps, then ends; returns all outputs with their times.
fn story(steps: &[(usize, u8, u64)]) -> Vec<String> {
    let mut bench = Bench::new(TROUBLE, "0-3");
    let commands = commands();
    let mut asked = vec![];
    for (choice, mask, ms) in steps {
        let tasks: IdSet = (0..4)
            .filter(|t| mask & (1 << t) != 0)
            .map(TaskId)
            .collect();
        if tasks.is_empty() {
            let id = CommandId(*ms);
            bench.backend.cancel(bench.now, id);
            bench.drain();
        } else {
            let command = commands[choice % commands.len()].clone();
            let id = bench.ask(&tasks.to_string(), command);
            asked.extend(tasks.iter().map(|task| (id, task.0)));
        }
        bench.backend.set_output_paused(bench.now, mask & 16 != 0);
        bench.run(*ms);
    }
    bench.backend.shut_down(bench.now, EndPolicy::KillStarted);
    bench.run(100);
    assert!(bench.backend.is_down());
    let answered: Vec<_> = bench.answers.keys().copied().collect();
    asked.sort_unstable();
    assert_eq!(answered, asked, "every task answers every command once");
    let mut story: Vec<String> = bench.events.iter().map(|e| format!("{e:?}")).collect();
    story.extend(bench.answers.iter().map(|a| format!("{a:?}")));
    story.push(format!("{:?}", bench.now - bench.start));
    story
}

proptest! {
    #[test]
    fn each_command_is_answered_once_and_runs_are_repeatable(
        steps in proptest::collection::vec((0usize..64, 0u8..32, 0u64..6), 0..40)
    ) {
        prop_assert_eq!(story(&steps), story(&steps));
    }
}
