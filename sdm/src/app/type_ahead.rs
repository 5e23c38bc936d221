//! Keys that are typed while a command runs. They are shown after the status line, are never overwritten, and are read
//! by the next prompts.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use sdm_text::{columns, printable};
use sdm_view::render::status_in;

use super::keys::Keys;
use crate::sink::Sink;

/// Maximum length of a typed line, in bytes.
const LINE_BYTES_MAX: usize = 4096;
/// Maximum number of lines that wait for their prompts.
const LINES_MAX: usize = 256;
/// Maximum time that the reader waits for a key before it checks whether keys are still wanted, in
/// milliseconds.
const LOOK_MS: u8 = 50;
/// Minimum number of columns for the status. With less room it is not shown beside typed keys.
const STATUS_LEAST: usize = 12;

/// A line that was typed before its prompt was shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TypedLine {
    /// A line without its terminator.
    Line(String),
    /// Ctrl-D on an empty line.
    End,
}

/// Typed keys, and the status line that shows them.
#[derive(Default)]
pub(super) struct Typed {
    state: Mutex<State>,
    /// Notified when keys are to be read.
    wanted: Condvar,
}

#[derive(Default)]
struct State {
    keys: Option<Keys>,
    is_started: bool,
    /// The status. None while no status line is shown.
    status: Option<String>,
    line: LineBuffer,
    lines: VecDeque<TypedLine>,
}

impl Typed {
    /// Shows the status. From the first call on keys are read, until [`Typed::end`].
    pub(super) fn show(self: &Arc<Self>, status: &str) {
        let mut state = self.lock();
        if state.keys.is_none() {
            state.keys = Keys::take(true);
        }
        if state.keys.is_some() && !state.is_started {
            let typed = Arc::clone(self);
            let reader = thread::Builder::new().name("typed".to_owned());
            state.is_started = reader.spawn(move || typed.read()).is_ok();
        }
        state.status = Some(status.to_owned());
        self.wanted.notify_all();
        state.draw();
    }

    /// Removes the status line. Typed keys are kept and shown with the next one.
    pub(super) fn hide(&self) {
        let mut state = self.lock();
        if state.status.take().is_some() {
            Sink::Complaints.show_at_bottom("");
        }
    }

    /// Restores the terminal. Typed keys are kept.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.take_keys();
        state.keys = None;
    }

    /// Takes a complete typed line; None if there is none.
    pub(super) fn take_line(&self) -> Option<TypedLine> {
        self.lock().lines.pop_front()
    }

    /// Takes the typed beginning of a line.
    pub(super) fn take_text(&self) -> String {
        std::mem::take(&mut self.lock().line).text()
    }

    /// Sets the beginning of the next prompt's line.
    pub(super) fn put_text(&self, text: &str) {
        self.lock().line.bytes = text.as_bytes().to_vec();
    }

    /// Reads typed keys from the first status line until [`Typed::end`], also while none is shown. Never returns.
    fn read(&self) {
        let stdin = io::stdin();
        loop {
            let mut state = self.lock();
            while state.keys.is_none() {
                state = self
                    .wanted
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            drop(state);
            let mut fds = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
            let ready = poll(&mut fds, PollTimeout::from(LOOK_MS));
            let mut state = self.lock();
            if ready.is_ok_and(|count| count > 0) && state.take_keys() {
                state.draw();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Reads typed keys. Returns true if there were any. After the loss of the terminal no more are read.
    fn take_keys(&mut self) -> bool {
        let mut some = false;
        while let Some(keys) = &self.keys {
            match keys.next(Duration::ZERO) {
                Ok(Some(byte)) => {
                    some = true;
                    let whole = self
                        .line
                        .take(byte)
                        .filter(|_| self.lines.len() < LINES_MAX);
                    self.lines.extend(whole);
                }
                Ok(None) => break,
                Err(_) => self.keys = None,
            }
        }
        some
    }

    /// Draws the status line.
    fn draw(&self) {
        let Some(status) = &self.status else {
            return;
        };
        let width = Sink::Complaints.size().map_or(80, |(columns, _)| columns);
        let mut typed = String::new();
        for line in &self.lines {
            if let TypedLine::Line(line) = line {
                typed.push_str(&printable(line.as_bytes()));
                typed.push_str(" | ");
            }
        }
        typed.push_str(&printable(&self.line.bytes));
        let line = beside(status, &typed, width.saturating_sub(1));
        Sink::Complaints.show_at_bottom(&line);
    }
}

/// The status and the typed keys in a line of this width. The end of the typed keys is always visible.
fn beside(status: &str, typed: &str, room: usize) -> String {
    if typed.is_empty() {
        return status_in(status, room);
    }
    let mut end = typed;
    while columns(end) > room {
        let first = end.chars().next().map_or(0, char::len_utf8);
        end = &end[first..];
    }
    match room.checked_sub(columns(end) + " > ".len()) {
        Some(left) if left >= STATUS_LEAST => format!("{} > {end}", status_in(status, left)),
        _ => end.to_owned(),
    }
}

/// A line that is being typed.
#[derive(Debug, Default)]
struct LineBuffer {
    bytes: Vec<u8>,
    escape: Escape,
}

/// Parser state for keys of several bytes, which are ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Escape {
    #[default]
    None,
    Begun,
    Inside,
}

impl LineBuffer {
    /// Handles a byte. Returns the line if the byte completes it, otherwise None.
    fn take(&mut self, byte: u8) -> Option<TypedLine> {
        match (self.escape, byte) {
            (Escape::Begun, b'[' | b'O') => self.escape = Escape::Inside,
            (Escape::Begun, _) | (Escape::Inside, b'@'..=b'~') => self.escape = Escape::None,
            (Escape::Inside, _) => {}
            (Escape::None, 0x1b) => self.escape = Escape::Begun,
            (Escape::None, b'\r' | b'\n') => {
                return Some(TypedLine::Line(std::mem::take(self).text()));
            }
            (Escape::None, 0x04) if self.bytes.is_empty() => return Some(TypedLine::End),
            (Escape::None, 0x08 | 0x7f) => {
                let mut text = self.text();
                text.pop();
                self.bytes = text.into_bytes();
            }
            (Escape::None, 0x15) => self.bytes.clear(),
            (Escape::None, 0x17) => {
                let text = self.text();
                let text = text.trim_end();
                let end = text.rfind(' ').map_or(0, |at| at + 1);
                self.bytes = text.as_bytes()[..end].to_vec();
            }
            (Escape::None, 0..=0x1f) => {}
            (Escape::None, byte) if self.bytes.len() < LINE_BYTES_MAX => self.bytes.push(byte),
            (Escape::None, _) => {}
        }
        None
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_lines_are_edited_as_at_a_terminal() {
        let typed = |keys: &str| {
            let mut line = LineBuffer::default();
            let keys = keys.bytes();
            let lines: Vec<_> = keys.filter_map(|key| line.take(key)).collect();
            (lines, line.text())
        };
        let line = |text: &str| TypedLine::Line(text.to_owned());
        let (lines, rest) = typed("print 1\nbt\rste");
        assert_eq!((lines, &*rest), (vec![line("print 1"), line("bt")], "ste"));
        assert_eq!(typed("x\u{fc}\x7fy\x7f\x7fz").1, "z");
        assert_eq!(typed("print one two\x17\x17x").1, "print x");
        assert_eq!(typed("all\x15a\x1b[A\x1bOB\x1bxb\t").1, "ab");
        assert_eq!(typed("\x04a\x04").0, [TypedLine::End]);
        assert_eq!(
            typed(&"x".repeat(LINE_BYTES_MAX + 9)).1.len(),
            LINE_BYTES_MAX
        );
    }

    #[test]
    fn typeahead_is_shown_after_the_status() {
        let status =
            "continue: 0/4 stopped, running: 0-3 (3 s); ^C stops them, ^Z returns to the prompt";
        let hint = "continue: 0/4 stopped (3 s); ^C stops them, ^Z returns to the prompt";
        assert_eq!(beside(status, "", 79), hint);
        assert_eq!(beside(status, "print ra", 79), format!("{hint} > print ra"));
        let typed = "print some_long_expression + other_long_expression + yet_another";
        let line = beside(status, typed, 79);
        assert!(line.ends_with(&format!(" > {typed}")), "{line}");
        assert_eq!(beside(status, typed, 20), typed[typed.len() - 20..]);
        assert_eq!(beside(status, "\u{6e29}\u{5ea6}", 3), "\u{5ea6}");
    }
}
