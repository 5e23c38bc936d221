//! The text form: `0-3,7,12-20/2`.

use std::fmt;
use std::str::FromStr;

use crate::{IdSet, TaskId};

/// The longest text that is taken, in bytes.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// Why a text is no set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at column {column}")]
pub struct ParseError {
    /// What is wrong.
    pub what: &'static str,
    /// Where: 1 = the first byte.
    pub column: usize,
}

impl FromStr for IdSet {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut set = IdSet::new();
        for part in text.split(',') {
            let bad = ParseError {
                what: "expected a number",
                column: 1,
            };
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            let low: u32 = low.parse().map_err(|_| bad.clone())?;
            let high: u32 = high.parse().map_err(|_| bad)?;
            set.insert_range(low..=high);
        }
        Ok(set)
    }
}

impl fmt::Display for IdSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for range in self.ranges() {
            if !first {
                f.write_str(",")?;
            }
            first = false;
            if range.start() == range.end() {
                write!(f, "{}", TaskId(*range.start()))?;
            } else {
                write!(f, "{}-{}", range.start(), range.end())?;
            }
        }
        Ok(())
    }
}
