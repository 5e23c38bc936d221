//! Settings of a backend, which the front-end sends to every server with the session's configuration.

use sdm_idset::IdSet;
use serde::{Deserialize, Serialize};

/// The backend that a server uses, and its settings. The list is only appended to: its order is the wire form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum BackendSettings {
    /// gdb over GDB/MI.
    Gdb,
    /// A script in place of gdb, to test the tree without programs.
    Fake {
        /// The scenario's text, as `sdm-fake` reads it.
        scenario: String,
    },
    /// gdb over GDB/MI, with settings that differ from the defaults.
    GdbWith(GdbOptions),
    /// gdb over GDB/MI, with a PMIx server for the programs that it starts.
    GdbHosted {
        /// gdb settings that differ from the defaults.
        options: GdbOptions,
        /// The job that the PMIx servers serve.
        pmix: PmixJob,
    },
}

/// A job with one PMIx server of SDM on each node.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct PmixJob {
    /// True if nothing may be started without a PMIx server; otherwise programs are then started without one, and a
    /// notice says so.
    pub needed: bool,
    /// True if each server is also the system server of its node (`pmix.sys.HOST`), provided that the node has none.
    pub is_system: bool,
    /// Pairs of a node's host name and its tasks.
    pub nodes: Vec<(String, IdSet)>,
    /// Task numbers without a program yet, reserved for programs that the job starts itself (`MPI_Comm_spawn`). Each
    /// node has some.
    pub spare: IdSet,
}

/// gdb settings that differ from the defaults.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GdbOptions {
    /// Additional commands for the command line of every gdb, before it reads a program.
    pub settings: Vec<String>,
    /// True to read debug information of system libraries too, if it is installed.
    pub system_debug: bool,
    /// True to fetch debug information by debuginfod, as the environment configures it.
    pub debuginfod: bool,
    /// True to read the user's own `.gdbinit` files.
    pub init_files: bool,
    /// True to not stop programs that are about to abort, or to exit before `MPI_Finalize`.
    pub no_holds: bool,
}
