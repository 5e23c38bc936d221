//! The source, with the tasks at each line.

use sdm_idset::IdSet;
use sdm_view::item::{BreakRow, Happening};
use sdm_view::overview::{Overview, SourceSight};

/// The selected line of the source.
#[derive(Debug, Default)]
pub(crate) struct SourceView {
    /// The line number, from 1; 0 without source.
    pub(crate) at: u32,
}

impl SourceView {
    /// Selects the current line after the tasks have moved.
    pub(crate) fn look(&mut self, sight: Option<&SourceSight>) {
        self.at = sight.map_or(0, |it| it.line);
    }

    /// Moves by a number of lines, within the file.
    pub(crate) fn step(&mut self, sight: Option<&SourceSight>, by: i32) {
        if let Some(sight) = sight {
            let count = u32::try_from(sight.lines.len()).unwrap_or(u32::MAX);
            let last = sight.first.saturating_add(count.saturating_sub(1));
            self.at = self.at.saturating_add_signed(by).clamp(sight.first, last);
        }
    }
}

/// The tasks that are stopped in a file, by line.
pub(crate) fn standing(board: &Overview, path: &str) -> Vec<(u32, IdSet)> {
    let mut lines: Vec<(u32, IdSet)> = Vec::new();
    for row in &board.ranks {
        let Some(Happening::Stopped(stop)) = &row.last else {
            continue;
        };
        let Some(frame) = stop.frame.as_ref().filter(|frame| frame.path == path) else {
            continue;
        };
        match lines.iter_mut().find(|(line, _)| *line == frame.line) {
            Some((_, tasks)) => tasks.union_with(&row.tasks),
            None => lines.push((frame.line, row.tasks.clone())),
        }
    }
    lines
}

/// The breakpoint at a line of a file; None if there is none.
pub(crate) fn breakpoint<'a>(board: &'a Overview, path: &str, line: u32) -> Option<&'a BreakRow> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_here = |row: &&BreakRow| {
        let mut places = row.places.iter();
        places.any(|(_, file, at)| *at == line && file.rsplit('/').next() == Some(name))
    };
    board.breakpoints.iter().find(is_here)
}
