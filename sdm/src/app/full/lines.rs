//! The history of lines that were typed on the screen, in the prompt's history file.

use std::path::PathBuf;

use rustyline::Config;
use rustyline::history::{FileHistory, History};

use crate::remembered::{self, HISTORY};

/// Lines of earlier days, and the file that they are in.
pub(super) struct KeptLines {
    lines: FileHistory,
    file: Option<PathBuf>,
}

impl KeptLines {
    /// Loads the history. A file that cannot be read counts as empty.
    pub(super) fn load() -> Self {
        let config = Config::builder().history_ignore_space(true).build();
        let mut lines = FileHistory::with_config(&config);
        let file = remembered::folder().map(|folder| folder.join(HISTORY));
        if let Some(file) = &file {
            // There is none on the first day.
            let _ = lines.load(file);
        }
        Self { lines, file }
    }

    /// The lines, the last one last.
    pub(super) fn lines(&self) -> Vec<String> {
        self.lines.iter().cloned().collect()
    }

    /// Keeps more of them. That it cannot is no reason to stop.
    pub(super) fn keep(&mut self, lines: &[String]) {
        for line in lines {
            let _ = self.lines.add(line);
        }
        if let (Some(file), false) = (&self.file, lines.is_empty()) {
            let _ = self.lines.append(file);
        }
    }
}
