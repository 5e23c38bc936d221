//! Handling of the mouse: a click selects, sets or removes a breakpoint beside the source, or presses a key of the
//! footer. The wheel scrolls the panel below the pointer, or moves its selection.

use ratatui::crossterm::event::{KeyCode, KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

use super::Debugger;
use super::layout::{Panel, body};
use super::paint::first_shown;
use crate::bindings::key_at;

/// Number of rows that one turn of the wheel moves.
const WHEEL: i32 = 3;
/// Width of the gutter in front of a source line, which shows its breakpoint and tasks.
const GUTTER_COLUMNS: u16 = 2;

impl Debugger {
    /// Handles a mouse event.
    pub fn handle_mouse(&mut self, event: MouseEvent) {
        let at = Position::new(event.column, event.row);
        match event.kind {
            MouseEventKind::Down(MouseButton::Left) => self.click(at),
            MouseEventKind::ScrollUp => self.wheel(at, -WHEEL),
            MouseEventKind::ScrollDown => self.wheel(at, WHEEL),
            _ => return,
        }
        self.handle_resize();
    }

    fn click(&mut self, at: Position) {
        let [_, body, foot] = body(self.area);
        if std::mem::take(&mut self.helps) {
            return;
        }
        if foot.contains(at) {
            let line = self.foot();
            if let Some(key) = key_at(&line, usize::from(at.x - foot.x)) {
                self.handle_key(key);
            }
            return;
        }
        self.clear_hint();
        let Some((panel, place)) = self.panel_at(body, at) else {
            return;
        };
        let was = self.panel;
        self.go_to(panel);
        let inner = self.style.inner(place);
        if inner.contains(at) {
            self.click_panel(panel, inner, at, was == panel);
        }
    }

    fn panel_at(&self, body: Rect, at: Position) -> Option<(Panel, Rect)> {
        let places = self.places(body);
        places.into_iter().find(|(_, place)| place.contains(at))
    }

    fn click_panel(&mut self, panel: Panel, inner: Rect, at: Position, had_keys: bool) {
        let (column, line) = (at.x - inner.x, at.y - inner.y);
        let row = |first: usize| first + usize::from(line);
        match panel {
            Panel::Source => {
                let Some(source) = self.board.sight.source.as_ref() else {
                    return;
                };
                let number = self.source_first(source, inner.height) + u32::from(line);
                let count = u32::try_from(source.lines.len()).unwrap_or(u32::MAX);
                if number < source.first.saturating_add(count) {
                    self.source.at = number;
                    if column < GUTTER_COLUMNS {
                        self.toggle_breakpoint();
                    }
                }
            }
            Panel::Stacks => {
                let rows = self.stacks.rows.len();
                let row = row(first_shown(self.stacks.at, rows, inner.height));
                if row < rows {
                    self.stacks.at = row;
                    self.select(self.stacks.rows[row].tasks.clone());
                }
            }
            Panel::Ranks => {
                if self.ranks.choose(column, line) {
                    self.select(self.ranks.selected());
                }
            }
            Panel::Values => {
                let rows = self.value_rows().len();
                let row = row(first_shown(self.values_at, rows, inner.height));
                if row < rows {
                    let is_again = had_keys && row == self.values_at;
                    self.values_at = row;
                    if is_again {
                        self.handle_key(KeyEvent::from(KeyCode::Enter));
                    }
                }
            }
            Panel::Output | Panel::Prompt => {}
        }
    }

    /// Scrolls the panel below the pointer; the ranks and the output are not scrolled. The keyboard focus moves only to
    /// the stacks, whose selection is the focus of commands.
    fn wheel(&mut self, at: Position, by: i32) {
        let [_, body, _] = body(self.area);
        match self.panel_at(body, at).map(|(panel, _)| panel) {
            Some(Panel::Source) => self.source.step(self.board.sight.source.as_ref(), by),
            Some(Panel::Prompt) => {
                self.console.scroll(isize::try_from(-by).unwrap_or(0));
            }
            Some(Panel::Values) => self.step_values(isize::try_from(by).unwrap_or(0)),
            Some(Panel::Stacks) => {
                self.go_to(Panel::Stacks);
                self.step(0, by);
            }
            _ => {}
        }
    }
}
