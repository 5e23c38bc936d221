//! Replies that are neither stacks nor values: breakpoints, memory, instructions, source, libraries, signals, variable
//! objects, and memory usage.

use serde::{Deserialize, Serialize};

use super::{BreakpointPlace, Value};

/// Maximum number of bytes of memory that one command reads or writes.
pub const MEMORY_BYTES_MAX: u32 = 1 << 20;
/// Maximum number of bytes of a value that gdb reads. An array of Fortran that is not allocated yet can have any size,
/// and gdb aborts where it gets no memory for that many bytes.
pub const VALUE_BYTES_MAX: u32 = 1 << 28;
/// Maximum number of bytes of an array whose elements a command reads.
pub const ARRAY_BYTES_MAX: u64 = 16 << 20;

/// A breakpoint, watchpoint or catchpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BreakpointView {
    /// The number, and the locations.
    pub place: BreakpointPlace,
    /// Type of the breakpoint in gdb's words: `breakpoint`, `hw watchpoint`, `catchpoint`.
    pub kind: String,
    /// The location, expression or event that the user requested.
    pub what: String,
    /// The condition under which the breakpoint stops; `None` for always.
    pub condition: Option<String>,
    /// False while the breakpoint is disabled.
    pub enabled: bool,
    /// True if the breakpoint is deleted at its first stop.
    pub temporary: bool,
    /// Number of hits, with and without a stop.
    pub hits: u64,
    /// Number of further hits to ignore.
    pub ignore: u32,
}

/// Contiguous bytes of memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MemoryBlock {
    /// The address of the first byte.
    pub start: u64,
    /// The bytes from address `start` on.
    pub bytes: Vec<u8>,
}

/// One instruction of a disassembly, with its address.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Instruction {
    /// Address of the instruction.
    pub address: u64,
    /// The function that contains the instruction; empty if unknown.
    pub function: String,
    /// Offset from the function's start, in bytes.
    pub offset: u32,
    /// The instruction in gdb's assembler notation.
    pub text: String,
    /// True for the selected frame's current instruction.
    pub current: bool,
}

/// Consecutive lines of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SourceText {
    /// The source file as compiled, without directories.
    pub file: String,
    /// Full path; empty if unknown.
    pub path: String,
    /// The number of the first line, from 1.
    pub first: u32,
    /// The lines, without line ends.
    pub lines: Vec<String>,
}

/// A shared library.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Library {
    /// Path of the library on the task's host.
    pub path: String,
    /// True if gdb has read the library's symbols.
    pub symbols: bool,
}

/// The settings of a signal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SignalView {
    /// The signal's name: `SIGUSR1`.
    pub name: String,
    /// True if the task stops at the signal.
    pub stop: bool,
    /// True if the signal is reported.
    pub print: bool,
    /// True if the signal is delivered to the program.
    pub pass: bool,
    /// gdb's description: `User defined signal 1`.
    pub meaning: String,
}

/// A variable object: a value whose children are fetched on demand.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct VarObject {
    /// The name in commands.
    pub name: String,
    /// The name for users: the expression, a member's name, an index.
    pub expression: String,
    /// The type; empty if gdb gives none (`public`, `private`).
    pub type_name: String,
    /// The value at the creation of the variable object.
    pub value: Value,
    /// Number of children; for a container shown by a pretty-printer the number known so far.
    pub children: u32,
    /// True if a pretty-printer has more children.
    pub more: bool,
    /// True if a pretty-printer shows the object.
    pub pretty: bool,
}

/// Memory for gdbs on a task's host, in bytes. Both figures are rounded down to four significant binary digits, so
/// that similar hosts give the same answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Room {
    /// Estimated memory of one gdb for the program.
    pub gdb_bytes: u64,
    /// Memory that is still free.
    pub free_bytes: u64,
    /// The limit that determines the free memory.
    pub limit: MemoryLimit,
}

/// The limit of the memory that processes can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum MemoryLimit {
    /// The host's own memory.
    Host,
    /// The control group of the server.
    Group,
}

/// Memory of a process, from `/proc/PID/status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Resident memory (`VmRSS`), in bytes; shared pages count in each process.
    pub resident_bytes: u64,
    /// Peak resident memory (`VmHWM`), in bytes.
    pub peak_bytes: u64,
}
