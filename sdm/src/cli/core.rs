//! Options of `sdm core`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use sdm_hosts::HostShare;

use super::{PrinterArgs, ScriptArgs};

/// `sdm core`.
#[derive(Debug, Args)]
pub struct CoreArgs {
    /// The program that left them.
    #[arg(value_name = "PROGRAM")]
    pub program: OsString,

    /// The core files. They are called by the rank that their process had, else by its pid, else by
    /// their place in this list, from 0.
    #[arg(value_name = "CORE", required = true)]
    pub cores: Vec<PathBuf>,

    /// Unfolded, and every thread.
    #[arg(long)]
    pub full: bool,

    /// Commands, and how what comes of them is shown.
    #[command(flatten)]
    pub script: ScriptArgs,

    /// The gdb to use; found on PATH unless given.
    #[arg(long, value_name = "PATH")]
    pub gdb: Option<PathBuf>,

    /// The pretty printers that gdb loads.
    #[command(flatten)]
    pub printers: PrinterArgs,

    /// The hosts that read them, reached by ssh; each reads its part of them, under the same paths.
    #[arg(long = "host", value_name = "HOSTS", value_delimiter = ',')]
    pub hosts: Vec<HostShare>,

    /// An option for ssh, passed on unchanged; may be repeated.
    #[arg(
        long = "launcher-option",
        value_name = "OPT",
        allow_hyphen_values = true,
        requires = "hosts"
    )]
    pub launcher_options: Vec<OsString>,

    /// The path of sdm-server on these hosts; its path on this host unless given.
    #[arg(long, value_name = "PATH", requires = "hosts")]
    pub server_path: Option<PathBuf>,
}
