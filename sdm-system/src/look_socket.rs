//! The socket at which the tracer of a program is asked to detach, so that another process can inspect the program.
//!
//! A client must run as the tracer's user or as root. It receives [`DETACHED`] once the program is detached, inspects
//! it, and closes its end. The tracer closes its end when the program is traced again.
//!
//! A tracer does not detach from a program that it keeps stopped, as nothing else would keep it stopped. The client
//! then receives [`STOPPED`] and the registers of the program's threads ([`write_threads`]).

use std::fs;
use std::io::{self, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use super::peer::Peer;
use super::proc;

/// Prefix of the names of processes that detach from their programs for an inspection.
pub const TRACER_NAME: &str = "sdm-shim-";

/// The byte that a client receives once the program is detached.
pub const DETACHED: u8 = b'.';
/// The byte that a client receives if the program stays stopped. The threads follow.
pub const STOPPED: u8 = b'T';
/// Maximum length of the text of a program's threads, in bytes.
const THREADS_BYTES_MAX: u64 = 4 << 20;

/// A stopped thread: its id, and its general registers in the kernel's order.
pub type StoppedThread = (i32, Vec<u64>);

/// Writes [`STOPPED`] and the threads to a client.
///
/// # Errors
/// [`io::Error`] if the client is gone.
pub fn write_threads(to: &mut impl Write, threads: &[StoppedThread]) -> io::Result<()> {
    let mut text = vec![STOPPED];
    for (id, registers) in threads {
        let words: Vec<String> = registers.iter().map(u64::to_string).collect();
        writeln!(text, "{id} {}", words.join(" "))?;
    }
    to.write_all(&text)
}

/// Reads the threads that follow [`STOPPED`], up to the end of the connection.
///
/// # Errors
/// [`io::Error`] if the tracer is gone or sends something else.
pub fn read_threads(from: &mut impl Read) -> io::Result<Vec<StoppedThread>> {
    let mut text = String::new();
    from.take(THREADS_BYTES_MAX).read_to_string(&mut text)?;
    let thread = |line: &str| {
        let (id, words) = line.split_once(' ')?;
        let words = words.split(' ').map(|word| word.parse().ok());
        Some((id.parse().ok()?, words.collect::<Option<Vec<u64>>>()?))
    };
    let threads: Option<Vec<StoppedThread>> = text.lines().map(thread).collect();
    threads.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_read_as_they_were_written() {
        let threads = vec![(7, vec![0, u64::MAX, 3]), (8, vec![1])];
        let mut bytes = Vec::new();
        write_threads(&mut bytes, &threads).unwrap();
        assert_eq!(bytes[0], STOPPED);
        assert_eq!(read_threads(&mut &bytes[1..]).unwrap(), threads);
        assert!(read_threads(&mut &b"7 x\n"[..]).is_err());
    }
}
