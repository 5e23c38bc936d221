//! Unsolicited events of tasks: output, stops, ends, notices, new tasks, and the death of a gdb.

use serde::{Deserialize, Serialize};

use crate::reply::Stop;

/// An unsolicited event: it answers no command.
///
/// The list is only appended to: its order is the wire form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// Output of the program. Bulk lane; in order within a task and stream.
    Output {
        /// The stream on which the output was printed.
        stream: Stream,
        /// The output; whole lines if the program prints lines.
        bytes: Vec<u8>,
    },
    /// The end of the output on this stream. Bulk lane.
    OutputEnd {
        /// The ended stream.
        stream: Stream,
    },
    /// The task stopped, and no command to run it was waiting for an answer.
    Stopped(Stop),
    /// The program ended, and no command to run it was waiting for an answer.
    Exited {
        /// The exit code.
        code: i32,
    },
    /// A signal terminated the program, and no command to run it was waiting for an answer.
    Signalled {
        /// The signal's name, for example `SIGSEGV`.
        signal: String,
    },
    /// A signal was delivered to the program, which continues to run.
    SignalPassed {
        /// The signal's name, for example `SIGUSR1`.
        name: String,
    },
    /// The task's gdb is gone.
    GdbDied {
        /// The way in which gdb ended, and its last message.
        text: String,
    },
    /// The phase that a start has reached.
    Progress(Phase),
    /// A pending breakpoint has been given a location.
    BreakpointPlaced(crate::reply::BreakpointPlace),
    /// A notice for users.
    Notice {
        /// The text of the notice: lower case, no full stop.
        text: String,
    },
    /// Output of a breakpoint's commands.
    Printed {
        /// The front-end's number of the breakpoint.
        number: u32,
        /// The text that the commands printed.
        text: String,
    },
    /// A breakpoint, watchpoint or catchpoint of [`crate::command::StartSpec::points`] could not be set; the task
    /// does not have it.
    BreakpointRefused {
        /// The front-end's number of the breakpoint.
        number: u32,
        /// The reason: lower case, no full stop.
        text: String,
    },
    /// Follows the output that the program had printed by the time of a stop, on both streams. It takes the bulk lane
    /// behind that output, so it is late while the lane has no credit. Only tasks that were started send it. After a
    /// run that the program's end has ended, [`Event::OutputEnd`] is sent instead.
    OutputComplete {
        /// The number of the command that the stop answered.
        command: u64,
    },
    /// A task has aborted the job that this task belongs to (`MPI_Abort`); all tasks of the job end.
    Aborted {
        /// The number of the task that aborted the job.
        by: u32,
        /// The exit status for the job.
        status: i32,
        /// The reason as the aborting task gave it; may be empty.
        text: String,
    },
    /// New tasks, as a task has started programs (`MPI_Comm_spawn`). They were unknown before; they run, or will
    /// soon.
    Joined(Joined),
    /// The task's rank in `MPI_COMM_WORLD`, as its MPI library has it. It is sent if the launcher assigned another rank
    /// or number of ranks. It is also sent if the launcher assigned none and the communicator has only this task.
    World {
        /// The task's rank in `MPI_COMM_WORLD`.
        rank: u32,
        /// Number of ranks in `MPI_COMM_WORLD`.
        size: u32,
    },
    /// The task's use of MPI was to be checked, and the task has exited and has not begun MPI. It is sent before
    /// the event or the answer that reports the exit.
    Unchecked,
}

/// The creation of tasks while a job runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    /// The number of the task that started the new tasks; `None` if a tool started them.
    pub by: Option<u32>,
    /// The number of the task whose breakpoints the new tasks copy.
    pub like: u32,
    /// The program, as the task that started it named it.
    pub program: Vec<u8>,
    /// Arguments, without the program itself.
    pub args: Vec<Vec<u8>>,
}

/// An output stream of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The phases of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// gdb has started.
    Gdb,
    /// gdb has read the program's symbols.
    Symbols,
    /// The program runs to `main`.
    Running,
}

/// The text of the notice for [`Event::World`]: the task's rank in `MPI_COMM_WORLD` differs from the rank that its
/// launcher assigned.
#[must_use]
pub fn world_notice(rank: u32, size: u32) -> String {
    format!(
        "error: the program has rank {rank} of {size} in MPI_COMM_WORLD, not the rank that its launcher gave it: \
         its MPI library did not connect to the launcher (use --launcher mpirun for Open MPI, mpiexec for MPICH)"
    )
}

/// The text of the notice for [`Event::Unchecked`].
pub const UNCHECKED_NOTICE: &str =
    "--check: nothing was checked: the program ended before it initialized MPI";

impl Event {
    /// True for events that need credit and are sent on the bulk lane.
    #[must_use]
    pub fn is_bulk(&self) -> bool {
        matches!(
            self,
            Self::Output { .. } | Self::OutputEnd { .. } | Self::OutputComplete { .. }
        )
    }
}
