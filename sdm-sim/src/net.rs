//! The network: connections of two ordered pipes, bytes in transit, ports.

use std::collections::VecDeque;

use sdm_core::ServerId;
use sdm_core::node::LinkId;

/// Number of a connection.
pub(crate) type ConnId = u32;

/// An item in a pipe.
pub(crate) enum Item {
    Bytes(Vec<u8>),
    /// The end of the stream, after all bytes.
    End,
    /// The connection is broken.
    Reset,
}

/// One direction of a connection: bytes arrive in order, unless the connection breaks.
#[derive(Default)]
pub(crate) struct Pipe {
    pub(crate) items: VecDeque<(u64, Item)>,
    /// Number of bytes in transit in the pipe.
    pub(crate) bytes: usize,
    /// Time before which nothing arrives: a network fault that the sender does not notice.
    pub(crate) blocked_until: u64,
    /// Additional delay of each item, in microseconds.
    pub(crate) slower_us: u64,
    /// Arrival time of the last item. No item overtakes another.
    pub(crate) last_at: u64,
}

impl Pipe {
    /// True if the reader will receive the end of the stream or an error after the pending bytes.
    pub(crate) fn will_end(&self) -> bool {
        let last = self.items.back();
        last.is_some_and(|(_, item)| !matches!(item, Item::Bytes(_)))
    }
}

/// The owner of one end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Who {
    Server(ServerId),
    /// A process that is no member of the session.
    Stranger,
}

/// One end of a connection.
pub(crate) struct End {
    pub(crate) who: Who,
    /// The link id that the member has given the connection; `None` before.
    pub(crate) link: Option<LinkId>,
    pub(crate) open: bool,
}

/// One connection; `pipes[side]` carries the bytes sent by `ends[side]`.
pub(crate) struct Conn {
    pub(crate) ends: [End; 2],
    pub(crate) pipes: [Pipe; 2],
    /// The caller's first bytes, for later replay.
    pub(crate) recorded: Vec<u8>,
}

/// Number of bytes of a connection that are recorded for replay.
pub(crate) const RECORDED_BYTES: usize = 2048;

impl Conn {
    pub(crate) fn new(caller: Who, called: Who) -> Self {
        let end = |who| End {
            who,
            link: None,
            open: true,
        };
        Self {
            ends: [end(caller), end(called)],
            pipes: [Pipe::default(), Pipe::default()],
            recorded: Vec::new(),
        }
    }

    pub(crate) fn is_between(&self, one: ServerId, other: ServerId) -> bool {
        let who = [self.ends[0].who, self.ends[1].who];
        let (one, other) = (Who::Server(one), Who::Server(other));
        who == [one, other] || who == [other, one]
    }

    pub(crate) fn is_open(&self) -> bool {
        self.ends.iter().all(|end| end.open)
    }
}

/// The address at which a server listens.
pub(crate) fn address_of(server: ServerId) -> String {
    let (host, port) = (server.0 >> 8 & 0xFF, 7000 + (server.0 & 0xFF));
    format!("tcp://10.1.{host}.1:{port}")
}

/// The server that listens at an address; `None` for other addresses.
pub(crate) fn server_at(address: &str) -> Option<ServerId> {
    let rest = address.strip_prefix("tcp://10.1.")?;
    let (host, port) = rest.split_once(".1:")?;
    let (host, port): (u32, u32) = (host.parse().ok()?, port.parse().ok()?);
    Some(ServerId(host << 8 | port.checked_sub(7000)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_is_found_by_its_address() {
        for id in [0, 1, 255, 256, 65_535] {
            assert_eq!(server_at(&address_of(ServerId(id))), Some(ServerId(id)));
        }
        assert_eq!(server_at("tcp://10.1.0.1:22"), None);
    }
}
