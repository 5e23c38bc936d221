//! The state machine of one gdb: commands and records in, MI commands, answers and events out.
//!
//! Sans-I/O: `handle_*(now, ...)`, then [`Driver::poll_action`] to `None`, then sleep until
//! something comes or [`Driver::poll_timeout`]. One command at a time talks to gdb (in the order
//! given; a stop that has come goes first), beside it the urgent ones.

mod attach;
mod breakpoints;
mod console;
mod core;
mod core_file;
mod end;
mod frames;
mod history;
mod internal;
mod interrupt;
mod lines;
mod memory;
mod objects;
mod printed;
mod processes;
mod query;
mod records;
mod refused;
mod registers;
mod run;
mod scope;
mod signals;
mod source;
mod stack;
mod start;
mod stop;
#[cfg(test)]
mod stories;
#[cfg(test)]
mod tests;
mod until;
mod values;
mod wrapped;

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use sdm_core::CommandId;
use sdm_debug::fold::FoldRules;
use sdm_debug::{Command, Event, Failure, FailureCode, Reply, TaskState};

use crate::child::Launch;
use crate::host::Host;
use crate::mi::Record;
use core::Gdb;

pub(crate) use attach::Attached;
pub(crate) use breakpoints::Kept;
pub(crate) use core_file::CoreFile;
pub(crate) use start::Before;
pub use values::VALUE_BYTES_MAX;

/// What every driver of a backend shares.
#[derive(Clone, Debug)]
pub(crate) struct DriverConfig {
    /// How long gdb may take for one command before it is interrupted.
    pub(crate) command_wait: Duration,
    /// How long gdb may take to read a program's symbols.
    pub(crate) symbols_wait: Duration,
    /// How long a task may take to stop before it is stopped the hard way.
    pub(crate) interrupt_wait: Duration,
    /// Hold programs that are about to abort, or to leave before `MPI_Finalize`.
    pub(crate) internal_breakpoints: bool,
    /// The processor has more registers than a gdb older than 14 knows.
    pub(crate) registers_unknown: bool,
    /// Which frames are a runtime's.
    pub(crate) fold: FoldRules,
}

/// What the owner of a driver is to do.
#[derive(Debug)]
pub(crate) enum Action {
    /// Write this to gdb.
    Send(String),
    /// Give this answer.
    Answer {
        /// Of which command.
        id: CommandId,
        /// The answer.
        result: Result<Reply, Failure>,
    },
    /// Say this.
    Event(Event),
    /// Nobody wants the answer to the line of this number any more: gdb need not be told of it, or is to be
    /// interrupted at it, where that harms no program.
    BreakOff(u64),
    /// Send the program this signal.
    SignalProgram {
        /// Which process.
        pid: i32,
        /// Which signal.
        signal: nix::sys::signal::Signal,
    },
    /// The process runs, and gdb has put breakpoints of its own into it although nobody wants any: take them out.
    ClearCode,
    /// The program has opened its standard streams: ours of its ends can be closed.
    ProgramOpened,
    /// The program has ended: no more input for it, and its output will end.
    ProgramEnded,
    /// Close gdb's input: it is no longer needed.
    CloseGdb,
}

/// Drives one gdb.
pub(crate) struct Driver {
    gdb: Gdb,
    ops: Vec<Op>,
    queue: VecDeque<(CommandId, Command)>,
}

/// A command under way.
struct Op {
    /// `None` for what the driver does by itself.
    id: Option<CommandId>,
    /// True where no other such one may be under way.
    exclusive: bool,
    /// gdb leaves the program: that is not to be broken off half-way, whoever waits for it or not.
    lets_go: bool,
    future: OpFuture,
}

type OpFuture = Pin<Box<dyn Future<Output = ()>>>;

impl Driver {
    pub(crate) fn new(now: Instant, config: Rc<DriverConfig>, host: Box<dyn Host>) -> Self {
        Self {
            gdb: Gdb::new(now, config, host),
            ops: Vec::new(),
            queue: VecDeque::new(),
        }
    }

    /// Begins the start of a program.
    pub(crate) fn start(
        &mut self,
        now: Instant,
        id: CommandId,
        launch: Launch,
        stop: sdm_debug::command::StopAt,
        before: Before,
    ) {
        let gdb = self.begin_task(now, id);
        self.push(Some(id), true, start::start(gdb, id, launch, stop, before));
        self.run();
    }

    /// Begins to attach to a process.
    pub(crate) fn attach(&mut self, now: Instant, id: CommandId, process: Attached) {
        let gdb = self.begin_task(now, id);
        self.push(Some(id), true, attach::attach(gdb, id, process));
        self.run();
    }

    /// The same in a gdb that holds other tasks too; `first` where this is the first of them.
    pub(crate) fn attach_among(
        &mut self,
        now: Instant,
        id: CommandId,
        process: Attached,
        first: bool,
    ) {
        let gdb = self.begin_task(now, id);
        gdb.edit().scope = Some(scope::Scope::default());
        self.push(
            Some(id),
            true,
            attach::attach_among(gdb, id, process, first),
        );
        self.run();
    }

    /// Begins to open a core file.
    pub(crate) fn open_core(&mut self, now: Instant, id: CommandId, file: CoreFile) {
        let gdb = self.begin_task(now, id);
        self.push(Some(id), true, core_file::open(gdb, id, file));
        self.run();
    }

    /// Begins a command.
    pub(crate) fn handle_command(&mut self, now: Instant, id: CommandId, command: Command) {
        self.gdb.edit().now = now;
        self.gdb.edit().open.insert(id);
        let gdb = self.gdb.clone();
        match command {
            Command::Status => {
                let state = gdb.get().task.clone();
                gdb.answer(id, Ok(Reply::Status(state)));
            }
            Command::Interrupt => self.push(Some(id), false, interrupt::interrupt(gdb, id)),
            Command::Kill if gdb.get().core_file => {
                gdb.answer(id, Err(core_file::refusal("kill")));
            }
            Command::Kill => self.push(Some(id), false, end::kill(gdb, id)),
            Command::Detach => self.push_letting_go(Some(id), false, end::detach(gdb, id)),
            command => self.queue.push_back((id, command)),
        }
        self.run();
    }

    /// Gives a command up. A run goes on, and its stop will be an event.
    pub(crate) fn handle_cancel(&mut self, now: Instant, id: CommandId) {
        self.gdb.edit().now = now;
        self.queue.retain(|(queued, _)| *queued != id);
        let mut is_own = |op: &Op| op.id == Some(id) && !op.lets_go;
        if let Some(at) = self.ops.iter().position(&mut is_own) {
            // Dropping it leaves what gdb works on abandoned.
            drop(self.ops.remove(at));
            self.gdb.break_off(|pending| pending.abandoned);
        }
        let mut state = self.gdb.edit();
        if let Some(run) = state.run.as_mut().filter(|run| run.id == Some(id)) {
            run.id = None;
        }
        let cancelled = Failure::new(FailureCode::Cancelled, "cancelled");
        state.answer(id, Err(cancelled));
        let begun = state.run.is_some() || self.ops.iter().any(|op| op.exclusive || op.lets_go);
        let given_up = !begun && state.task == TaskState::Starting;
        let attached = state.attached;
        drop(state);
        if given_up && attached {
            let gdb = self.gdb.clone();
            self.push_letting_go(None, true, attach::give_up(gdb));
        } else if given_up {
            end::not_begun(&self.gdb);
        }
        self.run();
    }

    /// gdb said something.
    pub(crate) fn handle_record(&mut self, now: Instant, record: Record) {
        self.gdb.edit().now = now;
        records::handle(&self.gdb, record);
        self.run();
    }

    /// gdb is gone; `text` says how.
    pub(crate) fn handle_gdb_end(&mut self, now: Instant, text: &str) {
        self.gdb.edit().now = now;
        let closing = self.gdb.get().closing;
        let failure = Failure::new(FailureCode::GdbDead, text);
        if closing {
            end::gdb_closed(&self.gdb);
        } else {
            end::gdb_died(&self.gdb, text);
        }
        self.gdb.fail_pending(&failure);
        self.run();
        // What still waits waits for something that gdb would have said.
        self.ops.clear();
        let mut state = self.gdb.edit();
        state.run = None;
        for id in state.open.clone() {
            state.answer(id, Err(failure.clone()));
        }
        drop(state);
        self.run();
    }

    /// The time of [`Driver::poll_timeout`] has come.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.gdb.edit().now = now;
        self.gdb.expire();
        self.run();
    }

    /// When [`Driver::handle_timeout`] is to be called.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.gdb.next_timeout()
    }

    /// The next thing to do, if any.
    pub(crate) fn poll_action(&mut self) -> Option<Action> {
        if self.gdb.get().actions.is_empty() {
            return None;
        }
        self.gdb.edit().actions.pop_front()
    }

    /// Ends everything: what is open is cancelled, the program killed or left, gdb closed.
    pub(crate) fn shut_down(&mut self, now: Instant, kill_started: bool) {
        self.gdb.edit().now = now;
        self.queue.clear();
        self.ops.retain(|op| op.lets_go);
        let mut state = self.gdb.edit();
        // An open run is answered by what ends it.
        let run = state.run.as_ref().and_then(|run| run.id);
        for id in state.open.clone() {
            if Some(id) != run {
                let failure = Failure::new(FailureCode::Cancelled, "the session ends");
                state.answer(id, Err(failure));
            }
        }
        drop(state);
        let gdb = self.gdb.clone();
        self.push(None, false, end::shut_down(gdb, kill_started));
        self.run();
    }

    /// The process, which stands still, was killed, and gdb has not heard of it.
    pub(crate) fn handle_killed(&mut self, now: Instant) {
        self.gdb.edit().now = now;
        end::killed(&self.gdb);
        self.run();
    }

    /// What the task is doing.
    pub(crate) fn task_state(&self) -> TaskState {
        self.gdb.get().task.clone()
    }

    /// The program has ended after it was detached.
    pub(crate) fn set_ended(&mut self, state: TaskState) {
        self.gdb.edit().set_task(state);
    }

    /// The process, while there is one.
    pub(crate) fn pid(&self) -> Option<i32> {
        self.gdb.get().pid
    }

    /// The front-end's breakpoints, for another run.
    pub(crate) fn kept_breakpoints(&self) -> Vec<Kept> {
        self.gdb.get().breakpoints.kept()
    }

    /// Why a command that needs a live process cannot be done now.
    pub(crate) fn why_not_live(&self) -> Option<Failure> {
        self.gdb.get().why_not_live()
    }

    fn begin_task(&mut self, now: Instant, id: CommandId) -> Gdb {
        let mut state = self.gdb.edit();
        state.now = now;
        state.open.insert(id);
        state.set_task(TaskState::Starting);
        drop(state);
        self.gdb.clone()
    }

    fn push(
        &mut self,
        id: Option<CommandId>,
        exclusive: bool,
        future: impl Future<Output = ()> + 'static,
    ) {
        self.ops.push(Op {
            id,
            exclusive,
            lets_go: false,
            future: Box::pin(future),
        });
    }

    fn push_letting_go(
        &mut self,
        id: Option<CommandId>,
        exclusive: bool,
        future: impl Future<Output = ()> + 'static,
    ) {
        self.gdb.edit().letting_go += 1;
        let gdb = self.gdb.clone();
        self.push(id, exclusive, async move {
            future.await;
            gdb.edit().letting_go -= 1;
        });
        if let Some(op) = self.ops.last_mut() {
            op.lets_go = true;
        }
    }

    /// Polls what is under way, and begins what can begin, until nothing changes any more.
    fn run(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        loop {
            let version = self.gdb.version();
            self.gdb.clear_wakeups();
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

    /// Begins the next command where none is under way. True where one was begun.
    fn begin_next(&mut self) -> bool {
        if self.ops.iter().any(|op| op.exclusive) || self.gdb.is_clearing() {
            return false;
        }
        let has_stop = !self.gdb.get().stops.is_empty();
        if has_stop {
            let stop = self.gdb.edit().stops.pop_front();
            if let Some(stop) = stop {
                self.push(None, true, stop::handle_stop(self.gdb.clone(), stop));
            }
            return true;
        }
        let Some((id, command)) = self.queue.pop_front() else {
            return false;
        };
        self.begin(id, command);
        true
    }

    fn begin(&mut self, id: CommandId, command: Command) {
        let gdb = self.gdb.clone();
        let refused = refused::why(&gdb, &command);
        if let Some(failure) = refused {
            gdb.answer(id, Err(failure));
            return;
        }
        let future: OpFuture = match command {
            command if command.is_run_control() => Box::pin(run::resume(gdb, id, command)),
            command => Box::pin(async move {
                let result = query::query(&gdb, command).await;
                gdb.answer(id, result);
            }),
        };
        self.ops.push(Op {
            id: Some(id),
            exclusive: true,
            lets_go: false,
            future,
        });
    }
}
