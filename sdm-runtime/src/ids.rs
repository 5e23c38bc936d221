//! Ids of the model's elements: one id, or a set of ids as a range set.

use std::fmt;
use std::str::FromStr;

use roaring::RoaringBitmap;

/// Maximum length of a range set's text, in bytes: enough for a million ids without two consecutive ones.
pub const TEXT_BYTES_MAX: usize = 16 << 20;

/// Maximum number of elements of a range set, of all sets of one event together, and of one kind in a manager. A dozen
/// characters can denote four thousand million elements.
pub const IDS_MAX: u64 = 1 << 24;

/// The elements of an event, as in "PTP rm proxy, Element IDs": many numbers, or one string.
///
/// The text of a set is the document's range set notation: `1-7,34,38-41`, which may be unsorted and overlap.
/// [`Display`](fmt::Display) writes it sorted, without overlaps.
#[derive(Clone, Debug, PartialEq)]
pub enum Ids {
    /// Numeric ids.
    Numbers(RoaringBitmap),
    /// The string id of one element.
    Text(String),
}

/// Fault of a text that is not a range set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// The text is longer than [`TEXT_BYTES_MAX`].
    #[error("the range set has {0} characters: the maximum is {TEXT_BYTES_MAX}")]
    TooLong(usize),
    /// The text between two commas is neither a number nor a range.
    #[error("`{0}` is not a range of ids")]
    NoRange(String),
    /// The set has more than [`IDS_MAX`] elements.
    #[error("the range set has more than {IDS_MAX} ids")]
    TooMany,
    /// The first number is above the last.
    #[error("the range {0}-{1} ends before it begins")]
    Backwards(u32, u32),
}

impl Ids {
    /// The id of one element, of either kind; any text is accepted.
    #[must_use]
    pub fn one(text: &str) -> Self {
        match parse_number(text) {
            Some(number) => Self::Numbers(std::iter::once(number).collect()),
            None => Self::Text(text.to_owned()),
        }
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Text(_) => 1,
        }
    }

    /// True if the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl FromStr for Ids {
    type Err = RangeError;

    /// Parses a range set. An empty text, or one that has other characters than digits, commas and hyphens, is a string
    /// id.
    fn from_str(text: &str) -> Result<Self, RangeError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(RangeError::TooLong(text.len()));
        }
        let is_ranges = |byte: u8| byte.is_ascii_digit() || byte == b',' || byte == b'-';
        if text.is_empty() || !text.bytes().all(is_ranges) {
            return Ok(Self::Text(text.to_owned()));
        }
        let mut numbers = RoaringBitmap::new();
        let mut count = 0;
        for range in text.split(',') {
            let no_range = || RangeError::NoRange(range.chars().take(40).collect());
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let first = parse_number(first).ok_or_else(no_range)?;
            let last = parse_number(last).ok_or_else(no_range)?;
            if first > last {
                return Err(RangeError::Backwards(first, last));
            }
            count += u64::from(last - first) + 1;
            if count > IDS_MAX {
                return Err(RangeError::TooMany);
            }
            numbers.insert_range(first..=last);
        }
        Ok(Self::Numbers(numbers))
    }
}

impl fmt::Display for Ids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers = match self {
            Self::Text(text) => return f.write_str(text),
            Self::Numbers(numbers) => numbers,
        };
        let mut separator = "";
        let mut iter = numbers.iter();
        while let Some(range) = iter.next_range() {
            let (first, last) = (range.start(), range.end());
            match first == last {
                true => write!(f, "{separator}{first}")?,
                false => write!(f, "{separator}{first}-{last}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

pub(crate) fn parse_number(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ptp_id_ranges_are_parsed_sorted_and_merged() {
        let set: Ids = "1-7,34-38,41,55-57".parse().unwrap();
        assert_eq!(
            (set.len(), set.to_string()),
            (16, "1-7,34-38,41,55-57".to_owned())
        );
        let overlapping: Ids = "1-10,4-12,3".parse().unwrap();
        assert_eq!(overlapping.to_string(), "1-12");
        let unsorted: Ids = "9,1-2".parse().unwrap();
        assert_eq!(unsorted.to_string(), "1-2,9");
    }

    #[test]
    fn string_ids_are_accepted_and_broken_ranges_refused() {
        assert_eq!("1000_node".parse(), Ok(Ids::Text("1000_node".to_owned())));
        assert_eq!(Ids::one("17").to_string(), "17");
        assert_eq!("7-3".parse::<Ids>(), Err(RangeError::Backwards(7, 3)));
        assert_eq!(
            "1,,2".parse::<Ids>(),
            Err(RangeError::NoRange(String::new()))
        );
        assert!("4294967296".parse::<Ids>().is_err());
        assert_eq!("0-4294967295".parse::<Ids>(), Err(RangeError::TooMany));
    }
}
