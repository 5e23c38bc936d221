//! Settings of a shell, fixed before it begins.

use std::time::Duration;

use sdm_idset::IdSet;

/// Default time limit of a query.
pub const QUERY_TIMEOUT: Duration = Duration::from_secs(30);

/// Settings of a shell.
#[derive(Clone, Debug)]
pub struct Options {
    /// True at a prompt: commands may fail, and `quit` asks for confirmation.
    pub interactive: bool,
    /// True if commands are shown before their execution.
    pub echo: bool,
    /// Time limit of a query.
    pub query_timeout: Duration,
    /// The tasks whose standard input `send` feeds.
    pub stdin_tasks: IdSet,
    /// True if the tasks were attached to, false if they were started.
    pub attached: bool,
    /// True if task numbers are indices in a list and not ranks.
    pub unranked: bool,
    /// Ranks of the job that are not tasks.
    pub outside: IdSet,
    /// True if the attached tasks were started by a launcher of this session, which ends with it.
    pub controlled: bool,
    /// True if long output is shown a screen at a time.
    pub pagination: bool,
    /// True if the user is asked before started programs are ended.
    pub confirm: bool,
    /// True if a start is refused if a host seems to lack the memory for its gdbs.
    pub check_room: bool,
    /// True if a start continues without tasks whose server is lost, as long as one server is left.
    pub partial: bool,
    /// True for the script of a batch: `continue` and `wait` end soon after a crash.
    pub in_batch: bool,
    /// True if a script's `continue` continues tasks that stop at an error in the use of MPI.
    pub passes_mpi_errors: bool,
    /// True if the tasks run with `--check=strict`.
    pub strict_sends: bool,
}

impl Options {
    /// True if the tasks end with the session.
    pub(super) fn is_ours(&self) -> bool {
        !self.attached || self.controlled
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            interactive: false,
            echo: true,
            query_timeout: QUERY_TIMEOUT,
            stdin_tasks: IdSet::new(),
            attached: false,
            unranked: false,
            outside: IdSet::new(),
            controlled: false,
            pagination: true,
            confirm: true,
            check_room: false,
            partial: false,
            in_batch: false,
            passes_mpi_errors: false,
            strict_sends: false,
        }
    }
}
