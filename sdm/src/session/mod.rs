//! A session: the launcher, the tree's root, and what they say.

pub mod api;

pub use api::{Class, ClassAnswer, Debug, SendOptions, SessionEvent};
