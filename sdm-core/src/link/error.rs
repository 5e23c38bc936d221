//! The reasons for which a link is refused or ends.

use std::time::Duration;

use crate::codec::{DecodeError, EncodeError};
use crate::ids::ServerId;
use crate::secure::Role;

/// Cause for which a link is refused or ends. All but [`LinkError::Encode`] end the link.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The peer uses another protocol.
    #[error("not an SDM peer")]
    NotSdm,
    /// The other end was built for another wire.
    #[error("the peer has wire version {theirs}, this program has {ours}")]
    WireVersion {
        /// The wire version of this end.
        ours: u8,
        /// The other end's.
        theirs: u8,
    },
    /// The other end requires a feature before the handshake that this end does not know.
    #[error("unknown preface flags {flags:#04x}")]
    UnknownFlags {
        /// All flags of the preface.
        flags: u8,
    },
    /// An SDM peer, of another session.
    #[error("the peer belongs to another session")]
    WrongSession,
    /// The other end holds another key, or the handshake was tampered with.
    #[error("the peer does not hold the same session key")]
    WrongKey,
    /// The peer is a member of this session, but not the expected one.
    #[error("expected {expected}, reached {reached}")]
    WrongPeer {
        /// The member that this end expected.
        expected: ServerId,
        /// The member that answered.
        reached: ServerId,
    },
    /// A member of this session connected here, but wanted another member.
    #[error("{caller} connected for {wanted}, but this is {own}")]
    Misdirected {
        /// The member that called.
        caller: ServerId,
        /// The member that the caller wanted.
        wanted: ServerId,
        /// The member that was reached.
        own: ServerId,
    },
    /// Both ends are parents, or both are children.
    #[error("both ends claim to be the {role}")]
    RoleClash {
        /// The role that both ends claim.
        role: Role,
    },
    /// The other end sent this one away.
    #[error("the peer refused the link: {0}")]
    Refused(&'static str),
    /// The handshake breaks its format.
    #[error("a handshake message has an invalid length")]
    BadHandshake,
    /// The other end did not finish the handshake in time.
    #[error("no handshake within {} s", .0.as_secs_f32())]
    HandshakeTimeout(Duration),
    /// A record was changed on the way, or repeated, or left out.
    #[error("a record cannot be decrypted")]
    BadRecord,
    /// Bytes arrived for the time after which a peer is silent, and no record ended: its length was changed on the way.
    #[error("a record has no end")]
    EndlessRecord,
    /// The other end sent bytes that are not a message.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A message above a bound; the link is as it was before.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The other end sent more bulk data than it was granted.
    #[error("the peer sent bulk data without credit")]
    CreditExceeded,
    /// A bound was reached.
    #[error("{name} reached its limit of {max}")]
    Limit {
        /// The name of the bound, as in `control lane`.
        name: &'static str,
        /// The bound, in bytes.
        max: u64,
    },
}

impl LinkError {
    /// True where the peer is a process other than the wanted member, which may be at another address.
    #[must_use]
    pub fn is_someone_else(&self) -> bool {
        matches!(
            self,
            Self::NotSdm
                | Self::WireVersion { .. }
                | Self::UnknownFlags { .. }
                | Self::WrongSession
                | Self::WrongKey
                | Self::WrongPeer { .. }
                | Self::Refused(_)
                | Self::BadHandshake
        )
    }
}
