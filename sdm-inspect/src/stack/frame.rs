//! Stacks with names, as values.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The stacks of a process's threads at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessStacks {
    /// The name of its program's file.
    pub program: String,
    /// Those of its threads, that of the one that runs `main` first.
    pub threads: Vec<ThreadStack>,
    /// For how long they stood for it, at most.
    pub stood: Duration,
}

/// The stack of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadStack {
    /// The kernel's number of the thread.
    pub thread: i32,
    /// Innermost first.
    pub frames: Vec<StackFrame>,
    /// True where it was followed to its end.
    pub is_whole: bool,
}

/// A function that has been called and has not returned.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StackFrame {
    /// Where it goes on.
    pub address: u64,
    /// The function; absent where it has no name.
    pub function: Option<String>,
    /// What its caller has called, where it has no name that says so.
    pub called: Option<String>,
    /// The source file without its folders, where known.
    pub file: Option<String>,
    /// The line, from 1; 0 where unknown.
    pub line: u32,
    /// The file of its code without its folders, where its source is not known; empty for the program itself.
    pub module: String,
    /// How far from the file's beginning in memory, where it has no name.
    pub offset: Option<u64>,
    /// True where it was put into its caller's code.
    pub is_inlined: bool,
}
