//! The start of a session's process: its key, its announcement, its log and its starter.
//!
//! The process receives the session's name and key from its starter ([`handover::take`]). It announces its identity and
//! address in one line ([`announce::Announcement`]). Its log lines have a prefix by which the front-end recognises them
//! ([`log::LogWriter`]). It is notified when its starter has ended ([`starter::Starter`]).
//!
//! Nothing here sends a message of the tree or knows its contents.

pub mod announce;
pub mod handover;
pub mod joined;
pub mod log;
pub mod starter;

use std::io::Write;

pub use sdm_text::{Complaints, escape_panics};

// The number that a runtime gives a process is its server's number.
const _: () = assert!(sdm_system::launcher_env::NUMBER_MAX == sdm_core::ServerId::SERVER_MAX.0);

/// Parses the command line of this process. If it is wrong, the error is printed and the process exits. The error
/// quotes the command line, with control characters escaped.
pub fn arguments<T: clap::Parser>() -> T {
    T::try_parse().unwrap_or_else(|error| {
        if error.use_stderr() {
            let text = error.render().to_string();
            // A failed write to standard error is ignored.
            let _ = write!(Complaints, "{text}");
            std::process::exit(error.exit_code());
        }
        error.exit()
    })
}
