//! Keeps a program that needs a terminal, while terminals attach and detach.
//!
//! A keeper ([`keep`]) is a process that runs the program on a pseudo-terminal and listens at a socket in the user's
//! runtime directory. [`resume`] lends it a terminal, and passes bytes both ways. When that process ends, by the detach
//! key, by `kill -9` or with its network connection, the program does not notice. The program's output is then kept in
//! a bounded ring; output that falls out of the ring is counted and reported. Nothing that a terminal has shown is
//! shown again, except for an unfinished line, such as a prompt.
//!
//! It knows nothing of debugging: `sdm` runs itself under it.

mod client;
mod keeper;
mod ring;
mod socket_path;
mod sys;
mod terminal_lease;
mod wire;

pub use client::{ReturnReason, resume, start_keeper, tell_to_detach};
pub use keeper::{KeepError, KeeperOptions, keep};
pub use socket_path::{About, KeeperState, Name, PlaceError, sessions};
pub use terminal_lease::{TerminalId, TerminalLease, TerminalMessage, Unexpected};
pub use wire::{Frame, Size, fuzz_frames, send};

/// The key that detaches a terminal: Ctrl-\, as in similar tools.
pub const DETACH_KEY: u8 = 0x1c;
