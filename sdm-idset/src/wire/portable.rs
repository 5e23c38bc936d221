//! Validation of the portable Roaring format before any allocation.
//!
//! `roaring` checks its input, but trusts a header of 8 bytes that announces 65 536 containers, and has no
//! largest id. Therefore the header, the keys and the lengths are checked here, and the contents in
//! `roaring`. The encoder uses the same iteration to examine a bitmap.
//!
//! ```text
//! either   12346 u32, containers u32
//! or       12347 u16, containers - 1 u16, one bit for each container: it holds runs
//! then     key u16, ids - 1 u16                  for each container, keys rising; all little-endian
//!          offset u32                            for each container; in the second form only from 4 containers on
//!          the containers: runs u16 and as many pairs of u16; or up to 4096 ids as u16; or 8192 bytes of bits
//! ```

use crate::ID_MAX;

const COOKIE: u32 = 12_346;
const COOKIE_RUNS: u16 = 12_347;
/// Minimum number of containers for which the format with runs has offsets.
const OFFSETS_FROM: usize = 4;
/// Containers with more ids than this are stored as bits.
const ARRAY_IDS_MAX: usize = 4096;
const BITS_BYTES: usize = 8192;
/// Maximum number of runs in a container; more would take more bytes than bits.
const RUNS_MAX: usize = BITS_BYTES / 4;
/// Maximum number of containers for ids up to `ID_MAX`.
const CONTAINERS_MAX: usize = (ID_MAX as usize >> 16) + 1;
/// Maximum length of a bitmap of ids up to `ID_MAX`, in bytes: the head of the form with runs and, for each
/// container, eight bytes and its body.
pub(super) const BYTES_MAX: usize = 4 + CONTAINERS_MAX / 8 + CONTAINERS_MAX * (8 + BITS_BYTES + 2);

const CUT: &str = "the bitmap is cut short";

/// The first byte of each of the two forms.
pub(super) const FIRST_BYTE: u8 = COOKIE.to_le_bytes()[0];
pub(super) const FIRST_BYTE_RUNS: u8 = COOKIE_RUNS.to_le_bytes()[0];

/// A part of a bitmap with one layout.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    /// The smallest id that the part can contain, a multiple of 65 536.
    pub(super) first: u32,
    pub(super) ids: Ids<'a>,
}

/// The layouts of a container. All ids are relative to the first id of the [`Part`].
#[derive(Clone, Copy)]
pub(super) enum Ids<'a> {
    /// One container: a `u16` for each id, ascending.
    Array(&'a [u8]),
    /// One container: pairs of `u16`, the first id of a run and the number of further ids.
    Runs(&'a [u8]),
    /// One container, or several adjacent ones: a bit for each id, the lowest of a byte first.
    Bits(&'a [u8]),
}

/// Iterator over the parts of a bitmap. It ends before a part that is truncated or misplaced.
#[derive(Clone)]
pub(super) struct Parts<'a> {
    heads: &'a [u8],
    runs: Option<&'a [u8]>,
    index: usize,
    least_key: usize,
    rest: &'a [u8],
}

impl<'a> Parts<'a> {
    /// Parses the head of a bitmap, which other data can follow.
    pub(super) fn new(body: &'a [u8]) -> Result<Self, &'static str> {
        let mut rest = body;
        let cookie = u32_of(&mut rest)?;
        let (count, runs) = if cookie == COOKIE {
            let count = usize::try_from(u32_of(&mut rest)?).unwrap_or(usize::MAX);
            (count, None)
        } else if cookie & 0xffff == u32::from(COOKIE_RUNS) {
            let count = (cookie >> 16) as usize + 1;
            let flags = take(&mut rest, count.div_ceil(8))?;
            (count, Some(flags))
        } else {
            return Err("the bitmap begins with an unknown format number");
        };
        if count > CONTAINERS_MAX {
            return Err("the bitmap has too many containers");
        }
        let heads = take(&mut rest, 4 * count)?;
        if runs.is_none() || count >= OFFSETS_FROM {
            take(&mut rest, 4 * count)?;
        }
        Ok(Self {
            heads,
            runs,
            index: 0,
            least_key: 0,
            rest,
        })
    }

    /// True if no value exceeds the largest valid id.
    pub(super) fn are_of_ids(&self) -> bool {
        let last = self.heads.last_chunk::<4>();
        last.is_some_and(|[a, b, ..]| usize::from(u16::from_le_bytes([*a, *b])) < CONTAINERS_MAX)
    }

    /// Number of containers.
    pub(super) fn containers(&self) -> usize {
        self.heads.len() / 4
    }

    /// The next container; `None` at the end.
    #[inline]
    fn container(&mut self) -> Result<Option<Part<'a>>, &'static str> {
        let Some(head) = self.heads.get(4 * self.index..4 * self.index + 4) else {
            return Ok(None);
        };
        let key = usize::from(u16::from_le_bytes([head[0], head[1]]));
        let ids = usize::from(u16::from_le_bytes([head[2], head[3]])) + 1;
        if key >= CONTAINERS_MAX {
            return Err("the bitmap has ids above 16777215");
        }
        if key < self.least_key {
            return Err("the bitmap's containers are out of order");
        }
        let is_runs = |flags: &[u8]| flags[self.index / 8] >> (self.index % 8) & 1 == 1;
        let ids = if self.runs.is_some_and(is_runs) {
            let runs = usize::from(u16_of(&mut self.rest)?);
            if runs > RUNS_MAX {
                return Err("a container of the bitmap has more than 2048 runs");
            }
            Ids::Runs(take(&mut self.rest, 4 * runs)?)
        } else if ids <= ARRAY_IDS_MAX {
            Ids::Array(take(&mut self.rest, 2 * ids)?)
        } else {
            Ids::Bits(take(&mut self.rest, BITS_BYTES)?)
        };
        self.index += 1;
        self.least_key = key + 1;
        let first = u32::try_from(key << 16).expect("below 2^24");
        Ok(Some(Part { first, ids }))
    }

    /// True if the next container has bits and follows the last one without a gap.
    fn goes_on_with_bits(&self) -> bool {
        let Some(head) = self.heads.get(4 * self.index..4 * self.index + 4) else {
            return false;
        };
        let key = usize::from(u16::from_le_bytes([head[0], head[1]]));
        let ids = usize::from(u16::from_le_bytes([head[2], head[3]])) + 1;
        let is_runs = |flags: &[u8]| flags[self.index / 8] >> (self.index % 8) & 1 == 1;
        key == self.least_key && ids > ARRAY_IDS_MAX && !self.runs.is_some_and(is_runs)
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = Part<'a>;

    fn next(&mut self) -> Option<Part<'a>> {
        let all = self.rest;
        let mut part = self.container().ok()??;
        if let Ids::Bits(bits) = &mut part.ids {
            // Their bytes are neighbours, too.
            while self.goes_on_with_bits() && self.container().is_ok_and(|more| more.is_some()) {
                *bits = &all[..all.len() - self.rest.len()];
            }
        }
        Some(part)
    }
}

/// The length of the bitmap at the beginning of `input`, in bytes. Its head, keys and lengths are checked;
/// its contents are not.
pub(super) fn check(input: &[u8]) -> Result<usize, &'static str> {
    let mut parts = Parts::new(input)?;
    while parts.container()?.is_some() {}
    Ok(input.len() - parts.rest.len())
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8], &'static str> {
    let (front, back) = rest.split_at_checked(len).ok_or(CUT)?;
    *rest = back;
    Ok(front)
}

fn u16_of(rest: &mut &[u8]) -> Result<u16, &'static str> {
    let (front, back) = rest.split_first_chunk().ok_or(CUT)?;
    *rest = back;
    Ok(u16::from_le_bytes(*front))
}

fn u32_of(rest: &mut &[u8]) -> Result<u32, &'static str> {
    let (front, back) = rest.split_first_chunk().ok_or(CUT)?;
    *rest = back;
    Ok(u32::from_le_bytes(*front))
}
