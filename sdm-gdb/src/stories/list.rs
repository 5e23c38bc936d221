//! The recorded sessions between a front-end and a program, step by step.

use sdm_debug::Command;
use sdm_debug::command::{
    BacktraceSpec, BreakSpec, CatchEvent, CatchSpec, FrameSelect, StepKind, ValueFormat, WatchKind,
    WatchSpec,
};

use super::StoryStep::{self, Answers, Ask, Send, Until};
use super::{Beginning, Story};

pub(super) fn stories() -> Vec<Story> {
    let mut stories = runs();
    for more in [found, stops, catches, looks, opened] {
        stories.extend(more());
    }
    stories
}

fn started(
    name: &'static str,
    (fixture, args): (&'static str, &'static str),
    steps: Vec<StoryStep>,
) -> Story {
    Story {
        name,
        fixture,
        beginning: Beginning::Start(args),
        steps,
    }
}

/// Starts, steps, runs and ends of programs.
fn runs() -> Vec<Story> {
    vec![
        started(
            "held_at_main_and_exits_with_its_code",
            ("steps.c", "9"),
            vec![go()],
        ),
        started(
            "steps_and_what_a_function_returns",
            ("steps.c", ""),
            vec![
                point(1, "twice"),
                go(),
                step(StepKind::Over, 1),
                Ask(Command::Finish),
                step(StepKind::Into, 3),
                step(StepKind::Instruction, 1),
                Ask(Command::BreakDelete { number: 1 }),
                Ask(Command::Advance {
                    location: "depth".to_owned(),
                }),
                Ask(Command::Until { location: None }),
            ],
        ),
        started(
            "segfault_with_its_stack_and_end",
            ("crash.c", "segv"),
            vec![go(), stack(), Ask(Command::Arguments), go()],
        ),
        started(
            "signal_passed_and_ended_by_one",
            ("crash.c", "term"),
            vec![go()],
        ),
        started(
            "interrupted_while_it_runs",
            ("spin.c", "threads"),
            vec![
                Send(Command::Continue),
                Until("=thread-created,id=\"3\""),
                Ask(Command::Interrupt),
                Answers,
                Ask(Command::Threads),
                Ask(Command::Stacks { full: false }),
                Ask(Command::Kill),
            ],
        ),
        started(
            "a_recorded_run_goes_backward",
            ("values.c", ""),
            vec![
                point(1, "overwrite"),
                go(),
                Ask(Command::Console {
                    line: "record".to_owned(),
                }),
                step(StepKind::Over, 2),
                Ask(Command::ReverseStep {
                    kind: StepKind::Over,
                    count: 1,
                }),
                Ask(Command::ReverseContinue),
            ],
        ),
    ]
}

/// Stories of tasks that were not started by SDM.
fn found() -> Vec<Story> {
    vec![
        Story {
            name: "attached_to_looked_at_and_left",
            fixture: "spin.c",
            beginning: Beginning::Attach,
            steps: vec![
                Ask(Command::Stacks { full: false }),
                Ask(Command::SelectThread { number: 2 }),
                stack(),
                Ask(Command::Detach),
            ],
        },
        Story {
            name: "a_core_file_is_looked_at",
            fixture: "values.c",
            beginning: Beginning::Core,
            steps: vec![
                stack(),
                Ask(Command::SelectFrame(FrameSelect::Level(1))),
                evaluate("called"),
                go(),
            ],
        },
    ]
}

/// Stories of breakpoints and watchpoints.
fn stops() -> Vec<Story> {
    vec![
        started(
            "breakpoint_hit_in_two_threads",
            ("spin.c", "threads"),
            vec![point(1, "wait_for_ever"), go(), Ask(Command::Threads), go()],
        ),
        started(
            "breakpoints_changed_counted_and_listed",
            ("steps.c", ""),
            vec![
                Ask(Command::BreakInsert(BreakSpec {
                    number: 1,
                    location: "twice".to_owned(),
                    condition: Some("n == 2".to_owned()),
                    ..BreakSpec::default()
                })),
                Ask(Command::BreakInsert(BreakSpec {
                    number: 2,
                    location: "elsewhere.c:7".to_owned(),
                    pending: true,
                    ..BreakSpec::default()
                })),
                go(),
                Ask(Command::BreakCondition {
                    number: 1,
                    condition: None,
                }),
                Ask(Command::BreakIgnore {
                    number: 1,
                    count: 2,
                }),
                go(),
                Ask(Command::Breakpoints),
                Ask(Command::BreakEnable {
                    number: 1,
                    enabled: false,
                }),
                go(),
            ],
        ),
        started(
            "watchpoint_hit_and_end_of_its_scope",
            ("points.c", ""),
            vec![
                point(1, "points.c:18"),
                go(),
                watch(2, "local", WatchKind::Write),
                go(),
                go(),
                go(),
                watch(3, "global", WatchKind::Access),
                go(),
                go(),
            ],
        ),
    ]
}

/// Stories of catchpoints and of breakpoint commands.
fn catches() -> Vec<Story> {
    vec![
        started(
            "signal_fork_syscall_and_exec_caught",
            ("points.c", "/bin/true"),
            vec![
                catch(1, CatchEvent::Signal(vec!["SIGUSR1".to_owned()])),
                catch(2, CatchEvent::Fork),
                catch(3, CatchEvent::Syscall(vec!["getppid".to_owned()])),
                catch(4, CatchEvent::Exec),
                go(),
                go(),
                go(),
                go(),
                go(),
                go(),
            ],
        ),
        started(
            "exceptions_and_templates",
            ("containers.cc", ""),
            vec![
                Ask(Command::BreakInsert(BreakSpec {
                    number: 1,
                    location: "^t[wh]".to_owned(),
                    regex: true,
                    ..BreakSpec::default()
                })),
                catch(2, CatchEvent::Throw),
                catch(3, CatchEvent::Catch),
                go(),
                go(),
                go(),
                go(),
                go(),
                go(),
            ],
        ),
        started(
            "breakpoint_with_commands",
            ("steps.c", ""),
            vec![
                Ask(Command::BreakInsert(BreakSpec {
                    number: 1,
                    location: "twice".to_owned(),
                    commands: vec!["silent".into(), "print n".into(), "continue".into()],
                    ..BreakSpec::default()
                })),
                point(2, "depth"),
                go(),
            ],
        ),
    ]
}

/// Inspection of a stopped task.
fn looks() -> Vec<Story> {
    vec![
        started(
            "values_memory_and_registers",
            ("values.c", ""),
            vec![
                point(1, "overwrite"),
                go(),
                evaluate("*outer"),
                Ask(Command::SetVariable {
                    expression: "outer->ratios[0] = 7.5".to_owned(),
                }),
                evaluate("outer->ratios"),
                Ask(Command::Call {
                    expression: "add (40, 2)".to_owned(),
                }),
                Ask(Command::MemoryRead {
                    address: "&bytes".to_owned(),
                    length: 8,
                }),
                Ask(Command::MemoryWrite {
                    address: "&bytes".to_owned(),
                    bytes: vec![9, 9],
                }),
                Ask(Command::Registers {
                    names: vec!["pc".to_owned()],
                    format: ValueFormat::Hexadecimal,
                }),
                Ask(Command::Disassemble {
                    address: Some("&reset".to_owned()),
                }),
                Ask(Command::Return {
                    value: Some("3".to_owned()),
                }),
            ],
        ),
        started(
            "source_types_signals_and_libraries",
            ("values.c", ""),
            vec![
                Ask(Command::List {
                    what: "add".to_owned(),
                }),
                Ask(Command::TypeOf {
                    expression: "struct inner".to_owned(),
                    full: true,
                }),
                Ask(Command::Libraries),
                Ask(Command::Signals {
                    names: vec!["SIGUSR1".to_owned()],
                }),
                Ask(Command::SignalHandle {
                    names: vec!["SIGUSR1".to_owned()],
                    stop: Some(true),
                    print: None,
                    pass: None,
                }),
            ],
        ),
    ]
}

/// Values that are expanded step by step, and errors.
fn opened() -> Vec<Story> {
    vec![
        started(
            "variable_objects_are_made_and_deleted",
            ("containers.cc", ""),
            vec![
                point(1, "thrown"),
                go(),
                Ask(Command::SelectFrame(FrameSelect::Move(1))),
                Ask(Command::VarCreate {
                    name: "n".to_owned(),
                    expression: "numbers".to_owned(),
                }),
                Ask(Command::VarChildren {
                    name: "n".to_owned(),
                    from: 0,
                    count: 2,
                }),
                Ask(Command::VarDelete {
                    name: "n".to_owned(),
                }),
            ],
        ),
        started(
            "what_cannot_be_done_is_said",
            ("values.c", ""),
            vec![
                evaluate("nosuch"),
                evaluate("*(int *) 0"),
                point(1, "nosuch"),
                point(1, "values.c:9999"),
                Ask(Command::MemoryRead {
                    address: "0".to_owned(),
                    length: 8,
                }),
                Ask(Command::Finish),
                Ask(Command::Jump {
                    location: "nosuch".to_owned(),
                }),
                Ask(Command::Console {
                    line: "nosuch".to_owned(),
                }),
                Ask(Command::Mi {
                    line: "-no-such-thing".to_owned(),
                }),
                Ask(Command::SelectThread { number: 9 }),
                Ask(Command::SelectFrame(FrameSelect::Level(9))),
            ],
        ),
    ]
}

fn go() -> StoryStep {
    Ask(Command::Continue)
}

fn step(kind: StepKind, count: u32) -> StoryStep {
    Ask(Command::Step { kind, count })
}

fn stack() -> StoryStep {
    Ask(Command::Backtrace(BacktraceSpec {
        args: true,
        ..BacktraceSpec::default()
    }))
}

fn point(number: u32, location: &str) -> StoryStep {
    Ask(Command::BreakInsert(BreakSpec {
        number,
        location: location.to_owned(),
        ..BreakSpec::default()
    }))
}

fn watch(number: u32, expression: &str, kind: WatchKind) -> StoryStep {
    Ask(Command::WatchInsert(WatchSpec::new(
        number, expression, kind,
    )))
}

fn catch(number: u32, event: CatchEvent) -> StoryStep {
    Ask(Command::CatchInsert(CatchSpec::new(number, event)))
}

fn evaluate(expression: &str) -> StoryStep {
    Ask(Command::Evaluate {
        expression: expression.to_owned(),
    })
}
