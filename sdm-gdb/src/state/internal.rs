//! The purposes of SDM's internal breakpoints, and the record of the program's use of MPI and LeakSanitizer.

/// The purpose of an internal breakpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Internal {
    /// Stops: the program is about to call this function.
    Hold(&'static str),
    /// Stops: an error handler of Open MPI has been given an error that is fatal.
    FatalError,
    /// Stops: MPICH has found an error, which may be fatal.
    MpichError,
    /// Never stops: gdb only counts the calls of `MPI_Init` and `MPI_Init_thread`.
    Init,
    /// Never stops: gdb only counts the calls of `MPI_Finalize`.
    Finalize,
    /// Stops, once: the program is about to call `MPI_Comm_rank`.
    World,
    /// Stops at `_exit`, which matters only between `MPI_Init` and `MPI_Finalize`.
    Exit,
    /// Stops: a sanitizer has found an error in the program.
    Found(Finder),
    /// Stops: LeakSanitizer may be about to check for leaks.
    LeakCheck,
    /// Stops: a program under Valgrind is about to fork.
    Fork,
    /// Stops, once: the program under Valgrind has forked.
    Forked,
}

impl Internal {
    /// True if the program is about to end.
    pub(crate) fn is_end(self) -> bool {
        matches!(self, Self::Hold(_) | Self::Exit | Self::FatalError)
    }
}

/// State of LeakSanitizer in the program.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Leaks {
    /// True once the breakpoints for LeakSanitizer are inserted.
    pub(crate) watched: bool,
    /// True once the seccomp filter is installed that makes the leak check's ptrace appear to succeed.
    pub(crate) filtered: bool,
}

/// The function that a sanitizer's runtime calls on an error, for debuggers. The first two belong to the public
/// interface of gcc's and clang's runtimes; a program may replace them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finder {
    /// `__sanitizer_report_error_summary`: the report is printed, except the last line, which is the argument.
    Summary,
    /// `__ubsan_on_report`: UBSan prints no summary unless asked to; nothing is printed yet.
    Undefined,
    /// The function of the library that checks the use of MPI: its argument is the error.
    Check,
}

/// State of MPI in the program.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mpi {
    pub(crate) initialized: bool,
    pub(crate) finalized: bool,
    /// True once the program's rank in `MPI_COMM_WORLD` was compared with the launcher's.
    pub(crate) world_known: bool,
    /// True once the imminent abort was found. The program is stopped for it only once.
    pub(crate) aborting: bool,
    /// True once the breakpoints for MPI programs are inserted.
    pub(crate) watched: bool,
    /// Index of the pointer to the error handler in MPICH's objects, once it was found.
    pub(crate) handler: Option<usize>,
}

impl Mpi {
    /// True between `MPI_Init` and `MPI_Finalize`. If another program has become this one, by a shell's `exec` for
    /// example, `MPI_Finalize` is counted only from the next stop on.
    pub(crate) fn is_open(self) -> bool {
        self.initialized && self.watched && !self.finalized
    }
}
