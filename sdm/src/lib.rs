//! The command `sdm`: arguments, settings, the prompt and the terminal around the libraries `sdm_session`,
//! `sdm_view` and `sdm_shell`.
//!
//! [`cli::Cli`] is the command line, [`app::main`] carries it out. Sessions, output and the language of the
//! prompt are defined in those libraries, never here.

pub mod app;
mod blocked_output;
mod build;
pub mod cli;
mod cluster;
mod doctor;
mod locale;
mod pmix;
pub mod settings;
mod sink;
mod sys;
mod tail_buffer;
mod user_state;
