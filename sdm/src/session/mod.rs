//! A session: the launcher, the tree's root, and what they say.

pub mod api;
mod config;
mod desk;
mod error;
mod events;
mod hearing;
mod key;
mod launching;
mod live;
mod master;
mod plan;
mod start;
mod starter;
mod withdraw;

pub use api::{Class, ClassAnswer, Debug, Member, SendOptions, SessionEvent};
pub use config::{Network, SessionConfig, StartProgress};
pub use error::SessionError;
pub use key::KeyHandover;
pub use live::Session;
pub use withdraw::withdraw_all;
