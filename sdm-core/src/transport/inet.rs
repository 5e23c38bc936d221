//! The system's TCP sockets: addresses, connecting, listening, and detection of a cut-off host.

use std::io;
use std::net::ToSocketAddrs;

use mio::net::{TcpListener, TcpStream};
use nix::libc;
use nix::sys::socket::getsockopt;
use socket2::{Domain, Protocol, Socket, Type};

use super::{ConnectionString, Scheme, listen_upwards};
use crate::limits::RETRANSMITS_MAX;

/// Connections that the kernel may hold for us before we accept them.
pub(super) const BACKLOG: i32 = 1024;

/// The numeric addresses of a TCP host, each as a connection string. An address of another scheme stays as it is. This
/// call uses the system's resolver and may take seconds: it is for the start of a program, not for an event loop.
///
/// # Errors
/// The host is not known.
pub fn resolve(at: &ConnectionString) -> io::Result<Vec<ConnectionString>> {
    if at.scheme() != Scheme::Tcp {
        return Ok(vec![at.clone()]);
    }
    let addrs = (at.host(), at.port())
        .to_socket_addrs()
        .map_err(|error| io::Error::new(error.kind(), format!("{at}: {error}")))?;
    Ok(addrs.map(ConnectionString::from).collect())
}

fn numeric(at: &ConnectionString) -> io::Result<std::net::SocketAddr> {
    at.socket_addr().ok_or_else(|| {
        let what = "the host name was not resolved to an address";
        io::Error::new(io::ErrorKind::InvalidInput, what)
    })
}

pub(super) fn connect(to: &ConnectionString) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(numeric(to)?)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The first bytes of the kernel's `tcp_info`: state, congestion state, retransmits, probes, backoff.
#[derive(Clone, Copy, Debug)]
struct TcpInfo;

nix::getsockopt_impl!(
    TcpInfo,
    libc::IPPROTO_TCP,
    libc::TCP_INFO,
    [u8; 5],
    nix::sys::socket::sockopt::GetStruct<[u8; 5]>
);

/// True if the other host has not acknowledged repeated transmissions for long. These are transmissions of data, or of
/// window probes if its process does not read. The kernel's own time-out (`TCP_USER_TIMEOUT`) is not used, as it also
/// ends a connection whose window probes are answered.
pub(super) fn is_cut_off(stream: &TcpStream) -> bool {
    getsockopt(stream, TcpInfo)
        .is_ok_and(|[_, _, retransmits, probes, _]| retransmits.max(probes) >= RETRANSMITS_MAX)
}

/// True if the connection is established, false while it is being made. An error if it has failed.
pub(super) fn outcome(stream: &TcpStream) -> io::Result<bool> {
    if let Some(error) = stream.take_error()? {
        return Err(error);
    }
    match stream.peer_addr() {
        // In the ephemeral port range a socket can connect to itself where nothing listens.
        Ok(peer) if stream.local_addr().is_ok_and(|own| own == peer) => {
            Err(io::ErrorKind::ConnectionRefused.into())
        }
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
        Err(error) => Err(error),
    }
}

/// A socket that listens, for another process to accept from; see [`super::Transport::listen`].
///
/// # Errors
/// No port was free, or the address does not belong to this host.
pub fn listener(
    at: &ConnectionString,
    port_tries: u16,
) -> io::Result<(std::net::TcpListener, ConnectionString)> {
    let socket = listen_upwards(at, port_tries, bind_socket)?;
    let port = socket.local_addr()?.port();
    Ok((socket, at.with_port(port)))
}

pub(super) fn bind(at: &ConnectionString) -> io::Result<TcpListener> {
    bind_socket(at).map(TcpListener::from_std)
}

fn bind_socket(at: &ConnectionString) -> io::Result<std::net::TcpListener> {
    let addr = numeric(at)?;
    let domain = Domain::for_address(addr);
    // Close-on-exec: nothing that is started later may hold the port.
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    // This frees only ports whose last connections linger (TIME_WAIT), never those of a listener.
    socket.set_reuse_address(true)?;
    if addr.is_ipv6() && addr.ip().is_unspecified() {
        // A listener on all addresses listens on IPv4 and IPv6, whatever the system's setting.
        socket.set_only_v6(false)?;
    }
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn connection_to_unread_socket_is_not_cut_off() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let _unread = listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        let mut stream = TcpStream::from_std(stream);
        while stream.write(&[0; 1 << 16]).is_ok() {}
        // The kernel answers each probe for room, and doubles the pause before the next.
        let until = Instant::now() + Duration::from_secs(120);
        while getsockopt(&stream, TcpInfo).unwrap()[4] <= RETRANSMITS_MAX {
            assert!(Instant::now() < until, "the kernel asks for room");
            assert!(!is_cut_off(&stream));
            thread::sleep(Duration::from_millis(50));
        }
        assert!(!is_cut_off(&stream));
    }
}
