//! Servers on this machine, without any runtime.

use crate::spec::{LOCAL_INDEX_VARIABLE, SERVER_COUNT_VARIABLE, SERVER_VARIABLE};
use crate::{Launch, LaunchError, LaunchSpec, Launcher};

/// Starts each server as a child of this process; server i finds `SDM_SERVER_ID=i`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Local;

impl Launcher for Local {
    fn name(&self) -> &'static str {
        "local"
    }

    fn describe(&self) -> String {
        "local: servers on this machine".to_owned()
    }

    fn launch(&self, spec: &LaunchSpec) -> Result<Launch, LaunchError> {
        spec.check(self.name())?;
        if let Some(option) = spec.launcher_options.first() {
            return Err(LaunchError::Option {
                launcher: self.name(),
                option: option.to_string_lossy().into_owned(),
                why: "the local launcher has no options",
            });
        }
        let mut launch = Launch::new();
        if spec.verbose {
            launch.note(format!(
                "local: {} times {}",
                spec.count,
                spec.server.display()
            ));
        }
        for server in 0..spec.count {
            let mut command = spec.command(&spec.server);
            command
                .args(&spec.server_args)
                .env(SERVER_VARIABLE, server.to_string())
                .env(SERVER_COUNT_VARIABLE, spec.count.to_string())
                .env(LOCAL_INDEX_VARIABLE, server.to_string());
            let started = launch.spawn(command, Some(server), &format!("server {server}"));
            if let Err(error) = started {
                launch.abandon();
                return Err(error);
            }
        }
        Ok(launch)
    }
}
