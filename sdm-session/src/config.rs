//! The configuration of a session, and the progress of its start.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sdm_core::config::Config;
use sdm_core::topology::Topology;
use sdm_core::transport::{HostTransport, Interface, PortRange, Shape};
use sdm_debug::BackendSettings;
use sdm_hosts::HostShare;
use sdm_idset::IdSet;
use sdm_launch::{Part, Streams};

use super::key::KeyHandover;

/// The configuration of a session.
///
/// Large because it is a plain list of choices, one field each, with defaults that fit most sessions.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// The launcher of the servers: a name that [`sdm_launch::find`] knows.
    pub launcher: String,
    /// The user's own options for the launcher, passed on unchanged.
    pub launcher_options: Vec<OsString>,
    /// Number of servers, 1 or more.
    pub servers: u32,
    /// The programs of the job, as the launcher gets them. Empty if there is only one.
    pub parts: Vec<Part>,
    /// The hosts to start on, for launchers that take a list of hosts.
    pub hosts: Vec<HostShare>,
    /// Maximum number of tasks per server, 1 or more. Valid where the servers start the programs and
    /// nothing below assigns tasks. The number of servers is then smaller than `servers`.
    pub tasks_per_server: u32,
    /// The tasks of each server. If empty, server i has task i.
    pub tasks: Vec<IdSet>,
    /// The tasks of each host, which has one server. For launchers with an unknown placement; takes
    /// precedence over `tasks`.
    pub by_host: Vec<(String, IdSet)>,
    /// The shape of the tree of servers.
    pub topology: Topology,
    /// The transport between members of one host.
    pub transport: HostTransport,
    /// Limits and time-outs.
    pub config: Config,
    /// The backend that debugs the tasks.
    pub backend: BackendSettings,
    /// The working directory of the servers. None: that of this process.
    pub directory: Option<PathBuf>,
    /// True if `sdm-server` is copied to the servers' hosts, and removed there at the end.
    pub stage: bool,
    /// Number of hosts that one host starts by `ssh`. Those hosts start further ones.
    pub fanout: u32,
    /// The network settings of the servers.
    pub network: Network,
    /// The way in which servers that `mpirun`, `mpiexec` or `srun` starts get the session key.
    pub key_handover: KeyHandover,
    /// True if one process forks all servers of a host. That is faster for many servers without
    /// programs, and only for hosts on this machine.
    pub forks: bool,
    /// The carrier of the programs' output and input: the tree, or the launcher.
    pub streams: Streams,
    /// True if standard output is reserved for records. Output that the launcher carries then goes to
    /// standard error.
    pub records: bool,
    /// A flag that aborts the start once it is true. Any thread can set it. None: the start cannot be aborted.
    pub given_up: Option<Arc<AtomicBool>>,
    /// Minimum memory that the session needs on this machine, in bytes. Nothing is started if there is
    /// less.
    pub memory: u64,
    /// The directory of `sdm-master` and `sdm-server`. None: that of this program.
    pub binaries: Option<PathBuf>,
    /// The path of `sdm-server` on the servers' hosts. None: the same as on this host.
    pub server_path: Option<PathBuf>,
}

impl SessionConfig {
    /// This configuration with a number of loopback addresses of this machine as hosts. Each host has ports of its own.
    #[must_use]
    pub fn over_loopback(self, hosts: u32) -> Self {
        // As a cluster names its nodes: all are equally long.
        let width = hosts.to_string().len();
        let name = |host| HostShare {
            host: format!("n{host:0width$}"),
            slots: None,
        };
        Self {
            launcher: "loopback".to_owned(),
            hosts: (1..=hosts).map(name).collect(),
            ..self
        }
    }

    /// A configuration for `servers` servers on this machine, one task each, with gdb.
    #[must_use]
    pub fn local(servers: u32) -> Self {
        Self {
            launcher: "local".to_owned(),
            launcher_options: Vec::new(),
            servers,
            parts: Vec::new(),
            hosts: Vec::new(),
            tasks_per_server: 1,
            tasks: Vec::new(),
            by_host: Vec::new(),
            topology: Topology::default(),
            transport: HostTransport::default(),
            config: Config::default(),
            backend: BackendSettings::Gdb,
            directory: None,
            stage: false,
            fanout: sdm_launch::FANOUT,
            network: Network::default(),
            key_handover: KeyHandover::default(),
            forks: false,
            streams: Streams::Private,
            records: false,
            given_up: None,
            memory: 0,
            binaries: None,
            server_path: None,
        }
    }
}

impl SessionConfig {
    /// The shape of the tree. With `reverse` it is flat, because servers can connect to the master only.
    pub(crate) fn arranged(&self) -> Topology {
        match self.network.reverse {
            true => Topology::Flat,
            false => self.topology,
        }
    }
}

/// The network settings of the servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// The range of listening ports for servers.
    pub ports: PortRange,
    /// The network interface whose addresses a server announces. None: all interfaces.
    pub interface: Option<Interface>,
    /// True if servers listen on loopback only, and are reached through `ssh`.
    pub tunnel: bool,
    /// True if servers do not listen but connect to the master, which is then the parent of all.
    pub reverse: bool,
    /// Artificial delay and bandwidth of the tree's links. None: the real ones.
    pub shape: Option<Shape>,
}

/// The progress of a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartProgress {
    /// `launched` or `connected`.
    pub phase: &'static str,
    /// Number of processes that the launcher has started so far: servers, or ranks that share servers. In phase
    /// `connected`, the number of tasks that are ready.
    pub done: u32,
    /// The final value of `done`.
    pub total: u32,
    /// The first server or task that is still missing; None if none is.
    pub slowest: Option<String>,
    /// A note for the user: a message of the launcher, or the servers that are left out. None without one.
    pub note: Option<String>,
}
