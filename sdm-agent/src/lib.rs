//! An agent: it tells a client over the resource-manager proxy protocol what a resource manager has, and submits to it.
//!
//! A [`manager::Manager`] is asked by the thread of a [`worker::Worker`]. What it has is a [`snapshot::Snapshot`]; a [`ledger::Ledger`] knows
//! what the client was told and finds what is new. A [`service::Service`] decides, [`serve::serve`] waits.

#![forbid(unsafe_code)]

pub mod error;
pub mod external;
pub mod gridengine;
mod held;
pub mod invoke;
pub mod ledger;
pub mod local;
pub mod manager;
pub mod prrte;
mod script;
pub mod serve;
pub mod service;
pub mod slurm;
pub mod snapshot;
pub mod ssh;
pub mod worker;

/// Reads any bytes as what managers and hosts answer, and as the notes of a guard: nothing panics.
#[doc(hidden)]
pub fn fuzz_answers(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    slurm::fuzz_answers(&text);
    gridengine::fuzz_answers(&text);
    prrte::fuzz_answers(&text);
    ssh::at_host::fuzz_messages(&text);
    let _ = serde_json::from_str::<invoke::guard::Note>(&text);
}
