//! The user of the process at the other end of a TCP connection within this host.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::{fs, io};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::geteuid;

use crate::{proc, sock_diag};

/// Maximum number of searches for a connection that the kernel's tables do not show. If the peer has closed the
/// connection, there is no further search.
const LOOKS_MAX: usize = 10;
/// Socket states in the kernel's tables.
const CONNECTED: &str = "01";
const LISTENS: &str = "0A";

/// Checks that the other end of a loopback connection belongs to this user or root.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`] if the other end belongs to another user, or if the kernel does not name its
/// owner.
pub fn check(stream: &TcpStream) -> io::Result<()> {
    let (ours, theirs) = (stream.local_addr()?, stream.peer_addr()?);
    let look = || {
        // A query for the single connection is fast with any number of connections. Reading a table takes longer the
        // more there are, and many foreign connections could delay this user's.
        let known = sock_diag::user(theirs, ours).ok().flatten();
        known.or_else(|| {
            let tables = ["net/tcp", "net/tcp6"].map(proc::of_machine);
            let mut tables = tables.into_iter().flatten();
            tables.find_map(|table| owner(&table, theirs, ours))
        })
    };
    // The kernel writes a table in pieces, and can omit rows while others change. A connection whose peer has closed
    // it is not searched again, as it cannot be found and each search takes milliseconds.
    let mut looks = (0..LOOKS_MAX).take_while(|_| !has_gone(stream));
    let owner = looks.find_map(|_| look());
    let own = geteuid().as_raw();
    let denied = |text: String| io::Error::new(io::ErrorKind::PermissionDenied, text);
    match owner {
        Some(uid) if uid == own || uid == 0 => Ok(()),
        Some(uid) => Err(denied(format!(
            "the connection belongs to user {uid}, but this process runs as user {own}"
        ))),
        None => Err(denied(
            "the kernel does not report the connection's owner".to_owned(),
        )),
    }
}

/// True if the peer has closed the connection, even if there is still data to read.
fn has_gone(stream: &TcpStream) -> bool {
    let hang_up = PollFlags::from_bits_retain(nix::libc::POLLRDHUP);
    let mut fds = [PollFd::new(stream.as_fd(), hang_up)];
    // The only possible results are a hang-up and an error.
    poll(&mut fds, PollTimeout::ZERO).is_ok_and(|count| count > 0)
}

/// The texts of the kernel's tables of TCP sockets (`net/tcp`, `net/tcp6`) in a process's network namespace, as far
/// as they may be read.
#[must_use]
pub fn tables(process: &proc::Process) -> Vec<String> {
    let tables = ["net/tcp", "net/tcp6"].map(|name| fs::read_to_string(process.path(name)));
    tables.into_iter().flatten().collect()
}

/// The addresses of the connection whose socket has this inode number in a kernel table: the local one first. `None` if
/// there is none.
#[must_use]
pub fn ends(table: &str, socket: u64) -> Option<[SocketAddr; 2]> {
    let row = rows(table).find(|row| row.socket.parse() == Ok(socket))?;
    Some(row.ends.map(SocketAddr::from))
}

/// The inode number of the socket with these addresses in a kernel table: the local one first. `None` if there is none.
#[must_use]
pub fn socket_of(table: &str, ends: [SocketAddr; 2]) -> Option<u64> {
    let row = rows(table).find(|row| row.ends == ends.map(canonical))?;
    row.socket.parse().ok()
}

/// The inode numbers of the sockets that listen at a port, from a kernel table.
pub fn listeners(table: &str, port: u16) -> impl Iterator<Item = u64> {
    let at = rows(table).filter(move |row| row.state == LISTENS && row.ends[0].1 == port);
    at.filter_map(|row| row.socket.parse().ok())
}

/// The user id of the connected socket with these two addresses in a kernel table; `None` if there is none.
fn owner(table: &str, local: SocketAddr, remote: SocketAddr) -> Option<u32> {
    let ends = [local, remote].map(canonical);
    // A connection without a process is not meant, as it has no user any more.
    let row = rows(table).find(|row| row.ends == ends && row.state == CONNECTED)?;
    row.user.parse().ok()
}

/// A row of a kernel table of TCP sockets.
struct Row<'a> {
    /// The socket's own address, and that of its peer.
    ends: [(IpAddr, u16); 2],
    state: &'a str,
    user: &'a str,
    /// The inode number of the socket.
    socket: &'a str,
}

fn rows(table: &str) -> impl Iterator<Item = Row<'_>> {
    table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, local, remote, state, _, _, _, user, _, socket, ..] = fields[..] else {
            return None;
        };
        Some(Row {
            ends: [address(local)?, address(remote)?],
            state,
            user,
            socket,
        })
    })
}

fn canonical(address: SocketAddr) -> (IpAddr, u16) {
    (address.ip().to_canonical(), address.port())
}

/// Parses an address in the kernel's form: 32-bit words in this machine's byte order, in hexadecimal. `None` if it is
/// malformed.
fn address(text: &str) -> Option<(IpAddr, u16)> {
    let (words, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| {
        let word = u32::from_str_radix(words.get(at..at + 8)?, 16).ok()?;
        Some(word.to_ne_bytes())
    };
    let ip: IpAddr = match words.len() {
        8 => word(0)?.into(),
        32 => {
            let mut bytes = [0; 16];
            for (index, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(index * 8)?);
            }
            bytes.into()
        }
        _ => return None,
    };
    Some((ip.to_canonical(), port))
}

/// Feeds arbitrary bytes to the parsers of the kernel's data about processes and sockets. Checks that none panics.
#[doc(hidden)]
pub fn fuzz_kernel(bytes: &[u8]) {
    sock_diag::fuzz_answer(bytes);
    let text = String::from_utf8_lossy(bytes);
    let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let _ = owner(&text, at(8080), at(8081));
    let _ = (ends(&text, 17), socket_of(&text, [at(8080), at(8081)]));
    let _ = listeners(&text, 8080).count();
    for mapping in proc::mappings(bytes) {
        let is_of_file = mapping.file().is_some_and(|path| path.is_absolute());
        assert_eq!(is_of_file, mapping.file().is_some());
        let _ = mapping.holds(mapping.start);
    }
    if let Some(stat) = proc::Stat::parse(&text) {
        let _ = (stat.parent(), stat.cpu_ticks(), stat.began_ticks());
    }
    let status = proc::Status::parse(&text);
    let _ = (status.tracer(), status.ids("Uid"), status.bytes("VmRSS"));
    let _ = status.signals("SigPnd");
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn connection_from_this_user_is_accepted() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(host) else {
                continue;
            };
            let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let _theirs = listener.accept().unwrap();
            check(&stream).unwrap();
        }
    }

    #[test]
    fn connection_closed_by_the_peer_is_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (ours, _) = listener.accept().unwrap();
        assert!(!has_gone(&ours));
        (&theirs).write_all(b"unread").unwrap();
        drop(theirs);
        // The end of the stream arrives behind the data, within a moment.
        let heard = (0..1_000_000).any(|_| has_gone(&ours));
        assert!(heard);
        let refused = check(&ours).unwrap_err().kind();
        assert_eq!(refused, io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn kernel_socket_addresses_are_parsed() {
        let [a, b, c, d] = 0x0100_007F_u32.to_ne_bytes();
        assert_eq!(address("0100007F:1F90"), Some(([a, b, c, d].into(), 8080)));
        assert_eq!(address("0100007F"), None);
        assert_eq!(address("01:xx"), None);
        let table = "head\n 0: 0100007F:1F90 0100007F:1F91 01 0:0 0:0 0 1000 0 1\n";
        let at = |port| SocketAddr::new([a, b, c, d].into(), port);
        assert_eq!(owner(table, at(8080), at(8081)), Some(1000));
        assert_eq!(owner(table, at(8081), at(8080)), None);
        let table = "head\n 0: 0100007F:1F90 00000000:0000 0A 0:0 0:0 0 1000 0 17\n";
        assert_eq!(listeners(table, 8080).collect::<Vec<_>>(), [17]);
        assert_eq!(listeners(table, 8081).count(), 0);
    }
}
