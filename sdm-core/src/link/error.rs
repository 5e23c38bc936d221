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
    #[error("the peer is not a program of sdm")]
    NotSdm,
    /// The other end has another wire version.
    #[error(
        "the peer has wire version {theirs}, this program has {ours}: install one version of sdm on all hosts"
    )]
    WireVersion {
        /// The wire version of this end.
        ours: u8,
        /// The wire version of the other end.
        theirs: u8,
    },
    /// The other end requires a feature before the handshake that this end does not know.
    #[error(
        "the peer requires features that this program does not know (flags {flags:#04x}): install one version of sdm on all hosts"
    )]
    UnknownFlags {
        /// All flags of the other end's preface.
        flags: u8,
    },
    /// An SDM peer, of another session.
    #[error("the peer belongs to another session")]
    WrongSession,
    /// The other end holds another key, or the handshake was tampered with.
    #[error("the peer does not hold the same session key")]
    WrongKey,
    /// The peer is a member of this session, but not the expected one.
    #[error("the connection to {expected} reached {reached}")]
    WrongPeer {
        /// The member that this end expected.
        expected: ServerId,
        /// The member that answered.
        reached: ServerId,
    },
    /// A member of this session connected here, but wanted another member.
    #[error("{caller} connected to reach {wanted}, but this is {own}")]
    Misdirected {
        /// The member that called.
        caller: ServerId,
        /// The member that the caller wanted.
        wanted: ServerId,
        /// The member that was reached.
        own: ServerId,
    },
    /// Both ends are parents, or both are children.
    #[error("this end and the peer both claim to be the {role}")]
    RoleClash {
        /// The role that both ends claim.
        role: Role,
    },
    /// The other end refused the connection, for the reason given.
    #[error("the peer refused the connection: {0}")]
    Refused(&'static str),
    /// The other end's handshake does not have the required format.
    #[error("the peer sent a handshake message of invalid length")]
    BadHandshake,
    /// The other end did not finish the handshake in time.
    #[error("the peer did not complete the handshake within {} s", .0.as_secs_f32())]
    HandshakeTimeout(Duration),
    /// A record was changed on the way, or repeated, or left out.
    #[error("a record from the peer cannot be decrypted: it was changed on the way")]
    BadRecord,
    /// Bytes arrived for as long as a peer may be silent, and completed no record: the record's length was changed on
    /// the way.
    #[error("a record from the peer is incomplete: its length was changed on the way")]
    EndlessRecord,
    /// The other end sent bytes that are not a message.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A message exceeds a bound. The link is as it was before.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The other end sent more bulk data than it was granted.
    #[error("the peer sent more data than this end had allowed")]
    CreditExceeded,
    /// A bound was reached.
    #[error("the {name} of the connection exceeds its limit of {max} bytes")]
    Limit {
        /// The name of the bound, as in `control lane`.
        name: &'static str,
        /// The bound, in bytes.
        max: u64,
    },
}

impl LinkError {
    /// True if the peer is a process other than the wanted member, which may be at another address.
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
