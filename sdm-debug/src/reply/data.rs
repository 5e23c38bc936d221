//! Answers about a task that are neither stacks nor values: breakpoints, memory, instructions, source, libraries, signals, variable
//! objects.

use serde::{Deserialize, Serialize};

use super::{BreakpointPlace, Value};

/// The most memory that one command reads or writes, in bytes.
pub const MEMORY_BYTES_MAX: u32 = 1 << 20;

/// A breakpoint, watchpoint or catchpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BreakpointView {
    /// Its number and where it stands.
    pub place: BreakpointPlace,
    /// What it is, in gdb's words: `breakpoint`, `hw watchpoint`, `catchpoint`.
    pub kind: String,
    /// What it stands at, as it was asked for: a location, an expression, an event.
    pub what: String,
    /// The condition that must hold for it to stop; absent for none.
    pub condition: Option<String>,
    /// False where it is switched off.
    pub enabled: bool,
    /// True where it is removed at its first stop.
    pub temporary: bool,
    /// How many times it was met, stops and passes alike.
    pub hits: u64,
    /// How many further hits do not stop the task.
    pub ignore: u32,
}

/// Bytes of memory that lie together.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MemoryBlock {
    /// The address of the first byte.
    pub start: u64,
    /// The bytes from `start` on, as they lie in memory.
    pub bytes: Vec<u8>,
}

/// One instruction of a disassembly, and where it lies.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Instruction {
    /// The address of its first byte.
    pub address: u64,
    /// The function; empty where unknown.
    pub function: String,
    /// Its distance from the function's beginning, in bytes.
    pub offset: u32,
    /// The instruction in assembler, as gdb writes it.
    pub text: String,
    /// True for the one that the selected frame is at.
    pub current: bool,
}

/// Lines of a source file that follow one another.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SourceText {
    /// The source file as compiled, without directories.
    pub file: String,
    /// Its full path; empty where unknown.
    pub path: String,
    /// The number of the first line, from 1.
    pub first: u32,
    /// The lines, without their ends.
    pub lines: Vec<String>,
}

/// A shared library.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Library {
    /// Its path in the task.
    pub path: String,
    /// True where gdb has read its symbols.
    pub symbols: bool,
}

/// What is done at a signal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SignalView {
    /// The signal's name: `SIGUSR1`.
    pub name: String,
    /// The task stops.
    pub stop: bool,
    /// It is said that it came.
    pub print: bool,
    /// The program gets it.
    pub pass: bool,
    /// What gdb says that it means: `User defined signal 1`.
    pub meaning: String,
}

/// A variable object: a value whose children are fetched when they are looked at.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct VarObject {
    /// What it is called in commands.
    pub name: String,
    /// What it is called by a person: the expression, a member's name, an index.
    pub expression: String,
    /// Its type; empty where gdb says none (`public`, `private`).
    pub type_name: String,
    /// Its value when it was made or last updated.
    pub value: Value,
    /// How many children it has; for a container that a pretty printer shows, how many are known.
    pub children: u32,
    /// True where a pretty printer has further children.
    pub more: bool,
    /// True where a pretty printer shows it.
    pub pretty: bool,
}

/// What has become of a variable object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct VarChange {
    /// The name of the object, as in commands.
    pub name: String,
    /// Its value now; absent where it is out of scope.
    pub value: Option<Value>,
    /// Its new type, where that has changed; the children are gone then.
    pub type_name: Option<String>,
    /// How many children it has now, where that has changed.
    pub children: Option<u32>,
}

/// Memory for gdbs on a task's host, in bytes; both figures are rounded down to four binary digits,
/// so that hosts that are alike give the same answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Room {
    /// What one gdb for the program needs for itself, estimated.
    pub gdb_bytes: u64,
    /// What can still be had.
    pub free_bytes: u64,
    /// What bounds the memory that is free.
    pub limit: MemoryLimit,
}

/// What bounds the memory that processes can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum MemoryLimit {
    /// The host's own memory.
    Host,
    /// The control group that the server is in.
    Group,
}

/// How much memory a process holds, as its `/proc/PID/status` counts it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// What is in memory now (`VmRSS`), in bytes; pages that are shared with others count in each.
    pub resident_bytes: u64,
    /// The most that has been in memory (`VmHWM`), in bytes.
    pub peak_bytes: u64,
}
