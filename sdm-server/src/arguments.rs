//! The command line of a server, and the variables that it takes from its environment.

use std::collections::HashMap;
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;

use sdm_bootstrap::handover::{
    LOCAL_INDEX_VARIABLE, SERVER_COUNT_VARIABLE, SERVER_VARIABLE, XSTATE_VARIABLE,
};
use sdm_core::transport::{ConnectionString, HostTransport, Interface, PortRange, Shape};

/// A server process of an SDM session. It is started by a launcher that `sdm` starts; the
/// session's name and key come in the environment.
#[derive(clap::Parser, Debug)]
#[command(version)]
pub struct Arguments {
    /// The server's number; taken from the launcher's variables where absent
    #[arg(long)]
    pub id: Option<u32>,
    /// The address to listen on; where it is 0.0.0.0 or ::, the host's own addresses are announced
    #[arg(long, default_value = "127.0.0.1")]
    pub bind: IpAddr,
    /// The name of this host for others; its own name, or Slurm's for it, where absent
    #[arg(long, value_name = "NAME")]
    pub host_name: Option<String>,
    /// Of the host's own addresses only these: the name of an interface, an address or a network
    #[arg(long, value_name = "NAME|NET")]
    pub interface: Option<Interface>,
    /// The first port to try, or a range; the local index is added, and taken ports are passed by. 0
    /// lets the system choose
    #[arg(long, value_name = "PORT[-LAST]", default_value_t)]
    pub port: PortRange,
    /// The transport between members of one host: unix or tcp
    #[arg(long, value_name = "KIND", default_value_t, conflicts_with = "call")]
    pub transport: HostTransport,
    /// The file with the session's name and key, which only you may read; `-` for standard
    /// input; the environment where absent
    #[arg(long, value_name = "FILE")]
    pub handover: Option<PathBuf>,
    /// Listen nowhere: connect to one of these, where the parent is
    #[arg(
        long,
        value_name = "ADDRESS,...",
        value_delimiter = ',',
        conflicts_with = "port"
    )]
    pub call: Vec<ConnectionString>,
    /// Seconds to wait for the parent's connection
    #[arg(long, default_value_t = 120)]
    pub start_wait: u64,
    /// This program was copied here for this session: it is removed when all servers are there
    #[arg(long)]
    pub staged: bool,
    /// Programs have this process's own standard streams: what they print goes to its standard output and
    /// not to the front-end, and they read its standard input
    #[arg(long)]
    pub own_streams: bool,
    /// Latency and bandwidth of connections to servers below, to emulate a network
    #[arg(long, value_name = "SHAPE")]
    pub shape: Option<Shape>,
    /// Be so many servers with numbers from --id on (0 unless given), each a process of its own: for
    /// trying out many on one machine
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub fork: Option<u32>,
    /// Share a server with other ranks of this host, at most so many: this process starts the program of its rank
    /// only, and the first of them forks the server
    #[arg(long, value_name = "COUNT", conflicts_with = "fork",
          value_parser = clap::value_parser!(u32).range(2..))]
    pub share: Option<u32>,
    /// Be no server: tell what of this host SDM needs, and whether it is there, for `sdm doctor`; with this gdb
    #[arg(long, value_name = "GDB", num_args = 0..=1, require_equals = true, default_missing_value = "gdb")]
    pub doctor: Option<PathBuf>,
    /// Do nothing and exit: for measuring what starting a process costs
    #[arg(long)]
    pub exit: bool,
}

/// The variables of SDM that a server reads later: its number, the number of servers, its local index, and the mode of
/// register writes. Call it before they are removed.
#[must_use]
pub fn snapshot() -> HashMap<OsString, OsString> {
    let wanted = [
        SERVER_VARIABLE,
        SERVER_COUNT_VARIABLE,
        LOCAL_INDEX_VARIABLE,
        XSTATE_VARIABLE,
    ];
    let pairs = wanted
        .iter()
        .filter_map(|name| Some((*name, std::env::var_os(name)?)));
    pairs.map(|(name, value)| (name.into(), value)).collect()
}
