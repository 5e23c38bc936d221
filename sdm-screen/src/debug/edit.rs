//! The input line of the prompt.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use sdm_text::printable;

/// Maximum length of a line, in bytes.
const LINE_BYTES_MAX: usize = 4096;
/// Maximum number of lines in the history.
const HISTORY_MAX: usize = 1000;
/// Maximum number of completions that are shown.
const WORDS_SHOWN_MAX: usize = 40;

/// The input line with its history.
#[derive(Debug, Default)]
pub(crate) struct LineEdit {
    text: String,
    /// Cursor position, in bytes.
    at: usize,
    history: Vec<String>,
    /// New lines of the history that are not saved yet.
    typed: Vec<String>,
    /// Index of the history line that is shown. None for a new line.
    shown: Option<usize>,
}

/// The search line; the searched text is in lower case.
#[derive(Debug, Default)]
pub(crate) struct SearchLine {
    typed: Option<String>,
    last: String,
}

impl SearchLine {
    /// The text while it is typed. None otherwise.
    pub(crate) fn typed(&self) -> Option<&str> {
        self.typed.as_deref()
    }

    /// The last searched text.
    pub(crate) fn last(&self) -> &str {
        &self.last
    }

    pub(crate) fn begin(&mut self) {
        self.typed = Some(String::new());
    }

    /// Handles a key in the search line. Returns true if the search has to be carried out. Empty text
    /// repeats the last search.
    pub(crate) fn key(&mut self, key: KeyEvent) -> bool {
        let Some(typed) = &mut self.typed else {
            return false;
        };
        match key.code {
            KeyCode::Char(c) if typed.len() < LINE_BYTES_MAX => typed.push(c),
            KeyCode::Backspace => {
                typed.pop();
            }
            KeyCode::Esc => self.typed = None,
            KeyCode::Enter => {
                let typed = self.typed.take().unwrap_or_default();
                if !typed.is_empty() {
                    self.last = typed.to_lowercase();
                }
                return true;
            }
            _ => {}
        }
        false
    }
}

impl LineEdit {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The text before the cursor.
    pub(crate) fn before(&self) -> &str {
        &self.text[..self.at]
    }

    pub(crate) fn set(&mut self, text: &str) {
        text.clone_into(&mut self.text);
        self.at = self.text.len();
        self.shown = None;
    }

    /// Takes the line. It is added to the history unless it answers a question, is blank or repeats the last one.
    pub(crate) fn take(&mut self, is_question: bool) -> String {
        let line = std::mem::take(&mut self.text);
        (self.at, self.shown) = (0, None);
        let is_new = self.history.last() != Some(&line);
        if is_new && !is_question && !line.trim().is_empty() {
            if self.history.len() == HISTORY_MAX {
                self.history.remove(0);
            }
            self.history.push(line.clone());
            self.typed.push(line.clone());
        }
        line
    }

    /// Sets the history of earlier sessions.
    pub(crate) fn fill_history(&mut self, mut lines: Vec<String>) {
        self.history = lines.split_off(lines.len().saturating_sub(HISTORY_MAX));
    }

    /// Takes the lines that were added to the history since the last call.
    pub(crate) fn take_typed(&mut self) -> Vec<String> {
        std::mem::take(&mut self.typed)
    }

    /// Handles a key. Returns false if it has no meaning here.
    pub(crate) fn key(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('a') if control => self.at = 0,
            KeyCode::Char('e') if control => self.at = self.text.len(),
            KeyCode::Char('b') if control => self.left(),
            KeyCode::Char('f') if control => self.right(),
            KeyCode::Char('k') if control => self.text.truncate(self.at),
            KeyCode::Char('u') if control => {
                self.text.drain(..self.at);
                self.at = 0;
            }
            KeyCode::Char('w') if control => {
                let before = self.before().trim_end();
                let from = before.rfind(' ').map_or(0, |at| at + 1);
                self.text.drain(from..self.at);
                self.at = from;
            }
            KeyCode::Char('p') if control => self.older(),
            KeyCode::Char('n') if control => self.newer(),
            KeyCode::Char('h') if control => self.rub_out(),
            KeyCode::Char(_) if control => return false,
            KeyCode::Char(c) => {
                if self.text.len() + c.len_utf8() <= LINE_BYTES_MAX {
                    self.text.insert(self.at, c);
                    self.at += c.len_utf8();
                }
            }
            KeyCode::Backspace => self.rub_out(),
            KeyCode::Delete if self.at < self.text.len() => {
                self.text.remove(self.at);
            }
            KeyCode::Left => self.left(),
            KeyCode::Right => self.right(),
            KeyCode::Home => self.at = 0,
            KeyCode::End => self.at = self.text.len(),
            KeyCode::Up => self.older(),
            KeyCode::Down => self.newer(),
            _ => return false,
        }
        true
    }

    fn left(&mut self) {
        let last = self.before().chars().next_back();
        self.at -= last.map_or(0, char::len_utf8);
    }

    fn right(&mut self) {
        let next = self.text[self.at..].chars().next();
        self.at += next.map_or(0, char::len_utf8);
    }

    fn rub_out(&mut self) {
        if self.at > 0 {
            self.left();
            self.text.remove(self.at);
        }
    }

    fn older(&mut self) {
        let at = self.shown.unwrap_or(self.history.len());
        self.recall(at.checked_sub(1));
    }

    fn newer(&mut self) {
        let Some(at) = self.shown else {
            return;
        };
        match at + 1 < self.history.len() {
            true => self.recall(Some(at + 1)),
            false => self.set(""),
        }
    }

    fn recall(&mut self, at: Option<usize>) {
        if let Some((at, line)) = at.and_then(|at| Some((at, self.history.get(at)?.clone()))) {
            self.set(&line);
            self.shown = Some(at);
        }
    }

    /// Completes the text before the cursor, from byte `from` on, with the common prefix of the words that fit. Adds a
    /// blank after the only word, unless the word can be continued. Returns the words as text if several fit and their
    /// prefix adds nothing; otherwise `None`.
    pub(crate) fn complete(&mut self, from: usize, words: &[String]) -> Option<String> {
        let typed = self.text.get(from..self.at)?.to_owned();
        let is_plain = |word: &&String| printable(word.as_bytes()) == **word;
        let fits: Vec<&String> = words
            .iter()
            .filter(is_plain)
            .filter(|word| word.starts_with(&typed))
            .collect();
        let first = fits.first()?;
        let mut common = first.as_str();
        for word in &fits {
            let agree = common.chars().zip(word.chars()).take_while(|(a, b)| a == b);
            let bytes = agree.map(|(c, _)| c.len_utf8()).sum();
            common = &common[..bytes];
        }
        let mut more = common[typed.len()..].to_owned();
        // No blank follows a word that can be continued, such as a folder.
        if fits.len() == 1 && !common.ends_with([':', '(', '@', '/', '.']) {
            more.push(' ');
        }
        self.text.insert_str(self.at, &more);
        self.at += more.len();
        (fits.len() > 1 && more.is_empty()).then(|| {
            let shown = fits.iter().take(WORDS_SHOWN_MAX).map(|word| word.as_str());
            let mut text = shown.collect::<Vec<_>>().join("  ");
            if fits.len() > WORDS_SHOWN_MAX {
                text.push_str(&format!("  and {} more", fits.len() - WORDS_SHOWN_MAX));
            }
            text + "\n"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(edit: &mut LineEdit, text: &str) {
        for c in text.chars() {
            edit.key(KeyEvent::from(KeyCode::Char(c)));
        }
    }

    fn control(edit: &mut LineEdit, c: char) {
        edit.key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL));
    }

    #[test]
    fn line_is_edited_as_at_a_prompt() {
        let mut edit = LineEdit::default();
        typed(&mut edit, "print \u{e4}x");
        edit.key(KeyEvent::from(KeyCode::Left));
        edit.key(KeyEvent::from(KeyCode::Backspace));
        typed(&mut edit, "y");
        assert_eq!((edit.text(), edit.before()), ("print yx", "print y"));
        control(&mut edit, 'a');
        typed(&mut edit, "\u{4e2d}");
        control(&mut edit, 'k');
        assert_eq!(edit.text(), "\u{4e2d}");
        control(&mut edit, 'u');
        assert_eq!(edit.take(false), "");
        for line in ["one", "two", "two"] {
            typed(&mut edit, line);
            assert_eq!(edit.take(false), line);
        }
        typed(&mut edit, "y");
        assert_eq!(edit.take(true), "y");
        for expect in ["two", "one", "one"] {
            edit.key(KeyEvent::from(KeyCode::Up));
            assert_eq!(edit.text(), expect);
        }
        for expect in ["two", "", ""] {
            edit.key(KeyEvent::from(KeyCode::Down));
            assert_eq!(edit.text(), expect);
        }
        assert_eq!(edit.take_typed(), ["one", "two"]);
        assert!(edit.take_typed().is_empty());
        edit.fill_history(vec!["of yesterday".to_owned()]);
        edit.key(KeyEvent::from(KeyCode::Up));
        assert_eq!(edit.text(), "of yesterday");
        assert!(edit.take_typed().is_empty());
        control(&mut edit, 'u');
        typed(&mut edit, "break main  ");
        control(&mut edit, 'w');
        assert_eq!(edit.text(), "break ");
    }

    #[test]
    fn completion_inserts_the_common_prefix() {
        let words = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let mut edit = LineEdit::default();
        typed(&mut edit, "break so");
        assert_eq!(
            edit.complete(6, &words(&["solve", "solver", "so\x1b"])),
            None
        );
        assert_eq!(edit.text(), "break solve");
        let said = edit.complete(6, &words(&["solve", "solver"]));
        assert_eq!(said.as_deref(), Some("solve  solver\n"));
        assert_eq!(edit.complete(6, &words(&["solver"])), None);
        assert_eq!(edit.text(), "break solver ");
        assert_eq!(edit.complete(99, &words(&["x"])), None);
        assert_eq!(edit.complete(6, &[]), None);
        assert_eq!(edit.text(), "break solver ");
    }
}
