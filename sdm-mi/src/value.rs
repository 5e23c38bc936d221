//! The values in GDB/MI records: constants, tuples and lists.

use std::fmt;

use super::quote;

/// A value in a GDB/MI record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `"text"`.
    Text(String),
    /// `{name=value,...}`.
    Tuple(Results),
    /// `[value,...]`.
    List(Vec<Value>),
    /// `[name=value,...]`.
    Named(Results),
}

/// Named values in their original order; names may repeat.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Results(pub Vec<(String, Value)>);

impl fmt::Display for Value {
    /// Writes the value as gdb does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(&quote(text.as_bytes())),
            Self::Tuple(results) => write!(f, "{{{results}}}"),
            Self::Named(results) => write!(f, "[{results}]"),
            Self::List(values) => {
                f.write_str("[")?;
                for (at, value) in values.iter().enumerate() {
                    let comma = if at > 0 { "," } else { "" };
                    write!(f, "{comma}{value}")?;
                }
                f.write_str("]")
            }
        }
    }
}

impl fmt::Display for Results {
    /// Writes the results as gdb does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, value)) in self.0.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(f, "{comma}{name}={value}")?;
        }
        Ok(())
    }
}

impl Value {
    /// The constant; `None` for another kind of value.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The tuple; `None` for another kind of value.
    #[must_use]
    pub fn as_tuple(&self) -> Option<&Results> {
        match self {
            Self::Tuple(results) => Some(results),
            _ => None,
        }
    }

    /// Length of all texts in the value, in bytes.
    fn bytes(&self) -> u64 {
        match self {
            Self::Text(text) => text.len() as u64,
            Self::Tuple(results) | Self::Named(results) => results.bytes(),
            Self::List(values) => values.iter().map(Self::bytes).sum(),
        }
    }

    /// The elements of a list, with or without names; none for other values.
    pub fn items(&self) -> impl Iterator<Item = &Value> {
        let (list, named): (&[Value], &[(String, Value)]) = match self {
            Self::List(list) => (list, &[]),
            Self::Named(results) => (&[], &results.0),
            _ => (&[], &[]),
        };
        list.iter().chain(named.iter().map(|(_, value)| value))
    }
}

impl Results {
    /// Length of all names and texts in the results, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let pairs = self.0.iter();
        pairs
            .map(|(name, value)| name.len() as u64 + value.bytes())
            .sum()
    }

    /// The first value with this name; `None` if there is none.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value)
    }

    /// The first value with this name; `None` if there is none, or if it is no constant.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.value(name)?.as_text()
    }

    /// Like [`Self::text`], parsed as a decimal number; `None` if it is no number.
    #[must_use]
    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.text(name)?.parse().ok()
    }

    /// Like [`Self::text`], parsed as a hexadecimal number (`0x1f`); `None` if it is no such number.
    #[must_use]
    pub fn address(&self, name: &str) -> Option<u64> {
        u64::from_str_radix(self.text(name)?.strip_prefix("0x")?, 16).ok()
    }

    /// The first value with this name; `None` if there is none, or if it is no tuple.
    #[must_use]
    pub fn tuple(&self, name: &str) -> Option<&Results> {
        self.value(name)?.as_tuple()
    }

    /// The elements of the list with this name; empty if there is no such list.
    pub fn items(&self, name: &str) -> impl Iterator<Item = &Value> {
        self.value(name).into_iter().flat_map(Value::items)
    }

    /// The tuples in the list with this name. Other elements are skipped.
    pub fn tuples(&self, name: &str) -> impl Iterator<Item = &Results> {
        self.items(name).filter_map(Value::as_tuple)
    }
}
