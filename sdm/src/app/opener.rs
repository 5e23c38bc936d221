//! Opening a session, and waking it from other threads.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use sdm_debug::EndPolicy;
use sdm_idset::IdSet;
use sdm_launch::Launch;
use sdm_session::{DebugSession, SessionConfig, StartProgress};
use sdm_shell::exit_codes::NOT_STARTED;
use sdm_system::files;

use super::error::AppError;
use super::explain::named;
use super::screen::StatusLine;
use super::wake::Wake;
use crate::sink::complain;

/// The exit code and message of an end before the session begins.
pub(super) type Refused = (u8, String);

/// The refusal for an error before the session begins.
pub(super) fn refused(error: AppError) -> Refused {
    (NOT_STARTED, named(&error))
}

/// Opens sessions and closes them.
pub trait Opener: Clone + 'static {
    /// A session.
    type Session: DebugSession + 'static;

    /// Opens a session, which stays on the calling thread.
    ///
    /// # Errors
    /// [`AppError`] gives the reason why the session could not be opened.
    fn open(
        &mut self,
        config: &SessionConfig,
        tell: &mut dyn FnMut(StartProgress),
    ) -> Result<(Self::Session, Wake), AppError>;

    /// Passes the launcher of the tasks to a session that will attach to them. With `records`, the launcher's output
    /// does not go to standard output.
    ///
    /// # Errors
    /// [`AppError`] if the launcher cannot be watched.
    fn adopt(
        &mut self,
        session: &mut Self::Session,
        starter: Launch,
        records: bool,
    ) -> Result<(), AppError>;

    /// Closes a session. It accepts no command afterwards.
    ///
    /// # Errors
    /// [`AppError`] names the parts that could not be ended.
    fn close(&mut self, session: &mut Self::Session, policy: EndPolicy) -> Result<(), AppError>;

    /// The tasks whose server is lost, or was lost before it confirmed its end.
    fn lost<'a>(&self, session: &'a Self::Session) -> &'a IdSet;
}

/// Warns of programs that were skipped on `PATH` because their directory is not trusted.
pub(super) fn tell_passed_over<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) {
    for word in words {
        let word = word.as_ref();
        let is_name = !word.as_bytes().contains(&b'/');
        if let Some(why) = is_name.then(|| files::passed_over(word)).flatten() {
            complain(format_args!("[PATH] {why}"));
        }
    }
}

/// Opens a session, and shows its progress on a terminal.
pub(super) fn open<O: Opener>(
    opener: &mut O,
    config: &SessionConfig,
) -> Result<(O::Session, Wake), AppError> {
    const STATUS_AFTER: Duration = Duration::from_secs(1);
    const SLOWEST_AFTER: Duration = Duration::from_secs(10);
    tell_passed_over(sdm_launch::programs_of(&config.launcher));
    let began = Instant::now();
    let mut line = StatusLine::new(None);
    let mut tell = |opening: StartProgress| {
        if let Some(note) = &opening.note {
            line.show(None);
            complain(format_args!("[launcher] {note}"));
        }
        let took = began.elapsed();
        if took < STATUS_AFTER {
            return;
        }
        let seconds = took.as_secs();
        let (phase, done, total) = (opening.phase, opening.done, opening.total);
        let mut text = format!("start: {phase} {done}/{total} ({seconds} s)");
        if let Some(slowest) = opening.slowest.filter(|_| took >= SLOWEST_AFTER) {
            text.push_str(&format!(", waiting for {slowest}"));
        }
        line.show(Some(&text));
    };
    let opened = opener.open(config, &mut tell);
    line.show(None);
    opened
}
