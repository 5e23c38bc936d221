//! Options of `sdm doctor`.

use std::path::PathBuf;

use clap::Args;
use sdm_hosts::HostShare;
use sdm_hosts::job::Target;

use super::ReachArgs;

/// The subjects of the check besides this machine.
#[derive(Clone, Debug, Args)]
pub struct DoctorArgs {
    /// A job to check, as for `sdm attach`: whether it is found, whether its processes can be attached to, and its
    /// hosts.
    #[arg(value_name = "TARGET")]
    pub target: Option<Target>,

    /// Other hosts to check: whether ssh reaches them, their versions of sdm-server and gdb, and whether TCP
    /// connections work.
    #[arg(long = "host", value_name = "HOSTS", value_delimiter = ',')]
    pub hosts: Vec<HostShare>,

    /// A cluster to check (`sdm cluster list`): whether its connection process and its agent answer.
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,

    /// The gdb to check, on this host and on the other hosts. Default: `gdb` on PATH.
    #[arg(long, value_name = "PATH")]
    pub gdb: Option<PathBuf>,

    /// The way to reach the hosts.
    #[command(flatten)]
    pub reach: ReachArgs,

    /// Print one JSON document instead of text.
    #[arg(long)]
    pub json: bool,

    /// Write the results, versions, settings and kernel limits of this machine into a new file, to attach to a support
    /// request. Values that may be secret are left out; read the file before you send it.
    #[arg(long, value_name = "FILE")]
    pub bundle: Option<PathBuf>,
}
