//! Selection and set-up of the backend that debugs the tasks, and the inherited state that programs get.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use sdm_backend_gdbmi::{GdbBackend, GdbConfig};
use sdm_bootstrap::handover::XSTATE_VARIABLE;
use sdm_child::{
    Binding, Channel, Completion, InheritedStreams, SignalState, StartConfig, Variables,
};
use sdm_debug::{BackendSettings, Failure, FailureCode, GdbOptions, LauncherDuties};
use sdm_fake::{FakeBackend, Scenario};
use sdm_idset::{IdSet, TaskId};

/// State that this process has inherited from its launcher, and that the programs are to inherit.
pub(crate) struct Inherited {
    signals: SignalState,
    binding: Option<Binding>,
    streams: Option<InheritedStreams>,
    completion: Completion,
    /// Path of the `ssh` on `PATH`; `None` if there is none.
    pub(crate) ssh: Option<PathBuf>,
}

impl Inherited {
    /// Captures the inherited state of this process. Call it before the state is changed. It then allows this process
    /// all processors that it may use. `streams` is true if the program gets the standard streams of this process.
    ///
    /// # Errors
    /// A standard stream cannot be passed on.
    pub(crate) fn take(streams: bool) -> std::io::Result<Self> {
        let streams = streams.then(InheritedStreams::take).transpose()?;
        Ok(Self {
            signals: SignalState::capture(),
            binding: Binding::widen(),
            streams,
            completion: Completion::default(),
            ssh: sdm_system::files::search("ssh"),
        })
    }

    /// Drops the standard streams, for a server that does not pass them to a program.
    pub(crate) fn without_streams(self) -> Self {
        Self {
            streams: None,
            ..self
        }
    }

    /// Sets the mode in which writes of registers through gdb are completed, from the environment
    /// variable's value.
    ///
    /// # Errors
    /// The value names no mode.
    pub(crate) fn with_completion(mut self, value: Option<OsString>) -> anyhow::Result<Self> {
        if let Some(value) = value {
            let parsed = value.to_string_lossy().parse::<Completion>();
            self.completion = parsed.map_err(|error| anyhow!("{XSTATE_VARIABLE}: {error}"))?;
        }
        Ok(self)
    }
}

/// Sets up the requested backend. Programs get the `inherited` state of this process, or that of the shim that starts
/// them.
///
/// # Errors
/// The scenario is invalid.
pub(crate) fn make(
    settings: BackendSettings,
    tasks: &IdSet,
    inherited: &Inherited,
    shims: Vec<(TaskId, Channel)>,
    variables: Variables,
) -> Result<Box<dyn LauncherDuties>, Failure> {
    let bad = |text: String| Failure::new(FailureCode::BadCommand, text);
    let gdb = move |options: GdbOptions| -> Box<dyn LauncherDuties> {
        let config = GdbConfig {
            internal_breakpoints: !options.no_holds,
            start: StartConfig {
                variables,
                ..start_config(options, tasks, inherited)
            },
            ..GdbConfig::default()
        };
        Box::new(GdbBackend::with_shims(config, shims))
    };
    Ok(match settings {
        BackendSettings::Gdb => gdb(GdbOptions::default()),
        BackendSettings::GdbWith(options) | BackendSettings::GdbHosted { options, .. } => {
            gdb(options)
        }
        BackendSettings::Fake { scenario } => {
            let scenario = Scenario::parse(&scenario).map_err(|error| bad(error.to_string()))?;
            // A server of a wide emulated tree has many connections; no program inherits the limit.
            if let Err(error) = sdm_system::resource_limits::raise_open_files() {
                tracing::warn!("cannot raise the limit of open files: {error}");
            }
            Box::new(FakeBackend::new(Arc::new(scenario), tasks))
        }
    })
}

/// The configuration for the start of these tasks' programs.
pub(crate) fn start_config(
    options: GdbOptions,
    tasks: &IdSet,
    inherited: &Inherited,
) -> StartConfig {
    StartConfig {
        signals: inherited.signals.clone(),
        binding: inherited.binding,
        streams: inherited.streams,
        // As under a runtime the first one reads.
        reader: tasks.first(),
        completion: inherited.completion,
        options,
        ..StartConfig::default()
    }
}
