//! The agent's end of the resource-manager proxy protocol: a client is told a resource manager's elements, and its
//! commands are carried out.
//!
//! The thread of a [`worker::Worker`] queries a [`manager::Manager`]. The result is a [`snapshot::Snapshot`]; a
//! [`ledger::Ledger`] compares it with what was reported to the client. A [`service::Service`] decides, and
//! [`serve::serve`] is the event loop.

#![forbid(unsafe_code)]

pub mod error;
pub mod external;
pub mod gridengine;
mod held_jobs;
pub mod invoke;
pub mod ledger;
pub mod local;
pub mod manager;
mod notice_events;
mod program;
pub mod prrte;
mod script;
pub mod serve;
pub mod service;
pub mod slurm;
pub mod snapshot;
pub mod ssh;
pub mod worker;

/// Parses arbitrary bytes as answers of managers and hosts, and as notes of a guard. Checks that nothing panics.
#[doc(hidden)]
pub fn fuzz_answers(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    slurm::fuzz_answers(&text);
    gridengine::fuzz_answers(&text);
    prrte::fuzz_answers(&text);
    ssh::host_request::fuzz_messages(&text);
    let _ = serde_json::from_str::<invoke::guard::Note>(&text);
}
