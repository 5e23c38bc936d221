//! Colours and signs of states. A sign tells each state from every other, so that colour is never needed.

use ratatui::style::{Color, Modifier, Style as Cells};
use ratatui::symbols::border;

/// How the terminal is written on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Colours may be used (there is no `NO_COLOR`).
    pub color: bool,
    /// Nothing but ASCII is written as a line or a sign.
    pub ascii: bool,
}

/// How good a state is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tone {
    /// It is over, or nothing goes on.
    Off,
    /// As it should be.
    Good,
    /// At work.
    Busy,
    /// It waits.
    Wait,
    /// Not known.
    Unknown,
    /// It has failed.
    Bad,
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
        // The sixteen colours are the terminal's own, which are fit for its background. Green and red are never told apart by
        // colour alone: what is bad is bold too.
        match tone {
            Tone::Off => plain.add_modifier(Modifier::DIM),
            Tone::Good => plain.fg(Color::Green),
            Tone::Busy => plain.fg(Color::Cyan),
            Tone::Wait => plain.fg(Color::Yellow),
            Tone::Unknown => plain.fg(Color::Magenta),
            Tone::Bad => plain.fg(Color::Red).add_modifier(Modifier::BOLD),
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

    /// What a text that was cut ends with.
    pub(crate) fn cut(self) -> char {
        if self.ascii { '~' } else { '…' }
    }
}
