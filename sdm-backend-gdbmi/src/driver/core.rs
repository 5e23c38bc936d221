//! What every command of one gdb shares: its state, and the three things a command can wait for.
//!
//! A command is written as one `async fn` from first MI command to answer; the driver polls it
//! whenever something has come. There is no executor and no waker behind it: waiting is looking
//! at [`State`] again. A borrow of the state never lives across an `await`.

use std::cell::{Cell, Ref, RefCell, RefMut};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use sdm_core::CommandId;
use sdm_debug::{Event, Failure, FailureCode, Reply, TaskState};

use super::breakpoints::{Breakpoints, Owner};
use super::printed::Printed;
use super::processes::Processes;
use super::run::{Interrupts, OpenRun};
use super::scope::Scope;
use super::wrapped::Wrapped;
use super::{Action, DriverConfig};
use crate::host::Host;
use crate::mi::Results;

/// A gdb as its commands see it; cheap to clone.
#[derive(Clone)]
pub(super) struct Gdb(Rc<Shared>);

struct Shared {
    state: RefCell<State>,
    /// Rises with every change: the driver polls until it stands still.
    version: Cell<u64>,
    /// When somebody who waits wants to be polled again.
    wakeups: RefCell<Vec<Instant>>,
    host: Box<dyn Host>,
}

/// Everything known of one gdb and its task.
pub(super) struct State {
    pub(super) now: Instant,
    pub(super) config: Rc<DriverConfig>,
    pub(super) actions: VecDeque<Action>,
    /// Commands that were not answered yet: each is answered once and no more.
    pub(super) open: BTreeSet<CommandId>,
    next_token: u64,
    pub(super) pending: BTreeMap<u64, Pending>,
    pub(super) task: TaskState,
    /// The process, while there is one.
    pub(super) pid: Option<i32>,
    /// Those that gdb holds beside it.
    pub(super) processes: Processes,
    /// True from `^running` to `*stopped`: what gdb says, while `task` is what we say.
    pub(super) executing: bool,
    /// True where the process was attached to and not started.
    pub(super) attached: bool,
    /// A start by a wrapper that has not come to its program yet.
    pub(super) wrapped: Option<Wrapped>,
    /// Where the task is, in a gdb that holds others too.
    pub(super) scope: Option<Scope>,
    /// True where it is a core file and no process.
    pub(super) core_file: bool,
    /// True where no breakpoint may be inserted.
    pub(super) read_only: bool,
    /// gdb's version, where it cannot write this processor's registers.
    pub(super) unwritable: Option<String>,
    /// A SIGCONT has come or is on its way that is the launcher's business or ours, and nobody else's.
    pub(super) waking: bool,
    /// Signals that go through to the program and are told of.
    pub(super) passed: BTreeSet<String>,
    /// SIGINT goes through to the program, so that it does not stop it.
    pub(super) int_passes: bool,
    /// The variable objects that the front-end has made.
    pub(super) objects: BTreeSet<String>,
    /// The program's file name, for frames without a name.
    pub(super) program_name: String,
    pub(super) run: Option<OpenRun>,
    /// The level of the frame that the last stop showed: above 0 where it was inside a runtime.
    pub(super) shown_level: u32,
    /// What gdb has complained of since its last answer.
    pub(super) complaint: String,
    pub(super) interrupts: Interrupts,
    pub(super) breakpoints: Breakpoints,
    /// Stops that came and were not looked at yet.
    pub(super) stops: VecDeque<StopRecord>,
    /// How many commands let go of the program.
    pub(super) letting_go: u32,
    /// Set once gdb's end is wanted: its exit is no news then.
    pub(super) closing: bool,
    /// Set once gdb has ended, to why: nothing is sent to it any more.
    gone: Option<Failure>,
}

/// A stop that has come.
#[derive(Default)]
pub(super) struct StopRecord {
    pub(super) results: Results,
    /// Whose breakpoint it was. Found out at once: gdb says next that a temporary one is gone.
    pub(super) owner: Option<Owner>,
    /// It is the end of another process than the task's own.
    pub(super) other_ended: bool,
}

/// An MI command under way.
pub(super) struct Pending {
    deadline: Instant,
    /// gdb was sent SIGINT already.
    interrupted: bool,
    /// Nobody waits for it any more.
    pub(super) abandoned: bool,
    pub(super) result: Option<Result<Results, Failure>>,
    /// What gdb printed meanwhile, where somebody wants it.
    pub(super) printed: Option<Printed>,
}

/// After SIGINT, gdb may take this long to answer.
const GRACE: Duration = Duration::from_secs(5);

impl Gdb {
    pub(super) fn new(now: Instant, config: Rc<DriverConfig>, host: Box<dyn Host>) -> Self {
        let state = State {
            now,
            config,
            actions: VecDeque::new(),
            open: BTreeSet::new(),
            next_token: 1,
            pending: BTreeMap::new(),
            task: TaskState::Absent,
            pid: None,
            processes: Processes::default(),
            executing: false,
            attached: false,
            wrapped: None,
            scope: None,
            core_file: false,
            read_only: false,
            unwritable: None,
            waking: false,
            passed: super::records::passed_at_first(),
            int_passes: false,
            objects: BTreeSet::new(),
            program_name: String::new(),
            run: None,
            shown_level: 0,
            complaint: String::new(),
            interrupts: Interrupts::default(),
            breakpoints: Breakpoints::default(),
            stops: VecDeque::new(),
            letting_go: 0,
            closing: false,
            gone: None,
        };
        Self(Rc::new(Shared {
            state: RefCell::new(state),
            version: Cell::new(0),
            wakeups: RefCell::new(Vec::new()),
            host,
        }))
    }

    pub(super) fn get(&self) -> Ref<'_, State> {
        self.0.state.borrow()
    }

    pub(super) fn edit(&self) -> RefMut<'_, State> {
        self.0.version.set(self.0.version.get() + 1);
        self.0.state.borrow_mut()
    }

    pub(super) fn host(&self) -> &dyn Host {
        self.0.host.as_ref()
    }

    /// True where the kernel holds the program for gdb now: it neither runs nor ends.
    pub(super) fn is_held(&self) -> bool {
        let pid = self.get().pid;
        let state = pid.and_then(|pid| self.host().process_state(pid));
        matches!(state, Some(('t' | 'T', _)))
    }

    pub(super) fn version(&self) -> u64 {
        self.0.version.get()
    }

    /// Forgets who wanted to be woken: whoever still waits says so again when polled.
    pub(super) fn clear_wakeups(&self) {
        self.0.wakeups.borrow_mut().clear();
    }

    /// Has those who wait polled again at this time.
    pub(super) fn wake_at(&self, time: Instant) {
        self.0.wakeups.borrow_mut().push(time);
    }

    /// When something is to be done although nothing came.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let state = self.get();
        let open = |pending: &&Pending| pending.result.is_none();
        let deadlines = state
            .pending
            .values()
            .filter(open)
            .map(|pending| pending.deadline);
        deadlines
            .chain(self.0.wakeups.borrow().iter().copied())
            .min()
    }

    /// Answers a command, unless it was answered before: what ends a run, a cancel and the end of
    /// gdb can meet.
    pub(super) fn answer(&self, id: CommandId, result: Result<Reply, Failure>) {
        self.edit().answer(id, result);
    }

    /// Says something unasked.
    pub(super) fn tell(&self, event: Event) {
        self.edit().actions.push_back(Action::Event(event));
    }

    /// Sends an MI command now; waiting for its answer is up to the caller.
    pub(super) fn send(&self, line: impl AsRef<str>) -> Answer {
        let wait = self.get().config.command_wait;
        self.send_within(line, wait)
    }

    /// The same, with a bound of its own.
    pub(super) fn send_within(&self, line: impl AsRef<str>, wait: Duration) -> Answer {
        let mut state = self.edit();
        let token = state.next_token;
        state.next_token += 1;
        let mut result = state.gone.clone().map(Err);
        if line.as_ref().contains(['\n', '\r', '\0']) {
            // Whoever writes a command quotes what is in it: gdb would take the rest for one of its own.
            let text = "a line break in a command for gdb";
            result = Some(Err(Failure::new(FailureCode::BadCommand, text)));
        }
        if result.is_none() {
            let line = match &mut state.scope {
                Some(scope) => scope.line(line.as_ref()),
                None => Some(line.as_ref().to_owned()),
            };
            match line {
                Some(line) => {
                    let line = format!("{token}{line}\n");
                    state.actions.push_back(Action::Send(line));
                }
                // gdb need not know it.
                None => result = Some(Ok(Results::default())),
            }
        }
        let pending = Pending {
            deadline: state.now + wait,
            interrupted: false,
            abandoned: false,
            result,
            printed: None,
        };
        state.pending.insert(token, pending);
        Answer {
            gdb: self.clone(),
            token,
        }
    }

    /// Sends an MI command and waits for its answer.
    pub(super) async fn mi(&self, line: impl AsRef<str>) -> Result<Results, Failure> {
        self.send(line).await
    }

    /// Interrupts what is overdue, gives up what was interrupted in vain.
    pub(super) fn expire(&self) {
        let now = self.get().now;
        let due = |pending: &Pending| pending.result.is_none() && pending.deadline <= now;
        if !self.get().pending.values().any(due) {
            return;
        }
        let mut state = self.edit();
        let mut overdue = Vec::new();
        for (token, pending) in state.pending.iter_mut().filter(|(_, pending)| due(pending)) {
            if pending.interrupted {
                let text = "gdb did not answer in time, nor when it was interrupted";
                pending.result = Some(Err(Failure::new(FailureCode::TimedOut, text)));
            } else {
                pending.interrupted = true;
                pending.deadline = now + GRACE;
                overdue.push(*token);
            }
        }
        state.interrupts.broke_off |= !overdue.is_empty();
        let overdue = overdue.into_iter().map(Action::BreakOff);
        state.actions.extend(overdue);
        state
            .pending
            .retain(|_, pending| !(pending.abandoned && pending.result.is_some()));
    }

    /// Nobody wants the answers to some of the commands under way any more.
    pub(super) fn break_off(&self, which: impl Fn(&Pending) -> bool) {
        let mut state = self.edit();
        let State {
            pending, actions, ..
        } = &mut *state;
        let under_way = pending
            .iter()
            .filter(|(_, it)| it.result.is_none() && which(it));
        actions.extend(under_way.map(|(token, _)| Action::BreakOff(*token)));
        state.interrupts.broke_off = true;
    }

    /// True while gdb works on something that nobody waits for any more.
    pub(super) fn is_clearing(&self) -> bool {
        self.get().pending.values().any(|pending| pending.abandoned)
    }

    /// The answer to an MI command has come.
    pub(super) fn resolve(&self, token: u64, result: Result<Results, Failure>) {
        let mut state = self.edit();
        let Some(pending) = state.pending.get_mut(&token) else {
            return;
        };
        if pending.abandoned {
            state.pending.remove(&token);
        } else if pending.result.is_none() {
            // An interrupted command says "Quit" or the like: the reason is ours.
            let interrupted = pending.interrupted && result.is_err();
            pending.result = Some(if interrupted {
                let text = "gdb took too long and was interrupted";
                Err(Failure::new(FailureCode::TimedOut, text))
            } else {
                result
            });
        }
    }

    /// gdb is gone: nothing under way will be answered.
    pub(super) fn fail_pending(&self, failure: &Failure) {
        let mut state = self.edit();
        state.gone = Some(failure.clone());
        state.pending.retain(|_, pending| !pending.abandoned);
        for pending in state.pending.values_mut() {
            pending.result.get_or_insert_with(|| Err(failure.clone()));
        }
    }
}

impl State {
    /// See [`Gdb::answer`].
    pub(super) fn answer(&mut self, id: CommandId, result: Result<Reply, Failure>) {
        if self.open.remove(&id) {
            self.actions.push_back(Action::Answer { id, result });
        }
    }

    /// Why a command that needs a live process cannot be done; `None` where it can.
    pub(super) fn why_not_live(&self) -> Option<Failure> {
        let how = match &self.task {
            TaskState::Starting | TaskState::Stopped | TaskState::Running => return None,
            TaskState::Absent => "not started".to_owned(),
            TaskState::Exited(code) => format!("not running (exited {code})"),
            TaskState::Signalled(signal) => format!("not running (ended by {signal})"),
            TaskState::Detached => "not running (detached)".to_owned(),
            TaskState::GdbDead => {
                return Some(Failure::new(FailureCode::GdbDead, "the task's gdb is gone"));
            }
        };
        Some(Failure::new(FailureCode::NotRunning, how))
    }

    /// Why a command that needs a stopped process cannot be done; `None` where it can.
    pub(super) fn why_not_stopped(&self) -> Option<Failure> {
        self.why_not_live().or_else(|| {
            (self.task != TaskState::Stopped).then(|| Failure::new(FailureCode::Running, "running"))
        })
    }

    /// Moves the task to another state.
    pub(super) fn set_task(&mut self, next: TaskState) {
        if self.task != next {
            assert!(
                self.task.may_become(&next),
                "no task goes from {:?} to {next:?}",
                self.task
            );
            self.waking &= next != TaskState::Stopped || self.task != TaskState::Running;
            self.task = next;
        }
    }
}

/// Waits for the answer to one MI command.
pub(super) struct Answer {
    gdb: Gdb,
    token: u64,
}

impl Answer {
    /// The number that gdb's answer will carry.
    pub(super) fn token(&self) -> u64 {
        self.token
    }

    /// Keeps what gdb prints until it answers, for [`Answer::printed`].
    pub(super) fn capture(self) -> Self {
        if let Some(pending) = self.gdb.edit().pending.get_mut(&self.token) {
            pending.printed = Some(Printed::default());
        }
        self
    }

    /// Waits for the answer, and gives what gdb printed with it.
    pub(super) async fn printed(self) -> (Result<Results, Failure>, Printed) {
        let (gdb, token) = (self.gdb.clone(), self.token);
        gdb.until(|state| {
            let done = state
                .pending
                .get(&token)
                .is_none_or(|pending| pending.result.is_some());
            done.then_some(())
        })
        .await;
        let pending = gdb
            .edit()
            .pending
            .get_mut(&token)
            .and_then(|p| p.printed.take());
        (self.await, pending.unwrap_or_default())
    }
}

impl Future for Answer {
    type Output = Result<Results, Failure>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let ready = match self.gdb.get().pending.get(&self.token) {
            Some(pending) => pending.result.is_some(),
            None => true,
        };
        if !ready {
            return Poll::Pending;
        }
        let pending = self.gdb.edit().pending.remove(&self.token);
        let gone = || Err(Failure::new(FailureCode::GdbDead, "the task's gdb is gone"));
        Poll::Ready(
            pending
                .and_then(|pending| pending.result)
                .unwrap_or_else(gone),
        )
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        let done = match self.gdb.get().pending.get(&self.token) {
            Some(pending) => pending.result.is_some(),
            None => return,
        };
        let mut state = self.gdb.edit();
        if done {
            state.pending.remove(&self.token);
        } else if let Some(pending) = state.pending.get_mut(&self.token) {
            pending.abandoned = true;
        }
    }
}
