//! The terminal, or whatever standard output is.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use super::prompt::Queue;
use crate::render::{Screen, Style, printable_lines};
use crate::sys;

/// The fewest lines that a screen is taken to have.
const ROWS_MIN: usize = 20;

/// Standard output, and a line about what goes on where standard error is a terminal.
pub(super) struct Stdout {
    colour: bool,
    terminal: bool,
    width: Option<usize>,
    line: StatusLine,
    prompt: Option<Arc<Queue>>,
    gone: bool,
}

impl Stdout {
    /// `prompt` is where text goes while a person edits a line.
    pub(super) fn new(prompt: Option<Arc<Queue>>) -> Self {
        let terminal = io::stdout().is_terminal();
        let columns = std::env::var("COLUMNS").ok();
        Self {
            colour: terminal && wants_colour(),
            terminal,
            width: columns.and_then(|columns| columns.parse().ok()),
            line: StatusLine::new(),
            prompt,
            gone: false,
        }
    }

    fn write_directly(&mut self, text: &str) {
        let status = self.line.hide();
        let mut out = io::stdout().lock();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        self.gone |= written.is_err();
        drop(out);
        if status.is_some() {
            self.line.show(status.as_deref());
        }
    }
}

impl Screen for Stdout {
    fn write(&mut self, text: &str) {
        let Some(prompt) = self.prompt.clone() else {
            return self.write_directly(text);
        };
        if prompt.offer(text) {
            return;
        }
        let left = prompt.take();
        self.write_directly(&(left + text));
    }

    fn pass(&mut self, stderr: bool, bytes: &[u8]) {
        if let Some(prompt) = self.prompt.clone() {
            if prompt.offer(&printable_lines(&String::from_utf8_lossy(bytes))) {
                return;
            }
            let left = prompt.take();
            self.write_directly(&left);
        }
        let status = self.line.hide();
        let written = match stderr {
            true => io::stderr().write_all(bytes),
            false => io::stdout()
                .write_all(bytes)
                .and_then(|()| io::stdout().flush()),
        };
        self.gone |= written.is_err() && !stderr;
        if status.is_some() {
            self.line.show(status.as_deref());
        }
    }

    fn status(&mut self, line: Option<&str>) {
        self.line.show(line);
    }

    fn style(&self) -> Style {
        let size = self
            .terminal
            .then(|| sys::terminal_size(&io::stdout()))
            .flatten();
        Style {
            colour: self.colour,
            width: size.map(|(columns, _)| columns).or(self.width),
            rows: size.map_or(Style::ROWS, |(_, rows)| rows.max(ROWS_MIN)),
        }
    }

    fn is_gone(&self) -> bool {
        self.gone
    }
}

/// The line at the bottom of a terminal that tells what goes on.
pub(super) struct StatusLine {
    terminal: bool,
    shown: Option<String>,
}

impl StatusLine {
    pub(super) fn new() -> Self {
        Self {
            terminal: io::stderr().is_terminal(),
            shown: None,
        }
    }

    /// Shows, changes or removes it; nothing where standard error is no terminal.
    pub(super) fn show(&mut self, line: Option<&str>) {
        if !self.terminal || (line.is_none() && self.shown.is_none()) {
            return;
        }
        let width = sys::terminal_size(&io::stderr()).map_or(80, |(columns, _)| columns);
        let cut: String = line
            .unwrap_or("")
            .chars()
            .take(width.saturating_sub(1))
            .collect();
        // It is no loss where a terminal that is gone does not show it.
        let _ = write!(io::stderr(), "\r\x1b[K{cut}");
        self.shown = line.map(str::to_owned);
    }

    /// Takes it away, to be shown again.
    fn hide(&mut self) -> Option<String> {
        let shown = self.shown.clone();
        self.show(None);
        shown
    }
}

fn wants_colour() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    !set("NO_COLOR") && !dumb
}
