//! The purposes of SDM's internal breakpoints, and their record of the program's use of MPI.

/// The purpose of an internal breakpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Internal {
    /// Stops: the program is about to call this function.
    Hold(&'static str),
    /// Counts: `MPI_Init` or `MPI_Init_thread` was called.
    Init,
    /// Counts: `MPI_Finalize` was called.
    Finalize,
    /// Stops, once: the program asks for its rank.
    World,
    /// Stops at `_exit`: a matter of interest only between the two.
    Exit,
    /// Stops: a sanitizer has found an error in the program.
    Found(Finder),
    /// Stops: LeakSanitizer may be about to check for leaks.
    LeakCheck,
    /// Stops: a program that Valgrind runs is about to start a process that is like it.
    Fork,
    /// Stops, once: the same, which has started it.
    Forked,
}

/// State of LeakSanitizer in the program.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Leaks {
    /// The breakpoints that only a program with it needs were inserted.
    pub(crate) watched: bool,
    /// The program's system calls are filtered for it.
    pub(crate) filtered: bool,
}

/// The function that a sanitizer's runtime calls on an error, for debuggers. The first two belong to the public
/// interface of gcc's and clang's runtimes; a program may replace them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finder {
    /// `__sanitizer_report_error_summary`: the report was printed, all but its last line, which is the argument.
    Summary,
    /// `__ubsan_on_report`: UBSan prints no summary unless it is asked to; it has printed nothing yet.
    Undefined,
    /// The function of the library that checks the use of MPI: its argument is what is wrong.
    Check,
}

/// State of MPI in the program.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mpi {
    pub(crate) initialized: bool,
    pub(crate) finalized: bool,
    /// True once its rank in `MPI_COMM_WORLD` was compared with the launcher's.
    pub(crate) world_known: bool,
    /// A person was shown that it is about to abort, and let it.
    pub(crate) aborting: bool,
    /// The breakpoints that only an MPI program needs were inserted.
    pub(crate) watched: bool,
}

impl Mpi {
    /// True between `MPI_Init` and `MPI_Finalize`. If another program has become this one, by a shell's `exec` for
    /// example, `MPI_Finalize` is counted only from the next stop on.
    pub(crate) fn is_open(self) -> bool {
        self.initialized && self.watched && !self.finalized
    }
}
