//! GDB/MI: bytes in, at any cut, [`Record`]s out. Never panics, never grows without bound.
//!
//! [`LineReader`] reassembles lines, [`parse_line`] parses one, [`quote`] writes a c-string. Text that is not MI
//! becomes [`Record::Unknown`]: a program or a library may write into gdb's output.

mod escape;
mod inner;
mod line;
mod parse;
mod value;

pub use escape::quote;
pub use line::{LINE_BYTES_MAX, Line, LineReader};
pub use parse::{AsyncKind, Record, ResultClass, StreamKind, parse_line};
pub use value::{Results, Value};

/// Parses arbitrary bytes as MI, as a whole and byte by byte. Both must give the same records.
///
/// # Panics
/// If they do not, which is a bug of this crate.
pub fn fuzz_mi(bytes: &[u8]) {
    let whole = records(&[bytes]);
    let pieces: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(whole, records(&pieces), "records depend on the cuts");
}

fn records(pieces: &[&[u8]]) -> Vec<Record> {
    let mut reader = LineReader::default();
    let mut records = Vec::new();
    for piece in pieces {
        reader.push(piece);
        while let Some(record) = reader.next_record() {
            records.push(record);
        }
    }
    records
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn mi_parser_never_panics_at_any_chunk_size(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            fuzz_mi(&bytes);
        }

        #[test]
        fn mi_parser_never_panics_on_nearly_valid_bytes(text in "[0-9]{0,3}[\\^*=~@&+]?[a-z-]{0,8}(,[a-z]{1,3}=[\\[{\"]{0,3}[a-z\\\\0-9\"]{0,9}[\\]}\"]{0,3}){0,4}\n") {
            fuzz_mi(text.as_bytes());
        }

        #[test]
        fn quoted_text_is_parsed_back(text in any::<String>()) {
            let line = format!("1^done,value={}", quote(text.as_bytes()));
            let Record::Result { results, .. } = parse_line(line.as_bytes()) else {
                panic!("no result: {line}");
            };
            prop_assert_eq!(results.text("value"), Some(text.as_str()));
            let again = parse_line(format!("1^done,{results}").as_bytes());
            prop_assert_eq!(again, parse_line(line.as_bytes()));
        }

        #[test]
        fn mi_records_are_equal_at_any_chunk_size(cuts in proptest::collection::vec(1usize..40, 1..60)) {
            let told = include_str!("../../sdm-gdb/tests/golden/gdb13/segfault_with_its_stack_and_end.mi");
            let said: String = told
                .lines()
                .filter_map(|line| line.strip_prefix("< "))
                .map(|line| format!("{line}\n"))
                .collect();
            let bytes = said.as_bytes();
            let mut pieces = Vec::new();
            let mut rest: &[u8] = bytes;
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (head, tail) = rest.split_at((*cut).min(rest.len()));
                pieces.push(head);
                rest = tail;
            }
            prop_assert_eq!(records(&pieces), records(&[bytes]));
        }
    }
}
