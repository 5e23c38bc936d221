//! Options of `sdm doctor`.

use std::path::PathBuf;

use clap::Args;
use sdm_hosts::HostShare;
use sdm_hosts::job::Target;

use super::ReachArgs;

/// The subjects of the check besides this machine.
#[derive(Clone, Debug, Args)]
pub struct DoctorArgs {
    /// A job, as for `sdm attach`: whether it is found, what stands in the way of attaching to it, and its hosts.
    #[arg(value_name = "TARGET")]
    pub target: Option<Target>,

    /// Other hosts: whether ssh reaches them, which sdm-server and gdb they have, and whether connections come through.
    #[arg(long = "host", value_name = "HOSTS", value_delimiter = ',')]
    pub hosts: Vec<HostShare>,

    /// A cluster (`sdm cluster`): whether its process and its agent answer.
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,

    /// The gdb to use, here and on the hosts; found on PATH unless given.
    #[arg(long, value_name = "PATH")]
    pub gdb: Option<PathBuf>,

    /// The way to reach the hosts.
    #[command(flatten)]
    pub reach: ReachArgs,

    /// One JSON document instead of text.
    #[arg(long)]
    pub json: bool,

    /// Write all of it, with versions, settings and what the kernel says of this machine, into a new file for whoever
    /// supports you. No values of variables or settings are in it that could be secrets; read it before you send it.
    #[arg(long, value_name = "FILE")]
    pub bundle: Option<PathBuf>,
}
