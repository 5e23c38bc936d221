//! Byte counts of a process's TCP connections.

use std::io;
use std::os::fd::AsFd;

use sdm_system::{copy_descriptor, proc, tcp_traffic};
use xxhash_rust::xxh3::Xxh3Default;

/// Maximum number of sockets examined.
const SOCKETS_MAX: usize = 4096;

/// Adds the byte counts of a process's TCP connections to the hash. Sockets without permission are left out.
///
/// # Errors
/// [`io::Error`] if the process is gone, or may not be inspected.
pub(super) fn add(pid: i32, hash: &mut Xxh3Default) -> io::Result<()> {
    let process = proc::of(pid).living();
    let is_socket = |number: &i32| {
        let number = u64::try_from(*number).ok();
        number.is_some_and(|number| process.socket(number).is_some())
    };
    let mut sockets: Vec<i32> = process.descriptors()?.filter(is_socket).collect();
    sockets.sort_unstable();
    sockets.truncate(SOCKETS_MAX);
    for number in sockets {
        if let Ok(bytes) = traffic(pid, number) {
            hash.update(&number.to_ne_bytes());
            for count in bytes {
                hash.update(&count.to_ne_bytes());
            }
        }
    }
    Ok(())
}

/// Bytes of one connection that the peer has acknowledged, and bytes that this side has received.
fn traffic(pid: i32, number: i32) -> io::Result<[u64; 2]> {
    // The copied descriptor is closed at the end of this function.
    let socket = copy_descriptor(pid, number)?;
    tcp_traffic(socket.as_fd())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn traffic_on_a_connection_is_detected() {
        use std::os::fd::AsRawFd;
        use std::os::unix::net::UnixStream;
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let mut here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut there, _) = listener.accept().unwrap();
        let us = std::process::id().cast_signed();
        let seen = |socket: &TcpStream| traffic(us, socket.as_raw_fd()).unwrap();
        assert_eq!(seen(&there)[1], 0);
        here.write_all(b"some").unwrap();
        there.read_exact(&mut [0; 4]).unwrap();
        assert_eq!(seen(&there), [0, 4]);
        assert_eq!(seen(&there), [0, 4]);
        let (local, _other) = UnixStream::pair().unwrap();
        assert!(traffic(us, local.as_raw_fd()).is_err());
        assert!(traffic(us, i32::MAX).is_err());
        let fingerprint = || {
            let mut hash = Xxh3Default::new();
            add(us, &mut hash).unwrap();
            hash.digest128()
        };
        let before = fingerprint();
        there.write_all(b"more").unwrap();
        here.read_exact(&mut [0; 4]).unwrap();
        assert_ne!(fingerprint(), before);
        assert!(add(-1, &mut Xxh3Default::new()).is_err());
    }
}
