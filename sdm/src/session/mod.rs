//! A session: the launcher, the tree's root, and what they say.

pub mod api;
mod config;
mod desk;
mod error;
mod events;
mod hearing;
mod live;
mod master;
mod start;
mod starter;

pub use api::{Class, ClassAnswer, Debug, Member, SendOptions, SessionEvent};
pub use config::{Network, SessionConfig, StartProgress};
pub use error::SessionError;
pub use live::Session;
