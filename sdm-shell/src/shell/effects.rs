//! Services that the application provides to the shell, which has no terminal, files or child processes of
//! its own.
//!
//! Items are shown by a [`View`], lines come from a [`super::LineSource`], the programs' input from a
//! [`super::InputSource`]. The rest is a [`LocalMachine`] and two ways to open another session.
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::time::Instant;

use sdm_debug::command::AttachSpec;
use sdm_idset::IdSet;
use sdm_view::item::View;

use super::Control;

/// The services of the application around a shell.
pub struct Application {
    /// The view that shows items.
    pub view: Box<dyn View>,
    /// The machine where `sdm` runs.
    pub machine: Box<dyn LocalMachine>,
    /// The channel of lines, signals and input.
    pub controls: Receiver<Control>,
    /// The clock of the shell, monotonic.
    pub clock: Box<dyn Fn() -> Instant>,
}

/// The machine where `sdm` runs, for commands of the shell: files, a working directory, child processes.
pub trait LocalMachine {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// The file cannot be read, is not text, or is too long.
    fn read_text(&mut self, file: &Path) -> io::Result<String>;

    /// Writes a file atomically.
    ///
    /// # Errors
    /// The file cannot be written. Its previous contents are unchanged.
    fn write_file(&mut self, file: &Path, contents: &[u8]) -> io::Result<()>;

    /// Resolves the links in a file's name. An unknown name is returned unchanged.
    fn without_links(&mut self, file: &Path) -> PathBuf;

    /// The user's home directory; `/` if unknown.
    fn home(&mut self) -> PathBuf;

    /// The working directory.
    ///
    /// # Errors
    /// The directory was removed, or cannot be read.
    fn working_directory(&mut self) -> io::Result<PathBuf>;

    /// Changes the working directory.
    ///
    /// # Errors
    /// The directory does not exist, or cannot be entered.
    fn change_directory(&mut self, directory: &Path) -> io::Result<()>;

    /// Starts a command line in a local shell, which has the terminal until it ends. For an empty line, an
    /// interactive shell is started.
    ///
    /// # Errors
    /// The command cannot be started.
    fn start(&mut self, line: &str) -> io::Result<Box<dyn LocalProcess>>;
}

/// A started local command.
pub trait LocalProcess {
    /// Returns the end of the process, or None while it runs.
    ///
    /// # Errors
    /// The process cannot be waited for.
    fn poll_end(&mut self) -> io::Result<Option<LocalEnd>>;

    /// Kills the command and waits for its end.
    fn kill(&mut self);
}

/// The end of a local command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalEnd {
    /// True if the exit code is 0.
    pub success: bool,
    /// The exit status as text: `exit status: 2`.
    pub status: String,
}

/// The reason why no other session could be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct NotOpened {
    /// The reason why no other session could be opened, as text for the user.
    pub reason: String,
}

/// Ends a session and replaces it by another. Returns a note about problems at the end of the old one. On
/// failure the ended session stays.
pub type Restart<D> = Box<dyn FnMut(&mut D) -> Result<Option<String>, NotOpened>>;

/// Opens servers on further hosts of the job.
pub struct Widening<D> {
    /// Ranks of the job that are on hosts without a server.
    pub elsewhere: IdSet,
    /// Opens the session with more servers.
    pub open: Widen<D>,
}

/// Detaches all tasks, ends a session and replaces it by one whose servers are on the hosts of these ranks.
/// The new session is attached to no task.
pub type Widen<D> = Box<dyn FnMut(&mut D, &IdSet) -> Result<Widened, NotOpened>>;

/// A session with servers on more hosts.
pub struct Widened {
    /// All processes that can be attached to.
    pub spec: AttachSpec,
    /// The requested ranks that are among the processes of `spec`.
    pub wanted: IdSet,
    /// Ranks of the job that are on hosts without a server.
    pub elsewhere: IdSet,
    /// The tasks that are left out, each with the reason: a sentence each.
    pub left_out: Vec<String>,
}

/// A [`Restart`] with its session bound.
pub(super) type SessionRestart = Box<dyn FnMut() -> Result<Option<String>, NotOpened>>;

/// A [`Widen`] with its session bound.
type SessionWiden = Box<dyn FnMut(&IdSet) -> Result<Widened, NotOpened>>;

/// A [`Widening`] with its session bound.
pub(super) struct SessionWidening {
    /// Ranks of the job that are on hosts without a server.
    pub(super) elsewhere: IdSet,
    /// Opens the session with more servers.
    pub(super) open: SessionWiden,
}
