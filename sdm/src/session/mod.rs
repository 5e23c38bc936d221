//! A session: the launcher, the tree's root, and what they say.

pub mod api;
mod events;
mod live;
mod start;

pub use api::{Class, ClassAnswer, Debug, Member, SendOptions, SessionEvent};
pub use live::Session;
pub use start::{SessionConfig, SessionError, StartProgress};
