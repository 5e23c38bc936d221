//! How a process of a session begins and how it says so.
//!
//! It takes the session's name and key over from whoever started it ([`handover::take`]), says in one line who and where it
//! is ([`announce::Announcement`]), writes its log in lines that are told from other text ([`log::LogWriter`]), and hears when
//! whoever started it has ended ([`starter::Starter`]).
//!
//! Nothing here sends a message of the tree or knows what the tree carries.

pub mod announce;
mod complaints;
pub mod handover;
pub mod joined;
pub mod log;
pub mod starter;

pub use complaints::{Complaints, arguments, escape_panics};

// A runtime's number for a process is the number of its server.
const _: () = assert!(sdm_system::identity::NUMBER_MAX == sdm_core::ServerId::SERVER_MAX.0);
