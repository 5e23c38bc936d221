//! The source, with the tasks at each line.

use sdm_idset::IdSet;
use sdm_view::board::{Board, SourceSight};
use sdm_view::item::{BreakRow, Happening};

/// The line of the source that is looked at.
#[derive(Debug, Default)]
pub(crate) struct SourceView {
    /// Its number, from 1; 0 where there is no source.
    pub(crate) at: u32,
}

impl SourceView {
    /// The tasks stand elsewhere now.
    pub(crate) fn look(&mut self, sight: Option<&SourceSight>) {
        self.at = sight.map_or(0, |it| it.line);
    }

    /// Moves by so many lines, which stops at both ends.
    pub(crate) fn step(&mut self, sight: Option<&SourceSight>, by: i32) {
        if let Some(sight) = sight {
            let count = u32::try_from(sight.lines.len()).unwrap_or(u32::MAX);
            let last = sight.first.saturating_add(count.saturating_sub(1));
            self.at = self.at.saturating_add_signed(by).clamp(sight.first, last);
        }
    }
}

/// Everybody who stands in a file, by line.
pub(crate) fn standing(board: &Board, path: &str) -> Vec<(u32, IdSet)> {
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

/// The breakpoint at a line of a file.
pub(crate) fn breakpoint<'a>(board: &'a Board, path: &str, line: u32) -> Option<&'a BreakRow> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_here = |row: &&BreakRow| {
        let mut places = row.places.iter();
        places.any(|(_, file, at)| *at == line && file.rsplit('/').next() == Some(name))
    };
    board.breakpoints.iter().find(is_here)
}
