//! Editing of a typed line, and splitting it into words.

use ratatui::crossterm::event::KeyCode;
use sdm_text::{printable, shell_word};

/// Maximum length of a typed line, in bytes.
const LINE_MAX: usize = 4096;

pub(crate) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

pub(crate) fn edit(line: &mut String, code: KeyCode) {
    match code {
        KeyCode::Char(c) if line.len() < LINE_MAX => line.push(c),
        KeyCode::Backspace => {
            line.pop();
        }
        _ => {}
    }
}

/// Splits a line into words as a shell does, with quotation marks and backslashes only. None if a quotation mark is not
/// closed, nothing follows a backslash, or there is no word.
pub(crate) fn split(line: &str) -> Option<Vec<String>> {
    let mut all = Vec::new();
    let mut word: Option<String> = None;
    let mut open = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (open, c) {
            (Some(mark), c) if c == mark => open = None,
            (None, '\'' | '"') => {
                open = Some(c);
                word.get_or_insert_default();
            }
            (Some('"') | None, '\\') => word.get_or_insert_default().push(chars.next()?),
            (None, c) if c.is_whitespace() => all.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    all.extend(word);
    (open.is_none() && !all.is_empty()).then_some(all)
}

/// Quotes a word for a shell.
pub(crate) fn quoted(word: &str) -> String {
    shell_word(&printable(word.as_bytes()))
}
