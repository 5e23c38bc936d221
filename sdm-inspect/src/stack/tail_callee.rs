//! Names a called function whose own frame is gone.
//!
//! A function that ends in a jump to another one (`sem_wait`, `pthread_join`) leaves only the other's frame. In a
//! library without debug information that frame has no name. The call instruction in the program names the function.

use super::frame::StackFrame;
use crate::address_space::Space;

/// Opcode of a near `call` with a relative target.
pub(super) const CALL: u8 = 0xe8;
/// Start of `call *...(%rip)`, an indirect call.
const CALL_INDIRECT: [u8; 2] = [0xff, 0x15];

/// Sets [`StackFrame::called`] of the frame that the program's innermost frame has called to the name in the call
/// instruction. It is set only if the frame's own name is missing or internal.
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

/// The function that the call instruction in front of an address names; `None` if there is none.
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

/// The slot from which a stub loads its target, as an address of the file; `None` if the address has no stub.
fn stub(space: &Space, at: u64) -> Option<u64> {
    let place = space.place(at)?;
    place.module.image.stub_slot(place.address)
}
