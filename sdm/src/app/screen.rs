//! Standard output as the screen of the text view, and the status line.

use std::sync::Arc;

use sdm_text::printable_lines;
use sdm_view::escape::shown;
use sdm_view::overview::{Overview, Printed};
use sdm_view::render::{Screen, Style};

use super::pager;
use super::queue::Queue;
use super::type_ahead::Typed;
use crate::locale;
use crate::sink::Sink;

/// Minimum number of lines that is assumed for a screen.
const ROWS_MIN: usize = 20;

/// Standard output, and a status line if standard error is a terminal.
pub(super) struct Stdout {
    colour: bool,
    terminal: bool,
    width: Option<usize>,
    line: StatusLine,
    prompt: Option<Arc<Queue>>,
    gone: bool,
    pages: bool,
}

impl Stdout {
    /// Creates the output. `prompt` receives text while a line is edited.
    pub(super) fn new(prompt: Option<Arc<Queue>>) -> Self {
        let terminal = Sink::Output.is_terminal();
        let columns = std::env::var("COLUMNS").ok();
        Self {
            colour: Sink::Output.is_coloured(),
            terminal,
            width: columns.and_then(|columns| columns.parse().ok()),
            line: StatusLine::new(prompt.as_ref().map(|queue| Arc::clone(&queue.typed))),
            prompt,
            gone: false,
            pages: true,
        }
    }

    fn write_directly(&mut self, text: &str) {
        let status = self.line.hide();
        let is_read = self.terminal && self.prompt.as_ref().is_some_and(|it| it.has_asked());
        let size = Sink::Output
            .size()
            .filter(|_| self.pages && is_read && status.is_none());
        let shown = match size {
            Some(size) => pager::show(text, size),
            None => Sink::Output.show(text),
        };
        self.gone |= shown.is_err();
        if status.is_some() {
            self.line.show(status.as_deref());
        }
    }
}

impl Screen for Stdout {
    fn write(&mut self, text: &str) {
        let text = &*locale::drawn(text);
        let Some(prompt) = self.prompt.clone() else {
            return self.write_directly(text);
        };
        if prompt.full.say(&shown(text)) {
            return;
        }
        if prompt.offer(&shown(text)) {
            return;
        }
        let left = prompt.take();
        self.write_directly(&(left + text));
    }

    fn pass(&mut self, stderr: bool, bytes: &[u8]) {
        if let Some(prompt) = self.prompt.clone() {
            let text = printable_lines(&String::from_utf8_lossy(bytes));
            if prompt.full.say(&text) || prompt.offer(&text) {
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
        if let Some(prompt) = self.prompt.as_ref().filter(|it| it.full.is_on()) {
            return prompt.full.tell_status(line);
        }
        self.line.show(line);
        if let (None, Some(prompt)) = (line, &self.prompt) {
            prompt.typed.end();
        }
    }

    fn style(&self) -> Style {
        if let Some(prompt) = self.prompt.as_ref().filter(|it| it.full.is_on()) {
            return Style {
                colour: false,
                width: prompt.full.width().or(self.width),
                rows: Style::ROWS,
            };
        }
        let size = self.terminal.then(|| Sink::Output.size()).flatten();
        Style {
            colour: self.colour,
            width: size.map(|(columns, _)| columns).or(self.width),
            rows: size.map_or(Style::ROWS, |(_, rows)| rows.max(ROWS_MIN)),
        }
    }

    fn set_pagination(&mut self, on: bool) {
        self.pages = on;
    }

    fn wants_board(&self) -> bool {
        self.prompt.as_ref().is_some_and(|it| it.full.is_on())
    }

    fn show_board(&mut self, board: &Overview) {
        if let Some(prompt) = &self.prompt {
            prompt.full.show(board);
        }
    }

    fn printed(&mut self, printed: Printed) {
        if let Some(prompt) = &self.prompt {
            prompt.full.print(printed);
        }
    }

    fn set_full_screen(&mut self, on: bool) -> bool {
        self.prompt.as_ref().is_some_and(|it| it.full.set(on))
    }

    fn is_gone(&self) -> bool {
        self.gone
    }
}

/// The status line at the bottom of a terminal.
pub(super) struct StatusLine {
    terminal: bool,
    shown: Option<String>,
    /// Keys that are typed while the status line is shown. None without a prompt.
    typed: Option<Arc<Typed>>,
}

impl StatusLine {
    pub(super) fn new(typed: Option<Arc<Typed>>) -> Self {
        Self {
            typed,
            terminal: Sink::Complaints.moves_cursor(),
            shown: None,
        }
    }

    /// Shows, changes or removes the status line. Does nothing if standard error is no terminal that can move its
    /// cursor.
    pub(super) fn show(&mut self, line: Option<&str>) {
        if !self.terminal || (line.is_none() && self.shown.is_none()) {
            return;
        }
        if let Some(typed) = &self.typed {
            match line {
                Some(line) => typed.show(line),
                None => typed.hide(),
            }
            self.shown = line.map(str::to_owned);
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

    /// Hides the status line. Returns its text, to be shown again; None if none was shown.
    fn hide(&mut self) -> Option<String> {
        let shown = self.shown.clone();
        self.show(None);
        shown
    }
}
