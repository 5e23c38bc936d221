//! Options for the launcher of the processes, and for the tree of servers.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use sdm_core::config::Config;
use sdm_core::topology::Topology;
use sdm_core::transport::{HostTransport, Interface, PortRange};
use sdm_hosts::HostShare;
use sdm_session::{KeyHandover, Network, SessionConfig};

use super::{HostFileError, ValueError};

/// The launcher of the processes, and their hosts.
#[derive(Clone, Debug, Args)]
pub struct LauncherArgs {
    /// The launcher: auto (by what the program is linked with), local (this machine, no MPI), mpirun (Open MPI), mpiexec (Hydra), srun
    /// (Slurm), ssh, manual (you, by the commands that are shown), a path to mpirun or mpiexec or
    /// its name (mpiexec.mpich), or NAME where sdm-launch-NAME is on PATH.
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = launcher)]
    pub launcher: String,

    /// The hosts to start on, for ssh and manual: `a,b:4`, a number for how many processes.
    #[arg(long = "host", value_name = "HOSTS", value_delimiter = ',')]
    pub hosts: Vec<HostShare>,

    /// A file with hosts, one a line: `a`, `b:4` or `b slots=4`.
    #[arg(long, value_name = "FILE", conflicts_with = "hosts")]
    pub hostfile: Option<PathBuf>,

    /// The way to reach other hosts.
    #[command(flatten)]
    pub reach: ReachArgs,
}

/// Replaces another name of a launcher by its common one: `slurm` by `srun`. A name is kept if the site has a launcher
/// of that name.
#[expect(clippy::unnecessary_wraps, reason = "clap wants a result")]
fn launcher(text: &str) -> Result<String, ValueError> {
    Ok(sdm_launch::common_name(text).to_owned())
}

/// The way in which servers come to other hosts and are reached there.
#[derive(Clone, Debug, Args)]
pub struct ReachArgs {
    /// An option for what starts the servers (mpirun, mpiexec, srun, ssh), passed on unchanged; may be
    /// repeated.
    #[arg(
        long = "launcher-option",
        value_name = "OPT",
        allow_hyphen_values = true
    )]
    pub launcher_options: Vec<OsString>,

    /// The path of sdm-server on the servers' hosts; its path on this host unless given.
    #[arg(long, value_name = "PATH")]
    pub server_path: Option<PathBuf>,

    /// Copy sdm-server to the hosts (ssh, srun), where no file system has it, and remove it at the end.
    #[arg(long)]
    pub stage: bool,

    /// The number of hosts that one host starts by ssh; if there are more, those start the others, in a tree.
    #[arg(long, value_name = "N", default_value_t = sdm_launch::FANOUT,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub fanout: u32,

    /// The ports for the servers: a first one, of which each takes the next free one, or a range.
    #[arg(long, value_name = "PORT[-LAST]", default_value_t)]
    pub port: PortRange,

    /// The addresses that the servers use: those of an interface (`ib0`), of a network
    /// (`10.1.0.0/16`), or one.
    #[arg(long, value_name = "NAME|NET")]
    pub interface: Option<Interface>,

    /// Reach the servers through ssh, where no other port is open between the hosts: each connection of
    /// the tree is an `ssh -W` to the host's name.
    #[arg(long, conflicts_with = "interface")]
    pub tunnel: bool,

    /// Have the servers connect to the master, beside sdm, where a firewall lets connections pass in that
    /// direction only; --port and --interface say where it listens. The tree is flat then.
    #[arg(long, conflicts_with = "tunnel")]
    pub reverse: bool,

    /// The way in which the session's key reaches servers that mpirun, mpiexec or srun starts: socket (all are on this machine), file
    /// (in the home folder) or file:FOLDER where all hosts see that, env (the launcher carries it, in plain), or auto.
    #[arg(long, value_name = "WAY", default_value_t)]
    pub key_handover: KeyHandover,
}

impl ReachArgs {
    /// A session whose servers come to other hosts in this way.
    #[must_use]
    pub fn reaching(&self, session: SessionConfig) -> SessionConfig {
        SessionConfig {
            server_path: self.server_path.clone(),
            stage: self.stage,
            fanout: self.fanout,
            key_handover: self.key_handover.clone(),
            network: Network {
                ports: self.port,
                interface: self.interface.clone(),
                tunnel: self.tunnel,
                reverse: self.reverse,
                shape: None,
            },
            ..session
        }
    }
}

impl LauncherArgs {
    /// The hosts to start on, named or in a file.
    ///
    /// # Errors
    /// [`HostFileError`]: a file that cannot be read, or a line that names no host.
    pub fn hosts(&self) -> Result<Vec<HostShare>, HostFileError> {
        let Some(path) = &self.hostfile else {
            return Ok(self.hosts.clone());
        };
        let text = sdm_system::files::read_text(path).map_err(|source| HostFileError::Read {
            path: path.clone(),
            source,
        })?;
        HostShare::file(&text).map_err(|source| HostFileError::Host {
            path: path.clone(),
            source,
        })
    }
}

/// The tree of servers.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct TreeArgs {
    /// The shape of the tree: by-host (binomial between hosts, up to 32 children of its own host for each, or K
    /// with by-host:K), binomial, kary:K or flat.
    #[arg(long, value_name = "KIND", default_value_t)]
    pub topology: Topology,

    /// The maximum number of tasks of one server: 32 unless given, and 1 for emulate and where you start the servers (manual). What
    /// kills a server costs all of its tasks.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub tasks_per_server: Option<u32>,

    /// Time limit for the servers to connect, in seconds; 60 unless given, and 900 where you start them (manual).
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub start_wait: Option<u32>,

    /// Go on where some of the servers have not come by then.
    #[arg(long)]
    pub partial: bool,

    /// The transport between members of one host: unix (sockets without files; TCP where they are not available) or tcp.
    #[arg(long, value_name = "KIND", default_value_t)]
    pub transport: HostTransport,
}

/// Default time limit for servers to connect.
const START_WAIT: Duration = Duration::from_secs(60);
/// Default time limit for servers that the user starts by hand.
const BY_HAND_WAIT: Duration = Duration::from_secs(900);

/// Default number of tasks per server.
const TASKS_PER_SERVER: u32 = 32;

impl TreeArgs {
    /// Maximum number of tasks per server with this launcher.
    #[must_use]
    pub fn tasks_per_server(&self, launcher: &str) -> u32 {
        match self.tasks_per_server {
            Some(count) => count,
            None if launcher == "manual" => 1,
            None => TASKS_PER_SERVER,
        }
    }

    /// Time limit for servers of this launcher to connect.
    #[must_use]
    pub fn start_wait(&self, launcher: &str) -> Duration {
        match self.start_wait {
            Some(seconds) => Duration::from_secs(seconds.into()),
            None if launcher == "manual" => BY_HAND_WAIT,
            None => START_WAIT,
        }
    }

    /// `servers` servers on this machine, one task each, with gdb, in such a tree.
    #[must_use]
    pub fn session(&self, servers: u32) -> SessionConfig {
        SessionConfig {
            transport: self.transport,
            topology: self.topology,
            config: Config {
                start_wait: self.start_wait(""),
                partial: self.partial,
                ..Config::default()
            },
            tasks_per_server: self.tasks_per_server.unwrap_or(1),
            ..SessionConfig::local(servers)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_wait_option_overrides_launcher_default() {
        let said = |start_wait| TreeArgs {
            start_wait,
            ..TreeArgs::default()
        };
        for (start_wait, launcher, seconds) in [
            (None, "local", 60),
            (None, "manual", 900),
            (Some(60), "manual", 60),
            (Some(1), "manual", 1),
            (Some(1000), "ssh", 1000),
        ] {
            let wait = said(start_wait).start_wait(launcher);
            assert_eq!(wait.as_secs(), seconds, "{start_wait:?} {launcher}");
        }
    }
}
