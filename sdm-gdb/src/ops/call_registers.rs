//! Recovers the arguments of a call that neither source nor debug information gives, from registers and stack.
//!
//! On x86-64 the first six arguments come in caller-saved registers. A function that still needs them after a call of
//! its own first copies them to callee-saved registers or to its stack frame. These copies are found in its first
//! instructions, up to the first jump or call. A copy is not trusted if a later instruction, up to the current one,
//! writes to the same place. The other arguments are on the stack.

use sdm_debug::Failure;
use sdm_debug::FailureCode;

use super::frame_states::{address, read_memory, read_registers};
use super::frames::GdbFrame;
use super::stack::ReadThread;
use crate::gdb::Gdb;

/// gdb's register number of the stack pointer.
const STACK_POINTER: u32 = 7;
/// The registers of the first arguments, with all names of each.
const ARGUMENTS: [[&str; 2]; 6] = [
    ["%rdi", "%edi"],
    ["%rsi", "%esi"],
    ["%rdx", "%edx"],
    ["%rcx", "%ecx"],
    ["%r8", "%r8d"],
    ["%r9", "%r9d"],
];
/// The callee-saved registers: gdb's number, and all names of each.
const KEPT: [(u32, [&str; 2]); 6] = [
    (1, ["%rbx", "%ebx"]),
    (6, ["%rbp", "%ebp"]),
    (12, ["%r12", "%r12d"]),
    (13, ["%r13", "%r13d"]),
    (14, ["%r14", "%r14d"]),
    (15, ["%r15", "%r15d"]),
];

/// The place to which an argument was copied.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Copy {
    /// The register with this number in gdb.
    Register(u32),
    /// Offset from the stack pointer at the first instruction.
    Slot(i64),
}

/// The places of a call's arguments.
pub(super) struct CallRegisters {
    copies: [Option<Copy>; 6],
    /// Stack pointer of the caller, after the return address was popped.
    caller: u64,
    level: u32,
}

/// Finds the places of the arguments of the frame with this index, from its function's code.
pub(super) async fn kept(
    gdb: &Gdb,
    thread: &ReadThread,
    callee: Option<usize>,
) -> Result<Option<CallRegisters>, Failure> {
    let Some(callee) = callee.and_then(|at| thread.frames.get(at)) else {
        return Ok(None);
    };
    let by_reference = callee
        .raw()
        .function
        .is_some_and(|name| name.ends_with('_'));
    if !cfg!(target_arch = "x86_64") || by_reference {
        return Ok(None);
    }
    // The caller is the program, or a library function without a frame in the list.
    let level = callee.level + 1;
    let pointer = read_registers(gdb, thread, level, &[STACK_POINTER]).await?;
    let Some(pointer) = pointer.first().and_then(|text| address(text)) else {
        return Ok(None);
    };
    let instructions = instructions(gdb, thread, callee).await?;
    let instructions: Vec<&str> = instructions.iter().map(String::as_str).collect();
    Ok(Some(CallRegisters {
        copies: copies(&instructions),
        caller: pointer,
        level: callee.level,
    }))
}

/// The function's instructions in front of its current one, in address order; empty if gdb is too old for the
/// question.
async fn instructions(
    gdb: &Gdb,
    thread: &ReadThread,
    frame: &GdbFrame,
) -> Result<Vec<String>, Failure> {
    let (id, at) = (thread.id, frame.address());
    let line = format!("-data-disassemble --thread {id} -a {at:#x} -- 0");
    let results = match gdb.mi(line).await {
        Ok(results) => results,
        // Older gdbs do not have this option.
        Err(failure) if failure.code == FailureCode::Gdb => return Ok(Vec::new()),
        Err(failure) => return Err(failure),
    };
    let all = results.tuples("asm_insns");
    let before = all.filter(|one| one.address("address").is_some_and(|it| it < at));
    let text = before.filter_map(|one| one.text("inst").map(str::to_owned));
    Ok(text.collect())
}

impl CallRegisters {
    /// The argument with this index from 0, of this size; `None` if it is lost.
    pub(super) async fn argument(
        &self,
        gdb: &Gdb,
        thread: &ReadThread,
        (place, bytes): (usize, u64),
    ) -> Result<Option<i64>, Failure> {
        let at = match self.copies.get(place) {
            Some(Some(Copy::Register(number))) => {
                let value = read_registers(gdb, thread, self.level, &[*number]).await?;
                let value = value.first().and_then(|text| address(text));
                return Ok(value.map(|value| narrowed(value, bytes)));
            }
            Some(Some(Copy::Slot(offset))) => {
                self.caller.wrapping_sub(8).wrapping_add_signed(*offset)
            }
            Some(None) => return Ok(None),
            None => self.caller + 8 * (place - self.copies.len()) as u64,
        };
        let digits = read_memory(gdb, thread, at, 8).await?;
        let value = u64::from_str_radix(&digits, 16).ok().map(u64::swap_bytes);
        Ok(value.map(|value| narrowed(value, bytes)))
    }
}

/// The low `bytes` bytes (4 or 8) of a value, as a signed number.
fn narrowed(value: u64, bytes: u64) -> i64 {
    match bytes {
        // Drops the upper half and extends the sign of the lower half.
        4 => (value << 32).cast_signed() >> 32,
        _ => value.cast_signed(),
    }
}

/// The places to which a function's first instructions copy its first six arguments.
fn copies(instructions: &[&str]) -> [Option<Copy>; 6] {
    let mut copies: [Option<Copy>; 6] = [const { None }; 6];
    let mut texts: [String; 6] = Default::default();
    let mut alive = [true; 6];
    // Offsets of the stack pointer, and of the frame pointer once it is set, from the stack pointer at the first
    // instruction.
    let (mut pointer, mut frame) = (0_i64, None);
    let mut end = 0;
    for (index, instruction) in instructions.iter().enumerate() {
        end = index + 1;
        let (name, operands) = parts(instruction);
        if name.starts_with('j') || name.starts_with("call") || name.starts_with("ret") {
            break;
        }
        match (name, operands[..].as_ref()) {
            ("push", _) => pointer -= 8,
            ("sub", [by, "%rsp"]) => match number(by.trim_start_matches('$')) {
                Some(by) => pointer -= by,
                None => break,
            },
            ("mov", ["%rsp", "%rbp"]) => frame = Some(pointer),
            (name, [from, to]) if name.starts_with("mov") => {
                let which = ARGUMENTS.iter().position(|names| names.contains(from));
                let which = which.filter(|which| alive[*which] && copies[*which].is_none());
                let place = place(to, pointer, frame);
                if let Some((which, place)) = which.zip(place) {
                    copies[which] = Some(place);
                    (*to).clone_into(&mut texts[which]);
                }
                killed(to, &mut alive);
            }
            (_, operands) => {
                if let Some(to) = operands.last() {
                    killed(to, &mut alive);
                }
            }
        }
    }
    for (copy, text) in copies.iter_mut().zip(&texts) {
        if instructions[end..].iter().any(|later| writes(later, text)) {
            *copy = None;
        }
    }
    copies
}

fn killed(to: &str, alive: &mut [bool; 6]) {
    if let Some(which) = ARGUMENTS.iter().position(|names| names.contains(&to)) {
        alive[which] = false;
    }
}

fn place(operand: &str, pointer: i64, frame: Option<i64>) -> Option<Copy> {
    if let Some((number, _)) = KEPT.iter().find(|(_, names)| names.contains(&operand)) {
        return Some(Copy::Register(*number));
    }
    let (offset, base) = operand.strip_suffix(')')?.split_once('(')?;
    let offset = if offset.is_empty() {
        0
    } else {
        number(offset)?
    };
    match base {
        "%rsp" => Some(Copy::Slot(pointer + offset)),
        "%rbp" => Some(Copy::Slot(frame? + offset)),
        _ => None,
    }
}

/// True if an instruction overwrites a register or slot with a copy of an argument. Pops at a function's end restore
/// the caller's registers and do not count.
fn writes(instruction: &str, text: &str) -> bool {
    let (name, operands) = parts(instruction);
    let only_looks = ["cmp", "test", "pop", "push", "call", "j", "nop"];
    if text.is_empty() || only_looks.iter().any(|part| name.starts_with(part)) {
        return false;
    }
    let family = KEPT.iter().find(|(_, names)| names.contains(&text));
    operands.last().is_some_and(|to| match family {
        Some((_, names)) => names.contains(to),
        None => *to == text,
    })
}

/// The name and the operands of an instruction such as `mov    %ecx,0x8(%rsp)`.
fn parts(instruction: &str) -> (&str, Vec<&str>) {
    let (name, rest) = instruction
        .split_once(char::is_whitespace)
        .unwrap_or((instruction, ""));
    let rest = rest.split(['#', '<']).next().unwrap_or_default().trim();
    let mut operands = Vec::new();
    let (mut depth, mut from) = (0, 0);
    for (at, c) in rest.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                operands.push(rest[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    operands.push(rest[from..].trim());
    (name, operands)
}

/// Parses a number in gdb's notation: `0x18`, `-0x18`.
fn number(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    Some(sign * i64::from_str_radix(digits.strip_prefix("0x")?, 16).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argument_register_copies_are_found_before_the_first_jump() {
        let text = [
            "endbr64",
            "push   %r15",
            "mov    %r8d,%r15d",
            "push   %rbx",
            "sub    $0x28,%rsp",
            "mov    %ecx,0xc(%rsp)",
            "mov    %fs:0x28,%rax",
            "mov    %rdi,%rsi",
            "mov    %rsi,%rbx",
            "cmpb   $0x0,(%rax)",
            "jne    0x1234 <MPI_Recv+400>",
            "mov    %r9,%r12",
        ];
        let found = copies(&text);
        assert_eq!(found[4], Some(Copy::Register(15)));
        assert_eq!(found[3], Some(Copy::Slot(0xc - 0x28 - 16)));
        // Register 1 had another value when it was copied, and the copy of register 5 is after the jump.
        assert_eq!((&found[1], &found[5]), (&None, &None));
    }

    #[test]
    fn argument_copies_are_found_with_a_frame_pointer() {
        let text = [
            "push   %rbp",
            "mov    %rsp,%rbp",
            "sub    $0x30,%rsp",
            "mov    %edx,-0x14(%rbp)",
            "mov    %ecx,-0x18(%rbp)",
            "call   0x99",
            "movl   $0x5,-0x18(%rbp)",
        ];
        let found = copies(&text);
        assert_eq!(found[2], Some(Copy::Slot(-8 - 0x14)));
        assert_eq!(found[3], None, "it was written to later");
    }

    #[test]
    fn reused_register_is_no_argument_copy() {
        let text = [
            "mov    %ecx,%r14d",
            "call   0x99",
            "lea    0x8(%rax,%rbx,4),%r14",
        ];
        assert_eq!(copies(&text)[3], None);
        let text = [
            "mov    %ecx,%r14d",
            "call   0x99",
            "cmp    $0x1,%r14d",
            "pop    %r14",
        ];
        assert_eq!(copies(&text)[3], Some(Copy::Register(14)));
    }
}
