//! Breakpoints of a scripted task, and listed ones that never stop it.

use sdm_debug::command::BreakSpec;

/// A breakpoint of the front-end.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub(super) spec: BreakSpec,
    pub(super) enabled: bool,
    /// Number of runs that it has stopped.
    pub(super) hits: u64,
}

/// A watchpoint or catchpoint, at which no scripted run stops.
pub(super) struct Quiet {
    pub(super) number: u32,
    pub(super) enabled: bool,
    pub(super) kind: &'static str,
    pub(super) what: String,
}
