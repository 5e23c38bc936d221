//! Encoding and decoding of the numbers in the wire form.

/// Maximum length of a number, in bytes: 35 bits, as a zigzag of two `u32` needs.
pub(super) const NUMBER_BYTES_MAX: u32 = 5;

/// Encodes `id - base` as an unsigned number that is small if both are close.
pub(super) fn zigzag(base: u32, id: u32) -> u64 {
    let distance = u64::from(id.abs_diff(base));
    if id >= base {
        2 * distance
    } else {
        2 * distance - 1
    }
}

/// The id that [`zigzag`] has encoded; `None` if the id would be negative.
pub(super) fn unzigzag(base: u32, number: u64) -> Option<u64> {
    let base = u64::from(base);
    if number & 1 == 0 {
        base.checked_add(number >> 1)
    } else {
        base.checked_sub((number >> 1) + 1)
    }
}

/// Writes a number as LEB128: 7 bits per byte, the lowest first.
#[inline]
pub fn write_number(mut number: u64, mut push: impl FnMut(u8)) {
    while number >= 0x80 {
        push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    push(number.to_le_bytes()[0]);
}
