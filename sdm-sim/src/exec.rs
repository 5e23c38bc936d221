//! Simulated tasks in place of a debugger: they answer as the command specifies, in virtual time.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use bytes::Bytes;
use sdm_core::message::{Lane, Status};
use sdm_core::node::LocalTasks;
use sdm_core::{CommandId, ServerId};
use sdm_debug::{Failure, FailureCode};
use sdm_idset::{IdSet, TaskId};

use crate::ledger::{Checked, Ledger};
use crate::log::Log;
use crate::spec::{Spec, event_payload};

/// Duration of a shutdown, in microseconds.
const DOWN_US: u64 = 30_000;

/// An output of a server's tasks.
pub(crate) enum TaskOutput {
    Answer {
        id: CommandId,
        task: TaskId,
        status: Status,
        payload: Bytes,
    },
    Event {
        lane: Lane,
        task: TaskId,
        sequence: u32,
        payload: Bytes,
    },
    Down,
}

enum PendingWork {
    Answer(CommandId, TaskId),
    Event(Lane, TaskId, usize),
    Down,
}

struct Running {
    spec: Spec,
    unanswered: IdSet,
}

/// The tasks of a server as its member controls them, with the ledger and the log.
pub(crate) struct TasksAtOnce<'a> {
    pub(crate) server: ServerId,
    pub(crate) now: u64,
    pub(crate) exec: &'a mut Executor,
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) log: &'a mut Log,
    /// The result of the ledger's check of the last command.
    pub(crate) found: Checked,
}

impl LocalTasks for TasksAtOnce<'_> {
    fn execute(
        &mut self,
        _now: Instant,
        id: CommandId,
        tasks: &IdSet,
        payload: &[u8],
    ) -> Option<(Status, Bytes)> {
        let (server, now) = (self.server, self.now);
        self.log.note(
            now,
            format_args!("{server}: execute {id} on {tasks} at once"),
        );
        self.found = self.ledger.executed(id, tasks, payload);
        let answer = self.exec.execute_at_once(now, id, tasks, payload)?;
        for task in tasks {
            self.ledger.has_answered(id, task);
        }
        self.log.note(now, format_args!("{server}: answered {id}"));
        Some(answer)
    }
}

/// The simulated execution of commands by the tasks of one server.
#[derive(Default)]
pub(crate) struct Executor {
    running: BTreeMap<CommandId, Running>,
    due: BTreeMap<(u64, u64), PendingWork>,
    count: u64,
    /// Number of events of each task, by lane.
    said: BTreeMap<(TaskId, bool), u32>,
    paused: bool,
    held: VecDeque<(TaskId, usize)>,
    /// True once every task answers, even if its command told it not to.
    nothing_hangs: bool,
    is_down: bool,
}

impl Executor {
    fn at(&mut self, when: u64, what: PendingWork) {
        self.count += 1;
        self.due.insert((when, self.count), what);
    }

    /// The time of the next output; `None` if there is none.
    pub(crate) fn next(&self) -> Option<u64> {
        self.due.keys().next().map(|(when, _)| *when)
    }

    pub(crate) fn execute(&mut self, now: u64, id: CommandId, tasks: &IdSet, payload: &[u8]) {
        let spec = Spec::decode(payload);
        for task in tasks {
            let takes = spec.delay(task);
            let events = u64::from(spec.events);
            for nth in 0..events {
                let when = now + takes * nth / events;
                self.at(when, PendingWork::Event(Lane::Control, task, 4));
            }
            if !spec.hangs(task) || self.nothing_hangs {
                self.at(now + takes, PendingWork::Answer(id, task));
            }
        }
        let running = self.running.entry(id).or_insert_with(|| Running {
            spec,
            unanswered: IdSet::new(),
        });
        running.unanswered.union_with(tasks);
    }

    /// Like `execute`. If no task needs any time or emits events, and all answers are equal, the common answer is
    /// returned at once. `None` if the tasks answer later.
    pub(crate) fn execute_at_once(
        &mut self,
        now: u64,
        id: CommandId,
        tasks: &IdSet,
        payload: &[u8],
    ) -> Option<(Status, Bytes)> {
        let spec = Spec::decode(payload);
        let first = spec.answer(tasks.first()?);
        let hangs = |task| spec.hangs(task) && !self.nothing_hangs;
        let is_at_once = |task| spec.delay(task) == 0 && !hangs(task) && spec.answer(task) == first;
        if spec.events == 0 && !self.is_down && tasks.iter().all(is_at_once) {
            return Some(first);
        }
        self.execute(now, id, tasks, payload);
        None
    }

    /// Cancels a command: its unanswered tasks fail at once.
    pub(crate) fn cancel(&mut self, id: CommandId) -> Vec<TaskOutput> {
        let Some(running) = self.running.get_mut(&id) else {
            return Vec::new();
        };
        let payload = Failure::new(FailureCode::Cancelled, "cancelled").encode();
        let tasks = std::mem::take(&mut running.unanswered);
        let status = Status::Failed;
        let answers = tasks.iter().map(|task| TaskOutput::Answer {
            id,
            task,
            status,
            payload: payload.clone(),
        });
        answers.collect()
    }

    /// A task emits an event of this size.
    pub(crate) fn begin_event(&mut self, now: u64, lane: Lane, task: TaskId, bytes: usize) {
        self.at(now, PendingWork::Event(lane, task, bytes));
    }

    /// Pauses or resumes bulk events, because the tree has no room for bulk data or has room again.
    pub(crate) fn pause(&mut self, now: u64, paused: bool) {
        self.paused = paused;
        if !paused {
            for (task, bytes) in std::mem::take(&mut self.held) {
                self.at(now, PendingWork::Event(Lane::Bulk, task, bytes));
            }
        }
    }

    /// From now on every command is answered.
    pub(crate) fn let_nothing_hang(&mut self, now: u64) {
        self.nothing_hangs = true;
        let mut hanging = Vec::new();
        for (id, running) in &self.running {
            let tasks = running
                .unanswered
                .iter()
                .filter(|task| running.spec.hangs(*task));
            hanging.extend(tasks.map(|task| (*id, task)));
        }
        for (id, task) in hanging {
            self.at(now, PendingWork::Answer(id, task));
        }
    }

    pub(crate) fn shut_down(&mut self, now: u64) {
        self.due.clear();
        self.held.clear();
        self.is_down = true;
        self.at(now + DOWN_US, PendingWork::Down);
    }

    pub(crate) fn is_down(&self) -> bool {
        self.is_down
    }

    /// The next answer or event that is due at `now`; `None` if none is due. Only one is returned, so that its
    /// consequences come before the next one.
    pub(crate) fn say(&mut self, now: u64) -> Option<TaskOutput> {
        while self.next().is_some_and(|when| when <= now) {
            let (_, todo) = self.due.pop_first()?;
            match todo {
                PendingWork::Answer(id, task) => {
                    let running = self.running.get_mut(&id)?;
                    if running.unanswered.remove(task) {
                        let (status, payload) = running.spec.answer(task);
                        return Some(TaskOutput::Answer {
                            id,
                            task,
                            status,
                            payload,
                        });
                    }
                }
                PendingWork::Event(Lane::Bulk, task, bytes) if self.paused => {
                    self.held.push_back((task, bytes));
                }
                PendingWork::Event(lane, task, bytes) => {
                    let said = self.said.entry((task, lane == Lane::Bulk)).or_default();
                    *said += 1;
                    let sequence = *said;
                    let payload = event_payload(lane, sequence, bytes);
                    return Some(TaskOutput::Event {
                        lane,
                        task,
                        sequence,
                        payload,
                    });
                }
                PendingWork::Down => return Some(TaskOutput::Down),
            }
        }
        None
    }
}
