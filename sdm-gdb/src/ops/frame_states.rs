//! State of the user's frames: compared between probes to tell a task that makes progress from one that does not.
//!
//! The state of a frame is its variables, its part of the stack and its callee-saved registers. Variables alone are not
//! enough: a program may lack debug information, or keep a loop counter in a register that no variable names. During a
//! call only the function itself changes its part of the stack and these registers.

use sdm_debug::fold::{FoldRules, user_frames};
use sdm_debug::reply::{StackFrame, Variable};
use sdm_debug::{Failure, FailureCode, wire};
use xxhash_rust::xxh3::xxh3_128;

use super::frames::GdbFrame;
use super::stack::ReadThread;
use super::variables;
use crate::gdb::Gdb;
use crate::state::last_probe::FrameState;
use crate::text::variable;

/// Number of frames examined at each end of a deeper stack.
const END_FRAMES: usize = 8;
/// Maximum number of bytes of the stack that are read, from the innermost frame outwards.
const STACK_BYTES_MAX: u64 = 32 << 10;

/// gdb's register number of the stack pointer.
pub(super) const STACK_POINTER: u32 = REGISTERS.0;

/// gdb's numbers of the stack pointer, and of the callee-saved registers.
#[cfg(target_arch = "x86_64")]
const REGISTERS: (u32, &[u32]) = (7, &[1, 6, 12, 13, 14, 15]);
#[cfg(target_arch = "aarch64")]
const REGISTERS: (u32, &[u32]) = (31, &[19, 20, 21, 22, 23, 24, 25, 26, 27, 28]);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const REGISTERS: (u32, &[u32]) = (0, &[]);

/// The states of the user's frames of a thread, outermost first. Of a deep stack only `END_FRAMES` at each end are
/// examined.
pub(super) async fn frame_states(
    gdb: &Gdb,
    thread: &ReadThread,
    fold: &FoldRules,
) -> Result<Vec<FrameState>, Failure> {
    let indices = user_frames(&thread.raw.frames, fold);
    let count = indices.len();
    let outermost_first = indices.into_iter().rev().enumerate();
    let at_an_end = |at: &usize| *at < END_FRAMES || *at + END_FRAMES >= count;
    let mut states = Vec::new();
    let mut kept = Vec::new();
    let mut stacks = Vec::new();
    for (depth, index) in outermost_first.filter(|(depth, _)| at_an_end(depth)) {
        let frame = &thread.frames[index];
        let (stack_pointer, registers) = registers(gdb, thread, frame.level).await?;
        let variables = match frame.python {
            Some(state) => xxh3_128(&wire::encode(&state.variables)),
            None => xxh3_128(&wire::encode(&variables(gdb, thread, frame).await?)),
        };
        let place = StackFrame {
            line: 0,
            ..frame.stack_frame()
        };
        states.push(FrameState {
            depth: u32::try_from(depth).unwrap_or(u32::MAX),
            place,
            // A frame of Python's is not on the stack.
            stack_pointer: frame.python.map(|it| it.address).or(stack_pointer),
            address: frame.address(),
            variables,
            raw: 0,
        });
        kept.push((registers, frame.python));
        stacks.push(stack_pointer);
    }
    let memory = stack_memory(gdb, thread, &stacks).await?;
    for at in 0..states.len() {
        let (registers, python) = &kept[at];
        let begin = stacks[at];
        // Of the functions that one frame of the interpreter runs, the innermost one has its registers and its stack.
        let is_around = python.is_some() && begin.is_some() && stacks.get(at + 1) == Some(&begin);
        let outside = stacks[..at].iter().rev();
        // The part of the stack of a frame ends where its caller's part begins.
        let end = match python {
            Some(_) => outside.copied().find(|it| *it != begin).flatten(),
            None => outside.copied().next().flatten(),
        };
        let own = (registers, memory.between(begin, end));
        let own = Some(own).filter(|_| !is_around);
        let instruction = python.map(|it| it.instruction);
        states[at].raw = xxh3_128(&wire::encode(&(own, instruction)));
    }
    Ok(states)
}

/// The variables of a frame, arguments included.
async fn variables(
    gdb: &Gdb,
    thread: &ReadThread,
    frame: &GdbFrame,
) -> Result<Vec<Variable>, Failure> {
    let (id, level) = (thread.id, frame.level);
    let line = format!("-stack-list-variables --thread {id} --frame {level} --all-values");
    let results = variables::list(gdb, variables::MEMBERS, &line).await?;
    Ok(results.tuples("variables").map(variable).collect())
}

/// The stack pointer in a frame, and the contents of the callee-saved registers. On other processors than x86-64 and
/// AArch64 there are none.
async fn registers(
    gdb: &Gdb,
    thread: &ReadThread,
    level: u32,
) -> Result<(Option<u64>, Vec<String>), Failure> {
    let (stack_pointer, kept) = REGISTERS;
    if kept.is_empty() {
        return Ok((None, Vec::new()));
    }
    let all = read_registers(gdb, thread, level, &[&[stack_pointer], kept].concat()).await?;
    let (first, rest) = match all.split_first() {
        Some((first, rest)) => (address(first), rest.to_vec()),
        None => (None, Vec::new()),
    };
    Ok((first, rest))
}

/// The values of registers in a frame, as hexadecimal text, in the order of gdb's register numbers that are given. Empty
/// if gdb does not provide them.
pub(super) async fn read_registers(
    gdb: &Gdb,
    thread: &ReadThread,
    level: u32,
    numbers: &[u32],
) -> Result<Vec<String>, Failure> {
    let id = thread.id;
    let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
    let numbers = numbers.join(" ");
    let line = format!("-data-list-register-values --thread {id} --frame {level} x {numbers}");
    let results = match gdb.mi(line).await {
        Ok(results) => results,
        Err(failure) if failure.code == FailureCode::Gdb => return Ok(Vec::new()),
        Err(failure) => return Err(failure),
    };
    let values = results.tuples("register-values");
    let values = values.map(|one| one.text("value").unwrap_or_default().to_owned());
    Ok(values.collect())
}

/// Parses a hexadecimal number with `0x`; `None` for other text.
pub(super) fn address(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
}

/// The contents of a part of the stack.
#[derive(Default)]
struct StackBytes {
    begin: u64,
    /// Two hexadecimal digits for each byte, in gdb's notation.
    digits: String,
}

impl StackBytes {
    /// The digits of the memory between two addresses, as far as it was read; empty if an address is unknown.
    fn between(&self, begin: Option<u64>, end: Option<u64>) -> &str {
        let digit = |address: u64| {
            let bytes = usize::try_from(address.saturating_sub(self.begin)).unwrap_or(usize::MAX);
            bytes.saturating_mul(2).min(self.digits.len())
        };
        let (Some(begin), Some(end)) = (begin, end) else {
            return "";
        };
        self.digits.get(digit(begin)..digit(end)).unwrap_or("")
    }
}

async fn stack_memory(
    gdb: &Gdb,
    thread: &ReadThread,
    stacks: &[Option<u64>],
) -> Result<StackBytes, Failure> {
    let begin = stacks.last().copied().flatten();
    let end = stacks.first().copied().flatten();
    let Some((begin, end)) = begin.zip(end).filter(|(begin, end)| begin < end) else {
        return Ok(StackBytes::default());
    };
    let bytes = (end - begin).min(STACK_BYTES_MAX);
    let digits = read_memory(gdb, thread, begin, bytes).await?;
    Ok(StackBytes { begin, digits })
}

/// Memory of the task as hexadecimal digits; empty if it cannot be read.
pub(super) async fn read_memory(
    gdb: &Gdb,
    thread: &ReadThread,
    begin: u64,
    bytes: u64,
) -> Result<String, Failure> {
    let id = thread.id;
    let line = format!("-data-read-memory-bytes --thread {id} {begin:#x} {bytes}");
    match gdb.mi(line).await {
        Ok(results) => {
            let block = results.tuples("memory").next();
            let contents = block.and_then(|block| block.text("contents"));
            Ok(contents.unwrap_or_default().to_owned())
        }
        Err(failure) if failure.code == FailureCode::Gdb => Ok(String::new()),
        Err(failure) => Err(failure),
    }
}
