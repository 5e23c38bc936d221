//! Attribute definitions, and values of attributes: parsing of texts by type, and formatting.

use std::fmt;

use jiff::civil::{Date, DateTime};
use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// Type of an attribute ("Attribute Definition"), with the bounds of its values.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeType {
    /// Texts in order; on the wire the key is repeated for each.
    Array,
    /// `true` or `false`.
    Boolean,
    /// A point in time.
    Date(DateBounds),
    /// A finite floating-point number, with its minimum and maximum.
    Double(f64, f64),
    /// One word of a list, for example a state.
    Enumerated(Vec<String>),
    /// A whole number, with its minimum and maximum. PTP's BIGINTEGER is one.
    Integer(i64, i64),
    /// Any text.
    String,
}

/// Format of a date, and the range of its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DateBounds {
    /// Format that is accepted in addition to ISO 8601, for `strptime`; `None` for no other. PTP's styles are supported
    /// for the locales US and UK, if their texts name no time zone.
    pub format: Option<&'static str>,
    /// The earliest allowed date, in seconds of Unix time.
    pub min: i64,
    /// The latest allowed date, in seconds of Unix time.
    pub max: i64,
}

/// A value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A value of the type ARRAY: its items.
    Array(Vec<String>),
    /// A value of the type BOOLEAN.
    Boolean(bool),
    /// A value of the type DATE, in seconds of Unix time.
    Date(i64),
    /// A value of the type DOUBLE.
    Double(f64),
    /// A value of the type ENUMERATED.
    Enumerated(String),
    /// A value of the type INTEGER.
    Integer(i64),
    /// A value of the type STRING.
    String(String),
}

/// Definition of an attribute: its type, and texts for the user.
#[derive(Clone, Debug, PartialEq)]
pub struct AttributeDefinition {
    /// Id of the attribute: the key in events and commands.
    pub id: String,
    /// Type of the attribute's values.
    pub kind: AttributeType,
    /// A short name for the user.
    pub name: String,
    /// A description for the user.
    pub description: String,
    /// The value of an attribute that is set to an empty text; `None` if such an attribute has no value. STRING and
    /// ARRAY attributes keep the empty text instead.
    pub default: Option<Value>,
    /// True if clients show the attribute to the user.
    pub display: bool,
}

/// Maximum length of one value's text, an array's items together; in bytes.
pub const VALUE_BYTES_MAX: usize = 1 << 20;

/// Fault of a text that is not a value of a type; quoted texts are cut.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// The text cannot be parsed.
    #[error("`{0}` is not a value of type {1}")]
    NoValue(String, &'static str),
    /// The text is not a word of the ENUMERATED type.
    #[error("`{0}` is not one of the values of its type")]
    NoWord(String),
    /// The value is out of bounds.
    #[error("{0} is outside the bounds of the attribute")]
    OutOfBounds(String),
    /// The text is longer than [`VALUE_BYTES_MAX`].
    #[error("the value has {0} bytes: the maximum is {VALUE_BYTES_MAX}")]
    TooLong(usize),
    /// An item of an ARRAY has a zero byte.
    #[error("an item of the array contains a zero byte")]
    ZeroByte,
}

pub(super) fn cut(text: &str) -> String {
    sdm_text::printable(text.chars().take(40).collect::<String>().as_bytes())
}

impl DateBounds {
    /// Dates without bounds, in ISO 8601 and in the format of PTP's styles and locale.
    #[must_use]
    pub fn new(styles: Option<[&str; 3]>) -> Self {
        let format = match styles {
            Some(["SHORT", "SHORT", "US"]) => Some("%m/%d/%y %I:%M %p"),
            Some(["SHORT", "MEDIUM", "US"]) => Some("%m/%d/%y %I:%M:%S %p"),
            Some(["MEDIUM", "SHORT", "US"]) => Some("%b %d, %Y %I:%M %p"),
            Some(["MEDIUM", "MEDIUM", "US"]) => Some("%b %d, %Y %I:%M:%S %p"),
            Some(["LONG", "SHORT", "US"]) => Some("%B %d, %Y %I:%M %p"),
            Some(["LONG", "MEDIUM", "US"]) => Some("%B %d, %Y %I:%M:%S %p"),
            Some(["FULL", "SHORT", "US"]) => Some("%A, %B %d, %Y %I:%M %p"),
            Some(["FULL", "MEDIUM", "US"]) => Some("%A, %B %d, %Y %I:%M:%S %p"),
            Some(["SHORT", "SHORT", "UK"]) => Some("%d/%m/%y %H:%M"),
            Some(["SHORT", "MEDIUM", "UK"]) => Some("%d/%m/%y %H:%M:%S"),
            Some(["MEDIUM", "SHORT", "UK"]) => Some("%d-%b-%Y %H:%M"),
            Some(["MEDIUM", "MEDIUM", "UK"]) => Some("%d-%b-%Y %H:%M:%S"),
            Some(["LONG" | "FULL", "SHORT", "UK"]) => Some("%d %B %Y %H:%M"),
            Some(["LONG" | "FULL", "MEDIUM", "UK"]) => Some("%d %B %Y %H:%M:%S"),
            _ => None,
        };
        Self {
            format,
            min: i64::MIN,
            max: i64::MAX,
        }
    }

    /// Parses a date as seconds of Unix time; `None` if it has neither format. A text without a time zone is in UTC. A
    /// text without a time is at the beginning of its day.
    pub(super) fn read(&self, text: &str) -> Option<i64> {
        let utc = |at: DateTime| at.to_zoned(TimeZone::UTC).ok();
        let seconds = |at: Zoned| at.timestamp().as_second();
        if let Ok(at) = text.parse::<Timestamp>() {
            return Some(at.as_second());
        }
        if let Ok(at) = text.parse::<DateTime>() {
            return utc(at).map(seconds);
        }
        if let Ok(day) = text.parse::<Date>() {
            return utc(day.at(0, 0, 0, 0)).map(seconds);
        }
        let parsed = strtime::parse(self.format?, text).ok()?;
        utc(parsed.to_datetime().ok()?).map(seconds)
    }
}

impl AttributeType {
    /// The type's name in the document and on the wire.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Array => "ARRAY",
            Self::Boolean => "BOOLEAN",
            Self::Date(_) => "DATE",
            Self::Double(..) => "DOUBLE",
            Self::Enumerated(_) => "ENUMERATED",
            Self::Integer(..) => "INTEGER",
            Self::String => "STRING",
        }
    }

    /// Parses a value from its text on the wire.
    ///
    /// # Errors
    /// The text is not a value of the type, is out of the type's bounds, or is too long.
    pub fn read(&self, text: &str) -> Result<Value, ValueError> {
        if text.len() > VALUE_BYTES_MAX {
            return Err(ValueError::TooLong(text.len()));
        }
        let none = || ValueError::NoValue(cut(text), self.word());
        let out = || ValueError::OutOfBounds(cut(text));
        match self {
            Self::Array if text.contains('\0') => Err(ValueError::ZeroByte),
            Self::Array => Ok(Value::Array(vec![text.to_owned()])),
            Self::Boolean => text.parse().map(Value::Boolean).map_err(|_| none()),
            Self::Date(bounds) => {
                let at = bounds.read(text).ok_or_else(none)?;
                let is_within = (bounds.min..=bounds.max).contains(&at);
                is_within.then_some(Value::Date(at)).ok_or_else(out)
            }
            Self::Double(min, max) => {
                let number = text.parse().ok().filter(|number: &f64| number.is_finite());
                let number = number.ok_or_else(none)?;
                let is_within = (*min..=*max).contains(&number);
                is_within.then_some(Value::Double(number)).ok_or_else(out)
            }
            Self::Enumerated(words) => {
                let known = words.iter().find(|word| *word == text);
                let word = known.ok_or_else(|| ValueError::NoWord(cut(text)))?;
                Ok(Value::Enumerated(word.clone()))
            }
            Self::Integer(min, max) => {
                let number = text.parse().map_err(|_| none())?;
                let is_within = (*min..=*max).contains(&number);
                is_within.then_some(Value::Integer(number)).ok_or_else(out)
            }
            Self::String => Ok(Value::String(text.to_owned())),
        }
    }
}

/// The text form of the wire protocol; the items of an array are separated by spaces.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Array(items) => f.write_str(&items.join(" ")),
            Self::Boolean(it) => it.fmt(f),
            Self::Date(at) => match Timestamp::from_second(*at) {
                Ok(at) => at.fmt(f),
                Err(_) => at.fmt(f),
            },
            Self::Double(number) => number.fmt(f),
            Self::Integer(number) => number.fmt(f),
            Self::Enumerated(text) | Self::String(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_parsed_and_formatted_by_type() {
        let words = AttributeType::Enumerated(vec!["A".to_owned(), "B".to_owned()]);
        let date = |styles| AttributeType::Date(DateBounds::new(styles));
        let us = date(Some(["MEDIUM", "SHORT", "US"]));
        let any = AttributeType::Integer(i64::MIN, i64::MAX);
        for (kind, text, shown) in [
            (&AttributeType::Array, "-x y", "-x y"),
            (&AttributeType::Boolean, "true", "true"),
            (&date(None), "2010-09-03T10:00:00Z", "2010-09-03T10:00:00Z"),
            (&date(None), "2010-09-03", "2010-09-03T00:00:00Z"),
            (&date(None), "2010-09-03 12:00:00", "2010-09-03T12:00:00Z"),
            (&us, "Sep 3, 2010 1:05 PM", "2010-09-03T13:05:00Z"),
            (&us, "2010-09-03", "2010-09-03T00:00:00Z"),
            (&AttributeType::Double(0.0, 2.0), "1.50", "1.5"),
            (&words, "B", "B"),
            (&any, "-007", "-7"),
            (&AttributeType::String, "", ""),
        ] {
            let read = kind.read(text).map(|value| value.to_string());
            assert_eq!(read.as_deref(), Ok(shown), "{text}");
        }
        let long = "x".repeat(VALUE_BYTES_MAX + 1);
        for (kind, text) in [
            (&AttributeType::Array, "a\0b"),
            (&AttributeType::Boolean, "yes"),
            (&date(None), "Sep 3, 2010 1:05 PM"),
            (&us, "tomorrow"),
            (&AttributeType::Double(0.0, 2.0), "2.5"),
            (&AttributeType::Double(0.0, 2.0), "NaN"),
            (&words, "C"),
            (&AttributeType::Integer(0, 9), "10"),
            (&any, "9223372036854775808"),
            (&AttributeType::String, &long),
        ] {
            assert!(kind.read(text).is_err(), "{}", cut(text));
        }
    }
}
