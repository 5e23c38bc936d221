//! Unwinds functions without call frame information: by the patterns of call and return instructions, and by frame
//! pointers.

use crate::address_space::Space;
use crate::frame_rules::{NoStep, Step};
use crate::snapshot::{FRAME_POINTER, RETURN_ADDRESS, Registers, STACK_POINTER, Thread};

/// `mov $15, %rax; syscall`: the code to which a signal handler returns.
const RETURNS_FROM_SIGNAL: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 5];
/// Offset of the interrupted registers above the stack pointer there, in bytes.
const INTERRUPTED: u64 = 40;
/// DWARF numbers of these registers, in that order.
const INTERRUPTED_ORDER: [u16; 17] = [8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16];
/// Instruction with which functions may begin if indirect branches are checked (`endbr64`).
const BRANCH_TARGET: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
const PUSH_FRAME_POINTER: u8 = 0x55;
const RETURN: u8 = 0xc3;
/// Maximum size of a call instruction, in bytes.
const CALL_BYTES_MAX: usize = 7;
const WORD: u64 = 8;

/// Steps out of a function. An innermost frame can be at any instruction of it; outer ones are at a call.
pub(super) fn step(
    space: &Space,
    thread: &Thread,
    registers: &Registers,
    is_innermost: bool,
) -> Result<Step, NoStep> {
    let (Some(pc), Some(sp)) = (registers.pc(), registers.sp()) else {
        return Err(NoStep::Unknown);
    };
    if space.code(pc, RETURNS_FROM_SIGNAL.len() as u64) == Some(&RETURNS_FROM_SIGNAL) {
        return interrupted(thread, sp);
    }
    let at = Guess {
        space,
        thread,
        registers,
    };
    if is_innermost {
        let code = space.code(pc, 5).unwrap_or_default();
        let code = code.strip_prefix(&BRANCH_TARGET).unwrap_or(code);
        let before = pc.checked_sub(1).and_then(|at| space.code(at, 1));
        match (code.first(), before) {
            (Some(&(PUSH_FRAME_POINTER | RETURN)), _) => return at.caller(sp, None),
            (_, Some(&[PUSH_FRAME_POINTER])) => return at.caller(sp.wrapping_add(WORD), Some(sp)),
            _ => {}
        }
    }
    let frame = registers.get(FRAME_POINTER).unwrap_or(0);
    if frame >= sp
        && let Ok(step) = at.caller(frame.wrapping_add(WORD), Some(frame))
    {
        return Ok(step);
    }
    match is_innermost {
        true => at.caller(sp, None),
        false => Err(NoStep::Unknown),
    }
}

struct Guess<'a> {
    space: &'a Space,
    thread: &'a Thread,
    registers: &'a Registers,
}

impl Guess<'_> {
    /// The caller whose return address is stored at `returns_at`, and whose frame pointer is stored at `frame_at` if
    /// it was saved.
    fn caller(&self, returns_at: u64, frame_at: Option<u64>) -> Result<Step, NoStep> {
        let word = |at| self.thread.word(at).ok_or(NoStep::Missing(at));
        let pc = word(returns_at)?;
        if !follows_call(self.space, pc) {
            return Err(NoStep::Unknown);
        }
        let cfa = returns_at.wrapping_add(WORD);
        let mut caller = self.registers.kept();
        if let Some(at) = frame_at {
            caller.set(FRAME_POINTER, Some(word(at)?));
        }
        caller.set(RETURN_ADDRESS, Some(pc));
        caller.set(STACK_POINTER, Some(cfa));
        Ok(Step {
            caller,
            cfa,
            is_signal: false,
        })
    }
}

/// True if a call instruction precedes an address.
fn follows_call(space: &Space, pc: u64) -> bool {
    let from = pc.saturating_sub(CALL_BYTES_MAX as u64);
    let Some(code) = space.code(from, CALL_BYTES_MAX as u64) else {
        return false;
    };
    let is_direct = matches!(code, [_, _, 0xe8, ..]);
    // `call *...`: the middle bits of its second byte are 2.
    let is_indirect = (2..=CALL_BYTES_MAX).any(|bytes| {
        let at = code.len() - bytes;
        code[at] == 0xff && code[at + 1] >> 3 & 7 == 2
    });
    is_direct || is_indirect
}

/// The step to the code that a signal interrupted.
fn interrupted(thread: &Thread, sp: u64) -> Result<Step, NoStep> {
    let mut caller = Registers::default();
    let mut at = sp.wrapping_add(INTERRUPTED);
    for number in INTERRUPTED_ORDER {
        caller.set(number, Some(thread.word(at).ok_or(NoStep::Missing(at))?));
        at = at.wrapping_add(WORD);
    }
    Ok(Step {
        caller,
        cfa: at,
        is_signal: true,
    })
}
