//! What is to be started, and the trait of those who start it.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::Command;

pub use sdm_core::handover::{LOCAL_INDEX_VARIABLE, SERVER_COUNT_VARIABLE, SERVER_VARIABLE};
use sdm_core::limits::SERVERS_MAX;

use crate::{Launch, LaunchError};

/// What is to be started.
#[derive(Clone, Debug)]
pub struct LaunchSpec {
    /// How many servers, 1 to [`SERVERS_MAX`].
    pub count: u32,
    /// The `sdm-server` to start.
    pub server: PathBuf,
    /// Its arguments, the same for all.
    pub server_args: Vec<OsString>,
    /// What the servers find in their environment beside what this process has. Names may be seen on
    /// command lines, values never are: the session key goes this way.
    pub environment: Vec<(OsString, OsString)>,
    /// The user's own options, passed to `mpirun` or `mpiexec` as they are.
    pub launcher_options: Vec<OsString>,
    /// Where the servers start; this process's own directory if none.
    pub directory: Option<PathBuf>,
    /// How many processes there will be in all, servers included, on each of which the system must
    /// have room; a launcher that starts them on this machine checks that first.
    pub processes: u64,
    /// Whether the command line is reported as a [`crate::LaunchEvent::Note`].
    pub verbose: bool,
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
            directory: None,
            processes: count.into(),
            verbose: false,
        }
    }

    pub(crate) fn check(&self, launcher: &'static str) -> Result<(), LaunchError> {
        let (count, max) = (self.count, SERVERS_MAX);
        if count == 0 || count > max {
            return Err(LaunchError::Count {
                launcher,
                count,
                max,
            });
        }
        match &self.directory {
            Some(path) if !path.is_dir() => Err(LaunchError::Directory { path: path.clone() }),
            _ => Ok(()),
        }
    }

    /// A command in the spec's environment and directory, which knows of no server number: one that
    /// this process inherited must not reach servers that get theirs from a runtime.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        for name in [SERVER_VARIABLE, SERVER_COUNT_VARIABLE, LOCAL_INDEX_VARIABLE] {
            command.env_remove(name);
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command
    }

    /// Refuses options that would fight with the launch's own: the number of processes, and the
    /// colon that begins another program.
    pub(crate) fn check_options(&self, launcher: &'static str) -> Result<(), LaunchError> {
        for option in &self.launcher_options {
            let why = match option.to_str() {
                Some("-n" | "--n" | "-np" | "--np" | "-c") => "the number is given by sdm -n",
                Some(":") => "one program per session",
                _ => continue,
            };
            let option = option.to_string_lossy().into_owned();
            return Err(LaunchError::Option {
                launcher,
                option,
                why,
            });
        }
        Ok(())
    }
}

/// The program and its arguments; never the environment, which holds the session key.
pub(crate) fn command_line(command: &Command) -> String {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}

/// Starts servers.
pub trait Launcher {
    /// The launcher's short name: `local`, `mpirun`, `mpiexec`.
    fn name(&self) -> &'static str;

    /// The launcher in a person's words: which program, which version.
    fn describe(&self) -> String;

    /// Starts the servers and returns at once; everything else is heard from the [`Launch`].
    ///
    /// The calling thread must live as long as the session: the kernel sends SIGTERM to what it
    /// started when it ends.
    ///
    /// # Errors
    /// Where nothing could be started; then nothing is left behind.
    fn launch(&self, spec: &LaunchSpec) -> Result<Launch, LaunchError>;
}
