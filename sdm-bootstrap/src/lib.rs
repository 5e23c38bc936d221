//! The start of a session's process: its key, its announcement, its log and its starter.
//!
//! The process receives the session's name and key from its starter ([`handover::take`]). It announces its identity and
//! address in one line ([`announce::Announcement`]). Its log lines have a prefix by which the front-end recognises them
//! ([`log::LogWriter`]). It is notified when its starter has ended ([`starter::Starter`]).
//!
//! Nothing here sends a message of the tree or knows its contents.

pub mod announce;
mod complaints;
pub mod handover;
pub mod joined;
pub mod log;
pub mod starter;

pub use complaints::{Complaints, arguments, escape_panics};

// The number that a runtime gives a process is its server's number.
const _: () = assert!(sdm_system::launcher_env::NUMBER_MAX == sdm_core::ServerId::SERVER_MAX.0);
