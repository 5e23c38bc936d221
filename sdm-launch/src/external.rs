//! Launchers of a site's own: an executable `sdm-launch-NAME` on `PATH`.
//!
//! The executable reads a description of the servers from its standard input, one item per line (docs/launchers.md):
//!
//! ```text
//! sdm-launch 1
//! count 2
//! server /opt/sdm/bin/sdm-server
//! argument --bind
//! argument 0.0.0.0
//! environment SDM_KEY=...
//! host node7 4
//! option --queue
//! directory /home/me
//! start
//! ```
//!
//! The executable starts `count` servers, the i-th with `SDM_SERVER_ID=i` in its environment, counted from 0. It passes
//! on the servers' standard output, above all their announcements. The end of its standard input means that the session
//! is over.

use sdm_system::programs;
use sdm_text::printable_name;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::launched_process::ProcessSpec;
use crate::spec::command_line;
use crate::{Launch, LaunchError, LaunchSpec, Launcher};

/// Prefix of the executables' names.
pub(crate) const PREFIX: &str = "sdm-launch-";
/// The version of the protocol.
const VERSION: u32 = 1;
/// Maximum size of the description on the executable's standard input, in bytes: it fits into an empty pipe.
const TEXT_BYTES_MAX: usize = 60 << 10;

/// Launcher that has an executable `sdm-launch-NAME` start the servers.
#[derive(Clone, Debug)]
pub struct External {
    name: String,
    program: PathBuf,
}

impl External {
    /// The launcher with this name and this executable.
    #[must_use]
    pub fn new(name: impl Into<String>, program: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            program: program.into(),
        }
    }

    fn told(&self, spec: &LaunchSpec) -> Result<Vec<u8>, LaunchError> {
        let mut text = format!("sdm-launch {VERSION}\ncount {}\n", spec.count).into_bytes();
        let mut say = |word: &str, value: &OsStr| {
            if value.as_bytes().contains(&b'\n') {
                return Err(LaunchError::Hosts {
                    launcher: self.name.clone(),
                    what: format!("{word} {value:?}: contains a line break"),
                });
            }
            for part in [word.as_bytes(), b" ", value.as_bytes(), b"\n"] {
                text.extend_from_slice(part);
            }
            Ok(())
        };
        say("server", spec.server.as_os_str())?;
        for argument in &spec.server_args {
            say("argument", argument)?;
        }
        for (name, value) in &spec.environment {
            let mut pair = name.clone();
            pair.push("=");
            pair.push(value);
            say("environment", &pair)?;
        }
        for share in &spec.hosts {
            let slots = share.slots.map(|slots| format!(" {slots}"));
            let host = format!("{}{}", share.host, slots.unwrap_or_default());
            say("host", OsStr::new(&host))?;
        }
        for option in &spec.launcher_options {
            say("option", option)?;
        }
        if let Some(directory) = &spec.directory {
            say("directory", directory.as_os_str())?;
        }
        text.extend_from_slice(b"start\n");
        if text.len() > TEXT_BYTES_MAX {
            return Err(LaunchError::Hosts {
                launcher: self.name.clone(),
                what: format!(
                    "the options and hosts have more than {TEXT_BYTES_MAX} bytes in total"
                ),
            });
        }
        Ok(text)
    }
}

impl Launcher for External {
    fn name(&self) -> &str {
        &self.name
    }

    fn describe(&self) -> String {
        printable_name(&self.program)
    }

    fn may_span_hosts(&self, _: &LaunchSpec) -> bool {
        true
    }

    fn launch(&self, spec: &LaunchSpec) -> Result<Launch, LaunchError> {
        spec.check(self.name())?;
        spec.check_no_part_options(self.name())?;
        let mut started = ProcessSpec::launcher(&self.name, spec);
        started.input = self.told(spec)?;
        let mut command = programs::at(&self.program);
        if let Some(directory) = &spec.directory {
            command.current_dir(directory);
        }
        let mut launch = Launch::new();
        if spec.verbose {
            launch.note(command_line(&command));
        }
        launch.spawn(command, started)?;
        launch.all_started()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostShare;

    #[test]
    fn external_launcher_receives_the_launch_description() {
        let launcher = External::new("x", "/bin/true");
        let mut spec = LaunchSpec::new(2, "/opt/sdm-server");
        spec.server_args = vec!["--bind".into(), "two words".into()];
        spec.environment = vec![("SDM_KEY".into(), "k=1".into())];
        spec.hosts = HostShare::list("a,b:4").unwrap();
        spec.launcher_options = vec!["-q".into()];
        spec.directory = Some("/tmp".into());
        let told = String::from_utf8(launcher.told(&spec).unwrap()).unwrap();
        let expect = "sdm-launch 1\ncount 2\nserver /opt/sdm-server\nargument --bind\nargument two words\n\
                      environment SDM_KEY=k=1\nhost a\nhost b 4\noption -q\ndirectory /tmp\nstart\n";
        assert_eq!(told, expect);
        spec.launcher_options = vec!["a\nb".into()];
        assert!(launcher.told(&spec).is_err());
        spec.launcher_options = vec!["x".repeat(TEXT_BYTES_MAX).into()];
        assert!(launcher.told(&spec).is_err());
    }
}
