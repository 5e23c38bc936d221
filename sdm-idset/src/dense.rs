//! The dense form of a set: one bit for each id from a first one on, least significant bit first.
//!
//! It is a coding of the wire and the quick way to long strides. The bits begin at a multiple of eight, so that they lie in the bytes
//! as in the blocks of a bitmap, and are copied to and from them.

use bitvec::prelude::{BitSlice, Lsb0};
use roaring::RoaringBitmap;

use crate::{IdSet, Stride};

/// The bits of a byte.
const BYTE: u32 = 8;

/// The id that the first bit stands for, of a set whose first id is this one.
pub(crate) fn origin(first: u32) -> u32 {
    first & !(BYTE - 1)
}

/// How many bytes the ids `first..=last` take.
pub(crate) fn byte_count(first: u32, last: u32) -> u64 {
    u64::from((last - origin(first)) / BYTE) + 1
}

/// Writes a set as bits from [`origin`] on, over zeros that hold all of it.
pub(crate) fn write(set: &IdSet, origin: u32, bytes: &mut [u8]) {
    let bits = BitSlice::<u8, Lsb0>::from_slice_mut(bytes);
    for range in set.ranges() {
        let (from, to) = (*range.start() - origin, *range.end() - origin);
        if from == to {
            bits.set(from as usize, true);
        } else {
            bits[from as usize..=to as usize].fill(true);
        }
    }
}

/// The largest id that bits from `first` on stand for; none where no bit is set. It may lie beyond what an id can be.
pub(crate) fn last_id(first: u32, bytes: &[u8]) -> Option<u64> {
    let bits = BitSlice::<u8, Lsb0>::from_slice(bytes);
    bits.last_one().map(|bit| u64::from(first) + bit as u64)
}

/// The set that bits from `first` on stand for; the largest of them is known to be an id.
pub(crate) fn read(first: u32, bytes: &[u8]) -> RoaringBitmap {
    // Zero bytes at the end stand for no id, and must not reach beyond the last u32.
    let zeros = bytes.iter().rev().take_while(|byte| **byte == 0).count();
    RoaringBitmap::from_lsb0_bytes(first, &bytes[..bytes.len() - zeros])
}

/// The ids of a stride whose step is small: its bits repeat after as many bytes as the step has bits.
pub(crate) fn of_stride(stride: Stride) -> RoaringBitmap {
    let (first, last, step) = (stride.first().0, stride.last().0, stride.step() as usize);
    let begin = origin(first);
    let (from, to) = ((first - begin) as usize, (last - begin) as usize);
    let mut period = vec![0_u8; step];
    let bits = BitSlice::<u8, Lsb0>::from_slice_mut(&mut period);
    for bit in (from % step..bits.len()).step_by(step) {
        bits.set(bit, true);
    }
    let mut bytes = period.repeat((to / BYTE as usize + 1).div_ceil(step));
    bytes.truncate(to / BYTE as usize + 1);
    let bits = BitSlice::<u8, Lsb0>::from_slice_mut(&mut bytes);
    bits[..from].fill(false);
    bits[to + 1..].fill(false);
    RoaringBitmap::from_lsb0_bytes(begin, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TaskId;

    #[test]
    fn strides_of_any_step_and_place() {
        for step in 1..=40 {
            for first in (0..=17).chain([65_530, 1 << 20]) {
                for count in [1, 2, 3, 9, 300] {
                    let last = first + (count - 1) * step;
                    let stride = Stride::new(TaskId(first), TaskId(last), step).unwrap();
                    let expect: RoaringBitmap = (first..=last).step_by(step as usize).collect();
                    assert_eq!(of_stride(stride), expect, "{stride}");
                }
            }
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for text in ["0", "7-9", "8,10-30,33", "65535-65537,65600-66000/3"] {
            let set: IdSet = text.parse().unwrap();
            let (first, last) = (set.first().unwrap().0, set.last().unwrap().0);
            let mut bytes = vec![0; usize::try_from(byte_count(first, last)).unwrap()];
            write(&set, origin(first), &mut bytes);
            assert_ne!(bytes.last(), Some(&0), "{text}: no byte too many");
            assert_eq!(last_id(origin(first), &bytes), Some(last.into()));
            assert_eq!(IdSet::from_bits(read(origin(first), &bytes)), set);
        }
        assert_eq!(last_id(3, &[0, 0]), None);
    }
}
