//! The bounds of everything that a member keeps, sends, takes or waits for, each by name.

use std::time::Duration;

/// The longest frame, in bytes: what one message may cost a member before it is complete.
pub const FRAME_BYTES_MAX: usize = 16 << 20;
/// The longest payload of one answer class, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 4 << 20;
/// The most distinct answers kept apart per command; the rest is one `others` class.
pub const CLASSES_MAX: usize = 4096;
/// The most blocks in one message.
pub const BLOCKS_MAX: usize = CLASSES_MAX + 2;
/// The most reasons in one answer for which tasks are missing; with the longest texts they are a quarter of a
/// frame. Tasks beyond share the last one.
pub const MISSING_REASONS_MAX: usize = 1024;
/// What all sets of one message together may own once decoded, in bytes; a dozen bytes can stand for
/// 2 MiB. As many disjoint sets of all ids as one message has stay below 80 MiB.
pub const SETS_BYTES_MAX: u64 = 128 << 20;
/// The most commands open at once in a member.
pub const OPEN_COMMANDS_MAX: usize = 1024;
/// The most bytes of cached answers a server keeps for repeats.
pub const REPLY_CACHE_BYTES_MAX: usize = 8 << 20;
/// The most servers in one session.
pub const SERVERS_MAX: u32 = 4 << 20;
/// The most addresses that one server may announce.
pub const ADDRESSES_MAX: usize = 16;
/// The most children of one member.
pub const CHILDREN_MAX: usize = 65_536;
/// The most connections that wait for their handshake at once.
pub const STRANGERS_MAX: usize = 64;
/// How long a connection may take for its handshake.
pub const HANDSHAKE_WAIT: Duration = Duration::from_secs(10);
/// How often a master tries to reach its front-end before it says that it cannot.
pub const FRONT_END_TRIES: u32 = 10;
/// How many ports above the base one a server tries.
pub const PORT_TRIES_MAX: u16 = 256;
/// A chunk of bulk data, in bytes: a control message waits behind one at most.
pub const BULK_CHUNK_BYTES_MAX: usize = 32 << 10;
/// Bytes of bulk data that may be under way on one link without being granted anew.
pub const BULK_WINDOW_BYTES: u32 = 256 << 10;
/// What a new link may send of it before it is granted more: little, as one member may have
/// thousands of links.
pub const BULK_START_BYTES: u32 = 32 << 10;
/// Bytes of bulk data that all children of a member together may have under way to it: they share it
/// evenly, each with [`BULK_WINDOW_BYTES`] at most and [`BULK_WINDOW_BYTES_MIN`] at least.
///
/// So while nobody takes its output a member holds at most this (or the minimum for each child, where
/// that is more), one frame for each child, one window towards its parent, and what its own
/// tasks had printed before they were held back.
pub const BULK_NODE_BYTES: u32 = 4 << 20;
/// The least window of one child, in bytes.
pub const BULK_WINDOW_BYTES_MIN: u32 = 8 << 10;
/// A peer quiet for this long is asked for a sign of life.
pub const PING_AFTER: Duration = Duration::from_secs(2);
/// How many unanswered pings make a peer silent: they follow each other so that it is three seconds after the last that was
/// heard of it.
pub const PINGS_UNANSWERED_MAX: u32 = 3;
/// How often in a row the kernel may send the same bytes of a silent connection again without any
/// acknowledgement before the other host counts as cut off: 13 s where it answers within 200 ms. A
/// process that stands still is not meant: its host's kernel acknowledges for it.
pub const RETRANSMITS_MAX: u8 = 6;
/// The longest text for a person in one message, in bytes; longer ones are cut.
pub const TEXT_BYTES_MAX: usize = 4096;
/// The longest host name or address, in bytes.
pub const NAME_BYTES_MAX: usize = 512;
/// The most names in one plan, in bytes once unfolded.
pub const PLAN_TEXT_BYTES_MAX: usize = 128 << 20;
/// What one part of a plan takes on the wire at most, in bytes, where it has more than one entry: some sixty members, so that
/// a small tree is told in one message.
pub const PLAN_PART_BYTES: usize = 8 << 10;
/// What all parts of a plan together may take on the wire, in bytes: they wait in the control lane of one link.
pub const PLAN_BYTES_MAX: usize = 48 << 20;
/// The longest parameters of a merge rule, in bytes.
pub const RULE_PARAMS_BYTES_MAX: usize = 64 << 10;
/// The most that the configuration may hold for the backends, in bytes.
pub const CONFIG_BACKEND_BYTES_MAX: usize = 1 << 20;
/// The longest frame of bulk data, in bytes.
pub const BULK_FRAME_BYTES_MAX: usize = 1 << 20;
/// The most that waits in the control lane of one link, in bytes; a peer that does not read that
/// much is given up.
pub const LINK_CONTROL_BYTES_MAX: usize = 64 << 20;
/// The most that waits in the bulk lane of one link, in bytes. The owner stays far below by looking
/// at the backlog.
pub const LINK_BULK_BYTES_MAX: usize = 64 << 20;
/// A part of what an exchange carries, in bytes, and the longest letter.
pub const EXCHANGE_CHUNK_BYTES: usize = 64 << 10;
/// So much of the control lane of one link may wait where another part of an exchange is added to it, in bytes: what is said
/// later waits behind no more than this.
pub const EXCHANGE_BACKLOG_BYTES: usize = 256 << 10;
/// What all who take part in an exchange may give together, in bytes.
pub const EXCHANGE_BYTES_MAX: u64 = 2 << 30;
/// The most exchanges under way at once in a member.
pub const EXCHANGES_MAX: usize = 256;
/// So many exchanges that could not be are remembered, for who comes to them late.
pub const EXCHANGES_FAILED_MAX: usize = 64;
