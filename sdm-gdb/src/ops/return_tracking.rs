//! Has the kernel record the returns of a thread's calls between two probes.

use std::rc::Rc;

use sdm_debug::fold::{FoldRules, innermost_user_frame};
use sdm_inspect::return_counter::Arrival;
use sdm_mpi::mpi_name;

use super::frames::GdbFrame;
use super::threads::ReadThread;
use crate::gdb::Gdb;
use crate::state::last_probe::FrameState;
use crate::state::return_tracking::Returns;

/// Number of outermost functions whose return is tracked: a processor has four debug registers, and one is for the
/// MPI call.
const FOLLOWED: usize = 3;

/// Tracks the MPI call of a thread, and the user's outermost functions in `states`.
pub(super) fn follow(
    gdb: &Gdb,
    thread: &ReadThread,
    states: &[FrameState],
    fold: &FoldRules,
) -> Returns {
    let call = call(thread, fold);
    let noted = call.map(|call| note(gdb, thread, call));
    let mut returns = Returns {
        refused: matches!(noted, Some(None)),
        call: noted.flatten(),
        ..Returns::default()
    };
    // The innermost function is in no call: control is about to reach its address anyway. The same holds for
    // functions inlined there.
    let here = thread.frames.first().map(GdbFrame::address);
    let callers = states.split_last().map_or(&[][..], |(_, callers)| callers);
    for address in callers.iter().map(|frame| frame.address) {
        let known = returns.frames.iter().any(|(known, _)| *known == address);
        if returns.frames.len() == FOLLOWED {
            break;
        }
        if !known && address > 0 && Some(address) != here {
            let arrival = note(gdb, thread, address);
            returns
                .frames
                .extend(arrival.map(|arrival| (address, arrival)));
        }
    }
    returns
}

/// Tracks only the MPI call; `None` if the thread is in none, or if the kernel refuses. System calls are not tracked:
/// an inspection makes some of them return early.
pub(super) fn follow_call(
    gdb: &Gdb,
    thread: &ReadThread,
    fold: &FoldRules,
) -> Option<Rc<dyn Arrival>> {
    note(gdb, thread, call(thread, fold)?)
}

/// Return address of the MPI call that a thread is in; `None` if it is in none.
fn call(thread: &ReadThread, fold: &FoldRules) -> Option<u64> {
    let user = innermost_user_frame(&thread.raw.frames, fold)?;
    let is_call = |frame: &GdbFrame| frame.function().and_then(mpi_name).is_some();
    let inside = thread.frames.get(..user.index)?;
    let call = inside.iter().rev().find(|frame| is_call(frame))?;
    // In a Python program the user's functions are Python's, and the function that called MPI is in an extension
    // module. An operation of Python itself, such as PyTorch's, waits in the module function that the innermost
    // Python function has called.
    let natives = || thread.frames.iter().filter(|frame| frame.is_native());
    let caller = match call.is_native() {
        true => natives().find(|frame| frame.level == call.level + 1)?,
        false => {
            let inside = thread.frames.iter().take_while(|frame| frame.is_native());
            inside.last().filter(|frame| frame.level > 0)?
        }
    };
    Some(caller.address())
}

fn note(gdb: &Gdb, thread: &ReadThread, address: u64) -> Option<Rc<dyn Arrival>> {
    gdb.host().arrival(thread.kernel_id?, address)
}
