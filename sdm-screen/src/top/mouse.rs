//! Handling of the mouse: a click selects, a second click opens, the wheel scrolls the part below the
//! pointer.

use ratatui::crossterm::event::{KeyCode, KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

use super::{Overlay, Top, View};
use crate::bindings::key_at;
use crate::paint::Part;

/// Number of rows that one turn of the wheel moves.
const WHEEL: isize = 3;

impl Top {
    /// Handles a mouse event.
    pub fn handle_mouse(&mut self, event: MouseEvent) {
        let at = Position::new(event.column, event.row);
        match event.kind {
            MouseEventKind::Down(MouseButton::Left) => {
                self.hint.clear();
                self.click(at);
            }
            MouseEventKind::ScrollUp => self.wheel(at, -WHEEL),
            MouseEventKind::ScrollDown => self.wheel(at, WHEEL),
            _ => return,
        }
        self.handle_resize();
    }

    fn press(&mut self, code: KeyCode) {
        self.handle_key(KeyEvent::from(code));
    }

    fn click(&mut self, at: Position) {
        let [_, body, _, foot] = self.frame_parts(self.area);
        if foot.contains(at) {
            let (line, _) = self.foot();
            if let Some(key) = key_at(&line, usize::from(at.x - foot.x)) {
                self.handle_key(key);
            }
            return;
        }
        match std::mem::take(&mut self.over) {
            Overlay::Nothing => self.click_view(body, at),
            Overlay::Help => {}
            over => {
                self.over = over;
                self.click_over(body, at);
            }
        }
    }

    fn click_over(&mut self, body: Rect, at: Position) {
        let inner = self.style.inner(self.over_place(body));
        let line = usize::from(at.y.saturating_sub(inner.y));
        let is_inside = inner.contains(at);
        match &mut self.over {
            Overlay::Form(form) if is_inside && line < form.fields.len() => form.at = line,
            Overlay::Menu { at, .. } if is_inside && line < super::MENU.len() => {
                *at = line;
                self.press(KeyCode::Enter);
            }
            Overlay::Menu { .. } => self.press(KeyCode::Esc),
            // A confirmation needs a key press.
            _ => {}
        }
    }

    /// The part of the view at a position, which gets the keyboard focus if it has keys. None outside of all parts.
    fn part_at(&mut self, body: Rect, at: Position) -> Option<(Part, Rect)> {
        let parts = self.parts(body);
        let found = parts.into_iter().find(|(_, place)| place.contains(at))?;
        if found.0 != Part::Detail {
            self.second = found.0 == Part::Second;
        }
        Some(found)
    }

    fn click_view(&mut self, body: Rect, at: Position) {
        let before = self.second;
        let Some((part, place)) = self.part_at(body, at) else {
            return;
        };
        let had_keys = self.second == before;
        let mut inner = self.style.inner(place);
        if part == Part::Detail || !inner.contains(at) {
            return;
        }
        match (self.view, part) {
            (View::Machines, Part::Second) => {
                inner.height = inner.height.saturating_sub(crate::paint::NODE_LINES);
                self.map.choose(at.x - inner.x, at.y - inner.y, inner);
            }
            (View::Process, Part::Second) => {}
            _ => {
                let was = self.table().selected().cloned();
                let Some(row) = self.table().row_at(at.y - inner.y, inner.height) else {
                    return;
                };
                self.select(row);
                if had_keys && self.table().selected() == was.as_ref() {
                    self.press(KeyCode::Enter);
                }
            }
        }
    }

    fn wheel(&mut self, at: Position, by: isize) {
        let [_, body, _, _] = self.frame_parts(self.area);
        if self.over == Overlay::Nothing && self.part_at(body, at).is_some() {
            self.step(0, by);
        }
    }
}
