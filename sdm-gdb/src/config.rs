//! Settings that all drivers of a backend share: time limits and the rules by which stacks are folded.

use std::time::Duration;

use sdm_debug::fold::FoldRules;

/// The settings that all drivers of a backend share.
#[derive(Clone, Debug)]
pub struct DriverConfig {
    /// Time that gdb has for one command before it is interrupted.
    pub command_wait: Duration,
    /// Time that gdb has to read a program's symbols.
    pub symbols_wait: Duration,
    /// Time that a task has to stop on SIGINT before it is sent SIGSTOP.
    pub interrupt_wait: Duration,
    /// True if started programs are stopped before an abort, before an exit without `MPI_Finalize`, and at an error
    /// that a sanitizer finds.
    pub internal_breakpoints: bool,
    /// True if the processor has registers that a gdb before 14 does not know.
    pub registers_unknown: bool,
    /// The user's `handle` lines for signals.
    pub handles: Vec<String>,
    /// The frames that belong to a runtime such as MPI.
    pub fold: FoldRules,
}
