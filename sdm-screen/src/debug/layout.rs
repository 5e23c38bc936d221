//! The layout of the panels.

use ratatui::layout::{Constraint, Layout, Rect};

/// The parts of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Panel {
    Source,
    Stacks,
    Ranks,
    Values,
    Output,
    Prompt,
}

impl Panel {
    pub(crate) const ALL: [Self; 6] = [
        Self::Source,
        Self::Stacks,
        Self::Ranks,
        Self::Values,
        Self::Output,
        Self::Prompt,
    ];

    /// The number key that moves the keyboard focus to this panel.
    pub(crate) fn number(self) -> usize {
        Self::ALL
            .iter()
            .position(|it| *it == self)
            .map_or(0, |at| at + 1)
    }
}

/// Minimum number of columns of the terminal.
pub(crate) const COLUMNS_MIN: u16 = 40;
/// Minimum number of lines of the terminal.
pub(crate) const LINES_MIN: u16 = 12;
/// Minimum number of lines for a separate panel of program output. With fewer lines, the output replaces the prompt's
/// panel while it has the keyboard focus.
const LINES_OF_BOTH: u16 = 40;
/// Minimum number of columns for two columns of panels.
const COLUMNS_OF_TWO: u16 = 64;

/// The areas of the panels in the body. Panels without an area are hidden.
pub(crate) fn places(body: Rect, focus: Panel, zoomed: bool) -> Vec<(Panel, Rect)> {
    if zoomed {
        return vec![(focus, body)];
    }
    if body.width < COLUMNS_OF_TWO {
        let upper = match focus {
            Panel::Prompt | Panel::Output => Panel::Source,
            panel => panel,
        };
        let lower = match focus {
            Panel::Output => Panel::Output,
            _ => Panel::Prompt,
        };
        let parts = [Constraint::Percentage(55), Constraint::Percentage(45)];
        let [above, below] = Layout::vertical(parts).areas(body);
        return vec![(upper, above), (lower, below)];
    }
    let parts = [Constraint::Percentage(58), Constraint::Percentage(42)];
    let [left, right] = Layout::horizontal(parts).areas(body);
    let thirds = [
        Constraint::Percentage(40),
        Constraint::Percentage(25),
        Constraint::Percentage(35),
    ];
    let [stacks, ranks, values] = Layout::vertical(thirds).areas(right);
    let mut places = vec![
        (Panel::Stacks, stacks),
        (Panel::Ranks, ranks),
        (Panel::Values, values),
    ];
    if body.height + 2 >= LINES_OF_BOTH {
        let parts = [
            Constraint::Percentage(50),
            Constraint::Percentage(20),
            Constraint::Percentage(30),
        ];
        let [source, output, prompt] = Layout::vertical(parts).areas(left);
        places.extend([
            (Panel::Source, source),
            (Panel::Output, output),
            (Panel::Prompt, prompt),
        ]);
    } else {
        let parts = [Constraint::Percentage(58), Constraint::Percentage(42)];
        let [source, lower] = Layout::vertical(parts).areas(left);
        let below = match focus {
            Panel::Output => Panel::Output,
            _ => Panel::Prompt,
        };
        places.extend([(Panel::Source, source), (below, lower)]);
    }
    places.sort_by_key(|(panel, _)| panel.number());
    places
}

/// Splits the screen into the first line, the body, and the last line.
pub(crate) fn body(area: Rect) -> [Rect; 3] {
    let parts = [
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(1),
    ];
    Layout::vertical(parts).areas(area)
}

/// Width of the message panel's text, in columns.
pub(crate) fn text_width(columns: u16, lines: u16) -> u16 {
    let [_, body, _] = self::body(Rect::new(0, 0, columns, lines));
    let places = places(body, Panel::Prompt, false);
    let prompt = places.iter().find(|(panel, _)| *panel == Panel::Prompt);
    prompt
        .map_or(columns, |(_, place)| place.width.saturating_sub(2))
        .max(20)
}
