//! Colours and signs of states. The states of a kind of element have distinct signs, so that colour is never required.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style as Cells};
use ratatui::symbols::border;
use sdm_runtime::states::{self, NodeProcesses, NodeUse, State};

use crate::palette::Palette;
pub(crate) use crate::palette::Tone;

/// The style of output to the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// True if colours may be used (`NO_COLOR` is not set).
    pub color: bool,
    /// Lines and signs use ASCII only.
    pub ascii: bool,
    /// The palette of colours.
    pub palette: Palette,
    /// One panel at a time, in lines from left to right, with the cursor at the selection. For screen
    /// readers and braille displays.
    pub linear: bool,
}

/// The sign and the tone of a state of a manager, machine, queue, job or process. Within one kind of
/// element no two states have the same sign.
pub(crate) fn state(word: &str) -> (char, Tone) {
    use states::{Job, Machine, Manager, Process, Queue};
    let signs = [
        (Manager::Started.word(), '+', Tone::Good),
        (Machine::Up.word(), '+', Tone::Good),
        (Queue::Normal.word(), '+', Tone::Good),
        (Job::Running.word(), '>', Tone::Busy),
        (Manager::Starting.word(), '^', Tone::Wait),
        (Queue::Collecting.word(), '<', Tone::Wait),
        (Manager::Stopping.word(), 'v', Tone::Wait),
        (Queue::Draining.word(), 'v', Tone::Wait),
        (Job::Pending.word(), '.', Tone::Wait),
        (Job::Suspended.word(), '=', Tone::Wait),
        (Manager::Stopped.word(), '-', Tone::Off),
        (Job::Terminated.word(), 'x', Tone::Off),
        (Process::Exited.word(), 'x', Tone::Off),
        (Process::Signalled.word(), 'X', Tone::Bad),
        (Machine::Alert.word(), '*', Tone::Wait),
        (Machine::Down.word(), '!', Tone::Bad),
        (Machine::Error.word(), 'E', Tone::Bad),
    ];
    let sign = signs.into_iter().find(|it| it.0 == word);
    sign.map_or(('?', Tone::Unknown), |(_, sign, tone)| (sign, tone))
}

/// The sign and the tone of a node's use ("PTP runtime platform, Node", extended state). A node that is not allocated
/// has those of its processes.
pub(crate) fn used(word: &str, processes: &str) -> (char, Tone) {
    match NodeUse::read(word).unwrap_or(NodeUse::None) {
        NodeUse::UserExclusive => ('U', Tone::Busy),
        NodeUse::UserShared => ('u', Tone::Busy),
        NodeUse::OtherExclusive => ('O', Tone::Wait),
        NodeUse::OtherShared => ('o', Tone::Wait),
        NodeUse::None => match NodeProcesses::read(processes) {
            Some(NodeProcesses::Running) => ('R', Tone::Busy),
            Some(NodeProcesses::Exited) => ('x', Tone::Off),
            Some(NodeProcesses::None) | None => ('.', Tone::Good),
        },
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
        // Good and bad differ not only by colour: bad is bold, too.
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

    /// The inner area of a box.
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

    /// Puts the cursor at the selection in the linear style, for screen readers.
    pub(crate) fn point(self, frame: &mut Frame<'_>, area: Rect, line: u16, has_focus: bool) {
        if self.linear && has_focus && line < area.height {
            frame.set_cursor_position(Position::new(area.x, area.y + line));
        }
    }

    /// The last character of a text that was cut.
    pub(crate) fn cut(self) -> char {
        if self.ascii { '~' } else { '…' }
    }
}
