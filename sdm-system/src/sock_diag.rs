//! The kernel's data about a single socket, by sock_diag(7).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket,
};

/// Message type of a request for sockets, and of its answer (`SOCK_DIAG_BY_FAMILY`).
const BY_FAMILY: u16 = 20;
const REQUEST: u16 = 1;
/// The sequence number of a request and its answer.
const SEQUENCE: u32 = 1;
/// The cookie of a request for a socket whose cookie is not known.
const NO_COOKIE: [u8; 8] = [0xff; 8];
const ESTABLISHED: u8 = 1;
/// Address families, and the number of the protocol.
const LOCAL: u8 = 1;
const INET: u8 = 2;
const INET6: u8 = 10;
const TCP: u8 = 6;
/// Sizes of a message header, of a connection's identification, and of a request, in bytes.
const HEAD: usize = 16;
const NAME: usize = 48;
const QUESTION: usize = HEAD + 8 + NAME;
const QUESTION_BYTES: u32 = 72;
const LOCAL_QUESTION_BYTES: u32 = 40;
/// The request flag for the peer of a Unix socket, and the attribute with the answer.
const SHOW_PEER: u32 = 4;
const PEER: u16 = 2;
/// Offsets of a Unix socket's number and of the attributes in an answer, in bytes.
const LOCAL_NUMBER_AT: usize = HEAD + 4;
const LOCAL_ATTRIBUTES_AT: usize = HEAD + 16;
/// Offsets of type, state, connection and user in an answer, in bytes.
const TYPE_AT: usize = 4;
const STATE_AT: usize = HEAD + 1;
const NAME_AT: usize = HEAD + 4;
const USER_AT: usize = NAME_AT + NAME + 12;
/// Size of ports and addresses in a connection's name, in bytes.
const ENDS: usize = 36;

/// The user id of the socket at `local`, of an open connection from this host to `remote`. `None` if the kernel knows
/// no such connection.
///
/// # Errors
/// The kernel does not answer such requests.
pub(crate) fn user(local: SocketAddr, remote: SocketAddr) -> io::Result<Option<u32>> {
    let answer = ask(&question(local, remote))?;
    let names = [false, true].map(|mapped| ends(local, remote, mapped));
    Ok(told(&names, &answer))
}

/// The inode number of the peer of a Unix socket (`unix(7)`), given that of the socket. `None` if the kernel knows no
/// such socket or peer.
///
/// # Errors
/// The kernel does not answer such requests.
pub fn local_peer(socket: u64) -> io::Result<Option<u64>> {
    let Ok(number) = u32::try_from(socket) else {
        return Ok(None);
    };
    let answer = ask(&local_question(number))?;
    // A peer that has gone has number 0.
    Ok(told_peer(number, &answer).filter(|peer| *peer > 0))
}

fn ask(question: &[u8]) -> io::Result<Vec<u8>> {
    let netlink = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkSockDiag,
    )?;
    let kernel = NetlinkAddr::new(0, 0);
    sendto(netlink.as_raw_fd(), question, &kernel, MsgFlags::empty())?;
    let mut answer = vec![0; 512];
    // The kernel answers before `sendto` returns.
    let count = recv(netlink.as_raw_fd(), &mut answer, MsgFlags::MSG_DONTWAIT)?;
    answer.truncate(count);
    Ok(answer)
}

fn local_question(socket: u32) -> Vec<u8> {
    let mut bytes = head(LOCAL_QUESTION_BYTES);
    bytes.extend([LOCAL, 0, 0, 0]);
    // In any state.
    bytes.extend(u32::MAX.to_ne_bytes());
    bytes.extend(socket.to_ne_bytes());
    bytes.extend(SHOW_PEER.to_ne_bytes());
    bytes.extend(NO_COOKIE);
    bytes
}

/// The netlink header of a request of this total size.
fn head(bytes: u32) -> Vec<u8> {
    let mut head = Vec::with_capacity(QUESTION);
    head.extend(bytes.to_ne_bytes());
    head.extend(BY_FAMILY.to_ne_bytes());
    head.extend(REQUEST.to_ne_bytes());
    head.extend(SEQUENCE.to_ne_bytes());
    head.extend([0; 4]);
    head
}

/// The inode number of the peer in an answer about a socket; `None` if the answer is about another socket, or has no
/// peer. Attributes follow the socket's number. Each has its length, including the header, and its type.
fn told_peer(socket: u32, answer: &[u8]) -> Option<u64> {
    let word = |bytes: &[u8]| Some(u32::from_ne_bytes(bytes.try_into().ok()?));
    let half = |bytes: &[u8]| Some(u16::from_ne_bytes(bytes.try_into().ok()?));
    let kind = half(answer.get(TYPE_AT..TYPE_AT + 2)?)?;
    let told = word(answer.get(LOCAL_NUMBER_AT..LOCAL_NUMBER_AT + 4)?)?;
    if kind != BY_FAMILY || told != socket {
        return None;
    }
    let mut rest = answer.get(LOCAL_ATTRIBUTES_AT..)?;
    loop {
        let length = usize::from(half(rest.get(..2)?)?);
        if half(rest.get(2..4)?)? == PEER {
            return word(rest.get(4..8)?).map(u64::from);
        }
        // Attributes are aligned to 4 bytes.
        rest = rest.get(length.max(4).next_multiple_of(4)..)?;
    }
}

fn question(local: SocketAddr, remote: SocketAddr) -> Vec<u8> {
    let family = match local.ip().to_canonical() {
        IpAddr::V4(_) => INET,
        IpAddr::V6(_) => INET6,
    };
    let mut bytes = head(QUESTION_BYTES);
    bytes.extend([family, TCP, 0, 0]);
    // In any state.
    bytes.extend(u32::MAX.to_ne_bytes());
    bytes.extend(ends(local, remote, false));
    // At any interface.
    bytes.extend([0; 4]);
    bytes.extend(NO_COOKIE);
    bytes
}

/// The ports and addresses of a connection, as encoded in an answer. With `mapped`, IPv4 addresses are IPv4-mapped
/// IPv6 addresses, as those of a dual-stack socket are.
fn ends(local: SocketAddr, remote: SocketAddr, mapped: bool) -> Vec<u8> {
    let octets = |address: IpAddr| match address.to_canonical() {
        IpAddr::V4(short) if mapped => short.to_ipv6_mapped().octets(),
        IpAddr::V4(short) => {
            let mut octets = [0; 16];
            octets[..4].copy_from_slice(&short.octets());
            octets
        }
        IpAddr::V6(long) => long.octets(),
    };
    let ports = [local.port().to_be_bytes(), remote.port().to_be_bytes()].concat();
    [&ports[..], &octets(local.ip()), &octets(remote.ip())].concat()
}

/// The user id in an answer about an open connection with one of these encodings; otherwise `None`. An answer about a
/// connection without a process has no user id.
fn told(names: &[Vec<u8>], answer: &[u8]) -> Option<u32> {
    let kind = answer.get(TYPE_AT..TYPE_AT + 2)?;
    let is_answer = kind == BY_FAMILY.to_ne_bytes();
    let name = answer.get(NAME_AT..NAME_AT + ENDS)?;
    let is_of_it = names.iter().any(|known| known == name);
    let is_open = *answer.get(STATE_AT)? == ESTABLISHED;
    let user = answer.get(USER_AT..USER_AT + 4)?.try_into().ok()?;
    (is_answer && is_of_it && is_open).then_some(u32::from_ne_bytes(user))
}

/// Feeds an arbitrary answer of the kernel: no panic.
pub(crate) fn fuzz_answer(bytes: &[u8]) {
    let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let names = [false, true].map(|mapped| ends(at(1), at(2), mapped));
    let _ = told(&names, bytes);
    let _ = told_peer(7, bytes);
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn owner_of_a_connection_is_found() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(host) else {
                continue;
            };
            let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (ours, _) = listener.accept().unwrap();
            let (local, remote) = (theirs.local_addr().unwrap(), theirs.peer_addr().unwrap());
            let own = nix::unistd::geteuid().as_raw();
            assert_eq!(user(local, remote).unwrap(), Some(own), "{host}");
            assert_eq!(user(remote, local).unwrap(), Some(own), "{host}");
            let other = SocketAddr::new(local.ip(), listener.local_addr().unwrap().port());
            assert_eq!(user(other, other).unwrap(), None);
            drop(ours);
            drop(theirs);
            assert_eq!(user(local, remote).unwrap(), None, "it has ended");
        }
        // A dual-stack socket.
        if let Ok(listener) = TcpListener::bind("[::]:0") {
            let port = listener.local_addr().unwrap().port();
            let theirs = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let (ours, remote) = listener.accept().unwrap();
            let own = nix::unistd::geteuid().as_raw();
            assert_eq!(user(remote, ours.local_addr().unwrap()).unwrap(), Some(own));
            let (local, remote) = (ours.local_addr().unwrap(), theirs.local_addr().unwrap());
            assert_eq!(user(local, remote).unwrap(), Some(own), "the side of both");
        }
    }

    #[test]
    fn peer_of_a_local_socket_is_found() {
        use std::os::unix::net::UnixStream;
        let number = |stream: &UnixStream| {
            let descriptor = u64::try_from(stream.as_raw_fd()).unwrap();
            crate::proc::own().socket(descriptor).unwrap()
        };
        let (one, two) = UnixStream::pair().unwrap();
        assert_eq!(local_peer(number(&one)).unwrap(), Some(number(&two)));
        assert_eq!(local_peer(number(&two)).unwrap(), Some(number(&one)));
        let alone = UnixStream::pair().unwrap().0;
        assert_eq!(local_peer(number(&alone)).unwrap(), None);
        assert_eq!(local_peer(u64::MAX).unwrap(), None);
        let socket = u32::try_from(number(&one)).unwrap();
        let answer = ask(&local_question(socket)).unwrap();
        for length in 0..answer.len() {
            let _ = told_peer(socket, &answer[..length]);
        }
        assert_eq!(told_peer(socket + 1, &answer), None);
    }

    #[test]
    fn malformed_sock_diag_answer_names_no_user() {
        let (one, two) = (
            "127.0.0.1:1".parse().unwrap(),
            "127.0.0.1:2".parse().unwrap(),
        );
        assert_eq!(question(one, two).len(), QUESTION);
        assert_eq!(u32::try_from(QUESTION), Ok(QUESTION_BYTES));
        let names = [ends(one, two, false)];
        let mut answer = vec![0; USER_AT + 4];
        answer[TYPE_AT..TYPE_AT + 2].copy_from_slice(&BY_FAMILY.to_ne_bytes());
        answer[STATE_AT] = ESTABLISHED;
        answer[NAME_AT..NAME_AT + ENDS].copy_from_slice(&names[0]);
        answer[USER_AT..].copy_from_slice(&1000_u32.to_ne_bytes());
        assert_eq!(told(&names, &answer), Some(1000));
        for length in 0..answer.len() {
            assert_eq!(told(&names, &answer[..length]), None);
        }
        for (at, byte) in [(TYPE_AT, 2), (STATE_AT, 6), (NAME_AT, 9)] {
            let mut other = answer.clone();
            other[at] = byte;
            assert_eq!(told(&names, &other), None, "{at}");
        }
    }
}
