//! Starts, runs and ends of the fake's tasks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sdm_core::CommandId;
use sdm_debug::command::StopAt;
use sdm_debug::event::{Phase, Stream};
use sdm_debug::reply::{Reply, Stop, StopReason};
use sdm_debug::{Command, EndPolicy, Event, Failure, FailureCode, TaskState};
use sdm_idset::TaskId;

use super::scenario::{DelayKey, End, RunEnd};
use super::task::{self, Run, RunKind};
use super::{FakeBackend, Timer};

impl FakeBackend {
    /// Begins a start or an attach; returns its duration.
    pub(super) fn begin_start(
        &mut self,
        id: TaskId,
        command: &Command,
    ) -> Result<Duration, Failure> {
        let scenario = Arc::clone(&self.scenario);
        let task = self.task(id);
        if task.state.is_live() {
            let code = FailureCode::AlreadyRunning;
            return Err(Failure::new(code, "it has a process already"));
        }
        task.attached = false;
        if let Command::Attach(spec) = command {
            if !spec.pids.iter().any(|(of, _)| *of == id.0) {
                let code = FailureCode::AttachFailed;
                return Err(Failure::new(code, "no pid was given for it"));
            }
            task.attached = true;
        }
        task.restart();
        let life = task.life.number;
        task.become_state(TaskState::Starting);
        self.event(id, Event::Progress(Phase::Gdb));
        self.event(id, Event::Progress(Phase::Symbols));
        let delay = scenario.delay(id, &DelayKey::Start, life.into());
        Ok(delay.unwrap_or_default())
    }

    /// Completes a start or an attach.
    pub(super) fn started(
        &mut self,
        now: Instant,
        id: TaskId,
        command_id: CommandId,
        command: &Command,
        failure: Option<Failure>,
    ) {
        let scenario = Arc::clone(&self.scenario);
        let task = self.task(id);
        let answers = (!std::mem::take(&mut task.disowned)).then_some(command_id);
        if let Some(failure) = failure {
            task.become_state(TaskState::Absent);
            let interrupts = std::mem::take(&mut task.interrupts);
            for command in answers.into_iter().chain(interrupts) {
                self.answer(command, id, Err(failure.clone()));
            }
            return;
        }
        let life = task.life.number;
        if let Some(delay) = scenario.delay(id, &DelayKey::GdbDies, life.into()) {
            self.arm(now + delay, id, Timer::GdbDies(life));
        }
        if let Command::Start(spec) = command {
            self.task(id).insert_points(id, &spec.points);
        }
        match command {
            Command::Start(spec) if spec.stop == StopAt::Nowhere => {
                self.event(id, Event::Progress(Phase::Running));
                self.open_run(now, id, answers, RunKind::Free);
                for command in self.task(id).interrupts.clone() {
                    self.arm(now, id, Timer::Interrupt(command));
                }
            }
            Command::Start(_) => {
                self.event(id, Event::Progress(Phase::Running));
                self.task(id).run = Some(Run { id: answers });
                self.stop(id, StopReason::AtMain);
            }
            _ => {
                self.task(id).run = Some(Run { id: answers });
                self.stop(id, StopReason::Attached);
            }
        }
    }

    /// Executes a run-control command. It is refused, or begins a run whose end answers it.
    pub(super) fn run(&mut self, now: Instant, id: TaskId, command_id: CommandId, kind: RunKind) {
        let scenario = Arc::clone(&self.scenario);
        let task = self.task(id);
        let refusal = if task.run.is_some() || task.state == TaskState::Running {
            let code = FailureCode::AlreadyRunning;
            Some(Failure::new(code, "it runs already").with_hint("interrupt first"))
        } else if let Err(failure) = task.state.need_stopped() {
            Some(failure)
        } else if kind == RunKind::Finish && task.frames(&scenario, id).len() < 2 {
            let text = "\"finish\" not meaningful in the outermost frame.";
            Some(Failure::new(FailureCode::Gdb, text))
        } else {
            None
        };
        match refusal {
            Some(failure) => self.answer(command_id, id, Err(failure)),
            None => self.open_run(now, id, Some(command_id), kind),
        }
    }

    pub(super) fn open_run(
        &mut self,
        now: Instant,
        id: TaskId,
        command: Option<CommandId>,
        kind: RunKind,
    ) {
        let task = self.task(id);
        task.become_state(TaskState::Running);
        task.run = Some(Run { id: command });
        task.kind = kind;
        task.generation += 1;
        let generation = task.generation;
        for stream in [Stream::Stdout, Stream::Stderr] {
            self.arm_print(now, id, generation, stream);
        }
        if kind == RunKind::Free {
            (self.task(id).life.steps, self.task(id).life.finished) = (0, 0);
        }
        self.arm_run_end(now, id);
    }

    /// Schedules the end of the open run. Even an immediate end uses a timer, so that a script with many such ends does
    /// not recurse.
    pub(super) fn arm_run_end(&mut self, now: Instant, id: TaskId) {
        let scenario = Arc::clone(&self.scenario);
        let task = self.task(id);
        let generation = task.generation;
        let delay = match task.kind {
            RunKind::Free => match scenario.run_end(id, task.life.runs) {
                RunEnd::Never => return,
                RunEnd::After(delay, _) => scenario.choose(id, &delay, generation.into()),
            },
            _ => scenario
                .delay(id, &DelayKey::Step, generation.into())
                .unwrap_or_default(),
        };
        self.arm(now + delay, id, Timer::RunEnd(generation));
    }

    /// Ends the open run as the script says.
    pub(super) fn run_ends(&mut self, now: Instant, id: TaskId) {
        let scenario = Arc::clone(&self.scenario);
        let task = self.task(id);
        match task.kind {
            RunKind::Free => {}
            RunKind::Step(count) => {
                task.life.steps = task.life.steps.saturating_add(count);
                return self.stop(id, StopReason::StepEnd);
            }
            RunKind::Finish => {
                task.life.finished += 1;
                let value = Some(task::value("0"));
                return self.stop(id, StopReason::FunctionFinished { value });
            }
        }
        let index = task.life.runs;
        task.life.runs += 1;
        let RunEnd::After(_, end) = scenario.run_end(id, index) else {
            return;
        };
        match end {
            End::Exit(code) => self.ended(id, TaskState::Exited(code)),
            End::Signal(name) => self.ended(id, TaskState::Signalled(name)),
            End::Stop(name) => {
                let meaning = meaning(&name).to_owned();
                self.stop(id, StopReason::Signal { name, meaning });
            }
            End::Breakpoint => match self.task(id).hit() {
                Some(number) => self.stop(id, StopReason::Breakpoint { number }),
                // There is no breakpoint to stop at. The run continues to the script's next end, or to the program's
                // end.
                None if scenario.is_last_run(id, index) => self.ended(id, TaskState::Exited(0)),
                None => self.arm_run_end(now, id),
            },
        }
    }

    /// Stops the task: answers its open run, or emits an event if no command is open.
    pub(super) fn stop(&mut self, id: TaskId, reason: StopReason) {
        let scenario = Arc::clone(&self.scenario);
        let task = self.task(id);
        task.become_state(TaskState::Stopped);
        (task.life.level, task.life.thread) = (0, 1);
        let frames = task.frames(&scenario, id);
        let stop = Stop {
            reason,
            frame: frames.into_iter().next(),
            inside: None,
            source: None,
        };
        let (run, attached) = (task.run.take(), task.attached);
        let interrupts = std::mem::take(&mut task.interrupts);
        match run.and_then(|run| run.id) {
            Some(command) => {
                self.answer(command, id, Ok(Reply::Stopped(stop)));
                if !attached {
                    let command = command.0;
                    self.event(id, Event::OutputComplete { command });
                }
            }
            None => self.event(id, Event::Stopped(stop)),
        }
        for command in interrupts {
            self.answer(command, id, Ok(Reply::Done));
        }
    }

    /// Handles the end of the task's process, its detach, or the death of its gdb: its open commands are answered.
    pub(super) fn ended(&mut self, id: TaskId, state: TaskState) {
        let task = self.task(id);
        task.become_state(state.clone());
        let failure = task.state.need_live().err();
        let failure = failure.expect("an end is no live state");
        let run = task.run.take();
        let open = run.map(|run| run.id).or(task.take_start());
        let interrupts = std::mem::take(&mut task.interrupts);
        for stream in [Stream::Stdout, Stream::Stderr] {
            self.event(id, Event::OutputEnd { stream });
        }
        let dead = state == TaskState::GdbDead;
        let (reply, event) = match state {
            TaskState::Exited(code) => (
                Ok(Reply::Exited {
                    code,
                    before_finalize: false,
                }),
                Some(Event::Exited { code }),
            ),
            TaskState::Signalled(signal) => (
                Ok(Reply::Signalled {
                    signal: signal.clone(),
                }),
                Some(Event::Signalled { signal }),
            ),
            TaskState::Detached => (Ok(Reply::Detached), None),
            _ => (Err(failure.clone()), None),
        };
        match (open, event) {
            (Some(Some(command)), _) => self.answer(command, id, reply),
            (Some(None), Some(event)) => self.event(id, event),
            _ => {}
        }
        for command in interrupts {
            self.answer(command, id, Err(failure.clone()));
        }
        if dead {
            let text = "ended by SIGKILL".to_owned();
            self.event(id, Event::GdbDied { text });
            if let Some((command, _)) = self.task(id).current.take() {
                self.answer(command, id, Err(failure));
            }
        }
    }

    pub(super) fn interrupt(&mut self, now: Instant, id: TaskId, command_id: CommandId) {
        let scenario = Arc::clone(&self.scenario);
        let task = self.task(id);
        if let Err(failure) = task.state.need_live() {
            return self.answer(command_id, id, Err(failure));
        }
        if task.state == TaskState::Stopped {
            return self.answer(command_id, id, Ok(Reply::Done));
        }
        if scenario.pick(id, |s| s.refuses_interrupt) == Some(true) {
            let code = FailureCode::NotStoppable;
            let failure = Failure::new(code, "the process could not be stopped (state D)");
            return self.answer(command_id, id, Err(failure));
        }
        let delay = scenario.delay(id, &DelayKey::Interrupt, command_id.0);
        let delay = delay.unwrap_or_default();
        task.interrupts.push(command_id);
        // A start ends with a stop anyway, which answers the interrupt.
        if task.state == TaskState::Running {
            if delay.is_zero() {
                self.stop(id, StopReason::Interrupted);
            } else {
                self.arm(now + delay, id, Timer::Interrupt(command_id));
            }
        }
    }

    /// Ends the task at the end of the session: detaches it if it was attached, and otherwise kills or detaches it by
    /// the end policy.
    pub(super) fn leave(&mut self, id: TaskId) {
        let policy = self.end;
        let task = self.task(id);
        task.left = true;
        if !task.state.is_live() {
            return;
        }
        let detach = task.attached || policy == Some(EndPolicy::Detach);
        let state = if detach {
            TaskState::Detached
        } else {
            TaskState::Signalled("SIGKILL".to_owned())
        };
        self.ended(id, state);
    }
}

fn meaning(signal: &str) -> &'static str {
    match signal {
        "SIGSEGV" => "Segmentation fault",
        "SIGBUS" => "Bus error",
        "SIGFPE" => "Arithmetic exception",
        "SIGILL" => "Illegal instruction",
        "SIGABRT" => "Aborted",
        _ => "Signal",
    }
}
