//! Events of a program that runs without a gdb.

use serde::{Deserialize, Serialize};

/// The cause for which a program is stopped and needs a debugger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// A signal is about to end the program.
    Signal {
        /// The number of the signal.
        number: i32,
        /// True if the signal must be sent again after the release: the thread's instruction does not raise it again.
        again: bool,
        /// The address of the access or instruction that raised the signal; `None` for a signal that was sent.
        address: Option<u64>,
    },
    /// The thread is at a watched function, and continues from the function's first instruction.
    Function(EndingCall),
}

/// A call before which a program is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndingCall {
    /// `abort`.
    Abort,
    /// `MPI_Abort` with this code.
    MpiAbort(i32),
    /// `_exit` with this code, before `MPI_Finalize`.
    Exit(i32),
    /// The handler of errors in MPI, which may end the program.
    MpiError,
    /// The check of the use of MPI has found an error.
    Check,
}

/// A program that its parent has released, to which a debugger attaches now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Freed {
    /// The thread that was stopped at the release, and the cause of the stop; `None` if the program was running.
    /// SIGSTOP keeps the process stopped.
    pub stood: Option<(i32, Cause)>,
    /// True once `MPI_Init` was called.
    pub initialized: bool,
    /// True once `MPI_Finalize` was called.
    pub finalized: bool,
}

/// Addresses in an MPI library from which the rank of a process is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MpiSymbols {
    /// Addresses of Open MPI's `MPI_COMM_WORLD`, `MPI_COMM_SELF` and empty group; `None` without Open MPI.
    pub open_mpi: Option<(u64, u64, Option<u64>)>,
    /// Address of a symbol of MPICH; `None` without MPICH.
    pub mpich: Option<u64>,
}

/// News of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProgramNews {
    /// Another process is taken for the program from now on.
    Is {
        /// Pid of this process.
        pid: i32,
        /// Pids of other processes with MPI that may be the program instead.
        others: Vec<i32>,
    },
    /// A descendant that has executed a program of its own was ended by the signal of a crash. The program itself may
    /// handle that.
    ChildDied {
        /// The name of the process's program.
        name: String,
        /// The number of the signal.
        signal: i32,
    },
    /// The program is stopped, and needs a debugger: it must be released.
    Stands {
        /// The thread that is stopped.
        thread: i32,
        /// The cause of the stop.
        cause: Cause,
    },
    /// The program was released.
    Free(Freed),
    /// The program is about to ask for its rank for the first time. It stays stopped until [`crate::ToShim::GoOn`].
    AsksRank(MpiSymbols),
    /// The program was released for an inspection, and must be seized again afterwards.
    Loose,
    /// The program has ended.
    Ended {
        /// The status as in `waitpid(2)`.
        status: i32,
        /// True if the program ended after `MPI_Init` and before `MPI_Finalize`; always false with `no_holds`.
        before_finalize: bool,
        /// True if a process of the program has called `MPI_Init`, or may have while it was inspected.
        initialized: bool,
    },
}
