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
    /// The launcher: auto (chosen by the MPI library of the program), local (this host, no MPI launcher), mpirun (Open
    /// MPI), mpiexec (Hydra of MPICH or Intel MPI), srun (Slurm), ssh, manual (sdm prints commands that you start
    /// yourself), a path or name of mpirun or mpiexec (mpiexec.mpich), or NAME if a program sdm-launch-NAME is on PATH.
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = launcher)]
    pub launcher: String,

    /// The hosts for the launchers ssh and manual, each with an optional number of processes: `a,b:4`.
    #[arg(long = "host", value_name = "HOSTS", value_delimiter = ',')]
    pub hosts: Vec<HostShare>,

    /// A file with one host per line: `a`, `b:4` or `b slots=4`.
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
    /// An option for the launcher (mpirun, mpiexec, srun or ssh), passed on unchanged. Can be repeated.
    #[arg(
        long = "launcher-option",
        value_name = "OPT",
        allow_hyphen_values = true
    )]
    pub launcher_options: Vec<OsString>,

    /// The path of sdm-server on the other hosts. Default: its path on this host.
    #[arg(long, value_name = "PATH")]
    pub server_path: Option<PathBuf>,

    /// Copy sdm-server to the hosts before the start, and remove it at the end. For hosts that share no file system
    /// with this one; with ssh and srun only.
    #[arg(long)]
    pub stage: bool,

    /// The maximum number of ssh connections from one host. If there are more hosts, the first ones connect to the
    /// others, in a tree.
    #[arg(long, value_name = "N", default_value_t = sdm_launch::FANOUT,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub fanout: u32,

    /// The TCP ports for the servers: a first port, after which each server takes the next free one, or a range. 0: any
    /// free ports.
    #[arg(long, value_name = "PORT[-LAST]", default_value_t)]
    pub port: PortRange,

    /// The addresses for the servers: of an interface (`ib0`), of a network (`10.1.0.0/16`), or a single address.
    #[arg(long, value_name = "NAME|NET")]
    pub interface: Option<Interface>,

    /// Connect to the servers through ssh (`ssh -W HOST`). For hosts between which a firewall allows nothing but ssh.
    #[arg(long, conflicts_with = "interface")]
    pub tunnel: bool,

    /// Let the servers connect to this host instead of the other way. For compute nodes behind a firewall; --port and
    /// --interface say where this host listens. All servers then connect directly, without a tree.
    #[arg(long, conflicts_with = "tunnel")]
    pub reverse: bool,

    /// The way in which servers started by mpirun, mpiexec or srun get the session's secret key: socket (if all are on
    /// this host), file (in a shared home folder), file:FOLDER (in another shared folder), env (in an environment
    /// variable that the launcher passes on in plain text), or auto.
    #[arg(long, value_name = "WAY", default_value_t)]
    pub key_handover: KeyHandover,
}

impl ReachArgs {
    /// A session whose servers come to other hosts by these options.
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
    /// The shape of the tree in which the servers are connected: by-host (binomial between hosts, and up to 32 servers
    /// below one of their own host, or K with by-host:K), binomial, kary:K or flat.
    #[arg(long, value_name = "KIND", default_value_t)]
    pub topology: Topology,

    /// The maximum number of ranks of one debug server. Default: 32, but 1 with emulate and with the launcher manual.
    /// If a server is killed, the debugger loses all its ranks.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub tasks_per_server: Option<u32>,

    /// The time limit for all servers to connect, in seconds. Default: 60, but 900 with the launcher manual.
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub start_wait: Option<u32>,

    /// Start the session even if some servers have not connected within --start-wait.
    #[arg(long)]
    pub partial: bool,

    /// The connections between servers of one host: unix (abstract Unix sockets, or TCP if these are not available) or
    /// tcp.
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

    /// A session of `servers` servers on this machine, with gdb, in a tree of this shape. A server has one task unless
    /// `--tasks-per-server` is given.
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
