//! The launcher of Open MPI: `mpirun`.

use sdm_text::printable_name;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::Command;

use nix::unistd::geteuid;

use sdm_hosts::mpi::Mpi;

use crate::hosts::{names_hosts, with_shares};
use crate::launched_process::ProcessSpec;
use crate::machine_limits::check_room;
use crate::spec::{NUMBER_OPTIONS, command_line, is_option};
use crate::{Control, Launch, LaunchError, LaunchSpec, Launcher};

/// Options that determine the placement of processes: if one is given, SDM adds none of its own.
const PLACE_OPTIONS: &[&str] = &[
    "H",
    "N",
    "bycore",
    "bynode",
    "byslot",
    "default-hostfile",
    "host",
    "hostfile",
    "machinefile",
    "map-by",
    "nooversubscribe",
    "npernode",
    "npersocket",
    "oversubscribe",
    "pernode",
    "ppr",
    "rankfile",
    "rf",
];
/// Environment variables that exist if a resource manager has granted a number of slots.
const ALLOCATION_VARIABLES: &[&str] = &["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PE_HOSTFILE"];
/// Variables without which Open MPI refuses to run as root, by its version.
const ROOT_VARIABLES: &[&str] = &[
    "OMPI_ALLOW_RUN_AS_ROOT",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
    "PRTE_ALLOW_RUN_AS_ROOT",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM",
];

/// Lets Open MPI's `mpirun` (4 or 5) start the servers.
///
/// Additions to the user's options:
/// - the number of processes of each program;
/// - `--oversubscribe`, where the user gives no hosts or placement and no resource manager has granted slots. Reason: a
///   debugger is used with more processes than a workstation has cores;
/// - `-x NAME` for each variable of [`LaunchSpec::environment`], without its value, so that servers on
///   other hosts get it too;
/// - `--host a:2,b:2`, where hosts are given apart from the options;
/// - for root, the variables without which `mpirun` refuses to run, where they are unset. A notice mentions them.
#[derive(Clone, Debug)]
pub struct OpenMpi {
    program: PathBuf,
    called: Option<OsString>,
    version: String,
}

impl OpenMpi {
    /// Open MPI's launcher as the program `program`, with the version that it reports.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>, version: impl Into<String>) -> Self {
        Self {
            program: program.into(),
            called: None,
            version: version.into(),
        }
    }

    /// Calls `mpirun` by this name instead of its path, as a shell does that finds it on `PATH`. If it is called by its
    /// path, `mpirun` puts its installation in front of `PATH` and `LD_LIBRARY_PATH`.
    #[must_use]
    pub fn called(mut self, name: impl Into<OsString>) -> Self {
        self.called = Some(name.into());
        self
    }

    fn arguments(&self, spec: &LaunchSpec, allocated: bool) -> Result<Vec<OsString>, LaunchError> {
        let options = spec.all_options();
        let gave = |names: &[&str]| options.iter().any(|it| is_option(it, names));
        let mut arguments: Vec<OsString> = Vec::new();
        match with_shares(self.name(), spec)? {
            // In a job of several programs, each program's options name its own hosts.
            Some(_) if spec.parts.len() > 1 => {
                return Err(LaunchError::Hosts {
                    launcher: self.name().to_owned(),
                    what: "with several programs, give hosts per program: -n 2 --host a -- ./x : -n 3 --host b -- ./y"
                        .to_owned(),
                });
            }
            Some(hosts) => arguments.extend(["--host".into(), hosts]),
            None if !allocated && !gave(PLACE_OPTIONS) => arguments.push("--oversubscribe".into()),
            None => {}
        }
        for (name, _) in &spec.environment {
            arguments.extend(["-x".into(), name.clone()]);
        }
        arguments.extend(spec.launcher_options.iter().cloned());
        arguments.extend(spec.programs());
        Ok(arguments)
    }
}

impl Launcher for OpenMpi {
    fn name(&self) -> &str {
        "mpirun"
    }

    fn mpi(&self) -> Option<Mpi> {
        Some(Mpi::OpenMpi)
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

    fn control(&self) -> Option<Control> {
        let version = self.version.rsplit(' ').next();
        let major = version.and_then(|version| version.split('.').next()?.parse::<u32>().ok());
        // Version 5 has dropped MPIR.
        Some(match major {
            Some(..5) => Control::Mpir,
            _ => Control::Pmix,
        })
    }

    fn launch(&self, spec: &LaunchSpec) -> Result<Launch, LaunchError> {
        spec.check(self.name())?;
        spec.check_options(self.name(), NUMBER_OPTIONS)?;
        if !self.may_span_hosts(spec) {
            check_room(spec)?;
        }
        let allocated = ALLOCATION_VARIABLES
            .iter()
            .any(|name| std::env::var_os(name).is_some());
        let mut launch = Launch::new();
        let mut command = spec.command_called(&self.program, self.called.as_deref());
        command.args(self.arguments(spec, allocated)?);
        if allow_root(&mut command) {
            launch.note(
                "mpirun: sdm runs as root and therefore sets OMPI_ALLOW_RUN_AS_ROOT".to_owned(),
            );
        }
        if spec.verbose {
            launch.note(command_line(&command));
        }
        launch.spawn(command, ProcessSpec::launcher(self.name(), spec))?;
        launch.all_started()
    }
}

/// For root, sets the unset variables without which Open MPI refuses to run. Returns true if one was set.
pub(crate) fn allow_root(command: &mut Command) -> bool {
    if !geteuid().is_root() {
        return false;
    }
    let mut any = false;
    for name in ROOT_VARIABLES {
        let given = command
            .get_envs()
            .any(|(given, _)| given == OsStr::new(name));
        if !given && std::env::var_os(name).is_none() {
            command.env(name, "1");
            any = true;
        }
    }
    any
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Part;

    fn arguments(options: &[&str], allocated: bool) -> String {
        let mut spec = LaunchSpec::new(4, "/bin/sdm-server");
        spec.launcher_options = options.iter().map(Into::into).collect();
        spec.environment = vec![("SDM_KEY".into(), "secret".into())];
        spec.server_args = vec!["--port".into(), "0".into()];
        let arguments = OpenMpi::new("mpirun", "Open MPI").arguments(&spec, allocated);
        let arguments = arguments.expect("no hosts");
        let arguments: Vec<&str> = arguments.iter().map(|it| it.to_str().unwrap()).collect();
        let end = "-n 4 /bin/sdm-server --port 0";
        let arguments = arguments.join(" ");
        assert!(!arguments.contains("secret"), "{arguments}");
        arguments.strip_suffix(end).unwrap().trim_end().to_owned()
    }

    #[test]
    fn oversubscribe_is_added_without_placement_or_allocation() {
        let check = |options: &[&str], expect: &str| assert_eq!(arguments(options, false), expect);
        check(&[], "--oversubscribe -x SDM_KEY");
        check(
            &["--mca", "pml", "ob1"],
            "--oversubscribe -x SDM_KEY --mca pml ob1",
        );
        check(&["--map-by", "node"], "-x SDM_KEY --map-by node");
        check(
            &["-host", "a:4", "--bind-to=core"],
            "-x SDM_KEY -host a:4 --bind-to=core",
        );
        assert_eq!(arguments(&[], true), "-x SDM_KEY");
    }

    #[test]
    fn hosts_are_passed_with_their_slots() {
        let host = |name: &str, slots| crate::HostShare {
            host: name.to_owned(),
            slots,
        };
        let mut spec = LaunchSpec::new(5, "/bin/sdm-server");
        spec.hosts = vec![host("a", None), host("b", Some(2)), host("c", None)];
        let launcher = OpenMpi::new("mpirun", "Open MPI");
        assert!(launcher.may_span_hosts(&spec));
        let arguments = launcher.arguments(&spec, false).expect("there is room");
        let expect = ["--host", "a:2,b:2,c:1", "-n", "5", "/bin/sdm-server"];
        assert_eq!(arguments, expect.map(OsString::from));
        spec.hosts = vec![host("b", Some(2))];
        let refused = launcher.arguments(&spec, false).unwrap_err().to_string();
        assert!(refused.contains("only 2 slots"), "{refused}");
    }

    #[test]
    fn several_programs_become_app_contexts() {
        let mut spec = LaunchSpec::new(5, "/bin/sdm-server");
        let part = |count, options: &[&str]| Part {
            count,
            options: options.iter().map(Into::into).collect(),
            words: Vec::new(),
        };
        spec.parts = vec![part(2, &[]), part(3, &["--host", "b:3"])];
        let words = spec.programs();
        let words: Vec<_> = words.iter().map(|it| it.to_str().unwrap()).collect();
        assert_eq!(
            words.join(" "),
            "-n 2 /bin/sdm-server : -n 3 --host b:3 /bin/sdm-server"
        );
        let launcher = OpenMpi::new("mpirun", "");
        assert!(launcher.may_span_hosts(&spec));
        let arguments = launcher.arguments(&spec, false).expect("no hosts");
        assert!(
            !arguments.contains(&"--oversubscribe".into()),
            "{arguments:?}"
        );
        let refused = crate::Local.launch(&spec).err().unwrap().to_string();
        assert!(
            refused.contains("no option for only one of several programs"),
            "{refused}"
        );
    }

    #[test]
    fn conflicting_options_are_refused() {
        let launcher = OpenMpi::new("/no/such/mpirun", "");
        for option in ["-n", "-np", "--np", ":"] {
            let mut spec = LaunchSpec::new(1, "server");
            spec.launcher_options = vec![option.into()];
            let error = launcher.launch(&spec).err().unwrap().to_string();
            assert!(error.contains(&format!("option {option}: ")), "{error}");
        }
    }
}
