//! Tasks whose gdbs or programs are started by shims. A shim is a process that a launcher has started for a rank, or
//! that this server has started for a program without a gdb.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::os::fd::{OwnedFd, RawFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use sdm_core::CommandId;
use sdm_debug::command::StartSpec;
use sdm_debug::{BackendOutput, Command, Event, Failure, FailureCode, InterestChange};
use sdm_idset::{IdSet, TaskId};
use sdm_system::signal_name;

use super::GdbBackend;
use super::start::before_the_start;
use crate::gdb_instance::ProgramExit;
use crate::task::Task;
use sdm_child::{Channel, LocalShim, ShimLink, ShimSays, StartRequest, Started, ToShim};
use sdm_child::{GdbChild, Streams};
use sdm_gdb::StartInput;

/// Time for which the server waits for the launcher to ask all other ranks to end too, as it does when it ends its job.
/// If the launcher does not, only this rank is ended.
const OTHERS_WAIT: Duration = Duration::from_millis(500);

/// The shims of a server's tasks.
#[derive(Default)]
pub(super) struct Shims {
    pub(super) links: BTreeMap<TaskId, Rc<ShimLink>>,
    tasks: HashMap<RawFd, TaskId>,
    /// Starts that were requested from shims: neither the gdb nor the program without a gdb has arrived.
    coming: BTreeMap<TaskId, StartingGdb>,
    leaving: BTreeMap<TaskId, EndingRank>,
    /// Tasks whose shims were told to exit.
    dismissed: HashSet<TaskId>,
    changes: VecDeque<InterestChange>,
    /// Shims that this process has started itself.
    pub(super) own: BTreeMap<TaskId, LocalShim>,
    /// Descriptors of shims whose messages wait to be received.
    blocked: Rc<RefCell<Vec<RawFd>>>,
}

/// A start whose gdb, or whose program without a gdb, has not arrived yet.
pub(super) struct StartingGdb {
    pub(super) id: CommandId,
    pub(super) spec: StartSpec,
    before: StartInput,
    /// False once the command was cancelled.
    is_wanted: bool,
    pub(super) is_fed: bool,
    /// Commands that have arrived for the task since the start was requested, in order.
    pub(super) held: Vec<(CommandId, Rc<Command>)>,
}

/// A rank that its launcher has asked to end.
struct EndingRank {
    signal: i32,
    /// Time at which the rank is ended in any case; `None` once that is done.
    due: Option<Instant>,
}

impl Shims {
    pub(super) fn new(channels: Vec<(TaskId, Channel)>) -> Self {
        let mut shims = Self::default();
        for (task, channel) in channels {
            shims.add(task, channel);
        }
        shims
    }

    pub(super) fn add(&mut self, task: TaskId, channel: Channel) -> Rc<ShimLink> {
        let link = Rc::new(ShimLink::new(channel, Rc::clone(&self.blocked)));
        self.watch(&link, false);
        self.tasks.insert(link.fd(), task);
        self.dismissed.remove(&task);
        self.links.insert(task, Rc::clone(&link));
        link
    }

    fn watch(&mut self, link: &ShimLink, writable: bool) {
        self.changes.push_back(InterestChange::Watch {
            fd: link.fd(),
            readable: true,
            writable,
        });
    }

    pub(super) fn link(&self, task: TaskId) -> Option<&Rc<ShimLink>> {
        self.links.get(&task)
    }

    /// The task of the shim with this descriptor; `None` for other descriptors.
    pub(super) fn task_of(&self, fd: RawFd) -> Option<TaskId> {
        self.tasks.get(&fd).copied()
    }

    pub(super) fn is_coming(&self, task: TaskId) -> bool {
        self.coming.contains_key(&task)
    }

    /// True while a requested gdb, or a requested program without a gdb, has not arrived.
    pub(super) fn any_coming(&self) -> bool {
        !self.coming.is_empty()
    }

    /// True if all ranks' processes that were not told to exit have ended or were asked to end. False if there are
    /// none.
    pub(super) fn are_deserted(&self) -> bool {
        let leaves = |(task, link): (&TaskId, &Rc<ShimLink>)| {
            link.is_gone() || self.leaving.contains_key(task)
        };
        self.serving().next().is_some() && self.serving().all(leaves)
    }

    /// The shims that a launcher has started and that were not told to exit.
    fn serving(&self) -> impl Iterator<Item = (&TaskId, &Rc<ShimLink>)> {
        let all = self.links.iter();
        all.filter(|(task, _)| !self.own.contains_key(task) && !self.dismissed.contains(task))
    }

    pub(super) fn poll_interest(&mut self) -> Option<InterestChange> {
        while let Some(fd) = self.blocked.borrow_mut().pop() {
            self.changes.push_back(InterestChange::Watch {
                fd,
                readable: true,
                writable: true,
            });
        }
        self.changes.pop_front()
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.leaving.values().filter_map(|it| it.due).min()
    }

    /// Keeps a command for a task whose gdb, or whose program without a gdb, is being started.
    pub(super) fn hold(&mut self, task: TaskId, id: CommandId, command: &Rc<Command>) {
        if let Some(coming) = self.coming.get_mut(&task) {
            coming.held.push((id, Rc::clone(command)));
        }
    }

    /// Cancels a command. Returns the tasks whose start it was, and the tasks for which it was held until their gdb, or
    /// their program without a gdb, has started.
    pub(super) fn cancel(&mut self, id: CommandId) -> Vec<TaskId> {
        let mut given_up = Vec::new();
        for (task, coming) in &mut self.coming {
            let before = coming.held.len();
            coming.held.retain(|(held, _)| *held != id);
            let is_start = coming.id == id && std::mem::take(&mut coming.is_wanted);
            if is_start || coming.held.len() < before {
                given_up.push(*task);
            }
        }
        given_up
    }

    /// Tells a shim, once, to exit with the exit code of its rank. Its child processes end with it.
    pub(super) fn dismiss(&mut self, task: TaskId, code: i32) {
        if let Some(link) = self
            .links
            .get(&task)
            .filter(|_| self.dismissed.insert(task))
        {
            let code = u8::try_from(code).unwrap_or(u8::MAX);
            // A shim that has ended needs no message.
            let _ = link.send(&ToShim::End(code));
        }
    }

    /// Has the shim of a rank exit as its program did, if the program has ended by itself: the launcher sees the same
    /// as without a debugger. A resource manager ends everything on a node without ranks, the server too. So the last
    /// shim stays if its exit would tell the launcher nothing.
    pub(super) fn show_exit(&mut self, task: TaskId, exit: ProgramExit) {
        let is_plain = exit.code == 0 && !exit.before_finalize;
        let stays = is_plain && self.serving().count() == 1;
        if !stays && !self.own.contains_key(&task) {
            self.dismiss(task, exit.code);
        }
    }

    pub(super) fn all_tasks(&self) -> Vec<TaskId> {
        self.links.keys().copied().collect()
    }

    pub(super) fn forget(&mut self, link: &ShimLink) {
        if self.tasks.remove(&link.fd()).is_some() {
            self.changes
                .push_back(InterestChange::Forget { fd: link.fd() });
        }
    }
}

impl GdbBackend {
    /// Starts a gdb, or the program without one, by the task's shim.
    pub(super) fn start_at_shim(
        &mut self,
        id: CommandId,
        task: TaskId,
        spec: &StartSpec,
        link: &ShimLink,
    ) -> Result<(), Failure> {
        let before = before_the_start(spec, task, self.breakpoints_of_ended(task)?);
        if self.shims.is_coming(task) {
            return Err(Failure::new(FailureCode::AlreadyRunning, "being started"));
        }
        let is_fed = spec.stdin_tasks.contains(task);
        let gdb = self.config.start.gdb.as_ref();
        let request = StartRequest {
            // The parts of the spec that the driver uses later are left out.
            spec: StartSpec {
                stdin_tasks: IdSet::new(),
                points: Vec::new(),
                settings: Vec::new(),
                ..spec.clone()
            },
            options: self.config.start.options.clone(),
            gdb: gdb.map(|gdb| gdb.clone().into_os_string().into_encoded_bytes()),
            is_fed,
            given: self.config.start.variables.bytes_of(task),
            fold: self.config.fold.clone(),
            signals: self
                .shims
                .own
                .contains_key(&task)
                .then(|| self.config.start.signals.clone()),
        };
        link.send(&ToShim::Start(Box::new(request)))
            .map_err(|error| {
                let text = format!("cannot send the start of the program to sdm-shim: {error}");
                Failure::new(FailureCode::System, text)
            })?;
        let coming = StartingGdb {
            id,
            spec: spec.clone(),
            before,
            is_wanted: true,
            is_fed,
            held: Vec::new(),
        };
        self.shims.coming.insert(task, coming);
        Ok(())
    }

    /// Handles the messages of a task's shim.
    pub(super) fn handle_shim(&mut self, now: Instant, task: TaskId) {
        let Some(link) = self.shims.link(task).cloned() else {
            return;
        };
        link.flush();
        if !link.wants_write() {
            self.shims.watch(&link, false);
        }
        while let Some(said) = link.receive() {
            match said {
                ShimSays::Started(started, fds) => self.has_begun(now, task, &link, *started, fds),
                ShimSays::Refused(failure) => {
                    if let Some(coming) = self.shims.coming.remove(&task) {
                        will_not_come(&mut self.outputs, task, coming, failure);
                    }
                }
                ShimSays::Seized(pid, program, fds) => {
                    self.has_begun_seized(now, task, &link, (pid, program), fds);
                }
                ShimSays::NeedsGdb => self.start_with_gdb(now, task, &link),
                ShimSays::Program(news) => self.handle_program(now, task, news),
                ShimSays::Leaving(signal) => self.is_asked_to_end(now, task, &link, signal),
                ShimSays::Gone => {
                    self.shims.forget(&link);
                    self.shims.leaving.remove(&task);
                    if self.shims.own.remove(&task).is_some() {
                        self.shims.links.remove(&task);
                    }
                    if let Some(coming) = self.shims.coming.remove(&task) {
                        let text = "the launcher's process for this rank has ended";
                        let failure = Failure::new(FailureCode::System, text);
                        will_not_come(&mut self.outputs, task, coming, failure);
                    }
                    lose_parent(self, now, task);
                }
            }
        }
    }

    fn has_begun(
        &mut self,
        now: Instant,
        task: TaskId,
        link: &Rc<ShimLink>,
        started: Started,
        fds: Vec<OwnedFd>,
    ) {
        // If the start is no longer wanted, gdb's input is closed here, and gdb then ends.
        let Some(mut coming) = self.wanted(task) else {
            return;
        };
        let id = coming.id;
        let held = std::mem::take(&mut coming.held);
        match self.task_of_shim(now, task, link, started, fds, coming) {
            Ok(made) => self.stand_for(now, task, made, held),
            Err(failure) => {
                self.answer(id, task, Err(failure));
                refuse_held(&mut self.outputs, task, held);
            }
        }
    }

    /// Takes the start that was requested from a shim. `None` if there is none, if it was cancelled, or if the session
    /// ends.
    pub(super) fn wanted(&mut self, task: TaskId) -> Option<StartingGdb> {
        let coming = self.shims.coming.remove(&task)?;
        if self.ending.is_none() && coming.is_wanted {
            return Some(coming);
        }
        let cancelled = Failure::new(FailureCode::Cancelled, "the session ends");
        will_not_come(&mut self.outputs, task, coming, cancelled);
        None
    }

    /// Adds the slot of a task, and executes the commands that have arrived since the start was requested.
    pub(super) fn stand_for(
        &mut self,
        now: Instant,
        task: TaskId,
        made: Task,
        held: Vec<(CommandId, Rc<Command>)>,
    ) {
        let number = self.add(now, [task], Box::new(made));
        for (id, command) in held {
            if let Some(known) = self.slots.get_mut(&number) {
                known.slot.execute(now, task, id, &command);
            }
        }
        self.settle(now, number);
    }

    fn task_of_shim(
        &mut self,
        now: Instant,
        task: TaskId,
        link: &Rc<ShimLink>,
        started: Started,
        fds: Vec<OwnedFd>,
        coming: StartingGdb,
    ) -> Result<Task, Failure> {
        let odd = || {
            Failure::new(
                FailureCode::System,
                "sdm-shim did not pass the pipes of gdb to sdm-server",
            )
        };
        let mut fds = fds.into_iter();
        let pipes = [fds.next(), fds.next(), fds.next()];
        let [Some(stdin), Some(stdout), Some(stderr)] = pipes else {
            return Err(odd());
        };
        let child = GdbChild::of_shim(started.gdb, Rc::clone(link), [stdin, stdout, stderr]);
        let streams = Streams::at_shim(fds.collect(), coming.is_fed, link).ok_or_else(odd)?;
        let child = self.keep(child)?;
        let mut driver = self.driver(now, child.pid());
        let stop = coming.spec.stop;
        driver.start(now, coming.id, started.launch(), stop, coming.before);
        Ok(Task::new(task, driver, child, streams, false))
    }

    /// Handles a launcher's request to a rank to end. A launcher that ends its job makes this request to all ranks, and
    /// then this server ends too.
    fn is_asked_to_end(&mut self, now: Instant, task: TaskId, link: &ShimLink, signal: i32) {
        tracing::info!(%task, signal, "the launcher asks this rank to end");
        let _ = link.send(&ToShim::Heard);
        let left = self.slot_of(task).filter(|slot| slot.is_left_running());
        match (Signal::try_from(signal), left) {
            (Ok(signal), Some(slot)) => slot.signal_left(signal),
            _ => {
                let due = Some(now + OTHERS_WAIT);
                self.shims
                    .leaving
                    .entry(task)
                    .or_insert(EndingRank { signal, due });
            }
        }
    }

    /// Ends the ranks that the launcher has asked to end while it did not ask all others.
    pub(super) fn end_leaving(&mut self, now: Instant) {
        let is_due = |it: &EndingRank| it.due.is_some_and(|due| due <= now);
        let due: Vec<(TaskId, i32)> = self
            .shims
            .leaving
            .iter_mut()
            .filter(|(_, leaving)| is_due(leaving))
            .map(|(task, leaving)| {
                leaving.due = None;
                (*task, leaving.signal)
            })
            .collect();
        if due.is_empty() || self.shims.are_deserted() {
            return;
        }
        for (task, signal) in due {
            let how = match signal {
                0 => "the launcher has ended".to_owned(),
                signal => {
                    let signal = signal_name(signal);
                    format!("the launcher ended this rank by the signal {signal}")
                }
            };
            let text = format!("the launcher's process for this rank has ended: {how}");
            self.outputs.push_back(BackendOutput::Event {
                task,
                event: Event::Notice { text },
            });
            self.shims.dismiss(task, 128 + signal);
        }
    }
}

/// Reports that a program has ended together with its shim.
fn lose_parent(backend: &mut GdbBackend, now: Instant, task: TaskId) {
    let number = backend.current.get(&task).copied();
    let known = number.and_then(|number| backend.slots.get_mut(&number));
    if let (Some(number), Some(known)) = (number, known) {
        if let Some(task) = known.slot.seized() {
            task.lose_parent(now);
        }
        backend.settle(now, number);
    }
}

/// Handles a failed start of a task's gdb, or of its program without a gdb. The command is answered with this reason,
/// unless it was cancelled. The commands that were held are refused.
pub(super) fn will_not_come(
    outputs: &mut VecDeque<BackendOutput>,
    task: TaskId,
    coming: StartingGdb,
    failure: Failure,
) {
    if coming.is_wanted {
        outputs.push_back(BackendOutput::Answer {
            id: coming.id,
            task,
            result: Err(failure),
        });
    }
    refuse_held(outputs, task, coming.held);
}

pub(super) fn refuse_held(
    outputs: &mut VecDeque<BackendOutput>,
    task: TaskId,
    held: Vec<(CommandId, Rc<Command>)>,
) {
    for (id, _) in held {
        let result = Err(Failure::new(FailureCode::NotRunning, "not started"));
        outputs.push_back(BackendOutput::Answer { id, task, result });
    }
}
