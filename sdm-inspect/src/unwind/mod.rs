//! Unwinds a stack from the innermost function to the outermost, with the bytes of a snapshot.

mod arguments;
mod code_flow;
mod heuristic;

pub use arguments::{
    ARGUMENTS, ArgumentPlace, ArgumentPlaces, FunctionCode, argument_places, never_returns,
};

use crate::address_space::Space;
use crate::frame_rules::NoStep;
use crate::snapshot::{Registers, Thread};

/// Maximum number of functions of one stack, the same as is requested of gdb.
pub(crate) const FRAMES_MAX: usize = 1025;

/// A stack frame: a function that has been called and has not returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Address at which the function continues.
    pub(crate) pc: u64,
    /// Address for lookups, which is inside the call for a return address: the code after a call can be another
    /// function's.
    pub(crate) lookup: u64,
    /// True for the frame at which a signal arrived, which is no function.
    pub(crate) is_signal: bool,
    /// True for a restored tail call: the function has ended in a jump to the one it called.
    pub(crate) is_tail: bool,
    /// The registers in the frame, as far as they are known.
    pub(crate) registers: Registers,
    /// Canonical frame address; 0 if unknown.
    pub(crate) cfa: u64,
}

/// The reason why unwinding ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Unwinding has reached a function that has no caller.
    Whole,
    /// Unwinding failed, or there are more functions than the maximum.
    Cut,
    /// Unwinding needs memory at this address, which was not read.
    Missing(u64),
}

/// The reason for an end without a further step: `Whole` if the last function is known to have no caller, else `Cut`.
fn end(is_bottom: bool) -> End {
    match is_bottom {
        true => End::Whole,
        false => End::Cut,
    }
}

/// The functions of a thread's stack, innermost first, and the reason why unwinding ended.
pub(crate) fn unwind(thread: &Thread, space: &Space) -> (Vec<Frame>, End) {
    let mut frames: Vec<Frame> = Vec::new();
    let mut registers = thread.registers;
    let mut is_exact = true;
    let mut last_cfa = 0;
    let mut is_bottom = false;
    loop {
        let Some(pc) = registers.pc() else {
            return (frames, End::Cut);
        };
        // Nothing has called with this return address. A signal can have interrupted a call through a null pointer.
        if pc == 0 && !is_exact {
            return (frames, End::Whole);
        }
        let is_innermost = frames.is_empty();
        if frames.len() >= FRAMES_MAX {
            return (frames, End::Cut);
        }
        if !is_exact && !space.is_code(pc) {
            return (frames, end(is_bottom));
        }
        // No call has returned to such an address: the program has put it there, as `makecontext` does.
        is_bottom = !is_innermost && !is_exact && space.begins_at(pc);
        let lookup = match is_exact || space.begins_at(pc) {
            true => pc,
            false => pc.wrapping_sub(1),
        };
        frames.push(Frame {
            pc,
            lookup,
            is_signal: false,
            is_tail: false,
            registers,
            cfa: 0,
        });
        let place = space.place(lookup).ok_or(NoStep::Unknown);
        let by_rules = place.and_then(|it| it.module.rules().step(it.address, thread, &registers));
        let step = match by_rules {
            Err(NoStep::Unknown) => heuristic::step(space, thread, &registers, is_exact),
            step => step,
        };
        let step = match step {
            Ok(step) => step,
            Err(NoStep::Bottom) => return (frames, End::Whole),
            Err(NoStep::Unknown) => return (frames, end(is_bottom)),
            Err(NoStep::Missing(address)) => return (frames, End::Missing(address)),
        };
        // The canonical frame addresses must rise, except at a signal handler, which can have a stack of its own.
        if step.cfa <= last_cfa && !step.is_signal {
            return (frames, end(is_bottom));
        }
        if let Some(last) = frames.last_mut() {
            last.is_signal = step.is_signal;
            last.cfa = step.cfa;
        }
        last_cfa = if step.is_signal { 0 } else { step.cfa };
        is_exact = step.is_signal;
        registers = step.caller;
    }
}
