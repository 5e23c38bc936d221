//! A session as a library, for every front-end: the launcher, the root of the tree, and the events of both.
//!
//! [`Session::start`] starts servers as a [`SessionConfig`] says and connects their tree. Commands go to
//! sets of tasks through [`DebugSession`]. The results are [`SessionEvent`]s: answers merged by class,
//! events, and the account of answered and missing tasks.
//!
//! Nothing here reads a user's line, shows anything, or writes to the terminal.

pub mod api;
mod config;
mod end_launch;
mod error;
mod events;
mod hearing;
mod joining;
mod key;
mod launching;
mod live;
mod master;
mod plan;
mod reverse_listener;
mod sharing;
mod spare;
mod start;
mod starter;
mod sys;

pub use api::{Class, ClassAnswer, DebugSession, SendOptions, SessionEvent, SessionMember};
pub use config::{Network, SessionConfig, StartProgress};
pub use error::{EndError, SessionError};
pub use key::KeyHandover;
pub use live::Session;
pub use sdm_system::secret::withdraw_all;
