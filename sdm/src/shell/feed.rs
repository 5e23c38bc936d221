//! The program's standard input: a numbered stream for each task.

use sdm_debug::Command;
use sdm_idset::IdSet;

use super::gather::join;
use super::run::Said;
use super::{Shell, Verdict};
use crate::commands::SetExpr;
use crate::session::Debug;

impl<D: Debug> Shell<D> {
    /// `send SET TEXT`, `send SET --eof`.
    pub(super) fn send_input(
        &mut self,
        said: &Said<'_>,
        set: &SetExpr,
        text: &str,
        eof: bool,
    ) -> Verdict {
        let bytes = if eof {
            Vec::new()
        } else {
            format!("{text}\n").into_bytes()
        };
        if let Some(fed) = self.debug.feed(&bytes, eof) {
            return match fed {
                Ok(()) => Verdict::Done,
                Err(why) => self.complain(format!("send: {why}"), ""),
            };
        }
        let to = match self.resolve(set) {
            Ok(to) => to,
            Err(error) => return self.refuse(said.line, &error),
        };
        let unfed = to.difference(&self.options.stdin_tasks);
        if !unfed.is_empty() {
            let text = crate::render::set_text(&unfed, 60);
            return self.complain(
                format!("send: {text} read an empty standard input"),
                "start with `--stdin SET` to choose who is fed; it is rank 0 unless said otherwise",
            );
        }
        let mut verdict = Verdict::Done;
        for (tasks, offset) in self.stdin_offsets(&to) {
            let command = Command::Stdin {
                offset,
                bytes: bytes.clone(),
                eof,
            };
            let (one, done) = self.ask(said.line, &tasks, &command);
            self.advance_stdin(&done, offset + bytes.len() as u64);
            if one != Verdict::Done {
                verdict = one;
            }
        }
        verdict
    }

    /// Where the next bytes of some tasks' input stand.
    fn stdin_offsets(&self, to: &IdSet) -> Vec<(IdSet, u64)> {
        let mut rest = to.clone();
        let mut offsets = Vec::new();
        for (tasks, offset) in &self.stdin {
            let both = tasks.intersection(to);
            rest.subtract(&both);
            if !both.is_empty() {
                offsets.push((both, *offset));
            }
        }
        if !rest.is_empty() {
            offsets.push((rest, 0));
        }
        offsets
    }

    fn advance_stdin(&mut self, tasks: &IdSet, offset: u64) {
        for (known, _) in &mut self.stdin {
            known.subtract(tasks);
        }
        self.stdin.retain(|(known, _)| !known.is_empty());
        join(&mut self.stdin, tasks, offset);
    }
}
