//! What a line that is being typed can become.

use sdm_debug::{Command, Reply, TaskState};
use sdm_idset::IdSet;
use sdm_session::Debug;

use super::Shell;
use crate::commands::{self, Wanted};

/// The most words that are offered.
const WORDS_MAX: usize = 500;

impl<D: Debug> Shell<D> {
    /// Where the words begin that the end of the line can become, and they.
    pub(super) fn complete(&mut self, typed: &str) -> (usize, Vec<String>) {
        let named: Vec<_> = self.sets.named.keys().cloned().collect();
        match commands::completions(typed, &named) {
            Wanted::Words(at, words) => (at, words),
            Wanted::File(at) => (at, Vec::new()),
            Wanted::Program(at, line) => self.complete_by_gdb(typed, at, &line),
        }
    }

    /// Asks the gdb of one task that stands.
    fn complete_by_gdb(&mut self, typed: &str, at: usize, line: &str) -> (usize, Vec<String>) {
        let standing = self.tasks.in_state(|state| *state == TaskState::Stopped);
        let standing = standing.difference(self.tasks.lost());
        let in_focus = standing.intersection(&self.focus);
        let Some(one) = in_focus.first().or_else(|| standing.first()) else {
            return (at, Vec::new());
        };
        let argument = typed.len() - at;
        let head = line.len() - argument.min(line.len());
        let command = Command::Console {
            line: format!("complete {line}"),
        };
        self.completing = true;
        let (_, open) = self.ask_quietly("complete", &IdSet::single(one), &command);
        self.completing = false;
        let answers = open.map(|open| open.gathered.ok).unwrap_or_default();
        let Some((_, Reply::Text(text))) = answers.first() else {
            return (at, Vec::new());
        };
        let begins = |found: &&str| found.starts_with(&line[..head]);
        let words = text.lines().filter(begins).take(WORDS_MAX);
        (at, words.map(|found| found[head..].to_owned()).collect())
    }
}
