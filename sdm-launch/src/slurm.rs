//! The launcher of Slurm: `srun`.

use sdm_text::printable_name;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;

use crate::launched_process::ProcessSpec;
use crate::spec::command_line;
use crate::{Control, Launch, LaunchError, LaunchSpec, Launcher};

/// Option by which `srun` copies the server to each node.
const STAGE_OPTION: &str = "--bcast=/tmp/";

/// Lets Slurm start the servers: inside an allocation as a step of it, otherwise `srun` creates one.
///
/// SDM adds to the user's options only the number of processes, and options for a copied server or several programs.
/// The `--mpi` that the program needs is the user's or the cluster's choice. `srun` passes the environment on by
/// default.
#[derive(Clone, Debug)]
pub struct Srun {
    program: PathBuf,
    version: String,
}

impl Srun {
    /// Slurm's launcher as the program `program`, with the version that it reports.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>, version: impl Into<String>) -> Self {
        Self {
            program: program.into(),
            version: version.into(),
        }
    }

    /// The arguments of `srun`. `programs` is the file with the program of each rank; `None` if all ranks run the same
    /// program, or the server is copied.
    fn arguments(&self, spec: &LaunchSpec, programs: Option<&Path>) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        if spec.stage {
            arguments.push(STAGE_OPTION.into());
        }
        arguments.extend(spec.launcher_options.iter().cloned());
        arguments.extend(["-n".into(), spec.count.to_string().into()]);
        match programs {
            Some(file) => arguments.extend(["--multi-prog".into(), file.into()]),
            None => {
                arguments.push(spec.server.clone().into());
                arguments.extend(spec.server_args.iter().cloned());
                if spec.stage {
                    // Slurm does not remove it.
                    arguments.push("--staged".into());
                }
            }
        }
        arguments
    }
}

impl Launcher for Srun {
    fn name(&self) -> &str {
        "srun"
    }

    fn describe(&self) -> String {
        format!("{} ({})", printable_name(&self.program), self.version)
    }

    fn carries_environment(&self) -> bool {
        true
    }

    fn may_span_hosts(&self, _: &LaunchSpec) -> bool {
        true
    }

    fn stages(&self) -> bool {
        true
    }

    fn control(&self) -> Option<Control> {
        Some(Control::Mpir)
    }

    fn launch(&self, spec: &LaunchSpec) -> Result<Launch, LaunchError> {
        spec.check(self.name())?;
        spec.check_options(self.name(), &["-n", "--ntasks"])?;
        spec.check_no_part_options(self.name())?;
        if !spec.hosts.is_empty() && !spec.attaches {
            return Err(LaunchError::Hosts {
                launcher: self.name().to_owned(),
                what: "srun takes its hosts from Slurm: use --launcher-option --nodelist=a,b instead of --host".to_owned(),
            });
        }
        let mut launch = Launch::new();
        let programs = match spec.parts.len() {
            0 | 1 => None,
            // Slurm does not copy programs that are named in a file; the copied server is the same for all programs.
            _ if spec.stage => None,
            _ => {
                let text = programs(spec)?;
                let path = launch.hold_text(&text);
                Some(path.map_err(|source| LaunchError::Watch {
                    who: self.name().to_owned(),
                    op: "memfd_create",
                    source,
                })?)
            }
        };
        let mut command = spec.command(&self.program);
        command.args(self.arguments(spec, programs.as_deref()));
        if spec.verbose {
            launch.note(command_line(&command));
        }
        let mut started = ProcessSpec::launcher(self.name(), spec);
        if spec.attaches {
            // On SIGTERM srun kills the step, servers and gdbs included, at once. It passes SIGCONT on to the
            // servers, which continues stopped ones.
            started.death_signal = Signal::SIGCONT;
        }
        launch.spawn(command, started)?;
        launch.all_started()
    }
}

/// The text of the file with the program of each rank: a line with ranks, program and arguments for each program. Slurm
/// reads it once, before it starts anything.
fn programs(spec: &LaunchSpec) -> Result<String, LaunchError> {
    let mut text = String::new();
    let mut first = 0;
    for part in &spec.parts {
        let last = first + part.count - 1;
        text.push_str(&format!("{first}-{last}"));
        for word in spec.words_of(part) {
            let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@".contains(c);
            match word.to_str().filter(|word| word.chars().all(plain)) {
                Some(word) => text.push_str(&format!(" {word}")),
                None => {
                    return Err(LaunchError::Option {
                        launcher: "srun".to_owned(),
                        option: printable_name(&word),
                        why: "srun --multi-prog takes only words of letters, digits and /._-+=:,@",
                    });
                }
            }
        }
        text.push('\n');
        first = last + 1;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Part;

    #[test]
    fn user_options_are_passed_to_srun_unchanged() {
        let arguments = |options: &[&str]| {
            let mut spec = LaunchSpec::new(4, "/bin/sdm-server");
            spec.launcher_options = options.iter().map(Into::into).collect();
            let arguments = Srun::new("srun", "slurm").arguments(&spec, None);
            let arguments: Vec<_> = arguments.iter().map(|it| it.to_str().unwrap()).collect();
            arguments.join(" ")
        };
        assert_eq!(
            arguments(&["--mpi=pmi2", "-N2"]),
            "--mpi=pmi2 -N2 -n 4 /bin/sdm-server"
        );
        let mut spec = LaunchSpec::new(5, "/bin/sdm-server");
        let part = |count| Part {
            count,
            ..Part::default()
        };
        spec.parts = vec![part(2), part(3)];
        let text = "0-1 /bin/sdm-server\n2-4 /bin/sdm-server\n";
        assert_eq!(programs(&spec).unwrap(), text);
        let several = Srun::new("srun", "slurm").arguments(&spec, Some(Path::new("/f")));
        assert_eq!(several, ["-n", "5", "--multi-prog", "/f"]);
        spec.server = "/a b/sdm-server".into();
        assert!(programs(&spec).is_err());
        let mut staged = LaunchSpec::new(4, "/bin/sdm-server");
        staged.stage = true;
        let staged = Srun::new("srun", "slurm").arguments(&staged, None);
        let staged: Vec<_> = staged.iter().map(|it| it.to_str().unwrap()).collect();
        assert_eq!(
            staged.join(" "),
            "--bcast=/tmp/ -n 4 /bin/sdm-server --staged"
        );
        assert_eq!(
            arguments(&["--cpu-bind=cores"]),
            "--cpu-bind=cores -n 4 /bin/sdm-server"
        );
    }
}
