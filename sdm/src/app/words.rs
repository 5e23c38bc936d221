//! The words that can complete a partly typed line, for the prompt, the full screen and pages.

use std::sync::mpsc::{Sender, channel};

use rustyline::completion::FilenameCompleter;
use sdm_shell::commands::{self, CompletionKind};
use sdm_shell::{COMPLETE_WAIT, Control};

use super::wake::Wake;

/// Finds the words, with the byte of the line at which they begin: names of files here, all others in the session.
/// Blocks until the session has answered. None if it does not in time.
pub(super) fn find(
    typed: &str,
    controls: &Sender<Control>,
    wake: &Wake,
) -> Option<(usize, Vec<String>)> {
    if let CompletionKind::File(_) = commands::completions(typed, &[]) {
        let files = FilenameCompleter::new().complete_path(typed, typed.len());
        let (from, files) = files.ok()?;
        let words = files.into_iter().map(|pair| pair.replacement).collect();
        return Some((from, words));
    }
    ask_session(typed, controls, wake)
}

/// Finds the words in the session, with the byte of the line at which they begin. Blocks until the session has
/// answered. None if it does not in time.
pub(super) fn ask_session(
    typed: &str,
    controls: &Sender<Control>,
    wake: &Wake,
) -> Option<(usize, Vec<String>)> {
    let (answer, answered) = channel();
    let asked = Control::Complete(typed.to_owned(), answer);
    // The receiver is gone once the session is over.
    controls.send(asked).ok()?;
    wake();
    answered.recv_timeout(COMPLETE_WAIT * 2).ok()
}
