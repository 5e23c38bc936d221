//! Inspects processes that no gdb holds. Those that their parents have seized are released for the inspection.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use sdm_core::CommandId;
use sdm_debug::{BackendOutput, Command, Failure, FailureCode, InterestChange};
use sdm_idset::{IdSet, TaskId};

use crate::looks::{LookedThread, Looks, SeenStop, failure};
use sdm_child::ProgramNews;
use sdm_inspect::snapshot::why_not_stopped;

/// Time from a program's crash until the other programs are stopped. Ranks that crash by the same fault do so within
/// this time.
const HOLD_AFTER: Duration = Duration::from_millis(200);

/// Time limit for a program's parent to release it for an inspection. A thread in state D does not stop, so that it
/// cannot be released: it waits for its `vfork` child or for a file server, for example.
const LOOSE_WAIT: Duration = Duration::from_secs(2);

/// An order to the parent of a program that runs without a gdb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The parent is to release the process for an inspection.
    LetGo,
    /// The parent is to seize the process again.
    Seize,
    /// The parent is to stop the process.
    Hold,
    /// The parent is to resume the process.
    Release,
}

/// All inspections of a server.
pub(crate) struct SeizedLooks {
    looks: Looks,
    open: Vec<SeizedLook>,
    orders: VecDeque<(TaskId, Order)>,
    outputs: VecDeque<BackendOutput>,
    crashed: Crashed,
}

/// Tasks that need a gdb because their programs are about to die. The other programs on this host are stopped
/// meanwhile, to leave the processors to the gdbs of these tasks.
#[derive(Default)]
struct Crashed {
    tasks: IdSet,
    hold: Hold,
}

/// State of the programs that have not crashed.
#[derive(Clone, Copy, Default, PartialEq)]
enum Hold {
    #[default]
    No,
    /// The programs will be stopped at this time, if another program is still about to die then.
    At(Instant),
    Yes,
}

/// An inspection of seized programs that not all of them have answered.
struct SeizedLook {
    id: CommandId,
    command: Command,
    /// The inspected tasks with their pids; true if the process was released for the inspection.
    tasks: BTreeMap<TaskId, (i32, bool)>,
    /// True once the request was sent to the looker.
    is_asked: bool,
    /// Time at which processes that are not released yet are left out.
    due: Instant,
}

impl SeizedLooks {
    /// The inspections of a server, none at first, with the looker of `looks`.
    pub(crate) fn new(looks: Looks) -> Self {
        Self {
            looks,
            open: Vec::new(),
            orders: VecDeque::new(),
            outputs: VecDeque::new(),
            crashed: Crashed::default(),
        }
    }

    /// The next answer; `None` if there is none.
    pub(crate) fn poll_output(&mut self) -> Option<BackendOutput> {
        self.outputs.pop_front()
    }

    /// The next order to the shim that has started a task's program without a gdb; `None` if there is none.
    pub(crate) fn poll_order(&mut self) -> Option<(TaskId, Order)> {
        self.orders.pop_front()
    }

    /// Begins a command that inspects processes; `seized` returns the process of a task whose program runs without a
    /// gdb. False for any other command.
    pub(crate) fn execute(
        &mut self,
        now: Instant,
        id: CommandId,
        tasks: &IdSet,
        command: &Command,
        seized: impl Fn(TaskId) -> Option<i32>,
    ) -> bool {
        if !matches!(command, Command::Look(_) | Command::Sample(_)) {
            return false;
        }
        let own = tasks.iter().filter_map(|task| Some((task, seized(task)?)));
        let own: BTreeMap<TaskId, i32> = own.collect();
        let rest = tasks.difference(&own.keys().copied().collect());
        if !rest.is_empty() {
            self.looks.execute(now, id, &rest, command);
        }
        if !own.is_empty() {
            let orders = own.keys().map(|task| (*task, Order::LetGo));
            self.orders.extend(orders);
            self.open.push(SeizedLook {
                id,
                command: command.clone(),
                tasks: own
                    .into_iter()
                    .map(|(task, pid)| (task, (pid, false)))
                    .collect(),
                is_asked: false,
                due: now + LOOSE_WAIT,
            });
        }
        self.take();
        true
    }

    /// Begins a command that inspects processes that their parents keep stopped. They are not released for it.
    pub(crate) fn look_at_standing(
        &mut self,
        now: Instant,
        id: CommandId,
        standing: &BTreeMap<TaskId, i32>,
        command: &Command,
    ) {
        let pids = standing.iter().map(|(task, pid)| (task.0, *pid));
        let command = with_pids(command, pids.collect());
        let tasks = standing.keys().copied().collect();
        self.looks.execute(now, id, &tasks, &command);
        self.take();
    }

    /// Reads a stopped thread for the report of the stop.
    pub(crate) fn look_at_stop(&mut self, now: Instant, thread: LookedThread) {
        self.looks.look_at_stop(now, thread);
    }

    /// The next result of [`SeizedLooks::look_at_stop`]; `None` if there is none.
    pub(crate) fn take_stop(&mut self) -> Option<SeenStop> {
        self.looks.take_stop()
    }

    /// The tasks whose programs are about to die.
    pub(crate) fn crashed(&self) -> &IdSet {
        &self.crashed.tasks
    }

    /// The order for the programs that have not crashed, once for each change: stop or resume. `None` without a change.
    pub(crate) fn take_hold(&mut self, now: Instant) -> Option<Order> {
        let crashed = &mut self.crashed;
        let to = match crashed.hold {
            _ if crashed.tasks.is_empty() => Hold::No,
            Hold::At(time) if time <= now => Hold::Yes,
            as_it_is => as_it_is,
        };
        match (std::mem::replace(&mut crashed.hold, to), to) {
            (Hold::At(_), Hold::Yes) => Some(Order::Hold),
            (Hold::Yes, Hold::No) => Some(Order::Release),
            _ => None,
        }
    }

    /// Removes tasks from the crashed ones, because they have ended or are to continue.
    pub(crate) fn remove_crashed(&mut self, tasks: &IdSet) {
        self.crashed.tasks = self.crashed.tasks.difference(tasks);
    }

    /// Handles news of a seized program.
    pub(crate) fn handle_program(&mut self, now: Instant, task: TaskId, news: &ProgramNews) {
        let why = match news {
            ProgramNews::Loose => None,
            ProgramNews::Stands { .. } => {
                self.crashed.tasks.insert(task);
                if self.crashed.hold == Hold::No {
                    self.crashed.hold = Hold::At(now + HOLD_AFTER);
                }
                Some(Failure::new(
                    FailureCode::Running,
                    "the process is about to stop",
                ))
            }
            ProgramNews::Ended { .. } => {
                self.remove_crashed(&IdSet::single(task));
                Some(Failure::new(
                    FailureCode::NotRunning,
                    "the process has just ended",
                ))
            }
            ProgramNews::Is { pid, .. } => {
                for look in self.open.iter_mut().filter(|look| !look.is_asked) {
                    if let Some((known, _)) = look.tasks.get_mut(&task) {
                        *known = *pid;
                    }
                }
                return;
            }
            ProgramNews::Free(_) | ProgramNews::AsksRank(_) | ProgramNews::ChildDied { .. } => {
                return;
            }
        };
        let mut without = Vec::new();
        for look in self.open.iter_mut().filter(|look| !look.is_asked) {
            match (&why, look.tasks.get_mut(&task)) {
                (None, Some((_, is_loose))) => *is_loose = true,
                (Some(_), Some(_)) => {
                    look.tasks.remove(&task);
                    without.push(look.id);
                }
                (_, None) => {}
            }
        }
        if let Some(why) = why {
            for id in without {
                self.give_up(id, task, why.clone());
            }
        }
        self.ask_looker(now);
    }

    /// Sends the looker the requests whose processes were all released.
    fn ask_looker(&mut self, now: Instant) {
        self.open.retain(|look| !look.tasks.is_empty());
        let waiting = self.open.iter_mut().filter(|look| !look.is_asked);
        for look in waiting.filter(|look| look.tasks.values().all(|(_, is_loose)| *is_loose)) {
            look.is_asked = true;
            let tasks: IdSet = look.tasks.keys().copied().collect();
            let pids = look.tasks.iter().map(|(task, (pid, _))| (task.0, *pid));
            let command = with_pids(&look.command, pids.collect());
            self.looks.execute(now, look.id, &tasks, &command);
        }
        self.take();
    }

    /// Takes the results of inspections. Programs that were released for an inspection are then seized again.
    fn take(&mut self) {
        while let Some(output) = self.looks.poll_output() {
            if let BackendOutput::Answer { id, task, .. } = &output {
                self.is_answered(*id, *task);
            }
            self.outputs.push_back(output);
        }
    }

    fn is_answered(&mut self, id: CommandId, task: TaskId) {
        let mut was_looked_at = false;
        for look in self.open.iter_mut().filter(|look| look.id == id) {
            was_looked_at |= look.tasks.remove(&task).is_some();
        }
        self.open.retain(|look| !look.tasks.is_empty());
        let mut others = self.open.iter();
        if was_looked_at && !others.any(|look| look.tasks.contains_key(&task)) {
            self.orders.push_back((task, Order::Seize));
        }
    }

    fn give_up(&mut self, id: CommandId, task: TaskId, why: Failure) {
        let result = Err(why);
        self.outputs
            .push_back(BackendOutput::Answer { id, task, result });
        self.orders.push_back((task, Order::Seize));
    }

    /// Handles a ready descriptor.
    pub(crate) fn handle_ready(&mut self, now: Instant, fd: std::os::fd::RawFd) {
        self.looks.handle_ready(now, fd);
        self.take();
    }

    /// The time at which [`SeizedLooks::handle_timeout`] must be called; `None` if no call is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let hold = match self.crashed.hold {
            Hold::At(time) => Some(time),
            Hold::No | Hold::Yes => None,
        };
        let waiting = self.open.iter().filter(|look| !look.is_asked);
        let due = waiting.map(|look| look.due).min();
        [self.looks.poll_timeout(), hold, due]
            .into_iter()
            .flatten()
            .min()
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.looks.handle_timeout(now);
        self.take();
        self.leave_out_held(now);
    }

    /// Begins the inspections that are due without the processes that were not released in time. These are answered
    /// with the reason.
    fn leave_out_held(&mut self, now: Instant) {
        let mut held = Vec::new();
        let open = self.open.iter_mut();
        for look in open.filter(|look| !look.is_asked && look.due <= now) {
            let late = look.tasks.iter().filter(|(_, (_, is_loose))| !*is_loose);
            held.extend(late.map(|(task, (pid, _))| (look.id, *task, *pid)));
            look.tasks.retain(|_, (_, is_loose)| *is_loose);
        }
        if held.is_empty() {
            return;
        }
        for (id, task, pid) in held {
            self.give_up(id, task, failure(&why_not_stopped(pid)));
        }
        self.ask_looker(now);
    }

    /// The change of the watched descriptor; `None` if there is no change.
    pub(crate) fn poll_interest(&mut self) -> Option<InterestChange> {
        self.looks.poll_interest()
    }

    /// Cancels a command: its unanswered tasks are answered with their samples so far, or else `cancelled`.
    pub(crate) fn cancel(&mut self, now: Instant, id: CommandId) {
        self.looks.cancel(now, id);
        self.take();
        self.give_up_all(|look| look.id == id, "cancelled");
    }

    /// Ends all inspections: unanswered tasks are answered with their samples so far, or else `cancelled`.
    pub(crate) fn end(&mut self) {
        self.looks.end();
        self.take();
        self.give_up_all(|_| true, "the session ends");
    }

    fn give_up_all(&mut self, which: impl Fn(&SeizedLook) -> bool, why: &str) {
        let given_up: Vec<SeizedLook> = self.open.extract_if(.., |look| which(look)).collect();
        for look in given_up {
            for task in look.tasks.into_keys() {
                self.give_up(look.id, task, Failure::new(FailureCode::Cancelled, why));
            }
        }
    }
}

fn with_pids(command: &Command, pids: Vec<(u32, i32)>) -> Command {
    let mut command = command.clone();
    match &mut command {
        Command::Look(spec) => spec.pids = pids,
        Command::Sample(spec) => spec.look.pids = pids,
        _ => {}
    }
    command
}
