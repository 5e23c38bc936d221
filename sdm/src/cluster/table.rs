//! Tables for terminals: columns as wide as their contents, cut at the terminal's width.

use sdm_text::{beginning, columns, printable};

/// The text between two columns.
const GAP: &str = "  ";
/// The last character of a cell that was cut.
const CUT: char = '…';
/// Minimum width of a column that may be cut, in terminal columns.
const KEPT_MIN: usize = 8;

/// The alignment of a column's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stand {
    /// Left-aligned, never cut.
    Left,
    /// Right-aligned, never cut, for numbers.
    Right,
    /// Left-aligned, and cut where the line is too long.
    Cut,
}

/// A table with column heads.
#[derive(Debug)]
pub(super) struct Table {
    heads: Vec<(&'static str, Stand)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(heads: &[(&'static str, Stand)]) -> Self {
        Self {
            heads: heads.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row with a cell per column. Control characters are escaped.
    pub(super) fn push(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.heads.len());
        let cells = cells.iter().map(|cell| printable(cell.as_bytes()));
        self.rows.push(cells.collect());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as lines, without empty columns. No line is longer than `width` terminal columns, as far
    /// as columns may be cut.
    pub(super) fn render(&self, width: Option<usize>) -> String {
        let filled = |at: &usize| self.rows.iter().any(|row| !row[*at].is_empty());
        let shown: Vec<usize> = (0..self.heads.len()).filter(filled).collect();
        let widths = self.widths(&shown, width);
        let heads = self.heads.iter().map(|(head, _)| (*head).to_owned());
        let heads: Vec<String> = heads.collect();
        let mut text = String::new();
        for row in std::iter::once(&heads).chain(&self.rows) {
            let mut line = String::new();
            for (at, width) in shown.iter().zip(&widths) {
                if !line.is_empty() {
                    line.push_str(GAP);
                }
                let cell = cut(&row[*at], *width);
                let space = " ".repeat(width.saturating_sub(columns(&cell)));
                match self.heads[*at].1 {
                    Stand::Right => line.extend([space, cell]),
                    Stand::Left | Stand::Cut => line.extend([cell, space]),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// The widths of the shown columns. The widest column that may be cut is narrowed first.
    fn widths(&self, shown: &[usize], width: Option<usize>) -> Vec<usize> {
        let widest = |at: &usize| {
            let cells = self.rows.iter().map(|row| columns(&row[*at]));
            cells.max().unwrap_or(0).max(columns(self.heads[*at].0))
        };
        let mut widths: Vec<usize> = shown.iter().map(widest).collect();
        let Some(width) = width else {
            return widths;
        };
        let gaps = GAP.len() * shown.len().saturating_sub(1);
        loop {
            let excess = (widths.iter().sum::<usize>() + gaps).saturating_sub(width);
            let may_be_cut = |(place, _): &(usize, &usize)| {
                self.heads[shown[*place]].1 == Stand::Cut && widths[*place] > KEPT_MIN
            };
            let candidates = widths.iter().enumerate().filter(may_be_cut);
            let Some((place, _)) = candidates.max_by_key(|(_, width)| **width) else {
                return widths;
            };
            if excess == 0 {
                return widths;
            }
            widths[place] -= 1;
        }
    }
}

/// The text, cut if it is wider than so many terminal columns.
pub(super) fn cut(cell: &str, width: usize) -> String {
    if columns(cell) <= width {
        return cell.to_owned();
    }
    let mut cut = beginning(cell, width.saturating_sub(1)).to_owned();
    cut.push(CUT);
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&[
            ("JOB", Stand::Right),
            ("NAME", Stand::Cut),
            ("REASON", Stand::Cut),
            ("STATE", Stand::Left),
        ]);
        let cells = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        table.push(cells(["7", "a-name-that-is-rather-long", "", "RUNNING"]));
        table.push(cells(["4711", "b\x1b[2J", "", "PENDING"]));
        table
    }

    #[test]
    fn columns_have_minimal_width_and_empty_ones_are_hidden() {
        let expected = "\x20JOB  NAME                        STATE
   7  a-name-that-is-rather-long  RUNNING
4711  b\\x1b[2J                    PENDING
";
        assert_eq!(table().render(None), expected);
    }

    #[test]
    fn table_is_cut_to_the_terminal_width() {
        let text = table().render(Some(29));
        let lines: Vec<&str> = text.lines().take(2).collect();
        assert_eq!(
            lines,
            [
                " JOB  NAME            STATE",
                "   7  a-name-that-i…  RUNNING"
            ]
        );
        assert!(text.lines().all(|line| columns(line) <= 29), "{text}");
        // A cell that must not be cut is shown in full.
        assert!(table().render(Some(5)).contains("RUNNING"));
    }
}
