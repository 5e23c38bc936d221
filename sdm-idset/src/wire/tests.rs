//! Tests of wire forms: round trips, their lengths, and refusal of invalid bytes.

use super::*;
use crate::ID_MAX;

fn set(text: &str) -> IdSet {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn encoded(set: &IdSet, base: u32) -> Vec<u8> {
    let mut out = Vec::new();
    set.encode(base, &mut out);
    out
}

/// Half of the first million ids, drawn with a fixed seed.
fn random_half() -> IdSet {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    (0..1_000_000)
        .filter(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state & 1 == 1
        })
        .map(TaskId)
        .collect()
}

#[test]
fn sets_encode_to_fixed_bytes() {
    let check = |text: &str, base: u32, bytes: &[u8]| {
        let set = set(text);
        assert_eq!(encoded(&set, base), bytes, "{text} from {base}");
        assert_eq!(set.encoded_len(base), bytes.len() as u64);
        assert_eq!(
            IdSet::decode(base, bytes),
            Ok((set, bytes.len())),
            "{text} from {base}"
        );
    };
    check("", 0, &[0]);
    check("", u32::MAX, &[0]);
    check("0", 0, &[1, 1]);
    check("0-999999", 0, &[1, 0xc0, 0x84, 0x3d]);
    check("1000-1999", 1000, &[1, 0xe8, 0x07]);
    check("1000-1999", 999, &[2, 1, 2, 0xce, 0x0f]);
    check("5", 3, &[2, 1, 4, 0]);
    check("5", 8, &[2, 1, 5, 0]);
    check("0-999998/2", 0, &[2, 1, 0, 0xbf, 0x84, 0x3d, 2]);
    check("0-3,7,12-20/2", 0, &[2, 3, 0, 6, 3, 0, 4, 9, 2]);
    check("3,77", 0, &[2, 2, 6, 0, 73, 0]);
    check("0,2,5", 0, &{
        let mut bytes = vec![0x3a, 0x30, 0, 0, 1, 0, 0, 0, 0, 0, 2, 0];
        bytes.extend([16, 0, 0, 0, 0, 0, 2, 0, 5, 0]);
        bytes
    });
    check("0-3,700,1200-2000/20", 0, &{
        let mut bytes = vec![2, 3, 0, 6, 0xb8, 0x05, 0, 0xf3, 0x03, 81];
        bytes.push(20);
        bytes
    });
    check("16777215", 0, &[2, 1, 0xfe, 0xff, 0xff, 0x0f, 0]);
    check(
        "16777215",
        u32::MAX,
        &[2, 1, 0xff, 0xff, 0xff, 0xef, 0x1f, 0],
    );
}

#[test]
fn uniform_sets_encode_in_few_bytes() {
    assert!(encoded(&IdSet::all_below(1_000_000), 0).len() <= 4);
    assert!(encoded(&IdSet::all_below(1_000_000), 77).len() <= 8);
    assert!(encoded(&set("0-999998/2"), 0).len() <= 12);
    let mut all_but_few = IdSet::all_below(1_000_000);
    all_but_few.subtract(&set("17,500000,999998"));
    assert!(encoded(&all_but_few, 0).len() <= 24);
    let half = encoded(&random_half(), 0).len();
    assert!((120_000..=125_016).contains(&half), "{half} bytes");
}

#[test]
fn every_encoding_is_used_and_decodes() {
    let mut portable = IdSet::new();
    // Two scattered groups far apart: neither few ranges nor one dense range.
    let half = random_half();
    for id in half.iter().take(20_000) {
        portable.insert(id);
        portable.insert(TaskId(id.0 + 16_000_000));
    }
    let cases = [
        (EMPTY, IdSet::new()),
        (
            PORTABLE_RUNS,
            (0..500)
                .map(|at| at * 40)
                .flat_map(|id| id..id + 20)
                .map(TaskId)
                .collect(),
        ),
        (BELOW, IdSet::all_below(1_000_000)),
        (PIECES, set("0-3,700,1200-2000/20")),
        (DENSE, half),
        (PORTABLE, portable),
    ];
    for (tag, set) in cases {
        let mut wire = encoded(&set, 0);
        assert_eq!(wire[0], tag, "{set:?}");
        assert_eq!(wire.len() as u64, set.encoded_len(0));
        let used = wire.len();
        // Bytes after the set belong to the caller.
        wire.extend([0xff; 9]);
        assert_eq!(IdSet::decode(0, &wire), Ok((set.clone(), used)));
        for base in [1, 65_535, 15_999_999, u32::MAX] {
            let wire = encoded(&set, base);
            assert_eq!(IdSet::decode(base, &wire), Ok((set.clone(), wire.len())));
        }
    }
}

#[test]
fn longest_encoding_fits_the_bound() {
    // Random bits without long runs: a bitmap is the shortest form.
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24).to_le_bytes()[0]
    };
    let mut wire = vec![DENSE, 0, 0x80, 0x80, 0x80, 0x01];
    wire.extend((0..(ID_MAX as usize + 1) / 8).map(|_| next() | 0x81));
    assert!(wire.len() <= SET_BYTES_MAX);
    let (set, used) = IdSet::decode(0, &wire).unwrap();
    assert_eq!(used, wire.len());
    assert_eq!(set.last(), Some(TaskId::MAX));
    assert!(encoded(&set, u32::MAX).len() <= SET_BYTES_MAX);
    assert!(set.memory_bytes() < (2 << 20) + (64 << 10));
}

#[test]
fn valid_encodings_that_sdm_never_writes_are_decoded() {
    let check = |base: u32, bytes: &[u8], text: &str| {
        assert_eq!(
            IdSet::decode(base, bytes),
            Ok((set(text), bytes.len())),
            "{bytes:?}"
        );
    };
    check(5, &[2, 0], "");
    check(0, &[2, 2, 0, 6, 0, 6], "0-7");
    check(0, &[2, 1, 0x80, 0x80, 0, 6], "0-3");
    check(0, &[2, 1, 0, 7, 3], "0-9/3");
    check(0, &[2, 1, 8, 1, 100], "4");
    check(0, &[2, 1, 8, 1, 0xff, 0xff, 0xff, 0xff, 0x7f], "4");
    check(7, &[3, 0, 0], "");
    check(7, &[3, 0, 3, 0, 0, 0], "");
    check(7, &[3, 0, 4, 0b10, 0, 0, 0], "8");
    check(ID_MAX, &[3, 0, 3, 1, 0, 0], "16777215");
    check(9, &[0x3a, 0x30, 0, 0, 0, 0, 0, 0], "");
    let runs = [0x3b, 0x30, 0, 0, 1, 0, 0, 3, 0, 1, 0, 5, 0, 3, 0];
    check(9, &runs, "5-8");
}

#[test]
fn malformed_bytes_are_refused() {
    let check = |base: u32, bytes: &[u8], what: &str, offset: usize| {
        let error = DecodeError {
            what: match IdSet::decode(base, bytes) {
                Ok((set, _)) => panic!("{bytes:?} was taken as {set:?}"),
                Err(error) if error.what == what => error.what,
                Err(error) => panic!("{bytes:?}: {error}, not: {what}"),
            },
            offset,
        };
        assert_eq!(IdSet::decode(base, bytes), Err(error), "{bytes:?}");
    };
    let above = "expected ids of at most 16777215";
    check(0, &[], "cut short", 0);
    check(0, &[4], "unknown tag", 0);
    check(0, &[255, 0], "unknown tag", 0);
    check(0, &[1], "cut short", 1);
    check(0, &[1, 0x80], "cut short", 2);
    check(0, &[1, 0], "expected a range of at least 1 task", 1);
    check(0, &[1, 0x81, 0x80, 0x80, 0x08], above, 1);
    check(ID_MAX, &[1, 2], above, 1);
    check(u32::MAX, &[1, 0xff, 0xff, 0xff, 0xff, 0x7f], above, 1);
    let long = "expected a number of at most 5 bytes";
    check(0, &[1, 0x80, 0x80, 0x80, 0x80, 0x80, 0], long, 1);
    check(0, &[2], "cut short", 1);
    check(
        0,
        &[2, 1],
        "the set announces more ranges than its bytes can hold",
        1,
    );
    check(
        0,
        &[2, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0],
        "the set announces more ranges than its bytes can hold",
        1,
    );
    check(0, &[2, 1, 0x80, 0x80], "cut short", 4);
    check(0, &[2, 1, 0, 0x80], "cut short", 4);
    check(0, &[2, 1, 0, 3], "cut short", 4);
    check(0, &[2, 1, 0, 3, 0], "expected a step of at least 1", 4);
    check(0, &[2, 1, 1, 0], "expected an id", 2);
    check(6, &[2, 1, 13, 0], "expected an id", 2);
    check(ID_MAX, &[2, 1, 2, 0], above, 2);
    check(ID_MAX, &[2, 1, 0, 2], above, 3);
    check(0, &[2, 1, 0, 3, 0xff, 0xff, 0xff, 0xff, 0x7f], above, 4);
    check(
        0,
        &[
            2, 1, 0, 0xff, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0x7f,
        ],
        above,
        8,
    );
    check(ID_MAX, &[2, 2, 0, 0, 0, 0], above, 4);
    check(0, &[3], "cut short", 1);
    check(0, &[3, 0, 2, 1], "cut short", 4);
    check(0, &[3, 1, 1, 1], "expected an id", 1);
    check(ID_MAX, &[3, 0, 1, 0b10], above, 3);
    check(
        0,
        &[3, 0, 0xff, 0xff, 0xff, 0x7f],
        "expected at most 2099748 bytes",
        2,
    );
    check(0, &[0x3a], "the bitmap is cut short", 0);
    check(0, &[0x3b, 0x30, 0], "the bitmap is cut short", 0);
}

#[test]
fn malformed_bitmaps_are_refused() {
    let check = |body: &[u8], what: &'static str| {
        let error = DecodeError { what, offset: 0 };
        assert_eq!(IdSet::decode(0, body), Err(error), "{body:?}");
    };
    let cut = "the bitmap is cut short";
    let order = "the bitmap's contents are out of order";
    let number = "the bitmap begins with an unknown format number";
    check(&[0x3a, 2, 3, 4], number);
    check(&[0x3b, 2, 3, 4], number);
    check(&[0x3a, 0x30, 0], cut);
    check(&[0x3a, 0x30, 0, 0, 0], cut);
    check(
        &[0x3a, 0x30, 0, 0, 0, 0, 1, 0],
        "the bitmap has too many containers",
    );
    check(
        &[0x3a, 0x30, 0, 0, 0xff, 0xff, 0xff, 0xff],
        "the bitmap has too many containers",
    );
    check(&[0x3b, 0x30, 0xff, 0xff, 0, 0], cut);
    check(&[0x3a, 0x30, 0, 0, 1, 0, 0, 0], cut);
    // One array of one id, 7; then its key, its offsets and its contents bent.
    let one = [0x3a, 0x30, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 7, 0];
    assert_eq!(portable::check(&one), Ok(one.len()));
    check(&one[..17], cut);
    let mut far = one;
    far[9] = 1;
    check(&far, "the bitmap has ids above 16777215");
    let two = |keys: [u8; 2]| {
        let mut body = vec![0x3a, 0x30, 0, 0, 2, 0, 0, 0];
        body.extend([keys[0], 0, 0, 0, keys[1], 0, 0, 0]);
        body.extend([24, 0, 0, 0, 26, 0, 0, 0, 7, 0, 7, 0]);
        body
    };
    assert!(portable::check(&two([3, 4])).is_ok());
    check(&two([4, 4]), "the bitmap's containers are out of order");
    check(&two([4, 3]), "the bitmap's containers are out of order");
    let array = |ids: [u8; 2]| {
        let mut body = vec![0x3a, 0x30, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 16, 0, 0, 0];
        body.extend([ids[0], 0, ids[1], 0]);
        body
    };
    assert!(portable::check(&array([7, 8])).is_ok());
    check(&array([8, 7]), order);
    check(&array([7, 7]), order);
    let runs = |bytes: &[u8]| {
        let mut body = vec![0x3b, 0x30, 0, 0, 1, 0, 0, 0, 0];
        body.extend(bytes);
        body
    };
    check(&runs(&[0, 0]), order);
    check(
        &runs(&[1, 8]),
        "a container of the bitmap has more than 2048 runs",
    );
    check(&runs(&[1, 0, 5, 0]), cut);
    check(&runs(&[1, 0, 0xff, 0xff, 1, 0]), order);
    check(&runs(&[2, 0, 5, 0, 3, 0, 8, 0, 1, 0]), order);
    check(&runs(&[2, 0, 5, 0, 3, 0, 9, 0, 1, 0]), order);
    check(&runs(&[2, 0, 5, 0, 3, 0, 1, 0, 1, 0]), order);
}

#[test]
fn sets_beyond_the_largest_id_are_refused_not_mangled() {
    for set in [
        IdSet::single(TaskId(ID_MAX + 1)),
        IdSet::from_range(0..=u32::MAX),
        IdSet::from_range(u32::MAX..=u32::MAX),
    ] {
        for base in [0, ID_MAX, u32::MAX] {
            let error = IdSet::decode(base, &encoded(&set, base)).unwrap_err();
            assert_eq!(error.what, "expected ids of at most 16777215");
        }
    }
}

#[test]
fn limits_equal_those_written_in_set_decode_errors() {
    assert_eq!(ID_MAX, 16_777_215);
    assert_eq!(SET_BYTES_MAX, 2_099_748);
}
