//! Limits of everything that a member stores, sends, receives or waits for, each by name.

use std::time::Duration;

pub use sdm_idset::SETS_BYTES_MAX;

/// The longest frame, in bytes: the most that an incomplete message can cost a member.
pub const FRAME_BYTES_MAX: usize = 16 << 20;
/// The longest payload of one answer class, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 4 << 20;
/// Maximum number of distinct answers kept apart per command. All further answers form one class `others`.
pub const CLASSES_MAX: usize = 4096;
/// Maximum number of blocks in one message.
pub const BLOCKS_MAX: usize = CLASSES_MAX + 2;
/// Maximum number of reasons in one answer for which tasks are missing; with the longest texts they are a quarter of a
/// frame. Tasks beyond share the last one.
pub const MISSING_REASONS_MAX: usize = 1024;
/// Maximum number of commands open at once in a member.
pub const OPEN_COMMANDS_MAX: usize = 1024;
/// Maximum number of bytes of cached answers a server keeps for repeats.
pub const REPLY_CACHE_BYTES_MAX: usize = 8 << 20;
/// Maximum number of servers in one session.
pub const SERVERS_MAX: u32 = 4 << 20;
/// Maximum number of addresses that one server may announce.
pub const ADDRESSES_MAX: usize = 16;
/// Maximum number of connections that wait for their handshake at once.
pub const STRANGERS_MAX: usize = 64;
/// Time limit for the handshake of a connection.
pub const HANDSHAKE_WAIT: Duration = Duration::from_secs(10);
/// Number of attempts of a master to connect to its front-end before it reports a failure.
pub const FRONT_END_TRIES: u32 = 10;
/// Number of ports that one server tries, from its base port upwards.
pub const PORT_TRIES_MAX: u16 = 256;
/// Size of a chunk of bulk data, in bytes: a control message waits behind one at most.
pub const BULK_CHUNK_BYTES_MAX: usize = 32 << 10;
/// Maximum number of bytes of bulk data in flight on one link.
pub const BULK_WINDOW_BYTES: u32 = 256 << 10;
/// Bytes of bulk data that a new link may send before it is granted more. Few, because one member may have
/// thousands of links.
pub const BULK_START_BYTES: u32 = 32 << 10;
/// Bytes of bulk data that all children of a member together may have in flight to it. They share them
/// evenly, each with [`BULK_WINDOW_BYTES`] at most and [`BULK_WINDOW_BYTES_MIN`] at least.
///
/// While its parent takes no output, a member therefore holds at most this (or the minimum for each child, where
/// that is more), one frame for each child, one window towards its parent, and the output that its own
/// tasks had printed before they were paused.
pub const BULK_NODE_BYTES: u32 = 4 << 20;
/// The least window of one child, in bytes.
pub const BULK_WINDOW_BYTES_MIN: u32 = 8 << 10;
/// Time without a record from a peer after which the peer gets a ping.
pub const PING_AFTER: Duration = Duration::from_secs(2);
/// Number of unanswered pings that make a peer silent: with [`PING_AFTER`], three seconds after the last
/// record from it.
pub const PINGS_UNANSWERED_MAX: u32 = 3;
/// Number of times that the kernel may retransmit the same bytes on a silent connection without an acknowledgement
/// before the other host counts as cut off. That takes 13 s if acknowledgements normally take 200 ms or less. A stopped
/// process does not count as cut off: its host's kernel acknowledges for it.
pub const RETRANSMITS_MAX: u8 = 6;
/// The longest text for a person in one message, in bytes; longer ones are cut.
pub const TEXT_BYTES_MAX: usize = 4096;
/// The longest host name or address, in bytes.
pub const NAME_BYTES_MAX: usize = 512;
/// Maximum total size of the host names and addresses of one plan, in bytes, before shared prefixes are left out.
pub const PLAN_TEXT_BYTES_MAX: usize = 128 << 20;
/// Maximum size of one part of a plan on the wire, in bytes, if the part has more than one entry. About sixty members
/// fit, so a small tree needs one message only.
pub const PLAN_PART_BYTES: usize = 8 << 10;
/// Maximum size of all parts of a plan on the wire, in bytes: they wait in the control lane of one link.
pub const PLAN_BYTES_MAX: usize = 48 << 20;
/// The longest parameters of a merge rule, in bytes.
pub const RULE_PARAMS_BYTES_MAX: usize = 64 << 10;
/// Maximum size of the backends' part of the configuration, in bytes.
pub const CONFIG_BACKEND_BYTES_MAX: usize = 1 << 20;
/// The longest frame of bulk data, in bytes.
pub const BULK_FRAME_BYTES_MAX: usize = 1 << 20;
/// Maximum size of the control lane's queue of one link, in bytes. A link whose peer reads too slowly is closed.
pub const LINK_CONTROL_BYTES_MAX: usize = 64 << 20;
/// Maximum size of the bulk lane's queue of one link, in bytes. The owner checks the backlog and stays far below.
pub const LINK_BULK_BYTES_MAX: usize = 64 << 20;
/// Size of one part of an exchange's data, and maximum size of a datagram, in bytes.
pub const EXCHANGE_CHUNK_BYTES: usize = 64 << 10;
/// Maximum number of bytes waiting in the control lane of one link when another part of an exchange is queued. A later
/// control message waits behind at most these bytes and that part.
pub const EXCHANGE_BACKLOG_BYTES: usize = 256 << 10;
/// Maximum size of the data of all tasks of one exchange together, in bytes.
pub const EXCHANGE_BYTES_MAX: u64 = 2 << 30;
/// Maximum number of exchanges under way at once in a member.
pub const EXCHANGES_MAX: usize = 256;
/// Number of failed exchanges that a member remembers, for tasks that join one late.
pub const EXCHANGES_FAILED_MAX: usize = 64;
