//! Entry points for fuzzers. They take any bytes, and panic if a property does not hold.

use crate::{IdSet, SET_BYTES_MAX, TEXT_BYTES_MAX};

/// Maximum memory of a set decoded from `input`, in bytes: twice the size of all ids as bits, and 64 bytes for each
/// byte of input.
fn memory_bytes_max(input: &[u8]) -> u64 {
    (1 << 22) + 64 * input.len() as u64
}

/// Decodes a base (4 bytes, little-endian) and a set. An accepted set must survive a round trip with every
/// base.
pub fn fuzz_set(input: &[u8]) {
    let Some((base, form)) = input.split_first_chunk() else {
        return;
    };
    let base = u32::from_le_bytes(*base);
    let Ok((set, used)) = IdSet::decode(base, form) else {
        return;
    };
    assert!(used <= form.len(), "more bytes used than given");
    assert!(
        set.memory_bytes() <= memory_bytes_max(form),
        "a small form took {} bytes of memory",
        set.memory_bytes()
    );
    for base in [0, base, set.first().map_or(7, |id| id.0)] {
        let mut wire = Vec::new();
        set.encode(base, &mut wire);
        assert!(
            wire.len() <= SET_BYTES_MAX,
            "a form longer than is ever taken"
        );
        assert_eq!(
            wire.len() as u64,
            set.encoded_len(base),
            "a length foretold wrongly"
        );
        let back = IdSet::decode(base, &wire).expect("what was encoded is a set");
        assert_eq!(
            back,
            (set.clone(), wire.len()),
            "another set came back, base {base}"
        );
    }
}

/// Parses a text. An accepted set must survive a round trip through its canonical text. The union of two
/// strides over millions of ids can have a canonical text longer than the parser's limit.
pub fn fuzz_set_text(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let Ok(set) = text.parse::<IdSet>() else {
        return;
    };
    assert!(
        set.memory_bytes() <= memory_bytes_max(input),
        "a small text took {} bytes of memory",
        set.memory_bytes()
    );
    let canonical = set.to_string();
    if canonical.len() > TEXT_BYTES_MAX {
        return;
    }
    let back: IdSet = canonical.parse().expect("what was written is a set");
    assert_eq!(back, set, "another set came back from {canonical}");
    assert_eq!(back.to_string(), canonical, "one set, two texts");
}
