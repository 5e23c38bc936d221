//! Messages with descriptors, between a shim and the server that controls its program.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, UnixAddr, recv, recvmsg, sendmsg,
};
use sdm_system::peer::check_this_user;

use crate::sys;

/// Maximum size of a message, in bytes. A Unix socket accepts it in one piece unless its limit was lowered.
pub(super) const MESSAGE_BYTES_MAX: usize = 160 << 10;
/// Maximum number of descriptors with one message.
const DESCRIPTORS_MAX: usize = 8;
/// Maximum number of messages that are queued for a peer that does not read.
const QUEUE_MAX: usize = 64;

/// One end of a connection that preserves message boundaries (`SOCK_SEQPACKET`).
///
/// No call blocks: a message that cannot be sent now is sent later, see [`Channel::flush`].
#[derive(Debug)]
pub struct Channel {
    socket: OwnedFd,
    queue: VecDeque<(Vec<u8>, Vec<OwnedFd>)>,
}

/// The result of a receive.
#[derive(Debug)]
pub(super) enum Received {
    /// A message and its descriptors.
    Message(Vec<u8>, Vec<OwnedFd>),
    /// No message at present.
    Nothing,
    /// The peer has closed the connection.
    Closed,
}

impl Channel {
    /// A channel over a connected `SOCK_SEQPACKET` socket.
    ///
    /// # Errors
    /// [`io::Error`] if the peer belongs to another user.
    pub fn new(socket: OwnedFd) -> io::Result<Self> {
        check_this_user(&socket)?;
        Ok(Self {
            socket,
            queue: VecDeque::new(),
        })
    }

    /// The descriptor to watch: for reading, and for writing while [`Channel::wants_write`] is true.
    #[must_use]
    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// True if messages wait to be sent.
    #[must_use]
    pub fn wants_write(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Sends a message, or queues it until the peer can receive it.
    pub(super) fn send(&mut self, bytes: Vec<u8>, fds: Vec<OwnedFd>) -> io::Result<()> {
        if bytes.len() > MESSAGE_BYTES_MAX || fds.len() > DESCRIPTORS_MAX {
            let (length, count) = (bytes.len(), fds.len());
            let text = format!(
                "a message of sdm-shim has {length} bytes and {count} descriptors: the maximum is {MESSAGE_BYTES_MAX} and {DESCRIPTORS_MAX}"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        if self.queue.len() == QUEUE_MAX {
            return Err(io::Error::other(format!(
                "the peer of sdm-shim's connection does not read: {QUEUE_MAX} messages are queued"
            )));
        }
        self.queue.push_back((bytes, fds));
        self.flush()
    }

    /// Sends the queued messages, as far as the peer can receive them.
    ///
    /// # Errors
    /// [`io::Error`] if the peer has closed the connection.
    pub fn flush(&mut self) -> io::Result<()> {
        while let Some((bytes, fds)) = self.queue.front() {
            let raw: Vec<RawFd> = fds.iter().map(AsRawFd::as_raw_fd).collect();
            let rights = [ControlMessage::ScmRights(&raw)];
            let rights = if raw.is_empty() {
                &rights[..0]
            } else {
                &rights
            };
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
            let fd = self.socket.as_raw_fd();
            match sendmsg::<UnixAddr>(fd, &[IoSlice::new(bytes)], rights, flags, None) {
                Ok(_) => drop(self.queue.pop_front()),
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Receives the next message.
    ///
    /// # Errors
    /// [`io::Error`] if the message is larger than any valid one.
    pub(super) fn receive(&mut self) -> io::Result<Received> {
        let fd = self.socket.as_raw_fd();
        let peek = MsgFlags::MSG_PEEK | MsgFlags::MSG_TRUNC | MsgFlags::MSG_DONTWAIT;
        let length = loop {
            match recv(fd, &mut [], peek) {
                Ok(0) | Err(Errno::ECONNRESET) => return Ok(Received::Closed),
                Ok(length) => break length,
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Ok(Received::Nothing),
                Err(error) => return Err(error.into()),
            }
        };
        if length > MESSAGE_BYTES_MAX {
            let text = format!(
                "a message of sdm-shim has {length} bytes: the maximum is {MESSAGE_BYTES_MAX}"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let mut bytes = vec![0; length];
        let mut space = nix::cmsg_space!([RawFd; DESCRIPTORS_MAX]);
        let flags = MsgFlags::MSG_CMSG_CLOEXEC | MsgFlags::MSG_DONTWAIT;
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let message = recvmsg::<UnixAddr>(fd, &mut parts, Some(&mut space), flags)?;
        let mut fds = Vec::new();
        for control in message.cmsgs()? {
            if let ControlMessageOwned::ScmRights(numbers) = control {
                fds.extend(numbers.into_iter().map(sys::own_received));
            }
        }
        Ok(Received::Message(bytes, fds))
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};

    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};

    use super::*;

    fn pair() -> (Channel, Channel) {
        let flags = SockFlag::SOCK_CLOEXEC;
        let (one, other) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags).unwrap();
        (Channel::new(one).unwrap(), Channel::new(other).unwrap())
    }

    #[test]
    fn shim_channel_keeps_message_boundaries_and_descriptors() {
        let (mut one, mut other) = pair();
        let (mut reader, writer) = io::pipe().unwrap();
        one.send(b"first".to_vec(), vec![writer.into()]).unwrap();
        one.send(b"second".to_vec(), Vec::new()).unwrap();
        let Received::Message(bytes, fds) = other.receive().unwrap() else {
            panic!("the first is there");
        };
        assert_eq!((&bytes[..], fds.len()), (&b"first"[..], 1));
        for fd in fds {
            File::from(fd).write_all(b"through").unwrap();
        }
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");
        let second = other.receive().unwrap();
        assert!(matches!(second, Received::Message(bytes, _) if bytes == b"second"));
        assert!(matches!(other.receive().unwrap(), Received::Nothing));
        drop(one);
        assert!(matches!(other.receive().unwrap(), Received::Closed));
        assert!(other.send(b"x".to_vec(), Vec::new()).is_err());
    }

    #[test]
    fn unread_messages_are_queued_up_to_a_bound() {
        let (mut one, mut other) = pair();
        assert!(
            one.send(vec![0; MESSAGE_BYTES_MAX + 1], Vec::new())
                .is_err()
        );
        let mut sent = 0;
        while one.send(vec![7; MESSAGE_BYTES_MAX], Vec::new()).is_ok() {
            sent += 1;
            assert!(sent < 10_000);
        }
        assert!(one.wants_write());
        let mut received = 0;
        while let Received::Message(bytes, _) = other.receive().unwrap() {
            assert_eq!(bytes.len(), MESSAGE_BYTES_MAX);
            received += 1;
            one.flush().unwrap();
        }
        assert_eq!(received, sent);
    }
}
