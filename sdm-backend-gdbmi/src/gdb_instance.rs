//! A gdb of the backend, for one task or shared by several.

use std::os::fd::{OwnedFd, RawFd};
use std::rc::Rc;
use std::time::Instant;

use nix::sys::signal::Signal;
use sdm_child::{GdbChild, ProgramNews};
use sdm_core::CommandId;
use sdm_debug::command::AttachSpec;
use sdm_debug::{BackendOutput, Command, Failure};
use sdm_idset::TaskId;
use sdm_inspect::stack::StoppedThread;

use crate::looks::LookedThread;
use crate::seized_looks::Order;
use sdm_gdb::Driver;

/// A descriptor to watch: true for reading, and true for writing.
pub(crate) type Interest = (RawFd, bool, bool);

/// Tasks that need a gdb of their own, as a shared one cannot hold them.
pub(crate) struct UnsharedTasks {
    /// The attach request.
    pub(crate) spec: AttachSpec,
    /// The command that must attach to each of these tasks.
    pub(crate) wanted: Vec<(CommandId, TaskId)>,
}

/// The exit of a program that has ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProgramExit {
    pub(crate) code: i32,
    /// True if the program called `MPI_Init` but not `MPI_Finalize`.
    pub(crate) before_finalize: bool,
}

/// A task whose program was started without a gdb.
pub(crate) trait Seized {
    /// Handles news of the program.
    fn take_news(&mut self, now: Instant, news: ProgramNews);

    /// Handles the end of the process that had started the program, which ends with it.
    fn lose_parent(&mut self, now: Instant);

    /// The exit of a program that has ended by itself, once all its output was read; `None` before, and for others.
    fn own_exit(&self) -> Option<(TaskId, ProgramExit)>;

    /// The pid of a program that needs a gdb, and the gdb that the start request has named. `None` if no gdb is needed,
    /// and once the need was returned.
    fn take_need(&mut self) -> Option<(i32, Option<Vec<u8>>)>;

    /// The stopped thread that is to be read for the report of the stop, once for each stop.
    fn take_look(&mut self) -> Option<LookedThread>;

    /// Passes on what was read of the stopped thread.
    fn take_stop(&mut self, now: Instant, seen: Option<StoppedThread>);

    /// Passes on the started gdb, or the reason why there is none.
    fn take_gdb(&mut self, now: Instant, gdb: Result<GdbChild, Failure>);

    /// Has the program's parent release it for an inspection, seize it again, hold its threads, or resume them.
    fn ask_parent(&mut self, order: Order);
}

/// A gdb with its tasks, or a task whose program runs without a gdb. The results of calls are available after
/// [`Slot::settle`].
pub(crate) trait Slot {
    /// The driver of a task of this slot; `None` if the task is not of this slot.
    fn driver(&self, task: TaskId) -> Option<&Driver>;

    /// Begins a command of a task of this slot.
    fn execute(&mut self, now: Instant, task: TaskId, id: CommandId, command: &Rc<Command>);

    /// Cancels a command.
    fn cancel(&mut self, now: Instant, id: CommandId);

    /// Performs the consequences of all calls since the last time.
    fn settle(&mut self, now: Instant);

    /// Adds the descriptors to watch now, each with the directions to watch.
    fn add_interests(&self, to: &mut Vec<Interest>);

    /// Handles a ready descriptor.
    fn handle_ready(&mut self, now: Instant, fd: RawFd);

    /// The time at which [`Slot::handle_timeout`] must be called; `None` if no call is due.
    fn poll_timeout(&self, now: Instant) -> Option<Instant>;

    fn handle_timeout(&mut self, now: Instant);

    /// Begins to end the slot.
    fn shut_down(&mut self, now: Instant, kill_started: bool);

    /// True once gdb and every program that must end have ended.
    fn is_down(&self) -> bool;

    /// True once the slot is down and will give no more output, so that it can be dropped.
    fn is_over(&self) -> bool {
        self.is_down()
    }

    /// Output since the last call, and descriptors to close once the owner has stopped watching them.
    fn said(&mut self) -> (&mut Vec<BackendOutput>, &mut Vec<OwnedFd>);

    /// Stops or resumes reading the output of programs.
    fn set_paused(&mut self, _now: Instant, _paused: bool) {}

    /// Sends a signal to the programs that were started here. A stopped program gets it only if `_standing` is set.
    fn signal_program(&mut self, _signal: Signal, _standing: bool) {}

    /// True while output of a program that has ended is still read.
    fn is_lingering(&self) -> bool {
        false
    }

    /// True while a program that was started here and detached has not ended.
    fn is_left_running(&self) -> bool {
        false
    }

    /// Sends a signal to a program that was left running.
    fn signal_left(&self, _signal: Signal) {}

    /// Exit code of a program that was started here and detached, and has ended since; `None` otherwise.
    fn left_end(&self) -> Option<i32> {
        None
    }

    /// Pid of the program, if it runs without a gdb; otherwise `None`.
    fn free_process(&self) -> Option<i32> {
        None
    }

    /// The task as one whose program was started without a gdb; `None` for other tasks.
    fn seized(&mut self) -> Option<&mut dyn Seized> {
        None
    }

    /// The tasks that a shared gdb cannot hold together with others; `None` for other gdbs.
    fn apart(&mut self) -> Option<&mut UnsharedTasks> {
        None
    }
}
