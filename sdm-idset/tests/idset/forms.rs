//! Tests that text and wire forms survive a round trip, and that no input causes a panic.

use crate::sets::any_set;
use proptest::prelude::*;
use roaring::RoaringBitmap;
use sdm_idset::fuzz::{fuzz_set, fuzz_set_text};
use sdm_idset::{ID_MAX, IdSet, Stride, TaskId};

fn encoded(set: &IdSet, base: u32) -> Vec<u8> {
    let mut wire = Vec::new();
    set.encode(base, &mut wire);
    wire
}

/// Size of a set in the portable Roaring format, in bytes, in its smallest layout.
fn roaring_bytes(set: &IdSet) -> usize {
    let mut bits: RoaringBitmap = set.iter().map(|id| id.0).collect();
    bits.optimize();
    bits.serialized_size()
}

/// Bases below, within and above the ids.
fn base() -> impl Strategy<Value = u32> {
    prop_oneof![
        Just(0),
        0..300_u32,
        65_000..66_000_u32,
        0..=ID_MAX,
        any::<u32>()
    ]
}

/// Decodes damaged bytes. A set that is accepted must be consistent, too.
fn feed(base: u32, wire: &[u8]) {
    let mut input = base.to_le_bytes().to_vec();
    input.extend(wire);
    fuzz_set(&input);
}

proptest! {
    #[test]
    fn set_text_is_parsed_back((_, set) in any_set()) {
        let text = set.to_string();
        prop_assert_eq!(text.parse(), Ok(set), "{}", text);
        fuzz_set_text(text.as_bytes());
    }

    #[test]
    fn set_bytes_decode_to_the_set((_, set) in any_set(), base in base(), tail in prop::collection::vec(any::<u8>(), 0..20)) {
        let mut wire = encoded(&set, base);
        let used = wire.len();
        prop_assert_eq!(set.encoded_len(base), used as u64);
        wire.extend(tail);
        prop_assert_eq!(IdSet::decode(base, &wire), Ok((set.clone(), used)));
        prop_assert!(used <= roaring_bytes(&set).max(10), "one run is short, wherever the base is");
    }

    #[test]
    fn strides_with_exceptions_decode_to_the_set(
        first in 0..200_000_u32,
        step in prop_oneof![1..40_u32, 1..70_000_u32],
        count in prop_oneof![1..300_u32, 1..40_000_u32],
        flaws in prop::collection::vec((0..400_000_u32, any::<bool>()), 0..4),
        base in base(),
    ) {
        let last = first.saturating_add(step.saturating_mul(count - 1)).min(ID_MAX);
        let mut set = IdSet::new();
        set.insert_stride(Stride::new(TaskId(first), TaskId(last), step).unwrap());
        let span = last - first + 1;
        for (at, insert) in flaws {
            let id = TaskId(first + at % span);
            if insert {
                set.insert(id);
            } else {
                set.remove(id);
            }
        }
        let wire = encoded(&set, base);
        prop_assert!(wire.len() <= roaring_bytes(&set));
        prop_assert_eq!(IdSet::decode(base, &wire), Ok((set.clone(), wire.len())));
        set.compact();
        prop_assert_eq!(encoded(&set, base), wire, "a set just changed has the form of a compact one");
    }

    #[test]
    fn encoding_is_appended_to_the_buffer((_, set) in any_set(), base in base(), head in prop::collection::vec(any::<u8>(), 0..20)) {
        let mut out = head.clone();
        set.encode(base, &mut out);
        prop_assert_eq!(&out[..head.len()], &head[..]);
        prop_assert_eq!(&out[head.len()..], &encoded(&set, base)[..]);
    }

    #[test]
    fn truncated_encoding_is_refused((_, set) in any_set(), base in base(), at in any::<prop::sample::Index>()) {
        let wire = encoded(&set, base);
        // A prefix of a self-delimiting form is none itself.
        let cut = &wire[..at.index(wire.len())];
        prop_assert!(IdSet::decode(base, cut).is_err(), "cut to {} of {} bytes", cut.len(), wire.len());
    }

    #[test]
    fn changed_encoding_is_refused_or_a_set(
        (_, set) in any_set(),
        base in base(),
        bends in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut wire = encoded(&set, base);
        for (at, byte) in bends {
            let at = at.index(wire.len());
            wire[at] = byte;
        }
        feed(base, &wire);
    }

    #[test]
    fn arbitrary_bytes_are_decoded_as_a_set_or_refused(base in base(), tag in prop_oneof![0..6_u8, 56..61_u8], body in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut wire = vec![tag];
        wire.extend(body);
        feed(base, &wire);
    }

    #[test]
    fn arbitrary_bitmaps_are_decoded_as_a_set_or_refused(
        runs in any::<bool>(),
        heads in prop::collection::vec((0..260_u16, 0..12_u16), 0..6),
        flags in any::<u8>(),
        body in prop::collection::vec(0..12_u8, 0..120),
    ) {
        let count = u32::try_from(heads.len()).unwrap();
        let mut bitmap = if runs && count > 0 {
            let mut head = (12_347 | (count - 1) << 16).to_le_bytes().to_vec();
            head.push(flags);
            head
        } else {
            let mut head = 12_346_u32.to_le_bytes().to_vec();
            head.extend(count.to_le_bytes());
            head
        };
        for (key, ids) in &heads {
            bitmap.extend(key.to_le_bytes());
            bitmap.extend(ids.to_le_bytes());
        }
        bitmap.extend(body);
        feed(0, &bitmap);
    }

    #[test]
    fn arbitrary_text_is_parsed_as_a_set_or_refused(text in "[0-9]{0,4}([-,/.+ ]{0,2}[0-9]{0,9}){0,8}") {
        fuzz_set_text(text.as_bytes());
    }

    #[test]
    fn set_text_parser_never_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        fuzz_set_text(&bytes);
    }
}

#[test]
fn small_encoding_of_a_large_set_is_bounded() {
    let check = |wire: &[u8], ids: u64, bytes_max: u64| {
        let (set, used) = IdSet::decode(0, wire).unwrap();
        assert_eq!((set.len(), used), (ids, wire.len()), "{wire:?}");
        let bytes = set.memory_bytes();
        assert!(bytes <= bytes_max, "{wire:?} took {bytes} bytes");
    };
    // Every other id up to the largest, all of them, one in each block of the bitmap.
    check(
        &[2, 1, 0, 0xff, 0xff, 0xff, 0x07, 2],
        1 << 23,
        (2 << 20) + (16 << 10),
    );
    check(&[1, 0x80, 0x80, 0x80, 0x08], 1 << 24, 32 << 10);
    check(&[2, 1, 0, 0xff, 0x03, 0x80, 0x80, 0x04], 256, 32 << 10);
}
