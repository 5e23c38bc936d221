//! Which backend drives the tasks, and what it says in the tree's words.

use std::sync::Arc;

use bytes::Bytes;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use sdm_backend_gdbmi::{GdbBackend, GdbConfig, SignalState};
use sdm_core::Failure;
use sdm_core::message::{Lane, Status};
use sdm_debug::fake::{FakeBackend, Scenario};
use sdm_debug::{Backend, BackendOutput, BackendSettings, FailureCode, GdbOptions, wire};
use sdm_idset::IdSet;

/// Sets up the backend that the front-end asked for; programs find their signals as `signals` says.
///
/// # Errors
/// Settings that cannot be read, or a scenario that is none.
pub(crate) fn make(
    settings: &[u8],
    tasks: &IdSet,
    signals: SignalState,
) -> Result<Box<dyn Backend>, Failure> {
    let bad = |text: String| Failure::new(FailureCode::BadCommand, text);
    let settings = wire::decode(settings).map_err(|error| bad(error.to_string()))?;
    Ok(match settings {
        BackendSettings::Gdb => gdb_backend(GdbOptions::default(), signals),
        BackendSettings::GdbWith(options) => gdb_backend(options, signals),
        BackendSettings::Fake { scenario } => {
            let scenario = Scenario::parse(&scenario).map_err(|error| bad(error.to_string()))?;
            allow_many_children();
            Box::new(FakeBackend::new(Arc::new(scenario), tasks))
        }
    })
}

fn gdb_backend(options: GdbOptions, signals: SignalState) -> Box<dyn Backend> {
    Box::new(GdbBackend::new(GdbConfig {
        signals,
        internal_breakpoints: !options.no_holds,
        options,
        ..GdbConfig::default()
    }))
}

/// A wide tree has many connections in one process. No program will be started from this one that
/// could find the limit changed; where it cannot be raised, connections fail and say so.
fn allow_many_children() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
        && let Err(error) = setrlimit(Resource::RLIMIT_NOFILE, hard, hard)
    {
        tracing::warn!("raise the limit of descriptors from {soft} to {hard}: {error}");
    }
}

/// What goes up: an answer's status and payload, or an event's lane and payload.
pub(crate) enum Upward {
    /// An answer.
    Answer(sdm_core::CommandId, IdSet, Status, Bytes),
    /// An event.
    Event(IdSet, Lane, Bytes),
}

/// Puts what a backend says into the tree's words.
pub(crate) fn upward(output: BackendOutput) -> Upward {
    match output {
        BackendOutput::Answer { id, task, result } => {
            let (status, payload) = match result {
                Ok(reply) => (Status::Ok, wire::encode(&reply).into()),
                Err(failure) => (Status::Failed, failure.encode()),
            };
            Upward::Answer(id, IdSet::single(task), status, payload)
        }
        BackendOutput::Event { task, event } => {
            let lane = if event.is_bulk() {
                Lane::Bulk
            } else {
                Lane::Control
            };
            Upward::Event(IdSet::single(task), lane, wire::encode(&event).into())
        }
    }
}
