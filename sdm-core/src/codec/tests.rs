//! Tests of the codec: decoded values equal the encoded ones, and any bytes are either decoded or rejected, without a
//! panic.

use proptest::prelude::*;

use super::*;

fn varint(value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    Writer::new(&mut out).u64(value);
    out
}

#[test]
fn varint_has_one_encoding() {
    #[track_caller]
    fn check(bytes: &[u8], expect: Result<u64, &str>) {
        let buf = Bytes::copy_from_slice(bytes);
        let got = Reader::new(&buf).u64("n").map_err(|e| e.to_string());
        assert_eq!(got, expect.map_err(str::to_owned));
    }
    check(&[0], Ok(0));
    check(&[0x7f], Ok(127));
    check(&[0x80, 1], Ok(128));
    check(&varint(u64::MAX), Ok(u64::MAX));
    check(
        &[],
        Err("received data end within n, which begins at byte 0"),
    );
    check(
        &[0x80],
        Err("received data end within n, which begins at byte 0"),
    );
    check(&[0x80, 0], Err("received n at byte 0 is invalid"));
    check(&[0xff; 10], Err("received n at byte 0 is invalid"));
    check(&[0xff; 11], Err("received n at byte 0 is invalid"));
}

#[test]
fn lengths_are_checked_before_bytes_are_read() {
    let mut bytes = varint(5);
    bytes.extend_from_slice(b"abcd");
    let buf = Bytes::from(bytes);
    let missing = DecodeError::MissingData {
        what: "x",
        offset: 0,
    };
    assert_eq!(Reader::new(&buf).slice("x", 9), Err(missing));
    let large = DecodeError::TooLarge {
        what: "x",
        offset: 0,
        max: 4,
    };
    assert_eq!(Reader::new(&buf).bytes("x", 4), Err(large));
}

#[test]
fn memory_of_all_sets_in_a_message_is_bounded() {
    // Every other id: a few bytes that encode many ids.
    let wide: IdSet = "0-99998/2".parse().unwrap();
    let mut bytes = Vec::new();
    for _ in 0..4 {
        Writer::new(&mut bytes).set(&wide);
    }
    assert!(bytes.len() < 80, "{} bytes", bytes.len());
    let offset = bytes.len() / 4 * 3;
    let buf = Bytes::from(bytes);
    let mut reader = Reader::new(&buf);
    reader.sets_bytes_left = 3 * wide.memory_bytes();
    for _ in 0..3 {
        assert_eq!(reader.set("tasks").as_ref(), Ok(&wide));
    }
    let error = DecodeError::TooLarge {
        what: "tasks",
        offset,
        max: SETS_BYTES_MAX,
    };
    assert_eq!(reader.set("tasks"), Err(error));
}

#[test]
fn value_above_its_bound_is_not_encoded() {
    let mut out = Vec::new();
    let mut w = Writer::new(&mut out);
    w.bytes("name", b"12345", 4);
    w.bytes("other", b"123456", 4);
    let error = w.finish().unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot send name: it exceeds the maximum of 4"
    );
}

#[test]
fn long_text_is_cut_between_characters() {
    let mut out = Vec::new();
    Writer::new(&mut out).truncated_text("aäb", 2);
    assert_eq!(out, b"\x01a");
}

proptest! {
    #[test]
    fn encoded_numbers_decode_to_the_same_value(value: u64) {
        let buf = Bytes::from(varint(value));
        let mut r = Reader::new(&buf);
        prop_assert_eq!(r.u64("n"), Ok(value));
        prop_assert_eq!(r.finish("n"), Ok(()));
    }

    #[test]
    fn decoded_payload_shares_the_input_buffer_without_copy(prefix in 0..40_usize, payload: Vec<u8>) {
        let mut out = vec![0; prefix];
        Writer::new(&mut out).bytes("p", &payload, 1 << 20);
        let buf = Bytes::from(out);
        let mut r = Reader::new(&buf);
        for _ in 0..prefix {
            r.u8("pad")?;
        }
        let got = r.bytes("p", 1 << 20)?;
        prop_assert_eq!(&got[..], &payload[..]);
        prop_assert!(payload.is_empty() || buf.as_ptr_range().contains(&got.as_ptr()));
    }
}
