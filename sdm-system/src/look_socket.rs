//! The socket at which the tracer of a program is asked to detach, so that another process can inspect the program.
//!
//! A client must run as the tracer's user or as root. It receives one byte once the program is detached, inspects it,
//! and closes its end. The tracer closes its end when the program is traced again.

use std::fs;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use super::peer::Peer;
use super::proc;

/// Prefix of the names of processes that detach from their programs for an inspection.
pub const TRACER_NAME: &str = "sdm-shim-";

/// Address of a tracer's socket. It contains the pid namespace: containers that share a network have the same abstract
/// names, and may have the same pids.
fn address(tracer: u32) -> io::Result<SocketAddr> {
    let namespace = fs::metadata(proc::own().path("ns/pid"))?.ino();
    SocketAddr::from_abstract_name(format!("sdm-look-{namespace}-{tracer}"))
}

/// The socket of this process, which listens for clients.
///
/// # Errors
/// Another process has taken the socket's name, or there is no room for one more descriptor.
pub fn listen() -> io::Result<UnixListener> {
    let listener = UnixListener::bind_addr(&address(std::process::id())?)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Connects to the socket of a tracer.
///
/// # Errors
/// The tracer does not listen, or another process has taken the socket's name.
pub fn connect(tracer: i32) -> io::Result<UnixStream> {
    let stream = UnixStream::connect_addr(&address(tracer.cast_unsigned())?)?;
    match Peer::of(&stream)?.pid == tracer {
        true => Ok(stream),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}
