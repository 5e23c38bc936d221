//! Events of a program that runs without a gdb.

use serde::{Deserialize, Serialize};

/// The cause by which a program stands and needs a debugger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// A signal is about to end it; `again` where it is to be sent again, since its instruction does not raise it again.
    Signal {
        /// The signal's number.
        number: i32,
        /// It is not raised by the instruction that the thread is at.
        again: bool,
    },
    /// It is at a function of interest: at the address that it is to go on from.
    Function,
}

/// A program that was let go, for a debugger that attaches to it now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Freed {
    /// The thread that stood, and why: SIGSTOP has stopped the process then. Nothing where it ran.
    pub stood: Option<(i32, Cause)>,
    /// `MPI_Init` was called.
    pub initialized: bool,
    /// `MPI_Finalize` was called.
    pub finalized: bool,
}

/// Addresses in an MPI library from which the rank of a process is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MpiSymbols {
    /// Open MPI's communicators of all ranks and of one, and its empty group.
    pub open_mpi: Option<(u64, u64, Option<u64>)>,
    /// Something of MPICH's own.
    pub mpich: Option<u64>,
}

/// News of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProgramNews {
    /// It stands, and wants a debugger: it is to be let go.
    Stands,
    /// It was let go.
    Free(Freed),
    /// It asks for its rank for the first time, and stands there until [`crate::ToShim::GoOn`].
    AsksRank(MpiSymbols),
    /// It was let go for a look, and is to be taken again after that.
    Loose,
    /// It has ended.
    Ended {
        /// As `waitpid(2)` has it.
        status: i32,
        /// It is an MPI program between `MPI_Init` and `MPI_Finalize`.
        before_finalize: bool,
    },
}
