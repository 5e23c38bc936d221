//! The history of lines that were typed on the screen, in the prompt's history file.

use std::path::PathBuf;

use rustyline::Config;
use rustyline::history::{FileHistory, History};

use crate::user_state::{self, HISTORY};

/// The history of lines, with its file.
pub(super) struct LineHistory {
    lines: FileHistory,
    file: Option<PathBuf>,
}

impl LineHistory {
    /// Loads the history. A file that cannot be read counts as empty.
    pub(super) fn load() -> Self {
        let config = Config::builder().history_ignore_space(true).build();
        let mut lines = FileHistory::with_config(&config);
        let file = user_state::folder().map(|folder| folder.join(HISTORY));
        if let Some(file) = &file {
            // The first session has no history yet.
            let _ = lines.load(file);
        }
        Self { lines, file }
    }

    /// The lines, oldest first.
    pub(super) fn lines(&self) -> Vec<String> {
        self.lines.iter().cloned().collect()
    }

    /// Appends lines to the history. Errors are ignored.
    pub(super) fn keep(&mut self, lines: &[String]) {
        for line in lines {
            let _ = self.lines.add(line);
        }
        if let (Some(file), false) = (&self.file, lines.is_empty()) {
            let _ = self.lines.append(file);
        }
    }
}
