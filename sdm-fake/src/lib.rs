//! A backend without gdb: tasks that follow a script, with the caller's clock.
//!
//! A [`Scenario`] is the script, parsed from text; a bad line gives a [`ScenarioError`]. A [`FakeBackend`] answers
//! the debug protocol's commands by it. It is deterministic: the same scenario, calls and times give the same output.
//! Tests and `sdm emulate` drive the tree with it.
//!
//! Nothing here starts a process, opens a file, or reads a clock.

mod breakpoints;
mod data;
mod eval;
mod parse;
mod points;
mod probe;
mod run;
mod scenario;
mod stacks;
mod task;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sdm_core::CommandId;
use sdm_idset::{IdSet, TaskId};

pub use parse::{Wrong, fuzz_scenario};
pub use scenario::{SCENARIO_BYTES_MAX, Scenario, ScenarioError};

use scenario::{DelayKey, fill};
use sdm_debug::event::Stream;
use sdm_debug::reply::{Reply, StopReason};
use sdm_debug::{
    Backend, BackendOutput, Command, EndPolicy, Event, Failure, FailureCode, LauncherDuties,
    TaskState,
};
use task::{RunKind, Task};

/// A backend whose tasks follow a [`Scenario`].
pub struct FakeBackend {
    scenario: Arc<Scenario>,
    tasks: BTreeMap<TaskId, Task>,
    timers: BinaryHeap<Reverse<(Instant, u64, TaskId, Timer)>>,
    timer_count: u64,
    outputs: VecDeque<BackendOutput>,
    paused: bool,
    /// Events held back while output is paused.
    held: VecDeque<(TaskId, Event)>,
    end: Option<EndPolicy>,
}

/// A timer of a task. The number in a variant is that of the run or of the process (`Life::number`) for which the timer
/// was set. A timer of an earlier run or process is ignored.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Timer {
    /// The current command's answer is due.
    Answer(CommandId),
    /// The run with this number ends.
    RunEnd(u32),
    /// The run with this number prints on this stream.
    Print(u32, Stream),
    /// An interrupt takes effect.
    Interrupt(CommandId),
    /// The task's gdb dies, if the task's process still has this number.
    GdbDies(u32),
    /// The task ends with the session.
    ShutDown,
    /// The detached program ends, if this is still the number of the task's process.
    LeftEnds(u32),
}

impl FakeBackend {
    /// A backend with these tasks, all of them absent.
    #[must_use]
    pub fn new(scenario: Arc<Scenario>, tasks: &IdSet) -> Self {
        Self {
            scenario,
            tasks: tasks.iter().map(|task| (task, Task::default())).collect(),
            timers: BinaryHeap::new(),
            timer_count: 0,
            outputs: VecDeque::new(),
            paused: false,
            held: VecDeque::new(),
            end: None,
        }
    }

    /// The state of a task; `None` if the backend does not have this task.
    #[must_use]
    pub fn state(&self, task: TaskId) -> Option<&TaskState> {
        self.tasks.get(&task).map(|task| &task.state)
    }

    fn task(&mut self, id: TaskId) -> &mut Task {
        self.tasks
            .get_mut(&id)
            .expect("only tasks of ours get here")
    }

    fn arm(&mut self, at: Instant, task: TaskId, timer: Timer) {
        self.timer_count += 1;
        self.timers
            .push(Reverse((at, self.timer_count, task, timer)));
    }

    fn answer(&mut self, id: CommandId, task: TaskId, result: Result<Reply, Failure>) {
        self.outputs
            .push_back(BackendOutput::Answer { id, task, result });
    }

    fn event(&mut self, task: TaskId, event: Event) {
        if self.paused && event.is_bulk() {
            self.held.push_back((task, event));
        } else {
            self.outputs.push_back(BackendOutput::Event { task, event });
        }
    }

    /// Begins the next commands of the task, in order, until one is not answered at once.
    fn advance(&mut self, now: Instant, id: TaskId) {
        while self.task(id).current.is_none() {
            let Some((command_id, command)) = self.task(id).queue.pop_front() else {
                return;
            };
            let delay = match &*command {
                Command::Start(_) | Command::Attach(_) => match self.begin_start(id, &command) {
                    Ok(delay) => delay,
                    Err(failure) => {
                        self.answer(command_id, id, Err(failure));
                        continue;
                    }
                },
                command if command.is_run_control() => Duration::ZERO,
                command => {
                    let name = command.name();
                    self.scenario.answer_delay(id, name, command_id.0)
                }
            };
            if delay.is_zero() {
                self.perform(now, id, command_id, &command);
            } else {
                self.task(id).current = Some((command_id, command));
                self.arm(now + delay, id, Timer::Answer(command_id));
            }
        }
    }

    /// Carries out a command: answers it, or opens a run.
    fn perform(&mut self, now: Instant, id: TaskId, command_id: CommandId, command: &Command) {
        let failure = self.scenario.failure(id, command.name());
        match command {
            Command::Start(_) | Command::Attach(_) => {
                self.started(now, id, command_id, command, failure);
            }
            _ if failure.is_some() => {
                self.answer(command_id, id, failure.map_or(Ok(Reply::Done), Err));
            }
            // A script continues in one way, whichever run command is given.
            Command::Continue
            | Command::ContinuePast { .. }
            | Command::Until { .. }
            | Command::Advance { .. }
            | Command::Jump { .. }
            | Command::ContinueSignal { .. }
            | Command::ReverseContinue => self.run(now, id, command_id, RunKind::Free),
            Command::Step { count, .. } | Command::ReverseStep { count, .. } => {
                self.run(now, id, command_id, RunKind::Step(*count));
            }
            Command::Finish => self.run(now, id, command_id, RunKind::Finish),
            query => {
                let scenario = Arc::clone(&self.scenario);
                let result = self.task(id).query(&scenario, id, query);
                self.answer(command_id, id, result);
            }
        }
    }

    fn take_stdin(&mut self, id: TaskId) {
        let scenario = Arc::clone(&self.scenario);
        let echo = scenario.pick(id, |s| s.stdin_echo).unwrap_or(true);
        while !self.paused {
            let Some((command_id, offset, bytes)) = self.task(id).stdin.pop_front() else {
                return;
            };
            let result = self.task(id).take_stdin(offset, &bytes);
            match result {
                Ok(new) => {
                    if echo && !new.is_empty() {
                        let (stream, bytes) = (Stream::Stdout, new.to_vec());
                        self.event(id, Event::Output { stream, bytes });
                    }
                    self.answer(command_id, id, Ok(Reply::Done));
                }
                Err(failure) => self.answer(command_id, id, Err(failure)),
            }
        }
    }

    fn arm_print(&mut self, now: Instant, id: TaskId, generation: u32, stream: Stream) {
        let scenario = Arc::clone(&self.scenario);
        if let Some((delay, _)) = scenario.pick(id, |s| s.outputs[stream as usize].as_ref()) {
            let salt = self.task(id).life.printed;
            let delay = scenario.choose(id, delay, salt);
            self.arm(now + delay, id, Timer::Print(generation, stream));
        }
    }

    fn print(&mut self, now: Instant, id: TaskId, generation: u32, stream: Stream) {
        let scenario = Arc::clone(&self.scenario);
        if let Some((_, text)) = scenario.pick(id, |s| s.outputs[stream as usize].as_ref())
            // While the output is paused, the program blocks in its write.
            && !self.paused
        {
            let lines = scenario.pick(id, |s| s.output_lines).unwrap_or(1);
            let mut bytes = Vec::new();
            for _ in 0..lines {
                let n = self.task(id).life.printed;
                bytes.extend_from_slice(fill(text, id, n).as_bytes());
                bytes.push(b'\n');
                self.task(id).life.printed += 1;
            }
            self.event(id, Event::Output { stream, bytes });
        }
        self.arm_print(now, id, generation, stream);
    }

    fn fire(&mut self, now: Instant, id: TaskId, timer: Timer) {
        let task = self.task(id);
        let running = task.state == TaskState::Running;
        match timer {
            Timer::Answer(command_id) => {
                if let Some((_, command)) = task.current.take_if(|(id, _)| *id == command_id) {
                    self.perform(now, id, command_id, &command);
                }
            }
            Timer::RunEnd(generation) if running && generation == task.generation => {
                self.run_ends(now, id);
            }
            Timer::Print(generation, stream) if running && generation == task.generation => {
                self.print(now, id, generation, stream);
            }
            Timer::Interrupt(command) if running && task.interrupts.contains(&command) => {
                self.stop(id, StopReason::Interrupted);
            }
            Timer::GdbDies(life) if task.state.is_live() && life == task.life.number => {
                self.ended(id, TaskState::GdbDead);
            }
            Timer::ShutDown => self.leave(id),
            Timer::LeftEnds(life)
                if task.state == TaskState::Detached && life == task.life.number =>
            {
                let runs = task.life.runs;
                if let Some(end) = self.scenario.own_end(id, runs) {
                    self.task(id).become_state(end.clone());
                    match end {
                        TaskState::Signalled(signal) => {
                            self.event(id, Event::Signalled { signal });
                        }
                        TaskState::Exited(code) => self.event(id, Event::Exited { code }),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        self.advance(now, id);
    }

    fn begin(&mut self, now: Instant, id: TaskId, command_id: CommandId, command: &Rc<Command>) {
        if !self.tasks.contains_key(&id) {
            let failure = Failure::new(FailureCode::BadCommand, "no task of this server");
            return self.answer(command_id, id, Err(failure));
        }
        if self.end.is_some() {
            let failure = Failure::new(FailureCode::Cancelled, "the session ends");
            return self.answer(command_id, id, Err(failure));
        }
        if self.scenario.is_mute(id, command.name()) {
            return self.task(id).silent.push(command_id);
        }
        match &**command {
            Command::Interrupt => self.interrupt(now, id, command_id),
            Command::Kill | Command::Detach => {
                let state = match **command {
                    Command::Kill => TaskState::Signalled("SIGKILL".to_owned()),
                    _ => TaskState::Detached,
                };
                let result = self.task(id).state.need_live().map(|()| Reply::Done);
                let leaves = state == TaskState::Detached;
                if result.is_ok() {
                    self.ended(id, state);
                }
                let task = self.task(id);
                if leaves && result.is_ok() && !task.attached {
                    let life = task.life.number;
                    self.arm(now, id, Timer::LeftEnds(life));
                }
                self.answer(command_id, id, result);
            }
            Command::Stdin { offset, bytes, .. } => {
                let stdin = &mut self.task(id).stdin;
                stdin.push_back((command_id, *offset, bytes.clone()));
                return self.take_stdin(id);
            }
            _ => self
                .task(id)
                .queue
                .push_back((command_id, Rc::clone(command))),
        }
        self.advance(now, id);
    }
}

/// True if all outputs are answers, and all are equal. They then belong to one command, as only one is open.
fn all_answer_alike(outputs: &VecDeque<BackendOutput>) -> bool {
    let mut results = outputs.iter().map(|output| match output {
        BackendOutput::Answer { result, .. } => Some(result),
        BackendOutput::Event { .. } => None,
    });
    let first = results.next().flatten();
    first.is_some() && results.all(|other| other == first)
}

impl LauncherDuties for FakeBackend {}

impl Backend for FakeBackend {
    fn execute(&mut self, now: Instant, id: CommandId, tasks: &IdSet, command: Command) {
        let command = Rc::new(command);
        for task in tasks.iter() {
            self.begin(now, task, id, &command);
        }
    }

    fn execute_at_once(
        &mut self,
        now: Instant,
        id: CommandId,
        tasks: &IdSet,
        command: Command,
    ) -> Option<Result<Reply, Failure>> {
        let (waits, timers) = (!self.outputs.is_empty(), self.timer_count);
        self.execute(now, id, tasks, command);
        let is_all = !waits
            && timers == self.timer_count
            && self.outputs.len() as u64 == tasks.len()
            && all_answer_alike(&self.outputs);
        let first = if is_all {
            self.outputs.pop_front()
        } else {
            None
        };
        let BackendOutput::Answer { result, .. } = first? else {
            return None;
        };
        self.outputs.clear();
        Some(result)
    }

    fn cancel(&mut self, now: Instant, id: CommandId) {
        let cancelled = || Failure::new(FailureCode::Cancelled, "cancelled");
        let ids: Vec<TaskId> = self.tasks.keys().copied().collect();
        for task in ids {
            if self.task(task).forget(id) {
                self.answer(id, task, Err(cancelled()));
                self.advance(now, task);
            }
        }
    }

    fn poll_output(&mut self) -> Option<BackendOutput> {
        self.outputs.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.timers.peek().map(|Reverse((at, ..))| *at)
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(Reverse((at, ..))) = self.timers.peek()
            && *at <= now
        {
            let Some(Reverse((_, _, task, timer))) = self.timers.pop() else {
                return;
            };
            self.fire(now, task, timer);
        }
    }

    fn set_output_paused(&mut self, _now: Instant, paused: bool) {
        self.paused = paused;
        if paused {
            return;
        }
        for (task, event) in std::mem::take(&mut self.held) {
            self.event(task, event);
        }
        let ids: Vec<TaskId> = self.tasks.keys().copied().collect();
        for task in ids {
            self.take_stdin(task);
        }
    }

    fn shut_down(&mut self, now: Instant, policy: EndPolicy) {
        if self.end.replace(policy).is_some() {
            return;
        }
        let ids: Vec<TaskId> = self.tasks.keys().copied().collect();
        for id in ids {
            for command in self.task(id).drain_waiting() {
                let failure = Failure::new(FailureCode::Cancelled, "the session ends");
                self.answer(command, id, Err(failure));
            }
            let delay = self.scenario.delay(id, &DelayKey::ShutDown, 0);
            match delay.unwrap_or_default() {
                Duration::ZERO => self.leave(id),
                delay => self.arm(now + delay, id, Timer::ShutDown),
            }
        }
    }

    fn is_down(&self) -> bool {
        self.end.is_some() && self.tasks.values().all(|task| task.left)
    }
}
