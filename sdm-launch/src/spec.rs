//! Description of the servers that a launcher is to start.

use sdm_system::{files, programs};
use sdm_text::printable_name;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

pub use sdm_bootstrap::handover::{LOCAL_INDEX_VARIABLE, SERVER_COUNT_VARIABLE, SERVER_VARIABLE};
use sdm_core::limits::SERVERS_MAX;
use sdm_core::transport::PortRange;

use crate::{HostShare, LaunchError};

/// Default of [`LaunchSpec::fanout`].
pub const FANOUT: u32 = 32;

/// The options of `mpirun` and `mpiexec` that give the number of processes.
pub(crate) const NUMBER_OPTIONS: &[&str] = &["-n", "--n", "-np", "--np", "-c"];

/// Shell script that waits for a line in the file `$0`, then executes the command after it.
const WAIT_AT_GATE: &str = r#"read -r go <"$0" || exit 1; exec "$@""#;

/// Description of the servers to start.
///
/// Large because it is one plain value for all launchers. Each launcher reads the parts that concern it.
// Not `Debug`: the key can be in its environment.
#[derive(Clone)]
pub struct LaunchSpec {
    /// Number of servers, 1 to [`SERVERS_MAX`].
    pub count: u32,
    /// Path of the `sdm-server` to start.
    pub server: PathBuf,
    /// Arguments of the servers, the same for all.
    pub server_args: Vec<OsString>,
    /// Environment variables of the servers in addition to those of this process. Their names may be visible on command
    /// lines, their values never are. The session's key is passed in this way if there is no more private one.
    pub environment: Vec<(OsString, OsString)>,
    /// The user's own options, passed to `mpirun` or `mpiexec` as they are.
    pub launcher_options: Vec<OsString>,
    /// The programs of a job with several programs, in the order of their ranks; together they have `count` processes.
    /// All servers are equal. The list is passed to a runtime so that the runtime reports the same programs.
    pub parts: Vec<Part>,
    /// The hosts to start on, each with its maximum number of servers, for launchers that need them.
    pub hosts: Vec<HostShare>,
    /// File with the name and key of the session, for servers started by hand; `None` if there are none. The owner
    /// writes it, and only this user can read it.
    pub handover: Option<PathBuf>,
    /// The ports for servers, for launchers that give each server its own.
    pub ports: PortRange,
    /// Address of the front-end for a master that the user starts by hand.
    pub front_end: String,
    /// Working directory of the servers; `None` for this process's own.
    pub directory: Option<PathBuf>,
    /// Maximum number of hosts that one host starts by `ssh`; further hosts are started from these hosts.
    pub fanout: u32,
    /// True if the server is copied to its hosts, and removed there at the end.
    pub stage: bool,
    /// Path of `sdm-pmix`, which is copied along with the server if each host has a PMIx server; otherwise `None`. Only
    /// launchers that copy the server themselves use it.
    pub pmix: Option<PathBuf>,
    /// Total number of processes, servers included, for which the system must have room. A launcher that starts them on
    /// this machine checks this first.
    pub processes: u64,
    /// Known lower bound of the total memory of these processes, in bytes; it is checked likewise.
    pub memory: u64,
    /// True if one process forks the servers of a host. Forking is quicker for many servers that drive no programs.
    /// Launchers that start servers on other hosts ignore it.
    pub forks: bool,
    /// True if the servers attach to programs that others have started. These programs continue when everything here is
    /// killed. A launcher that answers SIGTERM by killing the servers would leave the programs with undetached gdbs. So
    /// the kernel does not send the launcher SIGTERM at this process's death: the servers notice that they are
    /// disconnected, and end.
    pub attaches: bool,
    /// Use of the servers' standard streams: do they carry the programs' input and output as well?
    pub streams: Streams,
    /// Path of the gate: a pipe from which the started process reads a line before it begins. `None` if it does not
    /// wait.
    pub(crate) gate: Option<PathBuf>,
    /// Environment variables of the launcher itself, which it passes on like the rest of its environment.
    pub variables: Vec<(OsString, OsString)>,
    /// Environment variables that are removed from the launcher's environment.
    pub unset: Vec<OsString>,
    /// True if the command line is reported as a [`crate::LaunchEvent::Note`].
    pub verbose: bool,
}

/// Use of the servers' standard streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Streams {
    /// Only announcements and error messages of the servers.
    #[default]
    Private,
    /// Output of the servers' programs as well. Standard input comes from [`Launch::feed`](crate::Launch::feed), as far
    /// as the launcher forwards it.
    Fed,
    /// As `Fed`, but the standard input is that of this process.
    Inherited,
}

/// One program of a job with several programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Number of processes that run the program, 1 or more.
    pub count: u32,
    /// The user's own options that the launcher gets for this program alone.
    pub options: Vec<OsString>,
    /// The program and its arguments; if empty, the server and its arguments.
    pub words: Vec<OsString>,
}

impl LaunchSpec {
    /// `count` servers without arguments.
    #[must_use]
    pub fn new(count: u32, server: impl Into<PathBuf>) -> Self {
        Self {
            count,
            server: server.into(),
            server_args: Vec::new(),
            environment: Vec::new(),
            launcher_options: Vec::new(),
            parts: Vec::new(),
            hosts: Vec::new(),
            handover: None,
            ports: PortRange::default(),
            front_end: String::new(),
            directory: None,
            fanout: FANOUT,
            stage: false,
            pmix: None,
            processes: count.into(),
            memory: 0,
            forks: false,
            attaches: false,
            streams: Streams::Private,
            gate: None,
            variables: Vec::new(),
            unset: Vec::new(),
            verbose: false,
        }
    }

    pub(crate) fn check(&self, launcher: &str) -> Result<(), LaunchError> {
        let (count, max) = (self.count, SERVERS_MAX);
        if self.stage && !self.server.is_file() {
            let path = printable_name(&self.server);
            return Err(LaunchError::Hosts {
                launcher: launcher.to_owned(),
                what: format!("{path}: the program to copy does not exist"),
            });
        }
        if count == 0 || count > max {
            return Err(LaunchError::Count {
                launcher: launcher.to_owned(),
                count,
                max,
            });
        }
        let parts: u64 = self.parts.iter().map(|part| u64::from(part.count)).sum();
        assert!(
            self.parts.is_empty() || parts == u64::from(count),
            "the programs have {parts} processes in total, but {count} were requested"
        );
        match &self.directory {
            Some(path) if !path.is_dir() => Err(LaunchError::Directory { path: path.clone() }),
            _ => Ok(()),
        }
    }

    /// The programs of the job; if [`Self::parts`] is empty, a single one with all processes.
    pub(crate) fn all_parts(&self) -> Vec<Part> {
        if !self.parts.is_empty() {
            return self.parts.clone();
        }
        vec![Part {
            count: self.count,
            ..Part::default()
        }]
    }

    /// The user's options for the whole job and for single programs.
    pub(crate) fn all_options(&self) -> Vec<OsString> {
        let single = self.parts.iter().flat_map(|part| &part.options);
        self.launcher_options
            .iter()
            .chain(single)
            .cloned()
            .collect()
    }

    /// Returns an error if there are options for single programs; for launchers that have none.
    pub(crate) fn check_no_part_options(&self, launcher: &str) -> Result<(), LaunchError> {
        let mut single = self.parts.iter().flat_map(|part| &part.options);
        match single.next() {
            None => Ok(()),
            Some(option) => Err(LaunchError::Option {
                launcher: launcher.to_owned(),
                option: printable_name(option),
                why: "this launcher takes no option for only one of several programs",
            }),
        }
    }

    /// The arguments `-n N [OPTIONS] PROGRAM ARGS` for each program, separated by colons, as `mpirun` and `mpiexec`
    /// expect them. PROGRAM is the server if the part names no program.
    pub(crate) fn programs(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        for part in self.all_parts() {
            if !words.is_empty() {
                words.push(":".into());
            }
            words.extend(["-n".into(), part.count.to_string().into()]);
            words.extend(part.options.iter().cloned());
            words.extend(self.words_of(&part));
        }
        words
    }

    /// The program of a part and its arguments.
    pub(crate) fn words_of(&self, part: &Part) -> Vec<OsString> {
        if !part.words.is_empty() {
            return part.words.clone();
        }
        let server = self.server.clone().into();
        std::iter::once(server)
            .chain(self.server_args.iter().cloned())
            .collect()
    }

    /// A command in the spec's environment and directory, without a server number. A number that this process inherited
    /// must not reach servers that get theirs from a runtime.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        self.command_called(program, None)
    }

    /// Like [`Self::command`], for a program whose `argv[0]` is not its path. A shell that starts the program at the
    /// gate finds it by this name, too.
    pub(crate) fn command_called(
        &self,
        program: impl AsRef<OsStr>,
        name: Option<&OsStr>,
    ) -> Command {
        let mut command = match &self.gate {
            None => {
                let mut command = programs::at(program.as_ref());
                if let Some(name) = name {
                    command.arg0(name);
                }
                command
            }
            Some(gate) => {
                let mut command = programs::user_shell(WAIT_AT_GATE);
                command.arg(gate);
                command.arg(name.unwrap_or(program.as_ref()));
                command
            }
        };
        for name in &self.unset {
            command.env_remove(name);
        }
        for name in [SERVER_VARIABLE, SERVER_COUNT_VARIABLE, LOCAL_INDEX_VARIABLE] {
            command.env_remove(name);
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        if self.gate.is_some() && name.is_some() {
            // The shell looks the name up where this process has found it.
            command.env("PATH", files::search_path());
        }
        command
    }

    /// Returns an error if options conflict with those of the launch itself: the number of processes, and the colon
    /// that begins another program.
    pub(crate) fn check_options(&self, launcher: &str, number: &[&str]) -> Result<(), LaunchError> {
        for option in &self.all_options() {
            let name = option.to_str().unwrap_or_default();
            let why = match name.split_once('=').map_or(name, |(name, _)| name) {
                name if number.contains(&name) => {
                    "give the number of processes by the option -n of sdm"
                }
                ":" => "add further programs after the first: PROGRAM ARGS : -n N PROGRAM ARGS",
                _ => continue,
            };
            let option = printable_name(option);
            return Err(LaunchError::Option {
                launcher: launcher.to_owned(),
                option,
                why,
            });
        }
        Ok(())
    }
}

/// The program and its arguments as text; never the environment, which holds the session key.
pub(crate) fn command_line(command: &Command) -> String {
    let mut line = printable_name(command.get_program());
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}

/// True if `argument` is one of the options `names`, written `-name` or `--name`, each also with `=value`.
pub(crate) fn is_option(argument: &OsStr, names: &[&str]) -> bool {
    let Some(option) = argument.to_str().filter(|text| text.starts_with('-')) else {
        return false;
    };
    let name = option.trim_start_matches('-');
    let name = name.split_once('=').map_or(name, |(name, _)| name);
    names.contains(&name)
}
