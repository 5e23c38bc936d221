//! What the program has called where the function's own frame is not there any more.
//!
//! A function that ends by jumping to another one (`sem_wait`, `pthread_join`) leaves that one's frame only, which a library without
//! debug information has no name for. The instruction by which the program has called says whom.

use super::frame::StackFrame;
use crate::space::Space;

/// `call` to so far away.
const CALL: u8 = 0xe8;
/// `call *...(%rip)`.
const CALL_INDIRECT: [u8; 2] = [0xff, 0x15];
/// `jmp *...(%rip)`: what a stub for functions of other files does.
const JUMP_INDIRECT: [u8; 2] = [0xff, 0x25];
/// The bytes of a stub.
const STUB_BYTES: u64 = 16;

/// Names what the program's innermost frame has called, where that has no name by which a user knows it.
pub(super) fn name(space: &Space, frames: &mut [StackFrame]) {
    let is_own = |frame: &StackFrame| frame.function.is_some() && frame.module.is_empty();
    let Some(caller) = frames.iter().position(is_own).filter(|at| *at > 0) else {
        return;
    };
    let callee = &frames[caller - 1];
    let is_internal = |name: &String| name.starts_with("__");
    if callee.module.is_empty() || !callee.function.as_ref().is_none_or(is_internal) {
        return;
    }
    frames[caller - 1].called = before(space, frames[caller].address);
}

/// What the instruction in front of an address calls.
pub(super) fn before(space: &Space, after: u64) -> Option<String> {
    let near = after.checked_sub(5)?;
    if let Some(&[CALL, a, b, c, d]) = space.code(near, 5) {
        let to = after.wrapping_add_signed(i32::from_le_bytes([a, b, c, d]).into());
        let place = space.place(to)?;
        let slot = stub(space, to).and_then(|slot| place.module.symbols().imported(slot));
        let name = slot.or_else(|| place.module.symbols().begins(place.address));
        return name.map(str::to_owned);
    }
    let far = after.checked_sub(6)?;
    if let Some(&[first, second, a, b, c, d]) = space.code(far, 6)
        && [first, second] == CALL_INDIRECT
    {
        let place = space.place(far)?;
        let next = place.address.wrapping_add(6);
        let slot = next.wrapping_add_signed(i32::from_le_bytes([a, b, c, d]).into());
        return place.module.symbols().imported(slot).map(str::to_owned);
    }
    None
}

/// The place, as the file has it, that a stub takes its target from.
fn stub(space: &Space, at: u64) -> Option<u64> {
    let place = space.place(at)?;
    let code = space.code(at, STUB_BYTES)?;
    let jump = code
        .windows(6)
        .position(|it| it.starts_with(&JUMP_INDIRECT))?;
    let distance: [u8; 4] = code.get(jump + 2..jump + 6)?.try_into().ok()?;
    let next = place.address.wrapping_add(jump as u64 + 6);
    Some(next.wrapping_add_signed(i32::from_le_bytes(distance).into()))
}
