//! Which backend drives the tasks, and what it says in the tree's words.

use std::ffi::OsString;
use std::sync::Arc;

use anyhow::anyhow;
use bytes::Bytes;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use sdm_backend_gdbmi::{
    Binding, Completion, GdbBackend, GdbConfig, InheritedStreams, SignalState,
};
use sdm_bootstrap::handover::XSTATE_VARIABLE;
use sdm_core::message::{Lane, Status};
use sdm_debug::{Backend, BackendOutput, BackendSettings, Failure, FailureCode, GdbOptions, wire};
use sdm_fake::{FakeBackend, Scenario};
use sdm_idset::IdSet;

/// What the launcher gave this process and means for the program.
pub(crate) struct Inherited {
    signals: SignalState,
    binding: Option<Binding>,
    streams: Option<InheritedStreams>,
    completion: Completion,
}

impl Inherited {
    /// What this process has now: to be called before anything is changed. From now on it may use all
    /// processors that it is allowed. `streams`: whether programs have its standard streams.
    ///
    /// # Errors
    /// A standard stream that cannot be handed on.
    pub(crate) fn take(streams: bool) -> std::io::Result<Self> {
        let streams = streams.then(InheritedStreams::take).transpose()?;
        Ok(Self {
            signals: SignalState::capture(),
            binding: Binding::widen(),
            streams,
            completion: Completion::default(),
        })
    }

    /// The same, with what the environment says of when gdb gets what completes its writes of registers.
    ///
    /// # Errors
    /// It says something else.
    pub(crate) fn with_completion(mut self, value: Option<OsString>) -> anyhow::Result<Self> {
        if let Some(value) = value {
            let parsed = value.to_string_lossy().parse::<Completion>();
            self.completion = parsed.map_err(|error| anyhow!("{XSTATE_VARIABLE}: {error}"))?;
        }
        Ok(self)
    }
}

/// Sets up the backend that the front-end asked for; programs find what this process has `inherited`.
///
/// # Errors
/// Settings that cannot be read, or a scenario that is none.
pub(crate) fn make(
    settings: &[u8],
    tasks: &IdSet,
    inherited: &Inherited,
) -> Result<Box<dyn Backend>, Failure> {
    let bad = |text: String| Failure::new(FailureCode::BadCommand, text);
    let settings = wire::decode(settings).map_err(|error| bad(error.to_string()))?;
    Ok(match settings {
        BackendSettings::Gdb => gdb_backend(GdbOptions::default(), inherited),
        BackendSettings::GdbWith(options) => gdb_backend(options, inherited),
        BackendSettings::Fake { scenario } => {
            let scenario = Scenario::parse(&scenario).map_err(|error| bad(error.to_string()))?;
            allow_many_children();
            Box::new(FakeBackend::new(Arc::new(scenario), tasks))
        }
    })
}

fn gdb_backend(options: GdbOptions, inherited: &Inherited) -> Box<dyn Backend> {
    Box::new(GdbBackend::new(GdbConfig {
        signals: inherited.signals.clone(),
        binding: inherited.binding,
        streams: inherited.streams.clone(),
        completion: inherited.completion,
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
