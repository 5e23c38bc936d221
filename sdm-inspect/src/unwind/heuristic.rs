//! Unwinds functions without call frame information: by their instructions, and by frame pointers.
//!
//! An uncertain caller is not reported, because a wrong one would hide frames.

use super::code_flow::{SavedPlace, StackLayout, layouts};
use crate::address_space::{CODE_BYTES_MAX, Space};
use crate::frame_rules::{NoStep, Step};
use crate::snapshot::{FRAME_POINTER, RETURN_ADDRESS, Registers, STACK_POINTER, Thread};

/// `mov $15, %rax; syscall`: the code to which a signal handler returns.
const RETURNS_FROM_SIGNAL: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 5];
/// Offset of the interrupted registers from the stack pointer at the return from a signal handler, in bytes.
const INTERRUPTED: u64 = 40;
/// DWARF numbers of the interrupted registers, in their order in memory.
const INTERRUPTED_ORDER: [u16; 17] = [8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16];
/// DWARF's number of the register with a call's result.
const RESULT: u16 = 0;
const RETURN: u8 = 0xc3;
/// Maximum size of a call instruction, in bytes.
const CALL_BYTES_MAX: usize = 7;
const WORD: u64 = 8;
/// Operation code of a call instruction that names a function.
const CALL: u8 = 0xe8;
/// Number of bytes after the program counter that are examined too: the function can jump to them.
const CODE_BYTES_BEHIND: u64 = 4096;
/// `mov $N, %eax; syscall`: the system calls that create threads, `clone3` and `clone`. The code after them has no call
/// frame information, as nothing has called the new thread.
const BEGINS_THREAD: [[u8; 7]; 2] = [
    [0xb8, 0xb3, 1, 0, 0, 0x0f, 5],
    [0xb8, 0x38, 0, 0, 0, 0x0f, 5],
];
/// Bytes from the system call that creates a thread to the place where the new thread leaves the code of both threads:
/// `test`, `jl` of either size, `je`.
const BYTES_OF_BOTH: [u64; 4] = [0, 3, 5, 9];
/// Maximum distance of a frame pointer from the stack pointer, in bytes. The memory between is searched for another
/// return address.
const FRAME_BYTES_MAX: u64 = 64 << 10;

/// Unwinds to the caller of a function, if it is certain that no frame is lost. An exact address can be that of any
/// instruction; any other is a return address.
pub(super) fn step(
    space: &Space,
    thread: &Thread,
    registers: &Registers,
    is_exact: bool,
) -> Result<Step, NoStep> {
    let (Some(pc), Some(sp)) = (registers.pc(), registers.sp()) else {
        return Err(NoStep::Unknown);
    };
    if space.code(pc, RETURNS_FROM_SIGNAL.len() as u64) == Some(&RETURNS_FROM_SIGNAL) {
        return interrupted(thread, sp);
    }
    let at = Unruled {
        space,
        thread,
        registers,
        pc,
        is_exact,
    };
    if is_exact && at.has_just_begun() {
        return Err(NoStep::Bottom);
    }
    // A call through a wild pointer has only stored its return address; `ret` has nothing else left.
    if is_exact && (!space.is_code(pc) || space.code(pc, 1) == Some(&[RETURN])) {
        return at.caller_by(&StackLayout::at_start());
    }
    let lookup = if is_exact { pc } else { pc.wrapping_sub(1) };
    let function = space.function_code(lookup);
    if let Some(step) = function.and_then(|(begin, code)| at.caller_of(begin, code)) {
        return step;
    }
    let frame = registers.get(FRAME_POINTER).unwrap_or(0);
    let of_frame = (frame >= sp).then(|| frame.wrapping_add(WORD));
    let candidates = [is_exact.then_some(sp), of_frame];
    let called = candidates
        .into_iter()
        .flatten()
        .find_map(|at_stack| at.called_by(at_stack));
    match called {
        Some(step) => Ok(step),
        None if frame >= sp => at.caller_by_frame_pointer(sp, frame),
        None => Err(NoStep::Unknown),
    }
}

/// A frame without unwind rules.
struct Unruled<'a> {
    space: &'a Space,
    thread: &'a Thread,
    registers: &'a Registers,
    pc: u64,
    is_exact: bool,
}

impl Unruled<'_> {
    fn word(&self, at: u64) -> Result<u64, NoStep> {
        self.thread.word(at).ok_or(NoStep::Missing(at))
    }

    /// True for a thread that has just been created: the system call that created it returns 0 in it.
    fn has_just_begun(&self) -> bool {
        let is_call = |behind: u64| {
            let call = self.pc.checked_sub(behind + BEGINS_THREAD[0].len() as u64);
            let code = call.and_then(|call| self.space.code(call, BEGINS_THREAD[0].len() as u64));
            BEGINS_THREAD.iter().any(|it| code == Some(it.as_slice()))
        };
        self.registers.get(RESULT) == Some(0) && BYTES_OF_BOTH.into_iter().any(is_call)
    }

    /// The caller by the instructions of the function, which begins at `begin`. `None` if they allow several callers,
    /// or none.
    fn caller_of(&self, begin: u64, code: &[u8]) -> Option<Result<Step, NoStep>> {
        let layouts = layouts(begin, code, self.pc, self.is_exact);
        let mut certain: Option<Step> = None;
        for layout in &layouts {
            let step = match self.caller_by(layout) {
                Ok(step) => step,
                Err(NoStep::Unknown) => continue,
                Err(reason) => return Some(Err(reason)),
            };
            certain = match certain {
                None => Some(step),
                Some(other) => Some(other.if_same(&step)?),
            };
        }
        certain.map(Ok)
    }

    /// The caller in a frame of this layout; fails if no call has stored its return address.
    fn caller_by(&self, layout: &StackLayout) -> Result<Step, NoStep> {
        // The first function of a stack clears the frame pointer, and cannot return: it has not kept its caller's.
        if layout.has_lost_frame_pointer() && self.registers.get(FRAME_POINTER) == Some(0) {
            return Err(NoStep::Bottom);
        }
        let above = |register, distance: Option<i64>| {
            Some(self.registers.get(register)?.wrapping_add_signed(distance?))
        };
        let cfa = above(STACK_POINTER, layout.stack);
        let cfa = cfa.or_else(|| above(FRAME_POINTER, layout.frame));
        let cfa = cfa.ok_or(NoStep::Unknown)?;
        let pc = self.word(cfa.wrapping_sub(WORD))?;
        if !follows_call(self.space, pc) {
            return Err(NoStep::Unknown);
        }
        let mut caller = self.registers.kept();
        for (register, held) in layout.held() {
            match held {
                SavedPlace::InRegister => {}
                SavedPlace::At(distance) => {
                    let at = cfa.wrapping_sub(distance.cast_unsigned());
                    caller.set(register, Some(self.word(at)?));
                }
                SavedPlace::Nowhere => caller.set(register, None),
            }
        }
        caller.set(RETURN_ADDRESS, Some(pc));
        caller.set(STACK_POINTER, Some(cfa));
        Ok(Step {
            caller,
            cfa,
            is_signal: false,
        })
    }

    /// The caller whose return address is stored at `at`. `None` unless its call instruction names a function whose
    /// instructions lead to this frame.
    fn called_by(&self, at: u64) -> Option<Step> {
        let begin = called_before(self.space, self.thread.word(at)?)?;
        let bytes = self.pc.checked_sub(begin)?.checked_add(CODE_BYTES_BEHIND)?;
        let code = self.space.code_from(begin, bytes.min(CODE_BYTES_MAX))?;
        let step = self.caller_of(begin, code)?.ok()?;
        (step.cfa == at.wrapping_add(WORD)).then_some(step)
    }

    /// The caller by the frame pointer, if the function itself has set it. Otherwise `frame` is the caller's frame
    /// pointer, and the function's own return address is further inside.
    fn caller_by_frame_pointer(&self, sp: u64, frame: u64) -> Result<Step, NoStep> {
        if frame - sp > FRAME_BYTES_MAX || !self.space.is_code(self.pc) {
            return Err(NoStep::Unknown);
        }
        for number in 0..(frame - sp).div_ceil(WORD) {
            let at = sp.wrapping_add(number * WORD);
            if can_follow_call(self.space, self.word(at)?) {
                return Err(NoStep::Unknown);
            }
        }
        self.caller_by(&StackLayout::by_frame_pointer())
    }
}

impl Step {
    /// The step that two ways through a function have in common; `None` if they lead to different callers.
    fn if_same(mut self, other: &Self) -> Option<Self> {
        self.caller = self.caller.common(&other.caller);
        (self.cfa == other.cfa).then_some(self)
    }
}

/// True if a call instruction can precede an address: it does, or the code is unknown.
fn can_follow_call(space: &Space, pc: u64) -> bool {
    match space.place(pc) {
        Some(_) => follows_call(space, pc),
        None => space.is_code(pc),
    }
}

/// True if a call instruction precedes an address.
fn follows_call(space: &Space, pc: u64) -> bool {
    let from = pc.saturating_sub(CALL_BYTES_MAX as u64);
    let Some(code) = space.code(from, CALL_BYTES_MAX as u64) else {
        return false;
    };
    let is_direct = matches!(code, [_, _, CALL, ..]);
    // `call *...`: the middle bits of its second byte are 2.
    let is_indirect = (2..=CALL_BYTES_MAX).any(|bytes| {
        let at = code.len() - bytes;
        code[at] == 0xff && code[at + 1] >> 3 & 7 == 2
    });
    is_direct || is_indirect
}

/// Start of the function that the call instruction in front of an address names; `None` if there is no such
/// instruction.
fn called_before(space: &Space, pc: u64) -> Option<u64> {
    let code = space.code(pc.checked_sub(5)?, 5)?;
    let (CALL, distance) = (*code.first()?, code.get(1..)?) else {
        return None;
    };
    let distance = i32::from_le_bytes(distance.try_into().ok()?);
    Some(pc.wrapping_add_signed(distance.into()))
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
