//! TCP and Unix sockets, and tunnels through ssh, behind one interface for the event loop.

use std::io::{self, Read, Write};
use std::path::Path;

use mio::event::Source;
use mio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use mio::{Interest, Registry, Token};

use super::local::{self, LocalNames};
use super::ssh::Tunnel;
use super::unix::Rendezvous;
use super::{ConnectionString, Scheme, inet, ssh, unix};

/// A listening socket.
pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(Rendezvous),
    Local(UnixListener, ConnectionString),
}

impl Listener {
    /// Listens at `at` exactly.
    pub(super) fn bind(at: &ConnectionString, names: Option<&LocalNames>) -> io::Result<Self> {
        if let Some(member) = at.local_member() {
            let listener = names.ok_or_else(no_session)?.bind(member)?;
            return Ok(Self::Local(listener, at.clone()));
        }
        match at.scheme() {
            Scheme::Tcp => inet::bind(at).map(Self::Tcp),
            Scheme::Unix => unix::bind(at).map(Self::Unix),
            Scheme::Ssh => {
                let what = "an ssh:// address is only for connecting: listen at tcp://127.0.0.1";
                Err(io::Error::new(io::ErrorKind::InvalidInput, what))
            }
            Scheme::Called => Err(called()),
            Scheme::Local => Err(no_session()),
            Scheme::Other => Err(other(at)),
        }
    }

    /// The address of the listener that was asked to listen at `at`, with the port that it got.
    pub(super) fn bound(&self, at: &ConnectionString) -> io::Result<ConnectionString> {
        match self {
            Self::Tcp(listener) => Ok(at.with_port(listener.local_addr()?.port())),
            Self::Unix(rendezvous) => Ok(rendezvous.address.clone()),
            Self::Local(_, address) => Ok(address.clone()),
        }
    }

    /// The next incoming connection, with its address as text for the user.
    pub(super) fn accept(&self) -> io::Result<(Stream, String)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok((Stream::Tcp(stream), peer.to_string()))
            }
            Self::Unix(rendezvous) => {
                let (stream, _) = rendezvous.listener.accept()?;
                Ok((Stream::Unix(stream), rendezvous.address.to_string()))
            }
            Self::Local(listener, address) => {
                let (stream, _) = listener.accept()?;
                local::check_user(&stream)?;
                Ok((Stream::Unix(stream), address.to_string()))
            }
        }
    }

    fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Tcp(listener) => listener,
            Self::Unix(rendezvous) => &mut rendezvous.listener,
            Self::Local(listener, _) => listener,
        }
    }
}

/// The error for a `called` address, to which nothing can connect or bind.
fn called() -> io::Error {
    let what = "this transport cannot accept connections from servers (--reverse)";
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

/// The error for an address that only another transport knows.
fn other(address: &ConnectionString) -> io::Error {
    let what = format!("{address} is not an address of a TCP or Unix socket");
    io::Error::new(io::ErrorKind::Unsupported, what)
}

/// The error for a `local` address without a session, whose key the socket's name is made of.
fn no_session() -> io::Error {
    let what = "a local:// address needs a session, whose key gives the name of the socket";
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

/// A connection by TCP, by a Unix socket, or through ssh.
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Ssh(Tunnel),
}

impl Stream {
    /// Begins to connect; `ssh` is the program that tunnels run through.
    pub(super) fn connect(
        to: &ConnectionString,
        ssh: &Path,
        names: Option<&LocalNames>,
    ) -> io::Result<Self> {
        if let Some(member) = to.local_member() {
            let names = names.ok_or_else(no_session)?;
            return names.connect(member).map(Self::Unix);
        }
        match to.scheme() {
            Scheme::Tcp => inet::connect(to).map(Self::Tcp),
            Scheme::Unix => unix::connect(to).map(Self::Unix),
            Scheme::Ssh => ssh::connect(to, ssh).map(Self::Ssh),
            Scheme::Called => Err(called()),
            Scheme::Local => Err(no_session()),
            Scheme::Other => Err(other(to)),
        }
    }

    /// True if a connection is established at once, and the kernel reports room each time that the other
    /// end reads, wanted or not.
    pub(super) fn is_unix(&self) -> bool {
        matches!(self, Self::Unix(_))
    }

    /// True if a connection attempt has succeeded, false while it is under way. An error if it has failed.
    pub(super) fn outcome(&self) -> io::Result<bool> {
        match self {
            Self::Tcp(stream) => inet::outcome(stream),
            // These are connected, or fail, at once.
            Self::Unix(_) | Self::Ssh(_) => Ok(true),
        }
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
            Self::Ssh(tunnel) => tunnel.stream.write(bytes),
        }
    }

    pub(super) fn recv(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buf),
            Self::Unix(stream) => stream.read(buf),
            Self::Ssh(tunnel) => tunnel.recv(buf),
        }
    }

    pub(super) fn is_cut_off(&self) -> bool {
        match self {
            Self::Tcp(stream) => inet::is_cut_off(stream),
            // A Unix socket has no network, and ssh probes its host by itself.
            Self::Unix(_) | Self::Ssh(_) => false,
        }
    }

    fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Tcp(stream) => stream,
            Self::Unix(stream) => stream,
            Self::Ssh(tunnel) => &mut tunnel.stream,
        }
    }
}

/// Implements event registration by delegation to the contained socket.
macro_rules! source {
    ($kind:ty) => {
        impl Source for $kind {
            fn register(&mut self, at: &Registry, name: Token, what: Interest) -> io::Result<()> {
                self.source().register(at, name, what)
            }

            fn reregister(&mut self, at: &Registry, name: Token, what: Interest) -> io::Result<()> {
                self.source().reregister(at, name, what)
            }

            fn deregister(&mut self, at: &Registry) -> io::Result<()> {
                self.source().deregister(at)
            }
        }
    };
}
source!(Listener);
source!(Stream);
