//! The launcher of Hydra: the `mpiexec` of MPICH and of the MPIs derived from it.

use sdm_text::printable_name;
use std::path::PathBuf;

use sdm_hosts::mpi::Mpi;

use crate::hosts::{names_hosts, with_shares};
use crate::launched_process::ProcessSpec;
use crate::machine_limits::check_room;
use crate::spec::{NUMBER_OPTIONS, command_line};
use crate::{Launch, LaunchError, LaunchSpec, Launcher};

/// Lets Hydra's `mpiexec` start the servers.
///
/// SDM adds to the user's options only the number of processes, and `-hosts a:2,b:2` where hosts are given
/// separately. Nothing more is needed: Hydra does not bind processes or count slots, and it passes its whole
/// environment on unless the user gives `-genvnone` or `-genvlist`.
#[derive(Clone, Debug)]
pub struct Hydra {
    program: PathBuf,
    version: String,
}

impl Hydra {
    /// Hydra's launcher as the program `program`, with the version that it reports.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>, version: impl Into<String>) -> Self {
        Self {
            program: program.into(),
            version: version.into(),
        }
    }
}

impl Launcher for Hydra {
    fn name(&self) -> &str {
        "mpiexec"
    }

    fn mpi(&self) -> Option<Mpi> {
        Some(Mpi::Mpich)
    }

    fn describe(&self) -> String {
        format!("{} ({})", printable_name(&self.program), self.version)
    }

    fn carries_environment(&self) -> bool {
        true
    }

    fn may_span_hosts(&self, spec: &LaunchSpec) -> bool {
        names_hosts(spec)
    }

    fn launch(&self, spec: &LaunchSpec) -> Result<Launch, LaunchError> {
        spec.check(self.name())?;
        spec.check_options(self.name(), NUMBER_OPTIONS)?;
        if !self.may_span_hosts(spec) {
            check_room(spec)?;
        }
        let mut command = spec.command(&self.program);
        if let Some(hosts) = with_shares(self.name(), spec)? {
            command.args(["-hosts".into(), hosts]);
        }
        command.args(&spec.launcher_options).args(spec.programs());
        let mut launch = Launch::new();
        if spec.verbose {
            launch.note(command_line(&command));
        }
        launch.spawn(command, ProcessSpec::launcher(self.name(), spec))?;
        launch.all_started()
    }
}
