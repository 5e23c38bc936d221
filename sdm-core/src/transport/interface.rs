//! Selection of a host's network interfaces.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Selection of this host's interfaces: by name (`ib0`), by address, or by network (`10.1.0.0/16`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interface {
    /// The addresses of the interface of this name.
    Name(String),
    /// The addresses with this prefix: an address and the prefix length in bits.
    Network(IpAddr, u8),
}

impl Interface {
    /// True if the selection contains an address of the interface called `interface`.
    #[must_use]
    pub fn has(&self, interface: &str, ip: IpAddr) -> bool {
        match (self, ip) {
            (Self::Name(name), _) => name == interface,
            (Self::Network(IpAddr::V4(network), bits), IpAddr::V4(ip)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(*bits)).unwrap_or(0);
                (network.to_bits() ^ ip.to_bits()) & mask == 0
            }
            (Self::Network(IpAddr::V6(network), bits), IpAddr::V6(ip)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(*bits)).unwrap_or(0);
                (network.to_bits() ^ ip.to_bits()) & mask == 0
            }
            _ => false,
        }
    }
}

/// A text that names no interface.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InterfaceError {
    /// The text has a slash, but is not a network.
    #[error("{text:?}: expected a network such as 10.1.0.0/16 or fd00:1::/64")]
    Network {
        /// The text that did not parse.
        text: String,
    },
    /// The text is empty.
    #[error("expected an interface name, an address or a network")]
    Empty,
}

impl FromStr for Interface {
    type Err = InterfaceError;

    fn from_str(text: &str) -> Result<Self, InterfaceError> {
        let whole = |ip: IpAddr| if ip.is_ipv4() { 32 } else { 128 };
        if let Ok(ip) = text.parse::<IpAddr>() {
            return Ok(Self::Network(ip, whole(ip)));
        }
        if let Some((ip, bits)) = text.split_once('/') {
            let ip = ip.parse::<IpAddr>().ok();
            let bits = bits.parse::<u8>().ok();
            return match (ip, bits) {
                (Some(ip), Some(bits)) if bits <= whole(ip) => Ok(Self::Network(ip, bits)),
                _ => Err(InterfaceError::Network {
                    text: text.to_owned(),
                }),
            };
        }
        if text.is_empty() {
            return Err(InterfaceError::Empty);
        }
        Ok(Self::Name(text.to_owned()))
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Network(ip, bits) => write!(f, "{ip}/{bits}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interface_settings_are_parsed() {
        for (text, shown) in [
            ("ib0", "ib0"),
            ("10.1.0.0/16", "10.1.0.0/16"),
            ("10.1.0.7", "10.1.0.7/32"),
            ("fd00:1::/64", "fd00:1::/64"),
        ] {
            let interface: Interface = text.parse().unwrap();
            assert_eq!(interface.to_string(), shown);
            assert_eq!(shown.parse(), Ok(interface));
        }
        for text in ["", "10.0.0.0/33", "x/8", "fd00::/129"] {
            assert!(text.parse::<Interface>().is_err(), "{text}");
        }
    }
}
