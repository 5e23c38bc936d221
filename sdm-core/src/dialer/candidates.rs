//! The possible address of a member: one known port, or a range of ports of which it took the first free one.

use std::fmt;
use std::str::FromStr;

use crate::transport::{AddressError, ConnectionString, Scheme};

/// Possible address of a member of a plan: `tcp://10.0.0.7:41903` where the port was announced, otherwise a range such
/// as `tcp://10.0.0.7:7000-7255` that contains the port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    first: ConnectionString,
    /// The last port of the range; equal to the port of `first` if the member's port is known.
    last: u16,
}

impl Place {
    /// A place with a range of ports: from the port of `first` up to `last`.
    #[must_use]
    pub fn upwards(first: ConnectionString, last: u16) -> Self {
        let last = last.max(first.port());
        Self { first, last }
    }

    /// True if the port is known, so that no range is searched.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.last == self.first.port()
    }

    /// The first address to try.
    #[must_use]
    pub fn first(&self) -> &ConnectionString {
        &self.first
    }

    /// The address `offset` ports above the first one; `None` past the last port.
    pub(super) fn at(&self, offset: u16) -> Option<ConnectionString> {
        let at = self.first.stepped(offset)?;
        (offset == 0 || at.port() <= self.last).then_some(at)
    }
}

impl From<ConnectionString> for Place {
    fn from(at: ConnectionString) -> Self {
        let last = at.port();
        Self { first: at, last }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        if self.is_known() {
            return Ok(());
        }
        write!(f, "-{}", self.last)
    }
}

impl FromStr for Place {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let whole = text.parse::<ConnectionString>();
        let range = text.rsplit_once('-').and_then(|(first, last)| {
            let first = first.parse::<ConnectionString>().ok()?;
            let last: u16 = last.parse().ok()?;
            let has_ports = matches!(first.scheme(), Scheme::Tcp | Scheme::Ssh);
            (has_ports && first.port() < last).then(|| Self::upwards(first, last))
        });
        match range.filter(|range| range.to_string() == text) {
            Some(range) => Ok(range),
            None => whole.map(Self::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_port_ranges_are_parsed() {
        for text in [
            "tcp://10.0.0.7:41903",
            "tcp://10.0.0.7:7000-7255",
            "tcp://[fd00::1]:7000-7001",
            "tcp://node-7:7000-7001",
            "ssh://node-7:7000-7001",
            "unix:///run/a:1-2",
            "called://3",
        ] {
            let place: Place = text.parse().unwrap();
            assert_eq!(place.to_string(), text);
        }
        let range: Place = "tcp://10.0.0.7:7000-7001".parse().unwrap();
        assert!(!range.is_known());
        let at = |offset| range.at(offset).map(|at| at.port());
        assert_eq!((at(0), at(1), at(2)), (Some(7000), Some(7001), None));
        let known: Place = "tcp://10.0.0.7:7000".parse().unwrap();
        assert_eq!((known.is_known(), known.at(1)), (true, None));
        for text in [
            "",
            "tcp://10.0.0.7:7000-",
            "tcp://10.0.0.7:7000-7000",
            "tcp://10.0.0.7:7001-7000",
            "tcp://10.0.0.7:7000-+7001",
            "tcp://10.0.0.7:7000-07001",
            "tcp://10.0.0.7:7000-70000",
            "called://3-4",
        ] {
            assert!(text.parse::<Place>().is_err(), "{text}");
        }
    }
}
