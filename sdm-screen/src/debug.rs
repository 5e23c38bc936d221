//! The debugger's screen: the state of the session, and the prompt with the whole language of the shell.
//!
//! [`Debugger`] is a state machine without I/O, as [`crate::Top`] is. Its inputs are keys, the session's
//! [`Overview`], messages and program output. Its outputs are frames and [`ScreenAction`]s. A key that acts on the
//! session becomes a line for the shell, which is shown among the typed lines.

mod console;
mod edit;
mod keys;
mod layout;
mod mouse;
mod paint;
mod ranks;
mod search;
mod source;
#[cfg(test)]
mod tests;
mod tree;
mod values;

use std::collections::VecDeque;
use std::sync::Arc;

use ratatui::layout::Rect;
use sdm_idset::IdSet;
use sdm_view::overview::{Overview, Printed, Sight};
use sdm_view::render::Names;

use crate::bindings::Bindings;
use crate::palette::Palette;
use crate::style::Style;
use console::Console;
use edit::{LineEdit, SearchLine};
pub(crate) use layout::Panel;
use ranks::RankMap;
use source::SourceView;
use tree::StackView;

/// Maximum number of lines of program output that are kept.
const PRINTED_MAX: usize = 1000;

/// An action for the owner of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScreenAction {
    /// Pass this line to the shell.
    Line(String),
    /// Complete this line. The answer goes to [`Debugger::handle_completions`].
    Complete(String),
    /// Ctrl-C: interrupt the current command.
    Interrupt,
    /// Return to the prompt while a line is carried out.
    Unwait,
    /// End of input, as Ctrl-D at the prompt.
    Eof,
    /// Suspend `sdm`, as Ctrl-Z does.
    Suspend,
    /// Redraw the whole screen.
    Redraw,
    /// Copy this text to the terminal's clipboard.
    Copy(String),
    /// Leave the full screen for the plain prompt, with this text in the input line.
    Leave(String),
}

/// The state of the debugger's screen.
///
/// Large because a key can involve any panel. Each panel has a type of its own; the rest here is their
/// common state and the keyboard focus.
#[derive(Debug)]
pub struct Debugger {
    pub(crate) style: Style,
    pub(crate) names: Names,
    pub(crate) board: Overview,
    /// The prompt's text, and true if the requested line answers a question. None while the shell carries out a line.
    pub(crate) asked: Option<(String, bool)>,
    /// The status line of a command that takes long. None without such a command.
    pub(crate) status: Option<String>,
    pub(crate) panel: Panel,
    /// The panel with the keyboard focus before the prompt had it.
    pub(crate) before: Panel,
    /// True if the prompt has the keyboard focus for one line only.
    pub(crate) visits: bool,
    pub(crate) zoomed: bool,
    pub(crate) helps: bool,
    /// Message about the last key, for example the reason why it had no effect; empty if there is none.
    pub(crate) hint: String,
    /// True for a hint that is valid only while the shell carries out a line.
    hints_at_line: bool,
    pub(crate) bindings: Bindings,
    /// A key that is handled once the shell requests a line. None if no key waits.
    held: Option<char>,
    /// The area of the last frame.
    pub(crate) area: Rect,
    /// Age of the displayed query results, in seconds, where tasks have moved since.
    pub(crate) age: u64,
    /// True after Ctrl-X was typed.
    pub(crate) is_prefixed: bool,
    pub(crate) source: SourceView,
    pub(crate) stacks: StackView,
    pub(crate) ranks: RankMap,
    pub(crate) values_at: usize,
    pub(crate) printed: VecDeque<Printed>,
    /// Number of lines of program output below the displayed ones.
    pub(crate) output_below: usize,
    pub(crate) search: SearchLine,
    pub(crate) console: Console,
    pub(crate) line: LineEdit,
    /// The set of the selection, if the shell does not have it as its focus yet.
    pub(crate) wanted_focus: Option<IdSet>,
    deeds: VecDeque<ScreenAction>,
    changed: bool,
}

impl Debugger {
    /// A screen before the first state of the session.
    #[must_use]
    pub fn new(style: Style, names: Names) -> Self {
        Self {
            style,
            names,
            board: Overview::default(),
            asked: None,
            status: None,
            panel: Panel::Source,
            before: Panel::Source,
            visits: false,
            zoomed: false,
            helps: false,
            hint: String::new(),
            hints_at_line: false,
            bindings: Bindings::default(),
            held: None,
            area: Rect::default(),
            age: 0,
            is_prefixed: false,
            source: SourceView::default(),
            stacks: StackView::default(),
            ranks: RankMap::default(),
            values_at: 0,
            printed: VecDeque::new(),
            output_below: 0,
            search: SearchLine::default(),
            console: Console::default(),
            line: LineEdit::default(),
            wanted_focus: None,
            deeds: VecDeque::new(),
            changed: true,
        }
    }

    /// Sets the user's key bindings.
    pub fn bind(&mut self, bindings: Bindings) {
        self.bindings = bindings;
    }

    /// Sets the age of the displayed query results, in seconds. The age is shown if tasks have moved since the query.
    pub fn handle_age(&mut self, age: u64) {
        if self.is_aging() && age != self.age {
            self.changed = true;
        }
        self.age = age;
    }

    /// True while the displayed query results are out of date.
    #[must_use]
    pub fn is_aging(&self) -> bool {
        self.board.is_stale && self.board.sight.stacks.is_some()
    }

    /// The settings to keep for the next start, as lines of `WORD VALUE`.
    #[must_use]
    pub fn remembered(&self) -> String {
        let zoomed = if self.zoomed { "yes" } else { "no" };
        let palette = self.style.palette.word();
        format!("palette {palette}\nzoomed {zoomed}\n")
    }

    /// Restores settings from the last start. Unknown lines, which another version wrote, are ignored.
    pub fn recall(&mut self, text: &str) {
        for (word, value) in text.lines().filter_map(|line| line.split_once(' ')) {
            match word {
                "palette" => {
                    self.style.palette = Palette::named(value).unwrap_or(self.style.palette);
                }
                "zoomed" => self.zoomed = value == "yes",
                _ => {}
            }
        }
    }

    /// Sets the history of earlier sessions, oldest line first.
    pub fn recall_lines(&mut self, lines: Vec<String>) {
        self.line.fill_history(lines);
    }

    /// Takes the lines typed since the last call, except answers to questions, blank lines and repetitions of the line
    /// before.
    pub fn take_typed(&mut self) -> Vec<String> {
        self.line.take_typed()
    }

    /// Sets the state of the session. An unchanged state causes no redraw.
    pub fn handle_board(&mut self, board: Overview) {
        if board == self.board {
            return;
        }
        let looked = !Arc::ptr_eq(&board.sight, &self.board.sight);
        let before = std::mem::replace(&mut self.board, board);
        if looked && *before.sight != *self.board.sight {
            self.take_sight(&before.sight);
        }
        self.ranks.fill(&self.board);
        self.changed = true;
    }

    fn take_sight(&mut self, before: &Sight) {
        let sight = Arc::clone(&self.board.sight);
        if sight.source != before.source {
            self.source.look(sight.source.as_ref());
        }
        self.stacks
            .fill(sight.stacks.as_ref(), &self.names, &self.board.focus);
        let last = sight.watched.len() + sight.locals.len();
        self.values_at = self.values_at.min(last.saturating_sub(1));
    }

    /// Adds a message of the session.
    pub fn handle_text(&mut self, text: &str) {
        self.console.say(text);
        self.changed = true;
    }

    /// Adds a line of program output.
    pub fn handle_printed(&mut self, printed: Printed) {
        if self.printed.len() == PRINTED_MAX {
            self.printed.pop_front();
        }
        self.printed.push_back(printed);
        if self.output_below > 0 {
            self.output_below = (self.output_below + 1).min(self.printed.len() - 1);
        }
        self.changed = true;
    }

    /// Sets the status line.
    pub fn handle_status(&mut self, status: Option<String>) {
        if self.status != status {
            self.status = status;
            self.changed = true;
        }
    }

    /// Sets the prompt of a requested line, or None while the shell carries one out.
    pub fn handle_asked(&mut self, asked: Option<(String, bool)>) {
        if self.asked == asked {
            return;
        }
        // A question wants an answer before anything else can be done.
        let was_question = self.asked.as_ref().is_some_and(|(_, question)| *question);
        match &asked {
            Some((_, true)) => self.go_to(Panel::Prompt),
            Some(_) if was_question && self.line.text().is_empty() => self.go_to(self.before),
            _ => {}
        }
        if asked.is_some() {
            self.console.end_answer();
            if self.hints_at_line {
                self.clear_hint();
            }
        }
        self.asked = asked;
        self.changed = true;
        self.tell_focus();
        self.act_on_held();
    }

    /// Sets the completions: the offset of the completed word, in bytes, and the candidates.
    pub fn handle_completions(&mut self, from: usize, words: &[String]) {
        if let Some(said) = self.line.complete(from, words) {
            self.console.say(&said);
        }
        self.changed = true;
    }

    /// Takes over the text of the plain prompt's input line.
    pub fn handle_typed(&mut self, text: &str) {
        if !text.is_empty() {
            self.line.set(text);
            self.go_to(Panel::Prompt);
        }
        self.changed = true;
    }

    /// Requests a redraw after a resize, or after other programs have written to the terminal.
    pub fn handle_resize(&mut self) {
        self.changed = true;
    }

    /// Takes the next action; None if there is none.
    pub fn poll_action(&mut self) -> Option<ScreenAction> {
        self.deeds.pop_front()
    }

    /// True once after each change that requires a redraw.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Width of the message panel's text, in columns, on a terminal of this size.
    #[must_use]
    pub fn text_width(columns: u16, lines: u16) -> u16 {
        layout::text_width(columns, lines)
    }

    pub(crate) fn ask(&mut self, deed: ScreenAction) {
        self.deeds.push_back(deed);
    }

    /// Sends a line to the shell, and shows it in the console.
    pub(crate) fn say(&mut self, line: String) {
        let prompt = self.asked.as_ref().map_or("(sdm) ", |(prompt, _)| prompt);
        self.console.echo(prompt, &line);
        // Later input waits until this line is carried out.
        self.asked = None;
        self.ask(ScreenAction::Line(line));
    }

    pub(crate) fn go_to(&mut self, panel: Panel) {
        if self.panel != Panel::Prompt {
            self.before = self.panel;
        }
        self.visits = false;
        self.panel = panel;
    }

    /// Sends the selected set as the focus, once the shell requests a line. Intermediate selections are
    /// skipped.
    pub(crate) fn tell_focus(&mut self) {
        if self.asked.as_ref().is_none_or(|(_, question)| *question) {
            return;
        }
        if let Some(focus) = self
            .wanted_focus
            .take()
            .filter(|it| *it != self.board.focus)
        {
            let line = match focus == self.board.all {
                true => "focus all".to_owned(),
                false => format!("focus {focus}"),
            };
            self.say(line);
        }
    }
}
