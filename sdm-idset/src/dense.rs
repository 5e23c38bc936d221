//! The dense form of a set: one bit per id from a first id on, least significant bit first.
//!
//! It is one of the codings of the wire form, and a fast way to build long strides. The first id is a multiple of
//! eight. So the bytes equal those of a bitmap's blocks, and are copied.

use roaring::RoaringBitmap;

use crate::Stride;

/// The first four bytes of the portable Roaring format without runs.
const PORTABLE_COOKIE: u32 = 12_346;
/// Number of bits of a byte.
const BYTE: u32 = 8;

/// The id that the first bit stands for, in a set whose smallest id is `first`: that id rounded down to a multiple of
/// eight.
pub(crate) fn origin(first: u32) -> u32 {
    first & !(BYTE - 1)
}

/// Number of zero bytes at the beginning of the bits, and at their end.
pub(crate) fn zeros(bytes: &[u8]) -> (usize, usize) {
    const MANY: usize = 1024;
    const WORD: usize = 8;
    let (mut begin, mut end) = (0, bytes.len());
    while bytes[begin..].first_chunk() == Some(&[0; MANY]) {
        begin += MANY;
    }
    while bytes[begin..].first_chunk() == Some(&[0; WORD]) {
        begin += WORD;
    }
    begin += bytes[begin..].iter().take_while(|byte| **byte == 0).count();
    while bytes[..end].last_chunk() == Some(&[0; MANY]) {
        end -= MANY;
    }
    while bytes[..end].last_chunk() == Some(&[0; WORD]) {
        end -= WORD;
    }
    let rest = bytes[..end].iter().rev();
    let behind = rest.take_while(|byte| **byte == 0).count();
    (begin, bytes.len() - end + behind)
}

/// The largest id in bits that begin at id `first`; `None` if no bit is set. The result can exceed the largest valid
/// id.
pub(crate) fn last_id(first: u32, bytes: &[u8]) -> Option<u64> {
    let at = (bytes.len() - zeros(bytes).1).checked_sub(1)?;
    Some(u64::from(first) + 8 * at as u64 + u64::from(bytes[at].ilog2()))
}

/// The set of the bits that begin at id `first`. The caller has checked that the largest one is a valid id.
pub(crate) fn read(first: u32, bytes: &[u8]) -> RoaringBitmap {
    // Zero bytes at the end contain no id. They are cut, because they must not reach beyond the last u32.
    RoaringBitmap::from_lsb0_bytes(first, &bytes[..bytes.len() - zeros(bytes).1])
}

/// The ids of a stride with a small step. Its bits repeat every `step` bytes.
pub(crate) fn of_stride(stride: Stride) -> RoaringBitmap {
    /// Number of bytes of a block's bits. A block fits into the processor's first cache.
    const BLOCK_BYTES: usize = 8192;
    let (first, last, step) = (stride.first().0, stride.last().0, stride.step() as usize);
    let begin = origin(first);
    let mut period = vec![0_u8; step];
    for bit in ((first - begin) as usize % step..8 * step).step_by(step) {
        period[bit / 8] |= 1 << (bit % 8);
    }
    let repeated = period.repeat(BLOCK_BYTES / step + 2);
    let mut bits = RoaringBitmap::new();
    let mut block = begin;
    loop {
        let end = (block | 0xffff).min(last);
        let phase = ((block - begin) / BYTE) as usize % step;
        let bytes = &repeated[phase..][..((end - block) / BYTE) as usize + 1];
        bits |= if block == begin || end == last {
            let mut ends = bytes.to_vec();
            if block == begin {
                ends[0] &= u8::MAX << (first - begin);
            }
            if let Some(byte) = ends.last_mut().filter(|_| end == last) {
                *byte &= u8::MAX >> (7 - last % BYTE);
            }
            RoaringBitmap::from_lsb0_bytes(block, &ends)
        } else {
            RoaringBitmap::from_lsb0_bytes(block, bytes)
        };
        if end == last {
            return bits;
        }
        block = end + 1;
    }
}

/// The ids of a stride with a step of 16 or more, which has at most 4096 ids per block, stored as a list.
/// The blocks are in the portable Roaring format.
pub(crate) fn of_sparse_stride(stride: Stride) -> RoaringBitmap {
    let (first, last, step) = (stride.first().0, stride.last().0, stride.step());
    let (mut count, mut heads, mut offsets, mut lists) = (0_u32, vec![], vec![], vec![]);
    let mut next = Some(first);
    while let Some(id) = next.filter(|id| *id <= last) {
        let ids = ((id | 0xffff).min(last) - id) / step + 1;
        count += 1;
        heads.extend_from_slice(&(id >> 16).to_le_bytes()[..2]);
        heads.extend_from_slice(&(ids - 1).to_le_bytes()[..2]);
        let start = lists.len();
        offsets.push(start);
        lists.resize(start + 2 * ids as usize, 0);
        let mut low = id;
        for bytes in lists[start..].as_chunks_mut::<2>().0 {
            let [a, b, ..] = low.to_le_bytes();
            *bytes = [a, b];
            low = low.wrapping_add(step);
        }
        next = (ids - 1)
            .checked_mul(step)
            .and_then(|more| id.checked_add(more)?.checked_add(step));
    }
    let mut bytes = Vec::with_capacity(8 + 8 * offsets.len() + lists.len());
    bytes.extend_from_slice(&PORTABLE_COOKIE.to_le_bytes());
    bytes.extend_from_slice(&count.to_le_bytes());
    let lists_at = 8 + 8 * offsets.len();
    bytes.extend_from_slice(&heads);
    for offset in offsets {
        let offset = u32::try_from(lists_at + offset).unwrap_or(u32::MAX);
        bytes.extend_from_slice(&offset.to_le_bytes());
    }
    bytes.extend_from_slice(&lists);
    RoaringBitmap::deserialize_unchecked_from(&bytes[..]).expect("it was written as it is read")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{IdSet, TaskId};

    #[test]
    fn strides_of_any_step_become_bitmaps() {
        for step in 1..=40 {
            for first in (0..=17).chain([65_530, 1 << 20, u32::MAX - 299 * step]) {
                for count in [1, 2, 3, 9, 300] {
                    let last = first + (count - 1) * step;
                    let stride = Stride::new(TaskId(first), TaskId(last), step).unwrap();
                    let expect: RoaringBitmap = (first..=last).step_by(step as usize).collect();
                    assert_eq!(of_stride(stride), expect, "{stride}");
                    if step >= 16 {
                        assert_eq!(of_sparse_stride(stride), expect, "{stride}");
                    }
                }
            }
        }
    }

    #[test]
    fn bits_are_read_as_ids() {
        for text in ["0", "7-9", "8,10-30,33", "65535-65537,65600-66000/3"] {
            let set: IdSet = text.parse().unwrap();
            let (first, last) = (set.first().unwrap().0, set.last().unwrap().0);
            let begin = origin(first);
            let mut bytes = vec![0; ((last - begin) / BYTE) as usize + 1];
            for id in set.iter().map(|id| id.0 - begin) {
                bytes[(id / BYTE) as usize] |= 1 << (id % BYTE);
            }
            assert_eq!(last_id(origin(first), &bytes), Some(last.into()));
            assert_eq!(IdSet::from_bits(read(origin(first), &bytes)), set);
        }
        assert_eq!(last_id(3, &[0, 0]), None);
    }
}
