//! One suite of stories that every backend passes: gdb over a real program, and a scripted one.
//!
//! A story checks the properties on which a front-end relies, for any backend: the answer to a run, the code of a
//! refusal, a task's state afterwards. Where both backends use the same words, the words are compared too.

mod stage;

use sdm_debug::command::{BreakSpec, FrameSelect, StepKind};
use sdm_debug::event::{Phase, Stream};
use sdm_debug::reply::MEMORY_BYTES_MAX;
use sdm_debug::{Command, Event, Reply};

use stage::{Stage, Way};

/// Makes a test of each story for each backend.
macro_rules! stories {
    ($($name:ident: $way:ident,)*) => {
        mod gdb {
            $(#[test] fn $name() { super::$name(&mut super::Stage::gdb(super::Way::$way)); })*
        }
        mod scripted {
            $(#[test] fn $name() { super::$name(&mut super::Stage::scripted(super::Way::$way)); })*
        }
    };
}

stories! {
    commands_before_start_fail_as_not_started: Exit,
    started_program_stops_at_main: Exit,
    breakpoint_stops_at_every_hit_and_counts_hits: Exit,
    disabled_or_deleted_breakpoint_does_not_stop: Exit,
    unknown_breakpoint_thread_or_frame_number_is_refused: Exit,
    steps_stop_with_step_end_and_finish_fails_in_main: Exit,
    values_are_read_and_set: Exit,
    frame_and_thread_selection_is_answered_with_the_frame: Exit,
    malformed_command_is_refused_and_task_stays_stopped: Exit,
    exited_program_reports_its_code_and_refuses_commands: Exit,
    fatal_signal_stops_the_program_before_it_ends: Segv,
    queries_of_a_running_program_are_refused: Spin,
    interrupt_stops_the_program_and_answers_continue: Spin,
    kill_ends_a_stopped_and_a_running_program: Spin,
    detached_stopped_program_exits_normally: Exit,
    detach_answers_continue_and_refuses_commands: Spin,
    stop_after_cancelled_continue_is_reported_as_event: Spin,
}

const NOT_STARTED: &str = "not_running: not started";

fn text(text: &str) -> String {
    text.to_owned()
}

fn evaluate(expression: &str) -> Command {
    Command::Evaluate {
        expression: text(expression),
    }
}

fn step(kind: StepKind) -> Command {
    Command::Step { kind, count: 1 }
}

fn break_at_work(number: u32) -> Command {
    Command::BreakInsert(BreakSpec {
        number,
        location: text("work"),
        ..BreakSpec::default()
    })
}

/// Lets the task run and waits until it does; returns the number of the command.
fn running(stage: &mut Stage) -> u64 {
    let run = stage.send(Command::Continue);
    // This answer comes after gdb has let the task run.
    stage.ask(Command::Breakpoints).expect("a list");
    stage.check(Command::Status, "Status(Running)");
    run
}

/// All commands that need a process.
fn needing_a_process() -> Vec<Command> {
    vec![
        Command::Continue,
        step(StepKind::Over),
        Command::Finish,
        Command::Interrupt,
        Command::Kill,
        Command::Detach,
        Command::Locals,
        Command::Threads,
        Command::Stacks { full: false },
        evaluate("1"),
    ]
}

fn commands_before_start_fail_as_not_started(stage: &mut Stage) {
    stage.check(Command::Status, "Status(Absent)");
    for command in needing_a_process() {
        stage.check(command, NOT_STARTED);
    }
    stage.check(Command::Status, "Status(Absent)");
}

fn started_program_stops_at_main(stage: &mut Stage) {
    stage.start();
    let phases = [Phase::Gdb, Phase::Symbols, Phase::Running];
    let mut events = stage.take_events();
    events.retain(|event| !matches!(event, Event::OutputComplete { .. }));
    assert_eq!(events, phases.map(Event::Progress));
    stage.check(Command::Status, "Status(Stopped)");
    stage.check(Command::SelectFrame(FrameSelect::Current), "#0 main");
    let again = stage.start_command();
    stage.check_code(again, "already_running");
    stage.check(Command::Interrupt, "Done");
    stage.check(Command::Status, "Status(Stopped)");
}

fn breakpoint_stops_at_every_hit_and_counts_hits(stage: &mut Stage) {
    stage.start();
    let Ok(Reply::Breakpoint(place)) = stage.ask(break_at_work(4)) else {
        panic!("no breakpoint");
    };
    assert_eq!((place.number, place.pending), (4, false));
    stage.check(Command::Continue, "stopped: Breakpoint { number: 4 }");
    stage.check(Command::Continue, "stopped: Breakpoint { number: 4 }");
    let Ok(Reply::Breakpoints(all)) = stage.ask(Command::Breakpoints) else {
        panic!("no breakpoints");
    };
    let all: Vec<_> = all
        .iter()
        .map(|it| (it.place.number, &*it.kind, &*it.what, it.enabled, it.hits))
        .collect();
    assert_eq!(all, [(4, "breakpoint", "work", true, 2)]);
    stage.check(Command::Continue, "exited 3");
}

fn disabled_or_deleted_breakpoint_does_not_stop(stage: &mut Stage) {
    stage.start();
    for number in [1, 2] {
        stage.ask(break_at_work(number)).expect("a breakpoint");
    }
    stage.check(Command::BreakDelete { number: 2 }, "Done");
    let (number, enabled) = (1, false);
    stage.check(Command::BreakEnable { number, enabled }, "Done");
    stage.check(Command::Continue, "exited 3");
}

fn unknown_breakpoint_thread_or_frame_number_is_refused(stage: &mut Stage) {
    stage.start();
    let (number, condition, lines) = (9, Some(text("1")), Vec::new());
    for command in [
        Command::BreakDelete { number },
        Command::BreakEnable {
            number,
            enabled: true,
        },
        Command::BreakCondition { number, condition },
        Command::BreakIgnore { number, count: 1 },
        Command::BreakCommands { number, lines },
        Command::SelectThread { number },
        Command::SelectFrame(FrameSelect::Level(99)),
        Command::VarAssign {
            name: text("v"),
            value: text("1"),
        },
        Command::VarDelete { name: text("v") },
    ] {
        stage.check_code(command, "no_such_thing");
    }
}

fn steps_stop_with_step_end_and_finish_fails_in_main(stage: &mut Stage) {
    stage.start();
    for kind in [
        StepKind::Over,
        StepKind::Instruction,
        StepKind::InstructionOver,
    ] {
        stage.check(step(kind), "stopped: StepEnd");
    }
    stage.check(
        Command::Finish,
        "gdb: \"finish\" not meaningful in the outermost frame.",
    );
    stage.check(Command::Status, "Status(Stopped)");
}

fn values_are_read_and_set(stage: &mut Stage) {
    stage.start();
    stage.check(evaluate("level"), "3");
    stage.check(evaluate("level * 2 + 1"), "7");
    stage.check(
        evaluate("nosuch"),
        "gdb: No symbol \"nosuch\" in current context.",
    );
    stage.check(evaluate("level / 0"), "gdb: Division by zero");
    let expression = text("level = 8");
    stage.check(Command::SetVariable { expression }, "Done");
    stage.check(evaluate("level"), "8");
    let print = Command::Print {
        format: String::new(),
        expression: text("level > 7"),
    };
    stage.check(print, "1");
}

fn frame_and_thread_selection_is_answered_with_the_frame(stage: &mut Stage) {
    stage.start();
    stage.check(Command::SelectFrame(FrameSelect::Level(0)), "#0 main");
    stage.check_code(Command::SelectFrame(FrameSelect::Move(1)), "no_such_thing");
    stage.check_code(Command::SelectFrame(FrameSelect::Move(-1)), "no_such_thing");
    stage.check(Command::SelectThread { number: 1 }, "#0 main");
    let Ok(Reply::Threads(threads)) = stage.ask(Command::Threads) else {
        panic!("no threads");
    };
    let threads: Vec<_> = threads.iter().map(|it| (it.number, it.current)).collect();
    assert_eq!(threads, [(1, true)]);
    let Ok(Reply::Stacks(stacks)) = stage.ask(Command::Stacks { full: false }) else {
        panic!("no stacks");
    };
    let frames = stacks.threads.iter().map(|it| it.frames.len());
    assert_eq!(frames.collect::<Vec<_>>(), [1]);
}

fn malformed_command_is_refused_and_task_stays_stopped(stage: &mut Stage) {
    stage.start();
    for line in ["info threads", "", "-"] {
        stage.check_code(Command::Mi { line: text(line) }, "bad_command");
    }
    let lines = vec![text("if 1")];
    stage.ask(break_at_work(1)).expect("a breakpoint");
    let number = 1;
    stage.check_code(Command::BreakCommands { number, lines }, "bad_command");
    let (address, length) = (text("&level"), MEMORY_BYTES_MAX + 1);
    stage.check_code(Command::MemoryRead { address, length }, "limit");
    stage.check(Command::Status, "Status(Stopped)");
}

fn exited_program_reports_its_code_and_refuses_commands(stage: &mut Stage) {
    stage.start();
    stage.check(Command::Continue, "exited 3");
    for stream in [Stream::Stdout, Stream::Stderr] {
        stage.event(&Event::OutputEnd { stream });
    }
    stage.check(Command::Status, "Status(Exited(3))");
    for command in needing_a_process() {
        stage.check(command, "not_running: not running (exited 3)");
    }
    stage.start();
    stage.check(Command::Status, "Status(Stopped)");
}

fn fatal_signal_stops_the_program_before_it_ends(stage: &mut Stage) {
    stage.start();
    stage.check(
        Command::Continue,
        "stopped: Signal { name: \"SIGSEGV\", meaning: \"Segmentation fault\" }",
    );
    stage.check(Command::Status, "Status(Stopped)");
    stage.check(Command::Continue, "Signalled { signal: \"SIGSEGV\" }");
    stage.check(Command::Status, "Status(Signalled(\"SIGSEGV\"))");
    stage.check(
        Command::Continue,
        "not_running: not running (ended by SIGSEGV)",
    );
}

fn queries_of_a_running_program_are_refused(stage: &mut Stage) {
    stage.start();
    let run = running(stage);
    for command in [
        Command::Locals,
        Command::Threads,
        Command::SelectFrame(FrameSelect::Current),
        evaluate("level"),
    ] {
        stage.check(command, "running: running");
    }
    for command in [
        Command::Continue,
        step(StepKind::Into),
        stage.start_command(),
    ] {
        stage.check_code(command, "already_running");
    }
    stage.check(Command::Interrupt, "Done");
    stage.check_answer(run, "stopped: Interrupted");
}

fn interrupt_stops_the_program_and_answers_continue(stage: &mut Stage) {
    stage.start();
    for _ in 0..2 {
        let run = running(stage);
        stage.check(Command::Interrupt, "Done");
        stage.check_answer(run, "stopped: Interrupted");
        stage.check(Command::Status, "Status(Stopped)");
        stage.check(Command::Interrupt, "Done");
    }
}

fn kill_ends_a_stopped_and_a_running_program(stage: &mut Stage) {
    const ENDED: &str = "Status(Signalled(\"SIGKILL\"))";
    stage.start();
    stage.check(Command::Kill, "Done");
    stage.check(Command::Status, ENDED);
    stage.check(Command::Kill, "not_running: not running (ended by SIGKILL)");
    stage.start();
    let run = running(stage);
    stage.check(Command::Kill, "Done");
    stage.check_answer(run, "Signalled { signal: \"SIGKILL\" }");
    stage.check(Command::Status, ENDED);
}

fn detached_stopped_program_exits_normally(stage: &mut Stage) {
    stage.start();
    stage.check(Command::Detach, "Done");
    stage.event(&Event::Exited { code: 3 });
    stage.check(Command::Status, "Status(Exited(3))");
    stage.check(Command::Continue, "not_running: not running (exited 3)");
}

fn detach_answers_continue_and_refuses_commands(stage: &mut Stage) {
    stage.start();
    let run = running(stage);
    stage.check(Command::Detach, "Done");
    stage.check_answer(run, "Detached");
    stage.check(Command::Status, "Status(Detached)");
    // With gdb, a kill also ends the process that was left running; a script has nothing to kill.
    let mut others = needing_a_process();
    others.retain(|command| *command != Command::Kill);
    for command in others {
        stage.check(command, "not_running: not running (detached)");
    }
}

fn stop_after_cancelled_continue_is_reported_as_event(stage: &mut Stage) {
    stage.start();
    let run = running(stage);
    stage.cancel(run);
    stage.check_answer(run, "cancelled: cancelled");
    stage.check(Command::Status, "Status(Running)");
    stage.check_code(Command::Continue, "already_running");
    stage.check(Command::Interrupt, "Done");
    stage.event_where("a stop", |event| matches!(event, Event::Stopped(_)));
    stage.check(Command::Status, "Status(Stopped)");
}
