//! Launcher of servers on this machine without any runtime, and starts of many servers by forking.

use sdm_text::printable_name;
use std::process::Command;

use crate::launched_process::ProcessSpec;
use crate::machine_limits;
use crate::spec::{LOCAL_INDEX_VARIABLE, SERVER_COUNT_VARIABLE, SERVER_VARIABLE};
use crate::{Launch, LaunchError, LaunchSpec, Launcher, SharedServers};

/// Starts each server as a child of this process; server i has `SDM_SERVER_ID=i` in its environment. If servers fork,
/// each child starts up to 64 of them instead.
#[derive(Clone, Copy, Debug, Default)]
pub struct Local;

impl Launcher for Local {
    fn name(&self) -> &str {
        "local"
    }

    fn describe(&self) -> String {
        "local: servers on this machine".to_owned()
    }

    fn share(
        &self,
        _: &LaunchSpec,
        count: u32,
        each: u32,
    ) -> Result<Option<SharedServers>, LaunchError> {
        Ok(Some(SharedServers::here(count, each)))
    }

    fn launch(&self, spec: &LaunchSpec) -> Result<Launch, LaunchError> {
        if spec.forks {
            return start_forking(self, spec, &[(spec.count, Vec::new())]);
        }
        start_each(self, spec, |command, server| {
            command.env(LOCAL_INDEX_VARIABLE, server.to_string());
        })
    }
}

/// Starts each server as a child of this process, in the order of their numbers. `place` adds the arguments and
/// variables of one server to its command.
pub(crate) fn start_each(
    launcher: &dyn Launcher,
    spec: &LaunchSpec,
    mut place: impl FnMut(&mut Command, u32),
) -> Result<Launch, LaunchError> {
    let mut launch = begin(launcher, spec, spec.count)?;
    for server in 0..spec.count {
        let mut command = spec.command(&spec.server);
        command
            .args(&spec.server_args)
            .env(SERVER_VARIABLE, server.to_string())
            .env(SERVER_COUNT_VARIABLE, spec.count.to_string());
        place(&mut command, server);
        let mut what = ProcessSpec::server(server);
        if server == 0 {
            // As under a runtime, only the first rank has standard input.
            what.streams = spec.streams;
        }
        let started = launch.spawn(command, what);
        if let Err(error) = started {
            launch.abandon();
            return Err(error);
        }
    }
    launch.all_started()
}

/// Maximum number of servers that one process forks. The kernel has one lock for the memory of all descendants of a
/// process, so thousands of them would end one after the other.
const FORKED_MAX: u32 = 64;

/// Starts processes that fork the servers of each host. `hosts` has for each host the number of its servers, and their
/// arguments.
pub(crate) fn start_forking(
    launcher: &dyn Launcher,
    spec: &LaunchSpec,
    hosts: &[(u32, Vec<String>)],
) -> Result<Launch, LaunchError> {
    let processes = hosts.iter().map(|(count, _)| count.div_ceil(FORKED_MAX));
    let mut launch = begin(launcher, spec, processes.sum())?;
    let mut first = 0;
    for (count, own) in hosts {
        for local in (0..*count).step_by(FORKED_MAX as usize) {
            let part = FORKED_MAX.min(count - local);
            let mut command = spec.command(&spec.server);
            command
                .args(&spec.server_args)
                .args(["--id", &first.to_string(), "--fork", &part.to_string()])
                .args(own)
                .env(SERVER_COUNT_VARIABLE, spec.count.to_string())
                .env(LOCAL_INDEX_VARIABLE, local.to_string());
            let what = ProcessSpec::servers(first..first + part);
            if let Err(error) = launch.spawn(command, what) {
                launch.abandon();
                return Err(error);
            }
            first += part;
        }
    }
    launch.all_started()
}

/// A launch without processes, after a check that this machine has room for `processes` processes.
fn begin(
    launcher: &dyn Launcher,
    spec: &LaunchSpec,
    processes: u32,
) -> Result<Launch, LaunchError> {
    let name = launcher.name();
    spec.check(name)?;
    spec.check_no_part_options(name)?;
    if let Some(option) = spec.launcher_options.first() {
        return Err(LaunchError::Option {
            launcher: name.to_owned(),
            option: printable_name(option),
            why: "this launcher takes no options",
        });
    }
    let mut launch = make_room(spec, processes)?;
    if spec.verbose {
        let server = printable_name(&spec.server);
        launch.note(format!("{name}: {} times {server}", spec.count));
    }
    Ok(launch)
}

/// Maximum number of servers that have pipes of their own. Each start of a process costs time for each open descriptor
/// of this process. So the pipes of thousands of servers would cost more than the servers.
const OWN_PIPES_MAX: u32 = 256;

/// Checks that this machine has room for the servers, and that this process can start its own. The servers share their
/// pipes if they are many, or if there are not enough descriptors for pipes of their own.
fn make_room(spec: &LaunchSpec, processes: u32) -> Result<Launch, LaunchError> {
    /// Number of descriptors of one server: two pipes and a pidfd.
    const OWN_DESCRIPTORS: u64 = 3;
    machine_limits::check_room(spec)?;
    let count = u64::from(processes);
    let scarce = machine_limits::descriptors_left() < count * OWN_DESCRIPTORS;
    let sharing = scarce || processes > OWN_PIPES_MAX;
    let each = if sharing { 1 } else { OWN_DESCRIPTORS };
    machine_limits::reserve_descriptors(count * each, "sdm")?;
    if !sharing {
        return Ok(Launch::new());
    }
    Launch::sharing_streams().map_err(|source| LaunchError::Watch {
        who: "all servers".to_owned(),
        op: "pipe",
        source,
    })
}
