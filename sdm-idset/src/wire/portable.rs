//! A walk over the portable Roaring format, before anything is allocated for it.
//!
//! `roaring` checks what it reads, but believes a head of 8 bytes that announces 65 536 containers, and knows
//! no largest id. So the head, the keys and the lengths are checked here and the contents there.
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
/// With runs, the offsets stand only where there are so many containers.
const OFFSETS_FROM: usize = 4;
/// Containers with more ids than this are bits.
const ARRAY_IDS_MAX: usize = 4096;
const BITS_BYTES: usize = 8192;
/// The most containers that ids up to `ID_MAX` need.
const CONTAINERS_MAX: usize = (ID_MAX as usize >> 16) + 1;

const CUT: &str = "the bitmap is cut short";

/// Checks that `body` is exactly one bitmap as far as its outline tells.
pub(super) fn check(body: &[u8]) -> Result<(), &'static str> {
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
        return Err("the bitmap begins with no known number");
    };
    if count > CONTAINERS_MAX {
        return Err("the bitmap has too many containers");
    }
    let heads = take(&mut rest, 4 * count)?;
    if runs.is_none() || count >= OFFSETS_FROM {
        take(&mut rest, 4 * count)?;
    }
    let mut key_before = None;
    for (index, head) in heads.chunks_exact(4).enumerate() {
        let key = u16::from_le_bytes([head[0], head[1]]);
        let ids = usize::from(u16::from_le_bytes([head[2], head[3]])) + 1;
        if usize::from(key) >= CONTAINERS_MAX {
            return Err("the bitmap has ids above 16777215");
        }
        if key_before.replace(key).is_some_and(|before| before >= key) {
            return Err("the bitmap's containers are out of order");
        }
        if runs.is_some_and(|flags| flags[index / 8] >> (index % 8) & 1 == 1) {
            let runs = usize::from(u16_of(&mut rest)?);
            take(&mut rest, 4 * runs)?;
        } else if ids <= ARRAY_IDS_MAX {
            take(&mut rest, 2 * ids)?;
        } else {
            take(&mut rest, BITS_BYTES)?;
        }
    }
    if rest.is_empty() {
        Ok(())
    } else {
        Err("bytes are left after the bitmap")
    }
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
