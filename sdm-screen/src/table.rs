//! Tables that keep the selected element while rows are added and removed.

use ratatui::Frame;
use ratatui::layout::Rect;
use sdm_text::{beginning, columns};

use crate::style::{Style, Tone};

/// Number of blank columns between two table columns.
const GAP: u16 = 1;
/// Maximum width of a table column, in terminal columns.
const WIDTH_MAX: usize = 1000;
/// Minimum width of a column that may be cut, in terminal columns.
const KEPT_MIN: u16 = 8;

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) head: &'static str,
    /// True for a right-aligned column, as for numbers.
    pub(crate) right: bool,
    /// True if it may be cut if the line is too long.
    pub(crate) cut: bool,
}

pub(crate) const fn left(head: &'static str) -> Column {
    Column {
        head,
        right: false,
        cut: false,
    }
}

pub(crate) const fn right(head: &'static str) -> Column {
    Column {
        head,
        right: true,
        cut: false,
    }
}

pub(crate) const fn cut(head: &'static str) -> Column {
    Column {
        head,
        right: false,
        cut: true,
    }
}

/// One row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    /// The element: the cluster's name and the element's id.
    pub(crate) key: (String, String),
    /// The element's name in commands.
    pub(crate) name: String,
    /// The name of its state.
    pub(crate) state: String,
    /// A text for each column.
    pub(crate) cells: Vec<String>,
}

/// A table with its rows and the selected one.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) heads: &'static [Column],
    rows: Vec<Row>,
    at: usize,
    widths: Vec<u16>,
}

impl Table {
    /// Sets the rows. The selection stays on the same element, or at its position if that is gone. Returns
    /// true if the rows have changed.
    pub(crate) fn fill(&mut self, heads: &'static [Column], rows: Vec<Row>) -> bool {
        if rows == self.rows {
            return false;
        }
        let key = self.selected().map(|row| row.key.clone());
        let same = key.and_then(|key| rows.iter().position(|row| row.key == key));
        self.at = same.unwrap_or(self.at).min(rows.len().saturating_sub(1));
        self.heads = heads;
        let width = |at: usize| {
            let cells = rows.iter().filter_map(|row| row.cells.get(at));
            cells.map(|cell| columns(cell)).max().unwrap_or(0)
        };
        let widths = heads.iter().enumerate().map(|(at, column)| {
            // A column without anything in it is left out.
            let width = width(at);
            let shown = if width == 0 {
                0
            } else {
                width.max(column.head.len())
            };
            u16::try_from(shown.min(WIDTH_MAX)).unwrap_or(u16::MAX)
        });
        self.widths = widths.collect();
        self.rows = rows;
        true
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn selected(&self) -> Option<&Row> {
        self.rows.get(self.at)
    }

    /// Moves the selection by a number of rows, within the table.
    pub(crate) fn step(&mut self, by: isize) {
        let last = self.rows.len().saturating_sub(1);
        self.at = self.at.saturating_add_signed(by).min(last);
    }

    /// Index of the first visible row in a table of this height.
    fn first(&self, height: u16) -> usize {
        (self.at + 1).saturating_sub(usize::from(height.saturating_sub(1)))
    }

    /// Index of the row at a line of an area of this height; None if there is no row.
    pub(crate) fn row_at(&self, line: u16, height: u16) -> Option<usize> {
        let row = self.first(height) + usize::from(line).checked_sub(1)?;
        (row < self.rows.len()).then_some(row)
    }

    /// Index of the selected row.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Draws the head and the rows that fit, including the selected one.
    pub(crate) fn draw(&self, frame: &mut Frame<'_>, area: Rect, style: Style, has_focus: bool) {
        if area.height == 0 || area.width < 4 {
            return;
        }
        let widths = self.fitted(area.width - 2);
        let heads: Vec<&str> = self.heads.iter().map(|column| column.head).collect();
        let line = self.line(&heads, &widths, style);
        let buffer = frame.buffer_mut();
        buffer.set_stringn(
            area.x + 2,
            area.y,
            &line,
            usize::from(area.width - 2),
            style.head(),
        );
        let first = self.first(area.height);
        for (y, (at, row)) in
            (area.y + 1..area.bottom()).zip(self.rows.iter().enumerate().skip(first))
        {
            let cells: Vec<&str> = row.cells.iter().map(String::as_str).collect();
            let line = self.line(&cells, &widths, style);
            let (sign, tone) = match row.state.is_empty() {
                true => (' ', Tone::Good),
                false => crate::style::state(&row.state),
            };
            let cells = match row.state.is_empty() {
                true => ratatui::style::Style::new(),
                false => style.tone(tone),
            };
            if !style.linear {
                buffer.set_string(area.x, y, sign.to_string(), cells);
            }
            buffer.set_stringn(area.x + 2, y, &line, usize::from(area.width - 2), cells);
            if at == self.at {
                buffer.set_style(
                    Rect::new(area.x, y, area.width, 1),
                    style.selected(has_focus),
                );
            }
        }
        let line = u16::try_from(self.at.saturating_sub(first)).unwrap_or(u16::MAX);
        style.point(frame, area, line.saturating_add(1), has_focus);
    }

    fn line(&self, cells: &[&str], widths: &[u16], style: Style) -> String {
        let mut line = String::new();
        for ((cell, width), column) in cells.iter().zip(widths).zip(self.heads) {
            if *width == 0 {
                continue;
            }
            if !line.is_empty() {
                line.push(' ');
            }
            let cell = shortened(cell, usize::from(*width), style);
            let space = " ".repeat(usize::from(*width).saturating_sub(columns(&cell)));
            match column.right {
                true => line.extend([space, cell]),
                false => line.extend([cell, space]),
            }
        }
        line
    }

    /// The widths of the columns. The widest column that may be cut is narrowed first.
    fn fitted(&self, width: u16) -> Vec<u16> {
        let mut widths = self.widths.clone();
        loop {
            let shown = widths.iter().filter(|width| **width > 0);
            let all: u32 = shown.map(|width| u32::from(*width + GAP)).sum();
            let excess = all.saturating_sub(u32::from(width + GAP));
            let may = |at: &usize| self.heads[*at].cut && widths[*at] > KEPT_MIN;
            let widest = (0..widths.len()).filter(may).max_by_key(|at| widths[*at]);
            match widest {
                Some(at) if excess > 0 => {
                    let less = u16::try_from(excess).unwrap_or(u16::MAX);
                    widths[at] = widths[at].saturating_sub(less).max(KEPT_MIN);
                }
                _ => return widths,
            }
        }
    }
}

/// Cuts a text to a number of columns. A cut text ends with a sign.
pub(crate) fn shortened(text: &str, width: usize, style: Style) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut cut = beginning(text, width.saturating_sub(1)).to_owned();
    cut.push(style.cut());
    cut
}
