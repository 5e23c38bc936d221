//! The specifications of all commands with their help, in the groups of `help`.

mod breakpoints;
mod data;
mod info;
mod inspection;
mod run_control;
mod session;
mod sets;

use super::spec::Spec;
pub(super) use info::words as info_words;

/// A group of commands in `help`.
pub(super) struct Group {
    /// The subject of the group, as `help` shows it.
    pub(super) title: &'static str,
    /// gdb's names for such a class of commands, as in `help CLASS`.
    pub(super) classes: &'static [&'static str],
    /// The commands, by name.
    pub(super) commands: &'static [Spec],
}

/// All groups, in the order of `help`.
pub(super) const GROUPS: &[Group] = &[
    Group {
        title: "Selecting ranks",
        classes: &[],
        commands: sets::COMMANDS,
    },
    Group {
        title: "Running and stopping",
        classes: &["running"],
        commands: run_control::COMMANDS,
    },
    Group {
        title: "Breakpoints",
        classes: &["breakpoints", "tracepoints"],
        commands: breakpoints::COMMANDS,
    },
    Group {
        title: "Stacks and states",
        classes: &["stack", "status"],
        commands: inspection::COMMANDS,
    },
    Group {
        title: "Data",
        classes: &["data"],
        commands: data::COMMANDS,
    },
    Group {
        title: "The session",
        classes: &["support", "files", "user-defined"],
        commands: session::COMMANDS,
    },
];
