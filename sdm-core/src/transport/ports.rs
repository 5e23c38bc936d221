//! Ranges of TCP ports at which servers may listen.

use std::fmt;
use std::str::FromStr;

use crate::limits::PORT_TRIES_MAX;

/// A first port, and the last port if there is a limit: `7000`, `7000-7015`, `7000-7000`.
///
/// 0, the default, leaves the choice to the system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortRange {
    first: u16,
    last: Option<u16>,
}

impl PortRange {
    /// The port range from `first` on, without a last port.
    #[must_use]
    pub fn from(first: u16) -> Self {
        Self { first, last: None }
    }

    /// The first port; 0 if the system chooses.
    #[must_use]
    pub fn first(self) -> u16 {
        self.first
    }

    /// True if the system chooses the port.
    #[must_use]
    pub fn is_any(self) -> bool {
        self.first == 0
    }

    /// The same range with another first port.
    #[must_use]
    pub fn begun_at(self, first: u16) -> Self {
        Self { first, ..self }
    }

    /// The port that is `index` above the first one; `None` outside of the range.
    #[must_use]
    pub fn at(self, index: u32) -> Option<u16> {
        let port = self.first.checked_add(u16::try_from(index).ok()?)?;
        (port <= self.last.unwrap_or(u16::MAX)).then_some(port)
    }

    /// The ports at which the `index`th server of a host searches a free one: the first port, and the number of ports
    /// to try from there upwards. In a range that is too short for `index` the search begins at the first port.
    #[must_use]
    pub fn search(self, index: u32) -> (u16, u16) {
        match (self.is_any(), self.last) {
            (true, _) => (0, 1),
            (false, None) => (self.at(index).unwrap_or(u16::MAX), PORT_TRIES_MAX),
            (false, Some(last)) => {
                let begin = self.at(index).unwrap_or(self.first);
                (begin, (last - begin).saturating_add(1))
            }
        }
    }
}

/// A text that is neither a port nor a range of ports.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?}: expected a port (0 for any free ports, or 1 to 65535), or a range: 7000-7015")]
pub struct PortRangeError {
    /// The text that did not parse.
    pub text: String,
}

impl FromStr for PortRange {
    type Err = PortRangeError;

    fn from_str(text: &str) -> Result<Self, PortRangeError> {
        let wrong = || PortRangeError {
            text: text.to_owned(),
        };
        let port = |text: &str| text.parse::<u16>().map_err(|_| wrong());
        match text.split_once('-') {
            None => Ok(Self::from(port(text)?)),
            Some((first, last)) => {
                let (first, last) = (port(first)?, port(last)?);
                if first == 0 || last < first {
                    return Err(wrong());
                }
                Ok(Self {
                    first,
                    last: Some(last),
                })
            }
        }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last {
            None => write!(f, "{}", self.first),
            Some(last) => write!(f, "{}-{last}", self.first),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_and_port_ranges_are_parsed() {
        let range = |text: &str| text.parse::<PortRange>().unwrap();
        assert!(range("0").is_any());
        assert_eq!(range("0").search(7), (0, 1));
        assert_eq!(range("7000").search(3), (7003, PORT_TRIES_MAX));
        assert_eq!(range("65530").search(9), (65535, PORT_TRIES_MAX));
        assert_eq!(range("7000-7015").search(3), (7003, 13));
        assert_eq!(range("7000-7003").search(4), (7000, 4));
        assert_eq!(range("7000-7000").search(0), (7000, 1));
        assert_eq!(
            (range("7000-7003").at(3), range("7000-7003").at(4)),
            (Some(7003), None)
        );
        for text in ["0", "7000", "7000-7015"] {
            assert_eq!(range(text).to_string(), text);
        }
        for text in ["", "x", "70000", "7000-", "7015-7000", "0-5", "-5"] {
            assert!(text.parse::<PortRange>().is_err(), "{text}");
        }
    }
}
