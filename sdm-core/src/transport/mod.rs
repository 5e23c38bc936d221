//! Transports of bytes between members: sockets behind one trait, and a network in memory.
//!
//! Each event reports once that an operation became possible. After [`TransportEvent::Readable`] call
//! [`Transport::recv`] until `WouldBlock`. After a `WouldBlock` of [`Transport::send`] wait for
//! [`TransportEvent::Writable`]. An event may be superfluous; none is missing.

#[cfg(feature = "net")]
mod abstract_name;
mod address;
#[cfg(feature = "net")]
mod inet;
mod interface;
#[cfg(feature = "net")]
mod local;
#[cfg(feature = "net")]
mod local_addresses;
pub mod mem;
mod ports;
#[cfg(feature = "net")]
pub mod reversed;
#[cfg(feature = "net")]
mod shape;
#[cfg(feature = "net")]
pub mod shaped_socket;
#[cfg(feature = "net")]
mod socket;
#[cfg(feature = "net")]
mod ssh;
#[cfg(feature = "net")]
pub mod tcp;
#[cfg(feature = "net")]
mod unix;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "net")]
pub use abstract_name::shared_name;
pub use address::{AddressError, ConnectionString, HostTransport, HostTransportError, Scheme};
pub use interface::{Interface, InterfaceError};
#[cfg(feature = "net")]
pub use local_addresses::{NoAddress, own_addresses};
pub use ports::{PortRange, PortRangeError};
#[cfg(feature = "net")]
pub use shape::{Shape, ShapeError};

/// Names one connection of a transport; never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnId(pub u64);

/// A file descriptor outside of the transport that the transport watches.
pub type ForeignFd = i32;

/// An event of a transport.
#[derive(Debug)]
pub enum TransportEvent {
    /// An incoming connection.
    Accepted {
        /// The new connection.
        conn: ConnId,
        /// The address of the caller, as text for the user.
        peer: String,
    },
    /// An outgoing connection is established; bytes can be sent.
    Connected(ConnId),
    /// An outgoing connection could not be established; its id is void.
    ConnectFailed {
        /// The requested connection.
        conn: ConnId,
        /// The system's reason.
        error: io::Error,
    },
    /// Bytes have come, or the end of the stream, or an error.
    Readable(ConnId),
    /// Bytes can be sent again.
    Writable(ConnId),
    /// A watched descriptor can be read or written.
    Ready {
        /// The watched descriptor.
        fd: ForeignFd,
    },
    /// A [`Waker`] was used.
    Woken,
}

impl TransportEvent {
    /// The connection that the event concerns; `None` for an event that concerns no connection.
    #[must_use]
    pub fn conn(&self) -> Option<ConnId> {
        match self {
            Self::Accepted { conn, .. } | Self::ConnectFailed { conn, .. } => Some(*conn),
            Self::Connected(conn) | Self::Readable(conn) | Self::Writable(conn) => Some(*conn),
            Self::Ready { .. } | Self::Woken => None,
        }
    }
}

/// Carries bytes between members.
pub trait Transport {
    /// Listens at `at`. If its port is in use, listens at the first free one of the next ports, up to `port_tries` in
    /// all. Port 0 stands for any free port. Returns the address at which it listens.
    ///
    /// # Errors
    /// No port was free, or the address does not belong to this host.
    fn listen(&mut self, at: &ConnectionString, port_tries: u16) -> io::Result<ConnectionString>;

    /// Ends all listening; connections stay.
    fn stop_listening(&mut self);

    /// Begins to connect to an address; the host of a TCP address must be numeric. An event always reports the outcome,
    /// also for a failure at once.
    fn connect(&mut self, to: &ConnectionString) -> ConnId;

    /// Sends bytes from the front of `bytes`. Returns the number of bytes sent.
    ///
    /// # Errors
    /// `WouldBlock` if no byte can be sent now; any other error means that the connection is broken.
    fn send(&mut self, conn: ConnId, bytes: &[u8]) -> io::Result<usize>;

    /// Receives into `buf`. Returns the number of bytes, 0 at the end of the stream.
    ///
    /// # Errors
    /// `WouldBlock` if no bytes are available; any other error means that the connection is broken.
    fn recv(&mut self, conn: ConnId, buf: &mut [u8]) -> io::Result<usize>;

    /// True if the other host has not acknowledged repeated retransmissions: it is
    /// cut off, or gone. A stopped process does not count as cut off. False if that is unknown.
    fn is_cut_off(&self, _conn: ConnId) -> bool {
        false
    }

    /// True while bytes that [`Transport::send`] has accepted are still in this process.
    fn is_holding(&self) -> bool {
        false
    }

    /// Ends a connection, or the attempt to make one. Sent bytes still arrive. No event
    /// of the connection comes after that.
    fn close(&mut self, conn: ConnId);

    /// Waits for events, at most `timeout` (`None`: forever), and appends them.
    /// The call may return without an event.
    ///
    /// # Errors
    /// The system cannot wait; the transport is unusable from then on.
    fn poll(
        &mut self,
        timeout: Option<Duration>,
        events: &mut Vec<TransportEvent>,
    ) -> io::Result<()>;

    /// A handle by which another thread ends the waiting.
    fn waker(&self) -> Waker;
}

/// Ends the waiting of a transport, from any thread; wakes before the next poll add up to one.
#[derive(Clone)]
pub struct Waker {
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl Waker {
    /// A handle of a transport that calls `wake`, from any thread and also after the transport has ended.
    #[must_use]
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        let wake = Arc::new(wake);
        Self { wake }
    }

    /// Makes the transport report [`TransportEvent::Woken`].
    pub fn wake(&self) {
        (self.wake)();
    }
}

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waker")
    }
}

/// Calls `bind` for `at`. While an address is in use, calls it for the next port or path, up to `port_tries` addresses.
fn listen_upwards<T>(
    at: &ConnectionString,
    port_tries: u16,
    mut bind: impl FnMut(&ConnectionString) -> io::Result<T>,
) -> io::Result<T> {
    let is_any = matches!(at.scheme(), Scheme::Tcp | Scheme::Ssh) && at.port() == 0;
    let tries = if is_any { 1 } else { port_tries.max(1) };
    let mut last = at.clone();
    for place in (0..tries).map_while(|count| at.stepped(count)) {
        match bind(&place) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => last = place,
            result => return result.map_err(|error| annotate(error, at)),
        }
    }
    let what = if is_any {
        format!(
            "cannot listen at {at}: no port is free; a closed connection keeps its port for a minute"
        )
    } else {
        format!("cannot listen at {at}: every port or path up to {last} is in use")
    };
    Err(io::Error::new(io::ErrorKind::AddrInUse, what))
}

fn annotate(error: io::Error, at: &ConnectionString) -> io::Error {
    io::Error::new(error.kind(), format!("cannot listen at {at}: {error}"))
}

fn no_such_connection() -> io::Error {
    io::Error::new(
        io::ErrorKind::NotConnected,
        "the connection is already closed",
    )
}
