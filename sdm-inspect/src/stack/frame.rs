//! Types for the stacks of a process: threads, and frames with the names of their functions.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::values::PlainVariable;

/// The stacks of a process's threads at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessStacks {
    /// File name of the program, without directories.
    pub program: String,
    /// The stacks of the threads; the one that runs `main` is first.
    pub threads: Vec<ThreadStack>,
    /// Longest time that the threads were stopped for the snapshot.
    pub stood: Duration,
}

/// The stack of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadStack {
    /// The kernel thread id.
    pub thread: i32,
    /// The frames, innermost first.
    pub frames: Vec<StackFrame>,
    /// True if the stack was unwound to its end.
    pub is_whole: bool,
    /// Name of the file with the outermost frame, if the stack ends there because the file was removed or replaced;
    /// otherwise `None`.
    pub removed_file: Option<String>,
}

/// A thread of a process that stays stopped, with the data of its frames.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoppedThread {
    /// File name of the program, without directories.
    pub program: String,
    /// The stack.
    pub stack: ThreadStack,
    /// The data of each frame, in the order of the frames.
    pub details: Vec<FrameDetail>,
}

/// Data of a frame beside its place.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FrameDetail {
    /// Path of the source file; `None` if unknown.
    pub path: Option<String>,
    /// The variables that are plain, and the names of the others.
    pub variables: Vec<PlainVariable>,
    /// The known general registers by their names.
    pub registers: Vec<(String, u64)>,
}

/// A stack frame: a function that has been called and has not returned.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StackFrame {
    /// Address at which the function continues.
    pub address: u64,
    /// The function; `None` if it has no name.
    pub function: Option<String>,
    /// The function named by the caller's call instruction. It is set only for the frame that the program's innermost
    /// frame has called, if that has no name or an internal one; otherwise `None`.
    pub called: Option<String>,
    /// The source file without directories; `None` if unknown.
    pub file: Option<String>,
    /// The line, from 1; 0 if unknown.
    pub line: u32,
    /// File name of the executable or library, without directories, if the source is not known; empty for the program
    /// itself.
    pub module: String,
    /// Offset of the address from the file's first mapping; `None` if the frame has a name.
    pub offset: Option<u64>,
    /// True if the function was inlined into its caller.
    pub is_inlined: bool,
}
