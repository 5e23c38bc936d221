//! Writes of this process to standard output and standard error, except those of the full screen. Control sequences in
//! messages are escaped. Callers have escaped foreign text already; this is a second barrier.

use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU8, Ordering};

use nix::errno::Errno;
use sdm_shell::exit_codes::{TIMED_OUT, UNREAD, UNWRITTEN};
use sdm_text::{printable_lines, without_numbers};
use sdm_view::escape::shown;

use crate::blocked_output::writing;
use crate::locale::drawn;
use crate::sys;

/// The first exit code that a failed write does not replace.
const OWN_CODES: u8 = TIMED_OUT;

/// `UNWRITTEN` or `UNREAD` once a write has failed; 0 before.
static FAILED: AtomicU8 = AtomicU8::new(0);

/// One of the two output streams.
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

    /// True if output may have colours.
    pub(crate) fn is_coloured(self) -> bool {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        self.moves_cursor() && !set("NO_COLOR")
    }

    /// True for a terminal that can move its cursor (`TERM` is set, and not `dumb`).
    pub(crate) fn moves_cursor(self) -> bool {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        self.is_terminal() && !dumb
    }

    /// Columns and lines of the terminal; None if the stream is no terminal.
    pub(crate) fn size(self) -> Option<(usize, usize)> {
        match self {
            Self::Output => sys::terminal_size(&io::stdout()),
            Self::Complaints => sys::terminal_size(&io::stderr()),
        }
    }

    /// Redirects both streams to /dev/null, also for a write in progress.
    pub(crate) fn close() {
        sys::lead_nowhere(&[io::stdout().as_raw_fd(), io::stderr().as_raw_fd()]);
    }

    /// Prints text of SDM, which can have styles.
    ///
    /// # Errors
    /// The output cannot be written.
    pub(crate) fn show(self, text: &str) -> io::Result<()> {
        self.pass(drawn(&shown(text)).as_bytes())
    }

    /// Prints a text in place of the cursor's line; as a line of its own where the cursor cannot be moved.
    pub(crate) fn show_at_bottom(self, line: &str) {
        let shown = shown(line);
        let text = drawn(&shown);
        let text = match self.moves_cursor() {
            true => format!("\r\x1b[K{text}"),
            false if line.is_empty() => return,
            false => format!("{text}\n"),
        };
        // A failed write is ignored: the terminal is gone.
        let _ = self.pass(text.as_bytes());
    }

    /// Prints bytes as they are: text that is escaped already, and output of programs that a launcher forwards at the
    /// user's request.
    ///
    /// # Errors
    /// The output cannot be written.
    pub(crate) fn pass(self, bytes: &[u8]) -> io::Result<()> {
        if self == Self::Complaints {
            return writing(|| io::stderr().write_all(bytes));
        }
        let written = writing(|| {
            // The library has put /dev/null into the place of one that was closed.
            if sys::began_without_output() {
                return Err(Errno::EBADF.into());
            }
            let mut out = io::stdout().lock();
            out.write_all(bytes).and_then(|()| out.flush())
        });
        written.inspect_err(note)
    }
}

/// Standard output for records. Each write is a whole record, made by [`sdm_text::record`].
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

/// Prints a message to standard error. Further lines of it are indented, so that none looks like another
/// message.
pub(crate) fn complain(what: impl Display) {
    let what = printable_lines(&without_numbers(&what.to_string()));
    let mut text = String::with_capacity(what.len() + 1);
    for line in what.split('\n') {
        // A leading empty line ends the line of the prompt, so that the next line is still the first of the message.
        let is_further = !text.trim_end().is_empty();
        if is_further && !line.starts_with(' ') {
            text.push_str("  ");
        }
        text.push_str(line);
        text.push('\n');
    }
    // A failed write is ignored: standard error is gone.
    let _ = Sink::Complaints.pass(text.as_bytes());
}

/// Prints a line to standard output.
///
/// # Errors
/// The output cannot be written.
pub(crate) fn tell(what: &str) -> io::Result<()> {
    Sink::Output.pass(drawn(&format!("{}\n", printable_lines(what))).as_bytes())
}

/// Records and reports the first failed write to standard output. A closed pipe is not reported.
fn note(error: &io::Error) {
    let code = match error.kind() {
        // A signal has ended the waiting, and gives the code.
        ErrorKind::Interrupted | ErrorKind::WouldBlock => return,
        ErrorKind::BrokenPipe => UNREAD,
        _ => UNWRITTEN,
    };
    let first = FAILED.compare_exchange(0, code, Ordering::SeqCst, Ordering::SeqCst);
    if first.is_ok() && code == UNWRITTEN {
        complain(format_args!(
            "sdm: cannot write to standard output: {error}"
        ));
    }
}

/// Reports that a result file could not be written, and sets the exit code.
pub(crate) fn complain_of_loss(what: impl Display) {
    complain(what);
    let _ = FAILED.compare_exchange(0, UNWRITTEN, Ordering::SeqCst, Ordering::SeqCst);
}

/// Replaces an exit code below [`OWN_CODES`], such as the program's, by the code for lost output, if output was lost.
pub(crate) fn exit_code(code: u8) -> u8 {
    match FAILED.load(Ordering::SeqCst) {
        0 => code,
        lost if code < OWN_CODES => lost,
        _ => code,
    }
}
