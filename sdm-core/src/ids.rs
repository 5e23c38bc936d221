//! Identifiers in the tree. Each has a type of its own: none is a rank or a Unix pid.

use std::fmt;

/// Names one member of the tree.
///
/// Servers are numbered from 0; the master and the front-end have names of their own at the top of
/// the range.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId(pub u32);

impl ServerId {
    /// The master: the root of the tree of servers.
    pub const MASTER: ServerId = ServerId(u32::MAX);
    /// The front-end: the master's parent.
    pub const FRONT_END: ServerId = ServerId(u32::MAX - 1);
    /// The largest id that a server can have.
    pub const SERVER_MAX: ServerId = ServerId(u32::MAX - 16);
}

impl fmt::Display for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::MASTER => f.write_str("master"),
            Self::FRONT_END => f.write_str("front-end"),
            Self(id) => write!(f, "server {id}"),
        }
    }
}

impl fmt::Debug for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Names one command of a session; rising, never reused. 0 is the initialisation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct CommandId(pub u64);

impl CommandId {
    /// The initialisation of the tree ("PTP new SDM, Initialization"), answered by every task.
    pub const INIT: CommandId = CommandId(0);
}

impl fmt::Display for CommandId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Number of a request to a subtree: a repeated request has a higher number, and
/// answers to a lower one are dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Attempt(pub u32);

/// Counts the attachments of a member: a link of a higher epoch replaces an older one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Epoch(pub u32);

impl Epoch {
    /// The next epoch; the last one is its own successor. Only a malicious peer reaches it, and such a member
    /// cannot be attached any more.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// Names a session: drawn at random by the front-end.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionId(pub [u8; 8]);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for SessionId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = "expected a session id of 16 hexadecimal digits";
        if text.len() != 16 || !text.is_ascii() {
            return Err(bad);
        }
        let mut id = [0; 8];
        for (byte, at) in id.iter_mut().zip((0..16).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| bad)?;
        }
        Ok(Self(id))
    }
}
