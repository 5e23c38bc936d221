//! The traits of a backend, which carries out commands on the tasks of one server: gdb, or a script in its place. A
//! second trait has the duties towards a launcher.

use std::os::fd::RawFd;
use std::time::Instant;

use sdm_core::CommandId;
use sdm_core::message::EndPolicy;
use sdm_idset::{IdSet, TaskId};

use crate::command::StartPoint;
use crate::{Command, Event, Failure, Reply, TaskState};

/// The backend of one server: it carries out the commands of the server's tasks. It does no I/O with its owner. The
/// owner calls one `handle_*` or [`Backend::execute`], then drains [`Backend::poll_interest`] and
/// [`Backend::poll_output`] to `None`. It then sleeps until a descriptor is ready or [`Backend::poll_timeout`] has
/// passed. `now` never goes backward.
///
/// Every task of `tasks` is answered exactly once per [`Backend::execute`]. Commands of one task are begun in the
/// order given, urgent ones first. The owner never executes an id twice.
pub trait Backend {
    /// Begins a command on tasks of this server.
    fn execute(&mut self, now: Instant, id: CommandId, tasks: &IdSet, command: Command);

    /// Like `execute`. If all of `tasks` give the same answer at once, and nothing else changes for the owner, that
    /// answer may be returned here. No output then follows. `None`: the answers come as outputs.
    fn execute_at_once(
        &mut self,
        now: Instant,
        id: CommandId,
        tasks: &IdSet,
        command: Command,
    ) -> Option<Result<Reply, Failure>> {
        self.execute(now, id, tasks, command);
        None
    }

    /// Cancels a command: its unanswered tasks are answered `cancelled`. An open run is left running and its later
    /// stop becomes an event.
    fn cancel(&mut self, now: Instant, id: CommandId);

    /// The next answer or event; `None` if there is none.
    fn poll_output(&mut self) -> Option<BackendOutput>;

    /// The next change of the set of watched descriptors; `None` if there is no more.
    fn poll_interest(&mut self) -> Option<InterestChange> {
        None
    }

    /// Handles a watched descriptor that is ready, or that the other side has closed. Spurious calls do no harm. The
    /// backend reads until it would block, because descriptors may be watched edge-triggered.
    fn handle_ready(&mut self, now: Instant, fd: RawFd) {
        let _ = (now, fd);
    }

    /// The time at which [`Backend::handle_timeout`] must be called; `None` if no call is due.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// Handles the passing of the time from [`Backend::poll_timeout`].
    fn handle_timeout(&mut self, now: Instant) {
        let _ = now;
    }

    /// Pauses or resumes the reading of the program's output. The owner pauses it while the tree has no credit for
    /// output. When the reading is resumed, the backend reads the pending output at once, without waiting for the
    /// descriptor to become ready.
    fn set_output_paused(&mut self, now: Instant, paused: bool) {
        let _ = (now, paused);
    }

    /// Begins the end: every task is killed or detached according to `policy`, and every gdb is ended.
    fn shut_down(&mut self, now: Instant, policy: EndPolicy);

    /// True once nothing is left behind the backend, except for programs that [`LauncherDuties::is_leaving`] reports.
    fn is_down(&self) -> bool;

    /// Returns the task's breakpoints, watchpoints and catchpoints, so that the owner can set them for another task
    /// too.
    fn points(&self, task: TaskId) -> Vec<StartPoint> {
        let _ = task;
        Vec::new()
    }
}

/// A backend that stands between a launcher and the tasks' programs. It has started the programs, or it controls
/// processes that the launcher started for its tasks. The launcher waits for their ends and exit codes.
pub trait LauncherDuties: Backend {
    /// True while programs that were started here and then detached have not ended. Their standard streams still pass
    /// through this process. The owner therefore stays and makes the same calls, even after the end of the session.
    fn is_leaving(&self) -> bool {
        false
    }

    /// Sends a signal to the programs for which [`LauncherDuties::is_leaving`] is true.
    fn signal_left(&mut self, signal: i32) {
        let _ = signal;
    }

    /// Sends a signal to those programs of these tasks that were started here. Stopped programs get it only if
    /// `standing` is set.
    fn signal_programs(&mut self, tasks: &IdSet, signal: i32, standing: bool) {
        let _ = (tasks, signal, standing);
    }

    /// The programs of the backend's tasks.
    fn programs(&self) -> Vec<Program> {
        Vec::new()
    }

    /// The exit code for the launcher once all programs of [`LauncherDuties::is_leaving`] have ended: the highest of
    /// theirs, as a shell gives them. `None` if no program left an exit code.
    fn left_code(&self) -> Option<i32> {
        None
    }

    /// True once every process that a launcher started for one of its tasks has ended or has been asked to end, and the
    /// output of ended programs is read. The owner then begins the end of the session. Never true without such
    /// processes.
    fn is_deserted(&self) -> bool {
        false
    }

    /// The last call, after the end of the session and its last output. The launcher's processes end now, with the
    /// exit codes of their tasks.
    fn dismiss(&mut self) {}
}

/// An answer or an event of a backend.
#[derive(Clone, Debug, PartialEq)]
pub enum BackendOutput {
    /// The result of a command on one task.
    Answer {
        /// The command that this answers.
        id: CommandId,
        /// The task that answers.
        task: TaskId,
        /// The task's reply, or the reason why the command failed on it.
        result: Result<Reply, Failure>,
    },
    /// An unsolicited event of a task.
    Event {
        /// The task that the event concerns.
        task: TaskId,
        /// The event.
        event: Event,
    },
}

/// A change of the file descriptors to watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterestChange {
    /// Watch this descriptor from now on, or change its watched conditions to these.
    Watch {
        /// The descriptor, open and non-blocking.
        fd: RawFd,
        /// True to call back when the descriptor has bytes to read, or has ended.
        readable: bool,
        /// True to call back when there is room to write.
        writable: bool,
    },
    /// Stop watching. This is sent before the descriptor is closed.
    Forget {
        /// The descriptor, as passed to `Watch`.
        fd: RawFd,
    },
}

/// A task's program as a process.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The task.
    pub task: TaskId,
    /// Pid of the debugged process; `None` if there is none.
    pub pid: Option<i32>,
    /// The state of the task.
    pub state: TaskState,
}
