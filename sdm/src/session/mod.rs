//! A session: the launcher, the tree's root, and what they say.

pub mod api;
mod error;
mod events;
mod hearing;
mod live;
mod start;

pub use api::{Class, ClassAnswer, Debug, Member, SendOptions, SessionEvent};
pub use error::SessionError;
pub use live::Session;
pub use start::{SessionConfig, StartProgress};
