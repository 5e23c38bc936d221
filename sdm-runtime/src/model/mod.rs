//! The runtime model.
mod column;
pub mod definitions;
mod predefined;
pub mod states;
pub mod value;
