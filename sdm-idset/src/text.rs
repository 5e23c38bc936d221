//! The text form: `0-3,7,12-20/2`.
//!
//! ```text
//! set   = [ part *( "," part ) ]              the empty text is the empty set
//! part  = id | id ("-" | "..") id [ "/" step ]    both ends belong to the range; step >= 1
//! id    = "0" | nonzero *digit                0 ..= ID_MAX
//! ```
//!
//! The syntax is strict: no blanks, signs, leading zeros, empty parts or descending ranges. Parts may be in
//! any order and may overlap, as users type them. A step that does not meet the end of its range stops
//! before the end.
//!
//! The printed text of a set is unique: the pieces of [`IdSet::strides`], with `-`.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use crate::{ID_MAX, IdSet, Stride, TaskId};

/// Maximum length of a text, in bytes.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// Maximum number of ids that the parts of one text may name, with overlaps counted each time. It bounds
/// the parsing time.
const IDS_NAMED_MAX: u64 = 2 * (ID_MAX as u64 + 1);

/// An error in the text of a set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("set of tasks: {what} at column {column}")]
pub struct ParseError {
    /// The fault: the expected text, or the limit that is exceeded.
    pub what: &'static str,
    /// The column of the error; 1 is the first byte.
    pub column: usize,
}

impl FromStr for IdSet {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(ParseError {
                what: "expected at most 1048576 bytes of text",
                column: TEXT_BYTES_MAX + 1,
            });
        }
        let mut set = IdSet::new();
        if text.is_empty() {
            return Ok(set);
        }
        let mut parser = Parser {
            bytes: text.as_bytes(),
            at: 0,
            ids_named: 0,
        };
        loop {
            set.insert_stride(parser.part()?);
            if parser.at == text.len() {
                break;
            }
            // A part ends at the end or at a comma.
            parser.at += 1;
        }
        set.compact();
        Ok(set)
    }
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
    ids_named: u64,
}

impl Parser<'_> {
    /// Parses one part, up to a comma or the end.
    fn part(&mut self) -> Result<Stride, ParseError> {
        let start = self.at;
        let first = self.number()?;
        let (mut last, mut step) = (first, 1);
        let mut expected = "expected ',', '-', '..' or the end";
        if self.eat(b"-") || self.eat(b"..") {
            let at = self.at;
            last = self.number()?;
            if last < first {
                return Err(error("expected a last id not smaller than the first", at));
            }
            expected = "expected ',', '/' or the end";
            if self.eat(b"/") {
                let at = self.at;
                step = self.number()?;
                if step == 0 {
                    return Err(error("expected a step of at least 1", at));
                }
                expected = "expected ',' or the end";
            }
        } else if self.bytes.get(self.at) == Some(&b'/') {
            expected = "expected a range before the step, as in 0-8/2,";
        }
        if !matches!(self.bytes.get(self.at), None | Some(b',')) {
            return Err(error(expected, self.at));
        }
        let stride =
            Stride::new(TaskId(first), TaskId(last), step).expect("first <= last and step >= 1");
        self.ids_named += stride.count();
        if self.ids_named > IDS_NAMED_MAX {
            return Err(error("expected at most 33554432 ids in total", start));
        }
        Ok(stride)
    }

    fn number(&mut self) -> Result<u32, ParseError> {
        let start = self.at;
        let mut value: u32 = 0;
        while let Some(digit @ b'0'..=b'9') = self.bytes.get(self.at) {
            // ID_MAX is far below a tenth of what a u32 holds, so this cannot overflow.
            value = value * 10 + u32::from(digit - b'0');
            if value > ID_MAX {
                return Err(error("expected a number of at most 16777215", start));
            }
            self.at += 1;
        }
        match &self.bytes[start..self.at] {
            [] => Err(error("expected a number", start)),
            [b'0', _, ..] => Err(error("expected a number without leading zeros", start)),
            _ => Ok(value),
        }
    }

    fn eat(&mut self, token: &[u8]) -> bool {
        let found = self.bytes[self.at..].starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }
}

fn error(what: &'static str, at: usize) -> ParseError {
    ParseError {
        what,
        column: at + 1,
    }
}

impl fmt::Display for IdSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, stride) in self.strides().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            stride.fmt(f)?;
        }
        Ok(())
    }
}

/// The text form of a set, truncated at a comma if it is longer than `width_max`: `0,3,7,...`.
#[must_use]
pub fn set_text(set: &IdSet, width_max: usize) -> String {
    let mut bounded = BoundedText {
        text: String::new(),
        bytes_max: width_max.max(8),
    };
    if write!(bounded, "{set}").is_ok() {
        return bounded.text;
    }
    // Room for the dots behind the last whole part.
    let room = bounded.bytes_max - 4;
    let mut text = bounded.text;
    text.truncate(room + 1);
    let end = text.rfind(',').unwrap_or(room);
    text.truncate(end);
    text.push_str(",...");
    text
}

/// A writer that fails beyond a maximum length, which limits the cost of a set with a million parts.
struct BoundedText {
    text: String,
    bytes_max: usize,
}

impl fmt::Write for BoundedText {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.text.push_str(part);
        if self.text.len() > self.bytes_max {
            return Err(fmt::Error);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_set_texts_are_parsed() {
        let check = |text: &str, expect: &str| {
            let set: IdSet = text.parse().unwrap_or_else(|e| panic!("{text:?}: {e}"));
            assert_eq!(set.to_string(), expect, "{text:?}");
            assert_eq!(
                expect.parse(),
                Ok(set),
                "{text:?}: its own text means another set"
            );
        };
        check("", "");
        check("0", "0");
        check("7", "7");
        check("16777215", "16777215");
        check("0-3", "0-3");
        check("0..3", "0-3");
        check("5-5", "5");
        check("5..5", "5");
        check("5-5/3", "5");
        check("0-1", "0-1");
        check("0,1", "0-1");
        check("1,0", "0-1");
        check("0-3,7,12-20/2", "0-3,7,12-20/2");
        check("12-21/2", "12-20/2");
        check("12..20/2", "12-20/2");
        check("0-8/1", "0-8");
        check("0-8/8", "0,8");
        check("0-8/9", "0");
        check("0-8/16777215", "0");
        check("0,2", "0,2");
        check("0,2,4", "0-4/2");
        check("0-4/2,1-3/2", "0-4");
        check("7,7,7", "7");
        check("0-10,5-15", "0-15");
        check("20,10-12,0", "0,10-12,20");
        check("0-3,4-7", "0-7");
        check("0-16777215", "0-16777215");
        check("0-16777215/2", "0-16777214/2");
        check("0-16777215,0-16777215", "0-16777215");
        check("0-65535,65536-131072", "0-131072");
        check("65534-65540/2", "65534-65540/2");
        check("10,100,1000,10000", "10,100,1000,10000");
    }

    #[test]
    fn malformed_set_texts_are_refused() {
        let check = |text: &str, column: usize, what: &str| {
            let error = text
                .parse::<IdSet>()
                .expect_err(&format!("{text:?} was taken"));
            assert_eq!(
                (error.column, error.what),
                (column, what),
                "{text:?}: {error}"
            );
        };
        let number = "expected a number";
        check(",", 1, number);
        check("1,", 3, number);
        check(",1", 1, number);
        check("1,,2", 3, number);
        check("-", 1, number);
        check("-1", 1, number);
        check("1-", 3, number);
        check("1..", 4, number);
        check("1...3", 4, number);
        check("1--3", 3, number);
        check("1-3/", 5, number);
        check("1-3/-2", 5, number);
        check("+1", 1, number);
        check("1-+3", 3, number);
        check(" 1", 1, number);
        check("1, 2", 3, number);
        check("1- 3", 3, number);
        check("all", 1, number);
        check("0x10", 2, "expected ',', '-', '..' or the end");
        check("1 ", 2, "expected ',', '-', '..' or the end");
        check("1 2", 2, "expected ',', '-', '..' or the end");
        check("1.3", 2, "expected ',', '-', '..' or the end");
        check("1;3", 2, "expected ',', '-', '..' or the end");
        check("1é", 2, "expected ',', '-', '..' or the end");
        check("1\0", 2, "expected ',', '-', '..' or the end");
        check("0-3-5", 4, "expected ',', '/' or the end");
        check("0-3 ,5", 4, "expected ',', '/' or the end");
        check("0-3/2/2", 6, "expected ',' or the end");
        check("0-3/2-9", 6, "expected ',' or the end");
        check("5/2", 2, "expected a range before the step, as in 0-8/2,");
        check("3-1", 3, "expected a last id not smaller than the first");
        check("0,9..8", 6, "expected a last id not smaller than the first");
        check("0-8/0", 5, "expected a step of at least 1");
        check("00", 1, "expected a number without leading zeros");
        check("1-03", 3, "expected a number without leading zeros");
        check("1-3/02", 5, "expected a number without leading zeros");
        let above = "expected a number of at most 16777215";
        check("16777216", 1, above);
        check("0-4294967295", 3, above);
        check("0-8/4294967296", 5, above);
        check("4,99999999999999999999999999", 3, above);
        check(
            "0-16777215,0-16777215,0",
            23,
            "expected at most 33554432 ids in total",
        );
    }

    #[test]
    fn errors_name_the_fault_and_column() {
        let error = "0-3,x".parse::<IdSet>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "set of tasks: expected a number at column 5"
        );
    }

    #[test]
    fn long_texts_are_refused() {
        let mut text = "1,".repeat(TEXT_BYTES_MAX / 2 - 1);
        text.push('1');
        assert_eq!(text.parse::<IdSet>(), Ok(IdSet::single(TaskId(1))));
        text.push_str(",1");
        let error = text.parse::<IdSet>().unwrap_err();
        assert_eq!(error.column, TEXT_BYTES_MAX + 1);
    }

    #[test]
    fn limits_equal_those_written_in_set_text_errors() {
        assert_eq!(ID_MAX, 16_777_215);
        assert_eq!(IDS_NAMED_MAX, 33_554_432);
        assert_eq!(TEXT_BYTES_MAX, 1_048_576);
        assert!(u64::from(ID_MAX) * 10 + 9 <= u64::from(u32::MAX));
    }

    #[test]
    fn evenly_spaced_ids_are_printed_as_one_range() {
        let even: IdSet = (0..1_000_000).step_by(2).map(TaskId).collect();
        assert_eq!(even.to_string(), "0-999998/2");
        assert_eq!(IdSet::all_below(1_000_000).to_string(), "0-999999");
    }

    #[test]
    fn truncated_set_text_stays_within_the_width() {
        let set: IdSet = (0..2000).map(|id| TaskId(id * id)).collect();
        for width in 8..200 {
            let text = set_text(&set, width);
            assert!(text.len() <= width && text.ends_with(",..."), "{text}");
        }
    }
}
