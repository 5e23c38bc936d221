//! Colours and signs of states. A sign tells each state from every other, so that colour is never needed.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style as Cells};
use ratatui::symbols::border;

use crate::palette::Palette;
pub(crate) use crate::palette::Tone;

/// How the terminal is written on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Colours may be used (there is no `NO_COLOR`).
    pub color: bool,
    /// Nothing but ASCII is written as a line or a sign.
    pub ascii: bool,
    /// Which colours.
    pub palette: Palette,
    /// One part at a time, in lines from the left to the right, with the cursor where one is: as who listens to it, or reads it by
    /// hand, needs it.
    pub linear: bool,
}

/// The sign and the tone of a state of a manager, machine, queue, job or process. Within one kind of element no two states
/// have the same sign.
pub(crate) fn state(word: &str) -> (char, Tone) {
    match word {
        "STARTED" | "UP" | "NORMAL" => ('+', Tone::Good),
        "RUNNING" => ('>', Tone::Busy),
        "STARTING" => ('^', Tone::Wait),
        "COLLECTING" => ('<', Tone::Wait),
        "STOPPING" | "DRAINING" => ('v', Tone::Wait),
        "PENDING" => ('.', Tone::Wait),
        "SUSPENDED" => ('=', Tone::Wait),
        "STOPPED" => ('-', Tone::Off),
        "TERMINATED" | "EXITED" => ('x', Tone::Off),
        "EXITED_SIGNALLED" => ('X', Tone::Bad),
        "ALERT" => ('*', Tone::Wait),
        "DOWN" => ('!', Tone::Bad),
        "ERROR" => ('E', Tone::Bad),
        _ => ('?', Tone::Unknown),
    }
}

/// The sign and the tone of what a node is used for ("PTP runtime platform, Node", extended state).
pub(crate) fn used(word: &str) -> (char, Tone) {
    match word {
        "USER_ALLOC_EXCL" => ('U', Tone::Busy),
        "USER_ALLOC_SHARED" => ('u', Tone::Busy),
        "OTHER_ALLOC_EXCL" => ('O', Tone::Wait),
        "OTHER_ALLOC_SHARED" => ('o', Tone::Wait),
        "RUNNING_PROCESS" => ('R', Tone::Busy),
        "EXITED_PROCESS" => ('x', Tone::Off),
        _ => ('.', Tone::Good),
    }
}

impl Style {
    pub(crate) fn tone(self, tone: Tone) -> Cells {
        let plain = Cells::new();
        if !self.color {
            return match tone {
                Tone::Bad => plain.add_modifier(Modifier::BOLD),
                _ => plain,
            };
        }
        // Good and bad are never told apart by colour alone: what is bad is bold too.
        let plain = match self.palette.color(tone) {
            Some(color) => plain.fg(color),
            None => plain.add_modifier(Modifier::DIM),
        };
        match tone {
            Tone::Bad => plain.add_modifier(Modifier::BOLD),
            _ => plain,
        }
    }

    pub(crate) fn selected(self, has_focus: bool) -> Cells {
        match has_focus {
            true => Cells::new().add_modifier(Modifier::REVERSED),
            false => Cells::new().add_modifier(Modifier::UNDERLINED),
        }
    }

    pub(crate) fn head(self) -> Cells {
        Cells::new().add_modifier(Modifier::BOLD)
    }

    pub(crate) fn border(self) -> border::Set<'static> {
        match self.ascii {
            false => border::PLAIN,
            true => border::Set {
                top_left: "+",
                top_right: "+",
                bottom_left: "+",
                bottom_right: "+",
                vertical_left: "|",
                vertical_right: "|",
                horizontal_top: "-",
                horizontal_bottom: "-",
            },
        }
    }

    /// What is left of a box for what is in it.
    pub(crate) fn inner(self, area: Rect) -> Rect {
        match self.linear {
            false => Rect::new(
                area.x.saturating_add(1),
                area.y.saturating_add(1),
                area.width.saturating_sub(2),
                area.height.saturating_sub(2),
            ),
            true => Rect::new(
                area.x,
                area.y.saturating_add(1),
                area.width,
                area.height.saturating_sub(1),
            ),
        }
    }

    /// Puts the cursor there, where who reads the screen line by line is to look.
    pub(crate) fn point(self, frame: &mut Frame<'_>, area: Rect, line: u16, has_focus: bool) {
        if self.linear && has_focus && line < area.height {
            frame.set_cursor_position(Position::new(area.x, area.y + line));
        }
    }

    /// What a text that was cut ends with.
    pub(crate) fn cut(self) -> char {
        if self.ascii { '~' } else { '…' }
    }
}
