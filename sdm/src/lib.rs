//! The front-end of SDM as a library: start a session, send commands to sets of tasks, receive
//! what they answer, merged.

pub mod cli;
pub mod commands;
pub mod json;
pub mod render;
pub mod session;
pub mod shell;
pub mod view;
