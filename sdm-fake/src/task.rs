//! One task of the fake: its state, and its answers to queries.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use sdm_core::CommandId;
use sdm_debug::command::FrameSelect;
use sdm_debug::reply::{MemoryLimit, Reply, Room, Usage, Value, Variable};
use sdm_debug::{Command, Failure, FailureCode, TaskState};
use sdm_idset::TaskId;

use super::eval::evaluate;
use super::points::{Point, Quiet};
use super::scenario::{Scenario, fill};

/// One scripted task: its state, and its open commands.
#[derive(Default)]
pub(super) struct Task {
    pub(super) state: TaskState,
    /// True if the process was attached to, and not started.
    pub(super) attached: bool,
    pub(super) life: Life,
    pub(super) run: Option<Run>,
    pub(super) kind: RunKind,
    /// Number of runs opened so far.
    pub(super) generation: u32,
    /// The command whose answer is due later; `None` if there is none.
    pub(super) current: Option<(CommandId, Rc<Command>)>,
    /// Later commands, in order.
    pub(super) queue: VecDeque<(CommandId, Rc<Command>)>,
    /// Input that the program has not taken yet: the command, the position of its bytes in the stream, and the bytes.
    pub(super) stdin: VecDeque<(CommandId, u64, Vec<u8>)>,
    /// Interrupts that have not taken effect.
    pub(super) interrupts: Vec<CommandId>,
    /// Commands that are never answered.
    pub(super) silent: Vec<CommandId>,
    /// True if the command of the start in progress was cancelled, so that the end of the start is reported as an
    /// event.
    pub(super) disowned: bool,
    /// True once the backend has ended the task.
    pub(super) left: bool,
    pub(super) breakpoints: Vec<Point>,
    /// Watchpoints and catchpoints.
    pub(super) quiet: Vec<Quiet>,
}

/// The state that begins anew with each process of a task.
#[derive(Default)]
pub(super) struct Life {
    /// Number of processes so far, including this one; 0 before the first.
    pub(super) number: u32,
    /// Number of run ends of the script that are used up.
    pub(super) runs: usize,
    /// Number of lines that the innermost frame has advanced.
    pub(super) steps: u32,
    /// Number of functions of the script's stack that have returned.
    pub(super) finished: u32,
    /// Level of the selected frame; 0 is the innermost.
    pub(super) level: u32,
    /// Number of the selected thread, from 1.
    pub(super) thread: u32,
    /// Number of lines that the program has printed.
    pub(super) printed: u64,
    /// Number of bytes of input that the program has taken.
    stdin_taken: u64,
    /// Variables that were set, which override the script's.
    values: Vec<(String, String)>,
    /// Variable objects: the expression of each, and its last value.
    pub(super) objects: BTreeMap<String, (String, String)>,
    /// The variables at the last probe; `None` before the first one.
    pub(super) probed: Option<Vec<Variable>>,
    /// The line after the last listed line; 0 if no line was listed.
    pub(super) listed: u32,
}

/// Kinds of runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum RunKind {
    /// Until the next end in the script.
    #[default]
    Free,
    /// A number of steps of one line each.
    Step(u32),
    /// Until the selected function returns.
    Finish,
}

/// An open run.
pub(super) struct Run {
    /// The command that the end of the run answers; `None` if the command was cancelled.
    pub(super) id: Option<CommandId>,
}

impl Task {
    /// Changes the task's state.
    pub(super) fn become_state(&mut self, next: TaskState) {
        assert!(
            self.state.may_become(&next),
            "the table of moves has no {:?} -> {next:?}",
            self.state
        );
        self.state = next;
    }

    /// Starts a new process for the task.
    pub(super) fn restart(&mut self) {
        self.life = Life {
            number: self.life.number + 1,
            thread: 1,
            ..Life::default()
        };
    }

    /// Forgets a cancelled command; true if it was open.
    pub(super) fn forget(&mut self, id: CommandId) -> bool {
        if let Some(run) = self.run.as_mut().filter(|run| run.id == Some(id)) {
            run.id = None;
            return true;
        }
        // A start cannot be undone halfway. It continues, and its stop is reported as an event.
        if self.is_starting() && self.current.as_ref().is_some_and(|(start, _)| *start == id) {
            return !std::mem::replace(&mut self.disowned, true);
        }
        let before = self.waiting();
        self.queue.retain(|(waiting, _)| *waiting != id);
        self.stdin.retain(|(waiting, ..)| *waiting != id);
        self.interrupts.retain(|waiting| *waiting != id);
        self.silent.retain(|waiting| *waiting != id);
        self.current.take_if(|(current, _)| *current == id);
        self.waiting() < before
    }

    fn is_starting(&self) -> bool {
        let command = self.current.as_ref().map(|(_, command)| &**command);
        matches!(command, Some(Command::Start(_) | Command::Attach(_)))
    }

    /// Ends the start in progress. Returns the command to answer, or `Some(None)` if that was cancelled. `None` if no
    /// start is in progress.
    pub(super) fn take_start(&mut self) -> Option<Option<CommandId>> {
        if !self.is_starting() {
            return None;
        }
        let disowned = std::mem::take(&mut self.disowned);
        let start = self.current.take().map(|(id, _)| id);
        Some(start.filter(|_| !disowned))
    }

    fn waiting(&self) -> usize {
        let lists = self.queue.len() + self.stdin.len();
        lists + self.interrupts.len() + self.silent.len() + usize::from(self.current.is_some())
    }

    /// The unanswered commands, for the task's end, except those of an open run, of a start in progress, and
    /// interrupts. They are removed.
    pub(super) fn drain_waiting(&mut self) -> Vec<CommandId> {
        let mut ids: Vec<CommandId> = self.queue.drain(..).map(|(id, _)| id).collect();
        ids.extend(self.stdin.drain(..).map(|(id, ..)| id));
        ids.append(&mut self.silent);
        if !self.is_starting() {
            ids.extend(self.current.take().map(|(id, _)| id));
        }
        ids
    }

    /// The bytes that the program has not received before.
    ///
    /// # Errors
    /// The task has no process, or bytes before `offset` are missing.
    pub(super) fn take_stdin<'a>(
        &mut self,
        offset: u64,
        bytes: &'a [u8],
    ) -> Result<&'a [u8], Failure> {
        self.state.need_live()?;
        let Some(known) = self.life.stdin_taken.checked_sub(offset) else {
            let text = format!(
                "input at byte {offset}, but only {} bytes were received before it",
                self.life.stdin_taken
            );
            return Err(Failure::new(FailureCode::BadCommand, text));
        };
        let known = usize::try_from(known).unwrap_or(usize::MAX);
        let new = &bytes[known.min(bytes.len())..];
        self.life.stdin_taken += new.len() as u64;
        Ok(new)
    }

    /// The answer to a command that does not resume the task.
    pub(super) fn query(
        &mut self,
        scenario: &Scenario,
        id: TaskId,
        command: &Command,
    ) -> Result<Reply, Failure> {
        match command {
            Command::Status => return Ok(Reply::Status(self.state.clone())),
            Command::Hold => return Ok(Reply::Done),
            Command::Usage | Command::ProcessUsage { .. } => {
                self.state.need_live()?;
                // The memory of each task is a megabyte larger than that of the one before.
                let resident_bytes = (u64::from(id.0) + 1) << 20;
                return Ok(Reply::Usage(Usage {
                    resident_bytes,
                    peak_bytes: resident_bytes,
                }));
            }
            Command::Room(_) => {
                // A scripted program needs almost no memory.
                return Ok(Reply::Room(Room {
                    gdb_bytes: 0,
                    free_bytes: u64::MAX,
                    limit: MemoryLimit::Host,
                }));
            }
            Command::BreakInsert(_)
            | Command::BreakDelete { .. }
            | Command::BreakEnable { .. }
            | Command::BreakCondition { .. }
            | Command::BreakIgnore { .. }
            | Command::BreakCommands { .. } => {
                self.state.need_live()?;
                return self.change_breakpoint(command);
            }
            Command::WatchInsert(_) | Command::CatchInsert(_) => {
                self.state.need_live()?;
                return self.insert_quiet(command);
            }
            Command::Look(spec) => return self.look(scenario, id, spec),
            Command::Sample(spec) => return self.sample(scenario, id, spec),
            Command::Probe(spec) => return self.probe(scenario, id, *spec),
            Command::Queues => {
                self.state.need_stopped()?;
                let text = "the program has no MPI library that provides a debug library";
                return Err(Failure::new(FailureCode::Unsupported, text));
            }
            Command::Breakpoints => {
                self.state.need_live()?;
                return Ok(Reply::Breakpoints(self.breakpoint_views()));
            }
            _ => self.state.need_stopped()?,
        }
        match command {
            Command::Backtrace(spec) => Ok(self.backtrace(scenario, id, spec)),
            Command::Stacks { full } => Ok(Reply::Stacks(self.stacks(scenario, id, *full))),
            Command::SelectFrame(select) => self.select_frame(scenario, id, *select),
            Command::SelectThread { number } => {
                if !(1..=self.thread_count(scenario, id)).contains(number) {
                    return Err(no_such(format!("Unknown thread {number}.")));
                }
                (self.life.thread, self.life.level) = (*number, 0);
                self.select_frame(scenario, id, FrameSelect::Current)
            }
            Command::Locals => Ok(Reply::Variables(self.locals(scenario, id))),
            Command::Arguments => {
                let args = scenario.named(id, |s| &s.args);
                Ok(Reply::Variables(variables(&args)))
            }
            Command::Threads => Ok(Reply::Threads(self.threads(scenario, id))),
            Command::Evaluate { expression } | Command::Print { expression, .. } => {
                let text = self.evaluate(scenario, id, expression)?;
                Ok(Reply::Value(value(&text)))
            }
            Command::SetVariable { expression } => self.set_variable(scenario, id, expression),
            Command::Console { line } => self.console(scenario, id, line),
            other => self.data(scenario, id, other),
        }
    }

    pub(super) fn locals(&self, scenario: &Scenario, id: TaskId) -> Vec<Variable> {
        let mut locals = scenario.named(id, |s| &s.locals);
        for (name, text) in &mut locals {
            if let Some((_, set)) = self.life.values.iter().find(|(set, _)| set == name) {
                text.clone_from(set);
            }
        }
        variables(&locals)
    }

    pub(super) fn evaluate(
        &self,
        scenario: &Scenario,
        id: TaskId,
        expression: &str,
    ) -> Result<String, Failure> {
        let scripted = |name: &str| {
            scenario.pick(id, |s| {
                let lists = [&s.values, &s.locals, &s.args];
                let mut all = lists.into_iter().flat_map(|list| list.iter().rev());
                all.find(|(known, _)| known == name).map(|(_, text)| text)
            })
        };
        let lookup = |name: &str| {
            if let Some((_, text)) = self.life.values.iter().find(|(known, _)| known == name) {
                return Some(text.clone());
            }
            match scripted(name) {
                Some(text) => Some(fill(text, id, 0)),
                None => (name == "rank").then(|| id.0.to_string()),
            }
        };
        evaluate(expression, &lookup)
    }

    pub(super) fn set_variable(
        &mut self,
        scenario: &Scenario,
        id: TaskId,
        expression: &str,
    ) -> Result<Reply, Failure> {
        let Some((name, right)) = expression.split_once('=') else {
            self.evaluate(scenario, id, expression)?;
            return Ok(Reply::Done);
        };
        let name = name.trim();
        // Only existing variables can be set, as in gdb.
        self.evaluate(scenario, id, name)?;
        let text = self.evaluate(scenario, id, right)?;
        match self.life.values.iter_mut().find(|(known, _)| known == name) {
            Some(known) => known.1 = text,
            None => self.life.values.push((name.to_owned(), text)),
        }
        Ok(Reply::Done)
    }

    /// A line for gdb. The settings of `with` have no effect on the values here.
    fn console(&self, scenario: &Scenario, id: TaskId, line: &str) -> Result<Reply, Failure> {
        let line = match line.trim().starts_with("with ") {
            true => line.rsplit(" -- ").next().unwrap_or(line),
            false => line,
        };
        let (word, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        match word.split('/').next() {
            Some("echo") => Ok(Reply::Text(rest.to_owned())),
            Some("output") => self.evaluate(scenario, id, rest).map(Reply::Text),
            _ => {
                let text = format!("Undefined command: \"{word}\".  Try \"help\".");
                Err(Failure::new(FailureCode::Gdb, text))
            }
        }
    }
}

/// A value that is not shortened.
pub(super) fn value(text: &str) -> Value {
    Value {
        text: text.to_owned(),
        cut: None,
    }
}

pub(super) fn variables(pairs: &[(String, String)]) -> Vec<Variable> {
    let variable = |(name, text): &(String, String)| Variable {
        name: name.clone(),
        value: value(text),
    };
    pairs.iter().map(variable).collect()
}

pub(super) fn no_such(text: String) -> Failure {
    Failure::new(FailureCode::NoSuchThing, text)
}
