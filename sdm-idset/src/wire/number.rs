//! The numbers of the wire form.

/// The most bytes that a number takes: 35 bits, which a zigzag of two `u32` needs.
pub(super) const NUMBER_BYTES_MAX: u32 = 5;

/// `id - base` as a number that is small where the two are near.
pub(super) fn zigzag(base: u32, id: u32) -> u64 {
    let distance = u64::from(id.abs_diff(base));
    if id >= base {
        2 * distance
    } else {
        2 * distance - 1
    }
}

/// The id that `zigzag` made a number of; none where it is below 0.
pub(super) fn unzigzag(base: u32, number: u64) -> Option<u64> {
    let base = u64::from(base);
    if number & 1 == 0 {
        base.checked_add(number >> 1)
    } else {
        base.checked_sub((number >> 1) + 1)
    }
}

/// The bytes of a number: 7 bits in a byte, the lowest first.
pub(super) fn bytes_of(number: u64) -> impl Iterator<Item = u8> {
    std::iter::successors(Some(number), |rest| {
        Some(rest >> 7).filter(|rest| *rest > 0)
    })
    .map(|rest| {
        let more = if rest > 0x7f { 0x80 } else { 0 };
        more | rest.to_le_bytes()[0] & 0x7f
    })
}

/// Appends `number`, below 2^35.
pub(super) fn write_number(number: u64, out: &mut Vec<u8>) {
    out.extend(bytes_of(number));
}
