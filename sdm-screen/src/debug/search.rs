//! Text search in the panel with the keyboard focus.

use ratatui::crossterm::event::KeyEvent;
use sdm_text::printable;

use super::{Debugger, Panel};

impl Debugger {
    /// Handles a key in the search line.
    pub(super) fn search_key(&mut self, key: KeyEvent) {
        if self.search.key(key) {
            self.find();
        }
    }

    /// Moves to the next line that contains the text, wrapping around at the end. Case is ignored.
    fn find(&mut self) {
        let wanted = self.search.last().to_owned();
        if wanted.is_empty() {
            return;
        }
        let Some((lines, at)) = self.searched() else {
            "this panel cannot be searched; to select a rank, type `:` and `focus 17`"
                .clone_into(&mut self.hint);
            return;
        };
        let count = lines.len();
        let has = |at: &usize| lines[*at].to_lowercase().contains(&wanted);
        let found = (1..=count).map(|by| (at + by) % count).find(has);
        let Some(to) = found else {
            self.hint = format!("`{}` was not found", printable(wanted.as_bytes()));
            return;
        };
        if to <= at {
            "the search continued from the top".clone_into(&mut self.hint);
        }
        let by = i32::try_from(to).unwrap_or(i32::MAX) - i32::try_from(at).unwrap_or(0);
        self.step(0, by);
    }

    /// The lines of the panel, and the index of the selected one. None if the panel has no text to search.
    fn searched(&self) -> Option<(Vec<String>, usize)> {
        match self.panel {
            Panel::Source => {
                let source = self.board.sight.source.as_ref()?;
                let at = self.source.at.checked_sub(source.first)?;
                Some((source.lines.to_vec(), usize::try_from(at).ok()?))
            }
            Panel::Stacks => {
                let rows = self.stacks.rows.iter();
                let lines = rows.map(|row| row.place.clone()).collect();
                Some((lines, self.stacks.at))
            }
            Panel::Values => {
                let rows = self.value_rows().into_iter();
                Some((rows.map(|row| row.text).collect(), self.values_at))
            }
            Panel::Output => {
                let lines = self.printed.iter();
                let text = |it: &sdm_view::overview::Printed| {
                    String::from_utf8_lossy(&it.line).into_owned()
                };
                let last = self.printed.len().checked_sub(1)?;
                Some((
                    lines.map(text).collect(),
                    last - self.output_below.min(last),
                ))
            }
            Panel::Ranks | Panel::Prompt => None,
        }
    }

    /// Scrolls the program output.
    pub(super) fn step_output(&mut self, down: isize) {
        let last = self.printed.len().saturating_sub(1);
        let below = self.output_below.saturating_add_signed(-down);
        self.output_below = below.min(last);
    }
}
