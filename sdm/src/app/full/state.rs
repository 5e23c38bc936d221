//! What the screen is to show next, and who has the terminal.

use std::collections::VecDeque;

use sdm_screen::Debugger;
use sdm_view::board::{Board, Printed};
use sdm_view::render::Names;

/// Where the next line is asked for: the prompt's words, and whether it answers a question.
pub(in crate::app) type Asked = (String, bool);

/// What is told to the thread that has the terminal.
#[derive(Default)]
pub(super) struct FullState {
    /// It is to be shown.
    pub(super) on: bool,
    /// The thread has the terminal, or still says at the prompt what was missed there.
    pub(super) holds: bool,
    /// A command of this machine has the terminal meanwhile.
    pub(super) lent: bool,
    pub(super) board: Option<Board>,
    pub(super) texts: VecDeque<String>,
    /// What was said while it was shown.
    pub(super) missed: String,
    pub(super) printed: VecDeque<Printed>,
    pub(super) status: Option<String>,
    pub(super) asked: Option<Asked>,
    /// What was being typed at the prompt.
    pub(super) typed: Option<String>,
    pub(super) completions: Option<(usize, Vec<String>)>,
    pub(super) names: Option<Names>,
    pub(super) width: Option<usize>,
}

impl FullState {
    /// Tells the screen what is new.
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
