//! The front-end of SDM as a library: start a session, send commands to sets of tasks, receive
//! what they answer, merged.

mod alike;
pub mod app;
pub mod cli;
pub mod commands;
pub mod compare;
pub mod diagnose;
pub mod json;
mod quoted;
pub mod render;
pub mod report;
pub mod session;
pub mod settings;
pub mod shell;
mod sink;
mod sys;
mod unread;
pub mod view;
