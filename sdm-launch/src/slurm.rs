//! Slurm's `srun`.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::member::Started;
use crate::openmpi::is_option;
use crate::spec::command_line;
use crate::{Launch, LaunchError, LaunchSpec, Launcher};

/// Options that say to which cores tasks are bound.
const BIND_OPTIONS: &[&str] = &["cpu-bind", "cpu_bind"];

/// Lets Slurm start the servers: inside an allocation as a step of it, otherwise `srun` makes one.
///
/// What it adds to the user's options is `--cpu-bind=none`, where the user says nothing of binding: gdb
/// would share one core with its program otherwise. Which `--mpi` the program needs is the user's or the
/// cluster's choice. The environment is handed on, as `srun` does by default.
#[derive(Clone, Debug)]
pub struct Srun {
    program: PathBuf,
    version: String,
}

impl Srun {
    /// An `srun` that says it is `version`.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>, version: impl Into<String>) -> Self {
        Self {
            program: program.into(),
            version: version.into(),
        }
    }

    fn arguments(&self, spec: &LaunchSpec) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        let mut given = spec.launcher_options.iter();
        if !given.any(|it| is_option(it, BIND_OPTIONS)) {
            arguments.push("--cpu-bind=none".into());
        }
        arguments.extend(spec.launcher_options.iter().cloned());
        arguments.extend(["-n".into(), spec.count.to_string().into()]);
        arguments.push(spec.server.clone().into());
        arguments.extend(spec.server_args.iter().cloned());
        arguments
    }
}

impl Launcher for Srun {
    fn name(&self) -> &str {
        "srun"
    }

    fn describe(&self) -> String {
        format!("{} ({})", self.program.display(), self.version)
    }

    fn may_span_hosts(&self, _: &LaunchSpec) -> bool {
        true
    }

    fn launch(&self, spec: &LaunchSpec) -> Result<Launch, LaunchError> {
        spec.check(self.name())?;
        spec.check_options(self.name(), &["-n", "--ntasks"])?;
        let mut command = spec.command(&self.program);
        command.args(self.arguments(spec));
        let mut launch = Launch::new();
        if spec.verbose {
            launch.note(command_line(&command));
        }
        launch.spawn(command, Started::launcher(self.name(), spec.count))?;
        launch.all_started()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_options_come_unchanged() {
        let arguments = |options: &[&str]| {
            let mut spec = LaunchSpec::new(4, "/bin/sdm-server");
            spec.launcher_options = options.iter().map(Into::into).collect();
            let arguments = Srun::new("srun", "slurm").arguments(&spec);
            let arguments: Vec<_> = arguments.iter().map(|it| it.to_str().unwrap()).collect();
            arguments.join(" ")
        };
        assert_eq!(
            arguments(&["--mpi=pmi2", "-N2"]),
            "--cpu-bind=none --mpi=pmi2 -N2 -n 4 /bin/sdm-server"
        );
        assert_eq!(
            arguments(&["--cpu-bind=cores"]),
            "--cpu-bind=cores -n 4 /bin/sdm-server"
        );
    }
}
