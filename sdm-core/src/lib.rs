//! The tree: it carries commands from a front-end to any set of tasks and merged answers back,
//! and knows nothing of what they mean.

pub mod aggregate;
pub mod announce;
pub mod codec;
pub mod config;
pub mod dialer;
#[cfg(feature = "net")]
pub mod driver;
pub mod frame;
pub mod handover;
pub mod ids;
pub mod limits;
pub mod link;
pub mod member;
pub mod message;
pub mod node;
pub mod outcome;
pub mod secure;
pub mod topology;
pub mod transport;

pub use aggregate::Merge;
pub use config::Config;
pub use ids::{Attempt, CommandId, Epoch, ServerId, SessionId};
pub use outcome::{Failure, Outcome};
