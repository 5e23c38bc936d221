//! Settings of a backend, which the front-end sends to every server with the session's configuration.

use sdm_idset::IdSet;
use serde::{Deserialize, Serialize};

/// Which backend a server uses, and how it is set up.
///
/// The list is only appended to: its order is the wire form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum BackendSettings {
    /// gdb over GDB/MI.
    Gdb,
    /// A script in place of gdb: for trying the tree without programs.
    Fake {
        /// The scenario's text, as `sdm-fake` reads it.
        scenario: String,
    },
    /// gdb over GDB/MI, not with the settings that were measured to be best.
    GdbWith(GdbOptions),
    /// gdb over GDB/MI, and the programs that it starts find a PMIx server.
    GdbHosted {
        /// gdb settings that differ from the defaults.
        options: GdbOptions,
        /// The job that the PMIx servers serve.
        pmix: PmixJob,
    },
}

/// A job with PMIx servers of SDM's, one on each node.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct PmixJob {
    /// True if nothing may be started without a PMIx server; otherwise programs are then started without one, and a
    /// notice says so.
    pub needed: bool,
    /// Each is its node's own server too (`pmix.sys.HOST`), where the node has none.
    pub is_system: bool,
    /// The nodes: what each calls itself, and the tasks there.
    pub nodes: Vec<(String, IdSet)>,
    /// Tasks that no program is for yet: those that programs start themselves (`MPI_Comm_spawn`) become these. Each node has some.
    pub spare: IdSet,
}

/// gdb settings that differ from the defaults.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GdbOptions {
    /// More commands for every gdb's own command line, before it reads a program.
    pub settings: Vec<String>,
    /// True to read debug information of system libraries too, if installed.
    pub system_debug: bool,
    /// True to fetch debug information by debuginfod, as the environment configures it.
    pub debuginfod: bool,
    /// The user's own `.gdbinit` files are read.
    pub init_files: bool,
    /// Programs that are about to abort, or to leave before `MPI_Finalize`, are not held.
    pub no_holds: bool,
}
