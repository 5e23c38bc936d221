//! Completion of a partly typed line.
use sdm_debug::{Command, Reply};
use sdm_idset::IdSet;

use super::SessionHandle;
use super::model::goal::Goal;
use crate::commands::{self, CompletionKind};

/// Maximum number of completions.
const WORDS_MAX: usize = 500;

/// Completes the end of a line. Returns the offset of the completed word, in bytes, and its candidates.
pub(super) async fn complete(session: &SessionHandle, typed: &str) -> (usize, Vec<String>) {
    let named: Vec<_> = session.read(|model| model.sets.named.keys().cloned().collect());
    match commands::completions(typed, &named) {
        CompletionKind::Words(at, words) => (at, words),
        CompletionKind::File(at) => (at, Vec::new()),
        CompletionKind::Program(at, line) => complete_by_gdb(session, typed, at, &line).await,
    }
}

/// Asks the gdb of one stopped task for completions.
async fn complete_by_gdb(
    session: &SessionHandle,
    typed: &str,
    at: usize,
    line: &str,
) -> (usize, Vec<String>) {
    let standing = session.standing();
    let in_focus = session.read(|model| standing.intersection(&model.sets.focus));
    let Some(one) = in_focus.first().or_else(|| standing.first()) else {
        return (at, Vec::new());
    };
    let argument = typed.len() - at;
    let head = line.len() - argument.min(line.len());
    let command = Command::Console {
        line: format!("complete {line}"),
    };
    let id = session.send("complete", &IdSet::single(one), &command);
    let waited = session
        .wait_for(&Goal::Completed(id), "complete", None)
        .await;
    let open = session.take_answered(id, waited);
    let answers = open.map(|open| open.gathered.ok).unwrap_or_default();
    let Some((_, Reply::Text(text))) = answers.first() else {
        return (at, Vec::new());
    };
    let begins = |found: &&str| found.starts_with(&line[..head]);
    let words = text.lines().filter(begins).take(WORDS_MAX);
    (at, words.map(|found| found[head..].to_owned()).collect())
}
