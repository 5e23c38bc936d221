//! How a session is started, and how far that is.

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

/// How a session is started.
///
/// Large because it is a plain list of choices, one field each, with defaults that fit most.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// Who starts the servers: any name that [`sdm_launch::find`] knows.
    pub launcher: String,
    /// The user's own options for the launcher, passed on unchanged.
    pub launcher_options: Vec<OsString>,
    /// How many servers, 1 or more.
    pub servers: u32,
    /// The programs of the job where it has several, as the launcher is told of them.
    pub parts: Vec<Part>,
    /// The hosts to start on, for launchers that are told.
    pub hosts: Vec<HostShare>,
    /// How many tasks a server has at most, 1 or more, where it is the servers who start the programs and nothing below
    /// says who has which: there are fewer than `servers` of them then.
    pub tasks_per_server: u32,
    /// The tasks of each server; server i owns task i where this is empty.
    pub tasks: Vec<IdSet>,
    /// The tasks of each host, one server each, where it is not known before which server comes up
    /// where; it goes before `tasks`.
    pub by_host: Vec<(String, IdSet)>,
    /// How the servers are arranged.
    pub topology: Topology,
    /// What carries links between members of one host.
    pub transport: HostTransport,
    /// Limits and time-outs.
    pub config: Config,
    /// What drives the tasks.
    pub backend: BackendSettings,
    /// Where the servers start; this process's directory where absent.
    pub directory: Option<PathBuf>,
    /// Whether `sdm-server` is copied to the servers' hosts, and removed there at the end.
    pub stage: bool,
    /// How many hosts one host starts by `ssh`; more are started through those.
    pub fanout: u32,
    /// Where servers listen and how they are reached.
    pub network: Network,
    /// How the key comes to servers that `mpirun`, `mpiexec` or `srun` starts.
    pub key_handover: KeyHandover,
    /// Whether one process forks the servers of a host of this machine: quicker where they are many and drive
    /// no programs.
    pub forks: bool,
    /// Who carries what the programs print and read: the tree, or the launcher.
    pub streams: Streams,
    /// Whether standard output is for records alone: what the launcher carries then goes to standard
    /// error.
    pub records: bool,
    /// Gives the start up once it is true; set from any thread.
    pub given_up: Option<Arc<AtomicBool>>,
    /// The memory that all of it needs at least, in bytes: where this machine is to hold it and cannot, nothing is
    /// started.
    pub memory: u64,
    /// `sdm-master` and `sdm-server`; beside this program where absent.
    pub binaries: Option<PathBuf>,
    /// Where `sdm-server` is on the servers' hosts; where it is here where absent.
    pub server_path: Option<PathBuf>,
}

impl SessionConfig {
    /// The same over so many loopback addresses of this machine, each a host with ports of its own.
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

    /// `servers` servers on this machine, one task each, with gdb.
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
    /// How the servers are arranged: who calls has the master for its parent, as that is where they can
    /// call.
    pub(crate) fn arranged(&self) -> Topology {
        match self.network.reverse {
            true => Topology::Flat,
            false => self.topology,
        }
    }
}

/// Where servers listen and how they are reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// The ports that servers try.
    pub ports: PortRange,
    /// Which of their host's addresses they say to be theirs; all where absent.
    pub interface: Option<Interface>,
    /// Whether servers listen at their host's loopback only, and are reached through `ssh`.
    pub tunnel: bool,
    /// Whether servers listen nowhere, but connect to the master, which is everybody's parent then.
    pub reverse: bool,
    /// How slow the tree's links are made; as quick as they are where absent.
    pub shape: Option<Shape>,
}

/// How far a start is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartProgress {
    /// `launched` or `connected`.
    pub phase: &'static str,
    /// How many servers have come so far; of those that are connected, how many tasks they have.
    pub done: u32,
    /// How many there will be.
    pub total: u32,
    /// The first one that has not come yet.
    pub slowest: Option<String>,
    /// Something that the launcher has to say.
    pub note: Option<String>,
}
