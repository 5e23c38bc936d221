//! The way to the terminal: everything that this process shows passes here, and what could steer a terminal is
//! escaped. Whoever makes a text has escaped what is not ours in it; this holds where that was forgotten.

use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};

use sdm_core::printable::printable_lines;
use sdm_view::escape::shown;

use crate::sys;
use crate::unread::writing;

/// Something could not be written, and that was said.
static FAILED: AtomicBool = AtomicBool::new(false);

/// One of the two ways out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sink {
    /// Standard output.
    Output,
    /// Standard error.
    Complaints,
}

impl Sink {
    pub(crate) fn is_terminal(self) -> bool {
        match self {
            Self::Output => io::stdout().is_terminal(),
            Self::Complaints => io::stderr().is_terminal(),
        }
    }

    /// True where colours are wanted.
    pub(crate) fn is_coloured(self) -> bool {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        self.is_terminal() && !set("NO_COLOR") && !dumb
    }

    /// Columns and lines of the terminal.
    pub(crate) fn size(self) -> Option<(usize, usize)> {
        match self {
            Self::Output => sys::terminal_size(&io::stdout()),
            Self::Complaints => sys::terminal_size(&io::stderr()),
        }
    }

    /// From now on both lead nowhere, also for a write that is interrupted: nobody reads.
    pub(crate) fn close() {
        sys::lead_nowhere(&[io::stdout().as_raw_fd(), io::stderr().as_raw_fd()]);
    }

    /// Shows text of ours, with styles.
    ///
    /// # Errors
    /// Nobody reads it.
    pub(crate) fn show(self, text: &str) -> io::Result<()> {
        self.pass(shown(text).as_bytes())
    }

    /// Shows it in the place of the line where the cursor is.
    pub(crate) fn show_at_bottom(self, line: &str) {
        // It is no loss where a terminal that is gone does not show it.
        let _ = self.pass(format!("\r\x1b[K{}", shown(line)).as_bytes());
    }

    /// Passes on what is another program's, as it is: what a launcher forwards, where its user has asked for that.
    ///
    /// # Errors
    /// Nobody reads it.
    pub(crate) fn pass(self, bytes: &[u8]) -> io::Result<()> {
        if self == Self::Complaints {
            return writing(|| io::stderr().write_all(bytes));
        }
        let written = writing(|| {
            let mut out = io::stdout().lock();
            out.write_all(bytes).and_then(|()| out.flush())
        });
        written.inspect_err(note)
    }
}

/// Standard output for records: what is written are whole ones, made by [`sdm_view::escape::record`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Records;

impl Write for Records {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Sink::Output.pass(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A line on standard error.
pub(crate) fn complain(what: impl Display) {
    // Nothing can be said where standard error is gone.
    let _ = Sink::Complaints.pass(format!("{}\n", printable_lines(&what.to_string())).as_bytes());
}

/// A line on standard output.
///
/// # Errors
/// It could not be written.
pub(crate) fn tell(what: &str) -> io::Result<()> {
    Sink::Output.pass(format!("{}\n", printable_lines(what)).as_bytes())
}

/// Notes and says, once, why standard output was not written; that nobody reads is no more to be said.
fn note(error: &io::Error) {
    let passing = [
        ErrorKind::BrokenPipe,
        ErrorKind::Interrupted,
        ErrorKind::WouldBlock,
    ];
    if !passing.contains(&error.kind()) && !FAILED.swap(true, Ordering::SeqCst) {
        complain(format_args!("sdm: write standard output: {error}"));
    }
}

/// Whether anything was noted.
pub(crate) fn has_failed() -> bool {
    FAILED.load(Ordering::SeqCst)
}
