//! Connection strings: addresses to listen at and to connect to, as text.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::ids::ServerId;

/// The longest host name, in bytes.
const HOST_BYTES_MAX: usize = 253;
/// The longest name of a scheme of another crate's transport, in bytes.
const SCHEME_BYTES_MAX: usize = 32;
/// The longest path of a socket, in bytes: the capacity of `sockaddr_un`, less a suffix and the final zero.
const PATH_BYTES_MAX: usize = 100;

/// Address of a member: `tcp://host:port`, `tcp://[v6 address]:port` or `unix:///path`.
///
/// `ssh://host:port` is that port of the host's loopback interface, reached through `ssh`. `called://3` is the
/// incoming connection of server 3, from wherever it connects. `local://3` is the socket without a file at which
/// server 3 listens for members of its own host. Any other `scheme://place` is an address of a transport that is
/// implemented elsewhere, which alone reads the place.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionString {
    scheme: Scheme,
    /// A name or an address, without brackets; the path of a Unix socket; the whole address of [`Scheme::Other`].
    place: String,
    /// 0 for an address without a port.
    port: u16,
}

/// Kind of an address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Scheme {
    /// A TCP port.
    Tcp,
    /// A socket in the file system of this machine.
    Unix,
    /// A TCP port of another host, through a tunnel of its own per connection.
    Ssh,
    /// A connection that the other end makes.
    Called,
    /// A socket of this machine's kernel that has no file.
    Local,
    /// A scheme that only a transport outside of this crate knows.
    Other,
}

/// Transport of links between members of one host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HostTransport {
    /// Unix sockets if possible, otherwise TCP.
    #[default]
    Unix,
    /// TCP, as between hosts.
    Tcp,
}

/// A text that is not the name of a host transport.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("transport '{text}': expected unix or tcp")]
pub struct HostTransportError {
    /// The text that did not parse.
    pub text: String,
}

impl fmt::Display for HostTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unix => "unix",
            Self::Tcp => "tcp",
        })
    }
}

impl FromStr for HostTransport {
    type Err = HostTransportError;

    fn from_str(text: &str) -> Result<Self, HostTransportError> {
        match text {
            "unix" => Ok(Self::Unix),
            "tcp" => Ok(Self::Tcp),
            _ => Err(HostTransportError {
                text: text.to_owned(),
            }),
        }
    }
}

/// A text that is not a connection string.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("address '{text}': {what}")]
pub struct AddressError {
    /// The fault of the text.
    what: &'static str,
    /// The text, cut to a printable length.
    text: String,
}

impl ConnectionString {
    /// A TCP port of a host, given by name or by address.
    ///
    /// # Errors
    /// The text is neither a host name nor an address.
    pub fn tcp(host: &str, port: u16) -> Result<Self, AddressError> {
        Self::with_host(Scheme::Tcp, host, port)
    }

    /// A TCP port of the loopback of a host, which is reached by `ssh`.
    ///
    /// # Errors
    /// A text that is neither a name nor an address, or one that `ssh` would take for an option.
    pub fn ssh(host: &str, port: u16) -> Result<Self, AddressError> {
        if host.starts_with('-') {
            return Err(error("not a host name or address", host));
        }
        Self::with_host(Scheme::Ssh, host, port)
    }

    fn with_host(scheme: Scheme, host: &str, port: u16) -> Result<Self, AddressError> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        let fits = (1..=HOST_BYTES_MAX).contains(&host.len());
        if host.parse::<Ipv6Addr>().is_err() && !(fits && host.bytes().all(is_name)) {
            return Err(error("not a host name or address", host));
        }
        let place = host.to_owned();
        Ok(Self {
            scheme,
            place,
            port,
        })
    }

    /// Address of a member that listens nowhere and connects to its parent itself.
    #[must_use]
    pub fn called(server: ServerId) -> Self {
        Self::of_member(Scheme::Called, server)
    }

    /// Address at which a member listens for members of its own host.
    #[must_use]
    pub fn local(member: ServerId) -> Self {
        Self::of_member(Scheme::Local, member)
    }

    fn of_member(scheme: Scheme, member: ServerId) -> Self {
        Self {
            scheme,
            place: member.0.to_string(),
            port: 0,
        }
    }

    /// Address of a transport that is implemented outside of this crate.
    ///
    /// # Errors
    /// A scheme that is one of this crate's, is longer than 32 bytes, begins with no letter, or has characters other
    /// than lower-case letters, digits, `+`, `-` and `.`; a place that is empty, longer than 253 bytes, or has control
    /// characters.
    pub fn other(scheme: &str, place: &str) -> Result<Self, AddressError> {
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let has_letter = scheme.starts_with(|first: char| first.is_ascii_lowercase());
        let is_own = ["tcp", "unix", "ssh", "called", "local"].contains(&scheme);
        let fits = scheme.len() <= SCHEME_BYTES_MAX && has_letter && !is_own;
        if !fits
            || !scheme
                .bytes()
                .all(|byte| is_name(byte) || b"+-.".contains(&byte))
        {
            return Err(error(
                "expected tcp, unix, ssh or the scheme of another transport, in lower case",
                scheme,
            ));
        }
        if !(1..=HOST_BYTES_MAX).contains(&place.len()) || place.chars().any(char::is_control) {
            return Err(error(
                "expected 1 to 253 printable bytes after the scheme",
                place,
            ));
        }
        Ok(Self {
            scheme: Scheme::Other,
            place: format!("{scheme}://{place}"),
            port: 0,
        })
    }

    /// Name of the scheme, and the place, of an address of another crate's transport; `None` for any other address.
    #[must_use]
    pub fn as_other(&self) -> Option<(&str, &str)> {
        let text = (self.scheme == Scheme::Other).then_some(&self.place)?;
        text.split_once("://")
    }

    /// The server that connects to its parent itself; `None` if the scheme is not `called`.
    #[must_use]
    pub fn caller(&self) -> Option<ServerId> {
        self.member(Scheme::Called)
    }

    /// The member that listens for members of its own host; `None` if the scheme is not `local`.
    #[must_use]
    pub fn local_member(&self) -> Option<ServerId> {
        self.member(Scheme::Local)
    }

    fn member(&self, scheme: Scheme) -> Option<ServerId> {
        let place = (self.scheme == scheme).then_some(&self.place)?;
        place.parse().ok().map(ServerId)
    }

    /// A socket in the file system.
    ///
    /// # Errors
    /// A path that is not absolute, longer than 100 bytes, or has control characters.
    pub fn unix(path: &str) -> Result<Self, AddressError> {
        if !path.starts_with('/') {
            return Err(error("the path of a socket must be absolute", path));
        }
        if path.len() > PATH_BYTES_MAX {
            return Err(error("the path of a socket is longer than 100 bytes", path));
        }
        if path.chars().any(char::is_control) {
            return Err(error("the path has control characters", path));
        }
        Ok(Self {
            scheme: Scheme::Unix,
            place: path.to_owned(),
            port: 0,
        })
    }

    /// The kind of the address.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host: a name or an address, without brackets; empty for an address without one, such as a Unix socket.
    #[must_use]
    pub fn host(&self) -> &str {
        match self.scheme {
            Scheme::Unix | Scheme::Called | Scheme::Local | Scheme::Other => "",
            Scheme::Tcp | Scheme::Ssh => &self.place,
        }
    }

    /// The port; 0 asks for any free one. Also 0 for an address without a port, such as a Unix socket.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The path of a Unix socket; `None` for any other address.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        (self.scheme == Scheme::Unix).then_some(Path::new(&self.place))
    }

    /// The same address with another port. An address without a port, such as a Unix socket, stays as it is.
    #[must_use]
    pub fn with_port(&self, port: u16) -> Self {
        let mut other = self.clone();
        if let Scheme::Tcp | Scheme::Ssh = self.scheme {
            other.port = port;
        }
        other
    }

    /// The `count`th alternative to an address that is in use: the port that much higher, or the path with that number
    /// appended. `None` past the last port, and for an address without a port or path.
    pub(crate) fn stepped(&self, count: u16) -> Option<Self> {
        let mut other = self.clone();
        match self.scheme {
            Scheme::Unix if count > 0 => other.place = format!("{}.{count}", self.place),
            Scheme::Unix => {}
            Scheme::Called | Scheme::Local | Scheme::Other if count > 0 => return None,
            Scheme::Called | Scheme::Local | Scheme::Other => {}
            Scheme::Tcp | Scheme::Ssh => other.port = self.port.checked_add(count)?,
        }
        Some(other)
    }

    /// The TCP address if the host is a numeric address or `localhost`. `None` for a host name, and for an address of
    /// another scheme.
    #[must_use]
    pub fn socket_addr(&self) -> Option<SocketAddr> {
        if self.scheme != Scheme::Tcp {
            return None;
        }
        let host = match self.place.as_str() {
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
            scheme: Scheme::Tcp,
            place: addr.ip().to_string(),
            port: addr.port(),
        }
    }
}

impl TryFrom<PathBuf> for ConnectionString {
    type Error = AddressError;

    fn try_from(path: PathBuf) -> Result<Self, AddressError> {
        match path.to_str() {
            Some(path) => Self::unix(path),
            None => Err(error("the path is not UTF-8", &path.to_string_lossy())),
        }
    }
}

impl fmt::Display for ConnectionString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, port, .. } = self;
        let scheme = match self.scheme {
            Scheme::Unix => return write!(f, "unix://{place}"),
            Scheme::Called => return write!(f, "called://{place}"),
            Scheme::Local => return write!(f, "local://{place}"),
            Scheme::Other => return f.write_str(place),
            Scheme::Tcp => "tcp",
            Scheme::Ssh => "ssh",
        };
        if place.contains(':') {
            write!(f, "{scheme}://[{place}]:{port}")
        } else {
            write!(f, "{scheme}://{place}:{port}")
        }
    }
}

impl FromStr for ConnectionString {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let in_full = |error: AddressError| self::error(error.what, text);
        if let Some(path) = text.strip_prefix("unix://") {
            return Self::unix(path).map_err(in_full);
        }
        let of_members = [("called://", Scheme::Called), ("local://", Scheme::Local)];
        for (prefix, scheme) in of_members {
            let Some(server) = text.strip_prefix(prefix) else {
                continue;
            };
            let number = server.parse().ok();
            let number = number.filter(|it: &u32| it.to_string() == server);
            let number = number.ok_or_else(|| error("expected a server number", text))?;
            return Ok(Self::of_member(scheme, ServerId(number)));
        }
        let (with_host, rest): (fn(&str, u16) -> _, _) = match text.split_once("://") {
            Some(("tcp", rest)) => (Self::tcp, rest),
            Some(("ssh", rest)) => (Self::ssh, rest),
            Some((scheme, place)) => return Self::other(scheme, place).map_err(in_full),
            None => {
                let what = "expected tcp://host:port, unix:///path or ssh://host:port";
                return Err(error(what, text));
            }
        };
        let (host, port) = rest
            .rsplit_once(':')
            .ok_or_else(|| error("expected a port after the host", text))?;
        if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(error("expected a port after the host", text));
        }
        let port = port
            .parse()
            .map_err(|_| error("the port is larger than 65535", text))?;
        let address = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
        match address {
            Some(address) if address.parse::<Ipv6Addr>().is_ok() => with_host(address, port),
            Some(_) => Err(error("expected an IPv6 address in the brackets", text)),
            None if host.contains(':') => Err(error("an IPv6 address must be in brackets", text)),
            None => with_host(host, port).map_err(in_full),
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

    #[test]
    fn transport_addresses_are_parsed() {
        check("tcp://127.0.0.1:7000", Ok(("127.0.0.1", 7000)));
        check("tcp://node-1.cluster_x:0", Ok(("node-1.cluster_x", 0)));
        check("tcp://[::1]:65535", Ok(("::1", 65535)));
        check("ssh://node1:7000", Ok(("node1", 7000)));
        check("unix:///run/sdm/x y", Ok(("", 0)));
        check("called://17", Ok(("", 0)));
        check("local://17", Ok(("", 0)));
        check("ib+rc://hca0/gid 7:1-2", Ok(("", 0)));
        let other = ConnectionString::other("ib+rc", "hca0/gid 7").unwrap();
        assert_eq!(other.as_other(), Some(("ib+rc", "hca0/gid 7")));
        let tcp: ConnectionString = "tcp://a:7".parse().unwrap();
        assert_eq!(tcp.as_other(), None);
    }

    #[test]
    fn malformed_addresses_are_refused() {
        let expected = "expected tcp://host:port, unix:///path or ssh://host:port";
        check("", Err(expected));
        check("127.0.0.1:7000", Err(expected));
        let other = "expected tcp, unix, ssh or the scheme of another transport, in lower case";
        check("TCP://x:1", Err(other));
        check("1a://x:1", Err(other));
        check("://x", Err(other));
        check(
            "a://",
            Err("expected 1 to 253 printable bytes after the scheme"),
        );
        check(
            "a://b\nc",
            Err("expected 1 to 253 printable bytes after the scheme"),
        );
        assert!(ConnectionString::other("unix", "/a").is_err());
        check("unix://x", Err("the path of a socket must be absolute"));
        check("unix:///a\nb", Err("the path has control characters"));
        check("called://x", Err("expected a server number"));
        check("called://+1", Err("expected a server number"));
        check("local://", Err("expected a server number"));
        check("tcp://host", Err("expected a port after the host"));
        check("tcp://host:", Err("expected a port after the host"));
        check("tcp://host:+1", Err("expected a port after the host"));
        check("tcp://host:65536", Err("the port is larger than 65535"));
        check("tcp://:1", Err("not a host name or address"));
        check("tcp://a b:1", Err("not a host name or address"));
        check("ssh://-oProxyCommand:1", Err("not a host name or address"));
        check("tcp://::1:1", Err("an IPv6 address must be in brackets"));
        check(
            "tcp://[x]:1",
            Err("expected an IPv6 address in the brackets"),
        );
        let long = format!("unix:///{}", "x".repeat(100));
        let long: Result<ConnectionString, _> = long.parse();
        assert!(
            long.unwrap_err()
                .to_string()
                .contains("longer than 100 bytes")
        );
    }

    #[test]
    fn numeric_or_local_tcp_address_becomes_a_socket_address() {
        let at = |text: &str| text.parse::<ConnectionString>().unwrap().socket_addr();
        assert_eq!(at("tcp://[::1]:5"), Some("[::1]:5".parse().unwrap()));
        assert_eq!(
            at("tcp://localhost:5"),
            Some("127.0.0.1:5".parse().unwrap())
        );
        assert_eq!(at("tcp://node1:5"), None);
        assert_eq!(at("ssh://127.0.0.1:5"), None);
        assert_eq!(at("unix:///x"), None);
        let back = ConnectionString::from("[::1]:5".parse::<SocketAddr>().unwrap());
        assert_eq!(back.to_string(), "tcp://[::1]:5");
    }

    #[test]
    fn next_address_increments_port_or_path() {
        let next = |text: &str, count| {
            let at = text.parse::<ConnectionString>().unwrap();
            at.stepped(count).map(|at| at.to_string())
        };
        assert_eq!(next("tcp://a:7", 2).as_deref(), Some("tcp://a:9"));
        assert_eq!(next("tcp://a:65535", 1), None);
        assert_eq!(next("unix:///x", 0).as_deref(), Some("unix:///x"));
        assert_eq!(next("unix:///x", 2).as_deref(), Some("unix:///x.2"));
        assert_eq!(next("local://3", 0).as_deref(), Some("local://3"));
        assert_eq!(next("local://3", 1), None);
        assert_eq!(next("own://3", 0).as_deref(), Some("own://3"));
        assert_eq!(next("own://3", 1), None);
    }
}
