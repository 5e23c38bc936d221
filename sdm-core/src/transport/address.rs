//! Connection strings: where to listen and where to connect, as text.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// The longest host name, in bytes.
const HOST_BYTES_MAX: usize = 253;

/// Where a member listens: `tcp://host:port`, `tcp://[v6 address]:port`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionString {
    /// A name or an address, without brackets.
    host: String,
    port: u16,
}

/// A text that is no connection string.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("address '{text}': {what}")]
pub struct AddressError {
    /// What is wrong.
    what: &'static str,
    /// The text, cut to a printable length.
    text: String,
}

impl ConnectionString {
    /// A TCP port of a host, given by name or by address.
    ///
    /// # Errors
    /// A text that is neither.
    pub fn tcp(host: &str, port: u16) -> Result<Self, AddressError> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        let fits = (1..=HOST_BYTES_MAX).contains(&host.len());
        if host.parse::<Ipv6Addr>().is_err() && !(fits && host.bytes().all(is_name)) {
            return Err(error("no host name or address", host));
        }
        let host = host.to_owned();
        Ok(Self { host, port })
    }

    /// The host: a name or an address, without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port; 0 asks for any free one.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The same host at another port.
    #[must_use]
    pub fn with_port(&self, port: u16) -> Self {
        let host = self.host.clone();
        Self { host, port }
    }

    /// The socket address, where the host is an address (or `localhost`) and not a name.
    #[must_use]
    pub fn socket_addr(&self) -> Option<SocketAddr> {
        let host = match self.host.as_str() {
            "localhost" => "127.0.0.1",
            host => host,
        };
        let ip: IpAddr = host.parse().ok()?;
        Some(SocketAddr::new(ip, self.port))
    }
}

impl From<SocketAddr> for ConnectionString {
    fn from(addr: SocketAddr) -> Self {
        Self {
            host: addr.ip().to_string(),
            port: addr.port(),
        }
    }
}

impl fmt::Display for ConnectionString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') {
            write!(f, "tcp://[{host}]:{port}")
        } else {
            write!(f, "tcp://{host}:{port}")
        }
    }
}

impl FromStr for ConnectionString {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let rest = text
            .strip_prefix("tcp://")
            .ok_or_else(|| error("expected tcp://host:port", text))?;
        let (host, port) = rest
            .rsplit_once(':')
            .ok_or_else(|| error("expected a port after the host", text))?;
        if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(error("expected a port after the host", text));
        }
        let port = port
            .parse()
            .map_err(|_| error("the port is above 65535", text))?;
        let address = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
        match address {
            Some(address) if address.parse::<Ipv6Addr>().is_ok() => Self::tcp(address, port),
            Some(_) => Err(error("expected an IPv6 address in the brackets", text)),
            None if host.contains(':') => Err(error("an IPv6 address stands in brackets", text)),
            None => Self::tcp(host, port).map_err(|_| error("no host name or address", text)),
        }
    }
}

fn error(what: &'static str, text: &str) -> AddressError {
    let text = text.chars().take(80).collect();
    AddressError { what, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        #[track_caller]
        fn check(text: &str, expect: Result<(&str, u16), &str>) {
            let got = text.parse::<ConnectionString>();
            match (&got, expect) {
                (Ok(got), Ok(expect)) => {
                    assert_eq!((got.host(), got.port()), expect);
                    assert_eq!(got.to_string(), text);
                }
                (Err(got), Err(expect)) => {
                    assert_eq!(got.to_string(), format!("address '{text}': {expect}"));
                }
                _ => panic!("{got:?}"),
            }
        }
        check("tcp://127.0.0.1:7000", Ok(("127.0.0.1", 7000)));
        check("tcp://node-1.cluster_x:0", Ok(("node-1.cluster_x", 0)));
        check("tcp://[::1]:65535", Ok(("::1", 65535)));
        check("", Err("expected tcp://host:port"));
        check("127.0.0.1:7000", Err("expected tcp://host:port"));
        check("unix:///tmp/x", Err("expected tcp://host:port"));
        check("tcp://host", Err("expected a port after the host"));
        check("tcp://host:", Err("expected a port after the host"));
        check("tcp://host:+1", Err("expected a port after the host"));
        check("tcp://host:65536", Err("the port is above 65535"));
        check("tcp://:1", Err("no host name or address"));
        check("tcp://a b:1", Err("no host name or address"));
        check("tcp://::1:1", Err("an IPv6 address stands in brackets"));
        check(
            "tcp://[x]:1",
            Err("expected an IPv6 address in the brackets"),
        );
    }

    #[test]
    fn socket_addresses() {
        let at = |text: &str| text.parse::<ConnectionString>().unwrap().socket_addr();
        assert_eq!(at("tcp://[::1]:5"), Some("[::1]:5".parse().unwrap()));
        assert_eq!(
            at("tcp://localhost:5"),
            Some("127.0.0.1:5".parse().unwrap())
        );
        assert_eq!(at("tcp://node1:5"), None);
        let back = ConnectionString::from("[::1]:5".parse::<SocketAddr>().unwrap());
        assert_eq!(back.to_string(), "tcp://[::1]:5");
    }
}
