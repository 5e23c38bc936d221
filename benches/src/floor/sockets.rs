//! Sockets of the processes that measure the lower bound of a round trip (the floor, see the parent module): TCP over
//! loopback, or Unix sockets.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::str::FromStr;

use anyhow::{Context, Result, bail};

/// Kind of a floor's sockets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sockets {
    /// TCP over loopback.
    Tcp,
    /// Unix sockets without files.
    Unix,
}

impl fmt::Display for Sockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Unix => "unix",
        })
    }
}

impl FromStr for Sockets {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "tcp" => Ok(Self::Tcp),
            "unix" => Ok(Self::Unix),
            _ => bail!("expected tcp or unix"),
        }
    }
}

/// A member's listening socket; its process has no other one.
pub(crate) enum FloorListener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

fn name(own: &str) -> Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("sdm-floor-{own}")).context("a name")
}

impl FloorListener {
    /// A Unix listener under a name that others know in advance, so that they need no [`Self::place`].
    pub(crate) fn named(own: &str) -> Result<Self> {
        let listener = UnixListener::bind_addr(&name(own)?).context("listen")?;
        Ok(Self::Unix(listener))
    }

    pub(crate) fn bind(sockets: Sockets) -> Result<Self> {
        Ok(match sockets {
            Sockets::Tcp => {
                Self::Tcp(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("listen")?)
            }
            Sockets::Unix => Self::named(&std::process::id().to_string())?,
        })
    }

    /// The address to which another member connects: a TCP port, or the process id in the name of a Unix socket.
    pub(crate) fn place(&self) -> Result<String> {
        Ok(match self {
            Self::Tcp(listener) => listener.local_addr()?.port().to_string(),
            Self::Unix(_) => std::process::id().to_string(),
        })
    }

    pub(crate) fn accept(&self) -> io::Result<FloorStream> {
        Ok(match self {
            Self::Tcp(listener) => FloorStream::tcp(listener.accept()?.0)?,
            Self::Unix(listener) => FloorStream::Unix(listener.accept()?.0),
        })
    }
}

/// A connection of a floor.
pub(crate) enum FloorStream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl FloorStream {
    pub(crate) fn connect(sockets: Sockets, place: &str) -> Result<Self> {
        Ok(match sockets {
            Sockets::Tcp => {
                let port: u16 = place.parse().context("the parent's port")?;
                let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
                Self::tcp(stream.context("connect")?)?
            }
            Sockets::Unix => {
                Self::Unix(UnixStream::connect_addr(&name(place)?).context("connect")?)
            }
        })
    }

    fn tcp(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self::Tcp(stream))
    }
}

impl Read for FloorStream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buf),
            Self::Unix(stream) => stream.read(buf),
        }
    }
}

impl Write for FloorStream {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(buf),
            Self::Unix(stream) => stream.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
