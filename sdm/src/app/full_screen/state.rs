//! State shared with the screen's thread: updates to show, and the owner of the terminal.

use std::collections::VecDeque;

use sdm_screen::Debugger;
use sdm_view::overview::{Overview, Printed};
use sdm_view::render::Names;

/// A request for a line: the prompt's text, and true if the line answers a question.
pub(in crate::app) type LineRequest = (String, bool);

/// State shared with the thread that owns the terminal.
#[derive(Default)]
pub(super) struct FullState {
    /// True while the screen is to be shown.
    pub(super) on: bool,
    /// True from the time at which the screen thread takes the terminal until it has printed the missed messages at the
    /// prompt.
    pub(super) holds: bool,
    /// True while a local command has the terminal.
    pub(super) lent: bool,
    pub(super) board: Option<Overview>,
    pub(super) texts: VecDeque<String>,
    /// Messages that came while the screen was shown.
    pub(super) missed: String,
    pub(super) printed: VecDeque<Printed>,
    pub(super) status: Option<String>,
    pub(super) asked: Option<LineRequest>,
    /// The unfinished input line of the prompt, until the screen takes it over.
    pub(super) typed: Option<String>,
    pub(super) completions: Option<(usize, Vec<String>)>,
    pub(super) names: Option<Names>,
    pub(super) width: Option<usize>,
}

impl FullState {
    /// Passes updates on to the screen.
    pub(super) fn give_to(&mut self, debugger: &mut Debugger) {
        for text in self.texts.drain(..) {
            debugger.handle_text(&text);
        }
        for printed in self.printed.drain(..) {
            debugger.handle_printed(printed);
        }
        if let Some(typed) = self.typed.take() {
            debugger.handle_typed(&typed);
        }
        if let Some(board) = self.board.take() {
            debugger.handle_board(board);
        }
        if let Some((from, words)) = self.completions.take() {
            debugger.handle_completions(from, &words);
        }
        debugger.handle_status(self.status.clone());
        debugger.handle_asked(self.asked.clone());
    }
}
