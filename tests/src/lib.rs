//! Helpers that the tests across crates share: the binaries, sessions, and a check for leftover processes.

pub mod accessibility;
pub mod agent;
pub mod binaries;
pub mod browser;
pub mod clusters;
pub mod control;
pub mod cores;
pub mod counted_gdb;
pub mod disturbed;
pub mod doctor;
pub mod editor;
pub mod fixture;
pub mod golden;
pub mod guide;
pub mod hammer;
pub mod invoke;
pub mod job;
pub mod late;
pub mod ledger;
pub mod leftovers;
pub mod neighbour;
pub mod observations;
pub mod ordinary;
pub mod page;
pub mod parts;
pub mod place;
pub mod processes;
pub mod questions;
pub mod relay;
pub mod run;
pub mod schema;
pub mod screen;
pub mod sdm;
pub mod secret;
pub mod service;
pub mod terminal;
pub mod tool_moments;
pub mod united;
pub mod ways;

/// The code of `docs/api.md`, run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/api.md")]
struct ApiTable;
