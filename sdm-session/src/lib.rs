//! A session as a library, for every front-end: the launcher, the root of the tree, and their events.
//!
//! [`Session::start`] starts servers as a [`SessionConfig`] says and connects their tree. Commands go to
//! sets of tasks through [`DebugSession`]. The results are [`SessionEvent`]s: answers merged by class,
//! events, and the account of answered and missing tasks.
//!
//! Nothing here reads a user's line, shows anything, or writes to the terminal.

mod announcements;
pub mod api;
mod config;
mod controlled_job;
mod end_launch;
mod error;
mod events;
mod key;
mod launch;
mod live;
mod master;
mod plan;
mod rank_assignment;
mod reverse_listener;
mod spawn_ids;
mod start;
mod task_assignment;

pub use api::{DebugSession, SendOptions, SessionEvent, SessionMember};
pub use config::{Network, SessionConfig, StartProgress};
pub use error::{EndError, SessionError};
pub use key::KeyHandover;
pub use live::Session;
pub use sdm_debug::{Class, ClassAnswer};
pub use sdm_system::secret::withdraw_all;
