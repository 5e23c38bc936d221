//! The terminal, or whatever standard output is.

use std::sync::Arc;

use sdm_text::printable_lines;
use sdm_view::escape::shown;
use sdm_view::render::{Screen, Style};

use super::prompt::Queue;
use crate::sink::Sink;

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
        let terminal = Sink::Output.is_terminal();
        let columns = std::env::var("COLUMNS").ok();
        Self {
            colour: Sink::Output.is_coloured(),
            terminal,
            width: columns.and_then(|columns| columns.parse().ok()),
            line: StatusLine::new(),
            prompt,
            gone: false,
        }
    }

    fn write_directly(&mut self, text: &str) {
        let status = self.line.hide();
        self.gone |= Sink::Output.show(text).is_err();
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
        if prompt.offer(&shown(text)) {
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
            true => Sink::Complaints.pass(bytes),
            false => Sink::Output.pass(bytes),
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
        let size = self.terminal.then(|| Sink::Output.size()).flatten();
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
            terminal: Sink::Complaints.is_terminal(),
            shown: None,
        }
    }

    /// Shows, changes or removes it; nothing where standard error is no terminal.
    pub(super) fn show(&mut self, line: Option<&str>) {
        if !self.terminal || (line.is_none() && self.shown.is_none()) {
            return;
        }
        let width = Sink::Complaints.size().map_or(80, |(columns, _)| columns);
        let cut: String = line
            .unwrap_or("")
            .chars()
            .take(width.saturating_sub(1))
            .collect();
        Sink::Complaints.show_at_bottom(&cut);
        self.shown = line.map(str::to_owned);
    }

    /// Takes it away, to be shown again.
    fn hide(&mut self) -> Option<String> {
        let shown = self.shown.clone();
        self.show(None);
        shown
    }
}
