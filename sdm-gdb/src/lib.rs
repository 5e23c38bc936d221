//! The state machine of one gdb: commands and records in, MI commands, answers and events out.
//!
//! Sans-I/O: call `handle_*(now, ...)`, then [`Driver::poll_action`] until `None`, then sleep until the next input or
//! [`Driver::poll_timeout`]. Commands use gdb one at a time, in the order given, except that a stop is handled first;
//! urgent commands run beside them.
//!
//! From the bottom up: `text` and `state` are data. `gdb` with `answer`, `wait`, `background` and `guards` lets
//! operations send commands and wait. `ops` holds the operations, one file for each kind of command.

mod action;
mod answer;
mod background;
mod budget;
#[cfg(test)]
mod cancellation;
mod config;
#[cfg(test)]
mod fake_host;
mod gdb;
mod guards;
mod host;
mod interrupt_gate;
mod mi_tokens;
mod ops;
mod seized_driver;
mod signal_wait;
mod state;
#[cfg(test)]
mod stories;
#[cfg(test)]
mod tests;
mod text;
mod wait;
mod wording;

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Instant;

use sdm_core::CommandId;
use sdm_debug::{Command, Failure, FailureCode, Reply, TaskState};

use gdb::Gdb;
use guards::DetachGuard;
use ops::{
    alone, attach, core_file, end, interrupt, preconditions, query, records, run, start, stop,
    usage,
};
use sdm_child::Launch;
use sdm_mi::Record;
use state::console_capture::CapturedOutput;
use state::origin::{Access, Origin};
use state::scope::Scope;

pub use action::{Action, SeizedAction};
pub use config::DriverConfig;
pub use host::{Host, KernelThread, NewCore};
pub use interrupt_gate::{AbandonedCommand, InterruptGate, split, withdrawn};
pub use ops::attach::AttachTarget;
pub use ops::core_file::CoreFile;
pub use ops::native_stacks::{fold_looked, raw_frame, shown_count, unknown_caller};
pub use ops::start::StartInput;
pub use seized_driver::{WithoutGdb, needs_no_gdb, report_parent_end, report_stop};
pub use state::breakpoints::SavedBreakpoint;
pub use state::last_probe::SavedProbe;
pub use text::VALUE_BYTES_MAX;

/// The driver of one gdb: a state machine without I/O.
pub struct Driver {
    gdb: Gdb,
    /// The operations in progress.
    ops: Vec<Op>,
    /// Commands that wait for earlier ones.
    queue: VecDeque<(CommandId, Rc<Command>)>,
}

/// An operation in progress.
struct Op {
    /// The command that it answers; `None` for the driver's own operations.
    id: Option<CommandId>,
    turn: Concurrency,
    on_cancel: OnCancel,
    future: OpFuture,
}

/// Whether an operation can run beside others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Concurrency {
    /// Runs while no other operation of this kind is under way.
    Alone,
    /// Runs beside any other operation.
    Urgent,
}

/// The fate of an operation whose command is cancelled, or whose session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OnCancel {
    /// The operation is dropped; its background tasks continue (see `background`).
    Drop,
    /// The operation continues: gdb is detaching, which must not be interrupted.
    GoOn,
}

type OpFuture = Pin<Box<dyn Future<Output = ()>>>;

impl Driver {
    /// A driver for a gdb that has just been started on a host.
    pub fn new(now: Instant, config: Rc<DriverConfig>, host: Box<dyn Host>) -> Self {
        Self {
            gdb: Gdb::new(now, config, host),
            ops: Vec::new(),
            queue: VecDeque::new(),
        }
    }

    /// A driver for a process that no gdb holds: its pid, and the name of its program's file. The driver treats the
    /// process as stopped and read-only.
    pub fn of_process(
        now: Instant,
        config: Rc<DriverConfig>,
        host: Box<dyn Host>,
        (pid, program): (i32, &str),
    ) -> Self {
        let driver = Self::new(now, config, host);
        let mut state = driver.gdb.edit();
        state.origin = Origin::Attached {
            access: Access::ReadOnly,
            scope: None,
        };
        state.processes.started("", Some(pid));
        program.clone_into(&mut state.program_name);
        state.set_task(TaskState::Starting);
        state.set_task(TaskState::Stopped);
        drop(state);
        driver
    }

    /// The last probe, with which the next one is compared.
    pub fn kept_probe(&self) -> SavedProbe {
        SavedProbe(self.gdb.get().probed.clone())
    }

    /// Sets the probe with which the next one is compared.
    pub fn restore_probe(&mut self, SavedProbe(kept): SavedProbe) {
        self.gdb.edit().probed = kept;
    }

    /// Begins to start a program.
    pub fn start(
        &mut self,
        now: Instant,
        id: CommandId,
        launch: Launch,
        stop: sdm_debug::command::StopAt,
        before: StartInput,
    ) {
        let gdb = self.begin_task(now, id, Origin::default());
        self.push(
            Some(id),
            Concurrency::Alone,
            start::start(gdb, id, launch, stop, before),
        );
        self.run();
    }

    /// Begins to attach to a process.
    pub fn attach(&mut self, now: Instant, id: CommandId, process: AttachTarget) {
        let gdb = self.begin_task(now, id, attached_to(process, None));
        self.push(
            Some(id),
            Concurrency::Alone,
            attach::attach(gdb, id, process),
        );
        self.run();
    }

    /// Like `attach`, in a gdb that holds other tasks too; `first` if this is the first task of the gdb.
    pub fn attach_among(
        &mut self,
        now: Instant,
        id: CommandId,
        process: AttachTarget,
        first: bool,
    ) {
        let scope = Some(Scope::default());
        let gdb = self.begin_task(now, id, attached_to(process, scope));
        let attach = attach::attach_among(gdb, id, process, first);
        self.push(Some(id), Concurrency::Alone, attach);
        self.run();
    }

    /// Begins to open a core file.
    pub fn open_core(&mut self, now: Instant, id: CommandId, file: CoreFile) {
        let gdb = self.begin_task(now, id, Origin::CoreFile);
        self.push(Some(id), Concurrency::Alone, core_file::open(gdb, id, file));
        self.run();
    }

    /// Begins a command.
    pub fn handle_command(&mut self, now: Instant, id: CommandId, command: impl Into<Rc<Command>>) {
        let command: Rc<Command> = command.into();
        self.gdb.edit().now = now;
        self.gdb.edit().open.insert(id);
        let gdb = self.gdb.clone();
        match &*command {
            Command::Status => {
                let state = self.task_state();
                gdb.answer(id, Ok(Reply::Status(state)));
            }
            Command::Usage | Command::ProcessUsage { .. } => {
                gdb.answer(id, usage::memory(&gdb));
            }
            Command::Hold => gdb.answer(id, Ok(Reply::Done)),
            Command::Interrupt => match alone::refusal(&gdb) {
                Some(failure) => gdb.answer(id, Err(failure)),
                None => self.push(Some(id), Concurrency::Urgent, interrupt::interrupt(gdb, id)),
            },
            Command::Continue if alone::go_on(&gdb, id) => {}
            Command::Kill if gdb.get().origin.is_core_file() => {
                gdb.answer(id, Err(core_file::refusal("kill")));
            }
            Command::Kill => self.push(Some(id), Concurrency::Urgent, end::kill(gdb, id)),
            Command::Detach => {
                self.push_letting_go(Some(id), Concurrency::Urgent, end::detach(gdb, id))
            }
            _ => self.queue.push_back((id, command)),
        }
        self.run();
    }

    /// Cancels a command: it leaves nothing behind in gdb. If it has resumed the program, the program runs on, and its
    /// stop will be an event.
    pub fn handle_cancel(&mut self, now: Instant, id: CommandId) {
        self.gdb.edit().now = now;
        self.queue.retain(|(queued, _)| *queued != id);
        let is_own = |op: &Op| op.id == Some(id) && op.on_cancel == OnCancel::Drop;
        if let Some(at) = self.ops.iter().position(is_own) {
            // Dropping the operation abandons its commands in gdb, but operations with an effect are still completed.
            drop(self.ops.remove(at));
        }
        let mut state = self.gdb.edit();
        state.activity.forget_command(id);
        let cancelled = Failure::new(FailureCode::Cancelled, "cancelled");
        state.answer(id, Err(cancelled));
        let has_run = state.activity.run().is_some();
        let goes_on = |op: &Op| op.turn == Concurrency::Alone || op.on_cancel == OnCancel::GoOn;
        let begun = has_run || self.ops.iter().any(goes_on);
        let given_up = !begun && state.activity.is_starting();
        let attached = state.origin.is_attached();
        drop(state);
        if given_up && attached {
            let gdb = self.gdb.clone();
            self.push_letting_go(None, Concurrency::Alone, attach::give_up(gdb));
        } else if given_up {
            end::not_begun(&self.gdb);
        }
        self.run();
    }

    /// Takes a record of gdb.
    pub fn handle_record(&mut self, now: Instant, record: Record) {
        self.gdb.edit().now = now;
        records::handle(&self.gdb, record);
        self.run();
    }

    /// Takes the end of gdb; `text` describes it.
    pub fn handle_gdb_end(&mut self, now: Instant, text: &str) {
        self.gdb.edit().now = now;
        let closing = self.gdb.get().life.is_closing();
        let failure = Failure::new(FailureCode::GdbDead, text);
        if closing {
            end::gdb_closed(&self.gdb);
        } else {
            end::gdb_died(&self.gdb, text);
        }
        self.gdb.fail_pending(&failure);
        self.run();
        // The remaining operations wait for output of gdb, which will not come.
        self.ops.clear();
        self.gdb.drop_works();
        let queued = self.queue.iter().map(|(id, _)| *id).collect();
        alone::fail_open(&self.gdb, &failure, &queued);
        self.run();
    }

    /// Handles the passing of the time from [`Driver::poll_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        self.gdb.edit().now = now;
        self.gdb.expire();
        self.run();
    }

    /// The time at which [`Driver::handle_timeout`] must be called; `None` if no call is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.gdb.next_timeout()
    }

    /// The next action to carry out; `None` if there is none.
    pub fn poll_action(&mut self) -> Option<Action> {
        if self.gdb.get().actions.is_empty() {
            return None;
        }
        self.gdb.edit().actions.pop_front()
    }

    /// Ends everything: cancels open commands, detaches from the program or kills it, and closes gdb. Only a program
    /// that SDM has started is killed, and only with `kill_started`.
    pub fn shut_down(&mut self, now: Instant, kill_started: bool) {
        self.gdb.edit().now = now;
        self.queue.clear();
        self.ops.retain(|op| op.on_cancel == OnCancel::GoOn);
        let mut state = self.gdb.edit();
        // The end of an open run answers the run's command.
        let run = state.activity.run_id();
        for id in state.open.clone() {
            if Some(id) != run {
                let failure = Failure::new(FailureCode::Cancelled, "the session ends");
                state.answer(id, Err(failure));
            }
        }
        drop(state);
        let gdb = self.gdb.clone();
        self.push(None, Concurrency::Urgent, end::shut_down(gdb, kill_started));
        self.run();
    }

    /// Discards the output captured so far for all pending commands: gdb has printed it about a stop, not for them.
    pub fn forget_printed(&mut self) {
        let mut state = self.gdb.edit();
        let pending = state.commands.pending.values_mut();
        pending
            .filter_map(|pending| pending.printed.as_mut())
            .for_each(|printed| *printed = CapturedOutput::default());
    }

    /// Handles the death of the task's process, where gdb has not reported the death.
    pub fn handle_dead(&mut self, now: Instant) {
        self.gdb.edit().now = now;
        end::found_dead(&self.gdb);
        self.run();
    }

    /// True if gdb may not notice the process's end: the process is stopped, or gdb has lost track of it.
    pub fn may_miss_end(&self) -> bool {
        let state = self.gdb.get();
        let is_live = state.activity.is_live();
        state.activity.is_stopped() || is_live && state.processes.has_missed_event()
    }

    /// The state of the task as the front-end sees it.
    pub fn task_state(&self) -> TaskState {
        self.gdb.get().activity.task()
    }

    /// Records the end of a program that was detached before.
    pub fn set_ended(&mut self, state: TaskState) {
        self.gdb.edit().set_task(state);
    }

    /// The pid of the task's process; `None` if there is none.
    pub fn pid(&self) -> Option<i32> {
        self.gdb.get().pid()
    }

    /// The front-end's breakpoints, for insertion in another run of the program.
    pub fn kept_breakpoints(&self) -> Vec<SavedBreakpoint> {
        self.gdb.get().breakpoints.kept()
    }

    /// The failure of a command that needs a live process; `None` if there is one.
    pub fn why_not_live(&self) -> Option<Failure> {
        self.gdb.get().why_not_live()
    }

    fn begin_task(&mut self, now: Instant, id: CommandId, origin: Origin) -> Gdb {
        let mut state = self.gdb.edit();
        state.now = now;
        state.open.insert(id);
        state.origin = origin;
        state.set_task(TaskState::Starting);
        drop(state);
        self.gdb.clone()
    }

    fn push(
        &mut self,
        id: Option<CommandId>,
        turn: Concurrency,
        future: impl Future<Output = ()> + 'static,
    ) {
        self.ops.push(Op {
            id,
            turn,
            on_cancel: OnCancel::Drop,
            future: Box::pin(future),
        });
    }

    fn push_letting_go(
        &mut self,
        id: Option<CommandId>,
        turn: Concurrency,
        future: impl Future<Output = ()> + 'static,
    ) {
        let letting_go = DetachGuard::new(&self.gdb);
        let future = async move {
            future.await;
            drop(letting_go);
        };
        self.ops.push(Op {
            id,
            turn,
            on_cancel: OnCancel::GoOn,
            future: Box::pin(future),
        });
    }

    /// Polls open operations, and starts queued ones, until nothing changes.
    fn run(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        loop {
            let version = self.gdb.version();
            self.gdb.clear_wakeups();
            self.gdb.poll_works();
            let mut at = 0;
            while at < self.ops.len() {
                if self.ops[at].future.as_mut().poll(&mut context).is_ready() {
                    self.ops.remove(at);
                } else {
                    at += 1;
                }
            }
            let began = self.begin_next();
            if !began && version == self.gdb.version() {
                return;
            }
        }
    }

    /// Begins the next command, unless another one is in progress; true if a command was begun.
    fn begin_next(&mut self) -> bool {
        let is_leaving = self.gdb.get().is_leaving;
        let is_busy = self.ops.iter().any(|op| op.turn == Concurrency::Alone);
        if is_leaving || is_busy || self.gdb.is_clearing() {
            return false;
        }
        let has_stop = !self.gdb.get().stops.is_empty();
        if has_stop {
            let stop = self.gdb.edit().stops.pop_front();
            if let Some(stop) = stop {
                let gdb = self.gdb.clone();
                self.push(None, Concurrency::Alone, stop::handle_stop(gdb, stop));
            }
            return true;
        }
        if alone::is_awaited(&self.gdb) {
            return false;
        }
        let Some((id, command)) = self.queue.pop_front() else {
            return false;
        };
        self.begin(id, command);
        true
    }

    fn begin(&mut self, id: CommandId, command: Rc<Command>) {
        let gdb = self.gdb.clone();
        if let Some(result) = alone::answer(&gdb, &command) {
            return gdb.answer(id, result);
        }
        let refused = preconditions::why(&gdb, &command);
        if let Some(failure) = refused {
            gdb.answer(id, Err(failure));
            return;
        }
        if command.is_run_control() {
            return self.push(Some(id), Concurrency::Alone, run::resume(gdb, id, command));
        }
        self.push(Some(id), Concurrency::Alone, async move {
            let result = query::query(&gdb, &command).await;
            gdb.answer(id, result);
        });
    }
}

fn attached_to(process: AttachTarget, scope: Option<Scope>) -> Origin {
    let access = if process.read_only {
        Access::ReadOnly
    } else {
        Access::Full
    };
    Origin::Attached { access, scope }
}
