//! Options of `sdm core`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use sdm_hosts::HostShare;

use super::{PrinterArgs, ScriptArgs};

/// `sdm core`.
#[derive(Debug, Args)]
pub struct CoreArgs {
    /// The program that wrote the core files.
    #[arg(value_name = "PROGRAM")]
    pub program: OsString,

    /// The core files. Each is numbered by the rank of its process if that is known, else by the pid, else by its
    /// position in this list, from 0.
    #[arg(value_name = "CORE", required = true)]
    pub cores: Vec<PathBuf>,

    /// Show all frames, including those inside MPI and other runtimes, of every thread.
    #[arg(long)]
    pub full: bool,

    /// Commands, and how what comes of them is shown.
    #[command(flatten)]
    pub script: ScriptArgs,

    /// The gdb to use. Default: `gdb` on PATH.
    #[arg(long, value_name = "PATH")]
    pub gdb: Option<PathBuf>,

    /// The pretty printers that gdb loads.
    #[command(flatten)]
    pub printers: PrinterArgs,

    /// The hosts that read the core files, reached by ssh. Each host reads a share of the files, under the same paths
    /// as given here.
    #[arg(long = "host", value_name = "HOSTS", value_delimiter = ',')]
    pub hosts: Vec<HostShare>,

    /// An option for ssh, passed on unchanged. Can be repeated.
    #[arg(
        long = "launcher-option",
        value_name = "OPT",
        allow_hyphen_values = true,
        requires = "hosts"
    )]
    pub launcher_options: Vec<OsString>,

    /// The path of sdm-server on these hosts. Default: its path on this host.
    #[arg(long, value_name = "PATH", requires = "hosts")]
    pub server_path: Option<PathBuf>,
}
