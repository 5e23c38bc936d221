//! Paging of output that is longer than the screen, as in gdb.

use std::io;
use std::time::Duration;

use super::keys::Keys;
use crate::blocked_output::{is_given_up, writing};
use crate::sink::Sink;

/// The question, in the words of gdb.
const QUESTION: &str = "--Type <RET> for more, q to quit, c to continue without paging--";
/// Polling interval for a request to end `sdm`.
const LOOK: Duration = Duration::from_millis(100);

/// The answer of the user to a full page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Next,
    Rest,
    Nothing,
}

/// Shows a text page by page on a terminal of this size (columns, lines).
///
/// # Errors
/// The output cannot be written.
pub(super) fn show(text: &str, size: (usize, usize)) -> io::Result<()> {
    let pages = pages(text, size);
    if pages.len() < 2 {
        return Sink::Output.show(text);
    }
    let Some(keys) = Keys::take(false) else {
        return Sink::Output.show(text);
    };
    let mut pages = pages.into_iter();
    while let Some(page) = pages.next() {
        Sink::Output.show(page)?;
        if pages.len() == 0 {
            break;
        }
        match writing(|| ask(&keys)) {
            Answer::Next => {}
            Answer::Rest => return pages.try_for_each(|page| Sink::Output.show(page)),
            Answer::Nothing => break,
        }
    }
    Ok(())
}

fn ask(keys: &Keys) -> Answer {
    Sink::Output.show_at_bottom(QUESTION);
    let answer = loop {
        match keys.next(LOOK) {
            Ok(Some(key)) => {
                if let Some(answer) = meant(key) {
                    break answer;
                }
            }
            Ok(None) if !is_given_up() => {}
            Ok(None) | Err(_) => break Answer::Nothing,
        }
    };
    Sink::Output.show_at_bottom("");
    answer
}

/// The answer that a key gives. None for a key without one. Like `q`, the keys Ctrl-C, Ctrl-D and Escape quit.
fn meant(key: u8) -> Option<Answer> {
    match key {
        b'\r' | b'\n' | b' ' => Some(Answer::Next),
        b'c' => Some(Answer::Rest),
        b'q' | 0x03 | 0x04 | 0x1b => Some(Answer::Nothing),
        _ => None,
    }
}

/// Splits a text into pages that leave one line for the question.
fn pages(text: &str, (width, rows): (usize, usize)) -> Vec<&str> {
    let room = rows.saturating_sub(1).max(1);
    let (mut pages, mut begin, mut end, mut used) = (Vec::new(), 0, 0, 0);
    for line in text.split_inclusive('\n') {
        let height = columns(line).div_ceil(width.max(1)).max(1);
        if used > 0 && used + height > room {
            pages.push(&text[begin..end]);
            (begin, used) = (end, 0);
        }
        used += height;
        end += line.len();
    }
    pages.push(&text[begin..]);
    pages
}

/// Number of columns of a line, without escape sequences of styles.
fn columns(line: &str) -> usize {
    let mut parts = line.trim_end_matches('\n').split('\x1b');
    let first = sdm_text::columns(parts.next().unwrap_or_default());
    let shown = |part: &str| sdm_text::columns(part.split_once('m').map_or(part, |(_, text)| text));
    first + parts.map(shown).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_split_into_pages() {
        assert_eq!(pages("a\nb\n", (80, 24)), ["a\nb\n"]);
        assert_eq!(pages("a\nb\nc\nd\ne", (80, 3)), ["a\nb\n", "c\nd\n", "e"]);
        // One line needs two screen lines, and the styles of another need no columns.
        let long = "x".repeat(12);
        assert_eq!(pages(&format!("{long}\na\nb\n"), (10, 4)).len(), 2);
        let bold = "\x1b[1m1234567890\x1b[0m\n".repeat(3);
        assert_eq!(pages(&bold, (10, 4)).len(), 1);
        assert_eq!(pages("", (0, 0)), [""]);
        assert_eq!(pages(&long, (0, 0)), [long.as_str()]);
    }

    #[test]
    fn pager_keys_are_those_of_gdb() {
        assert_eq!(meant(b'\n'), Some(Answer::Next));
        assert_eq!(meant(b'c'), Some(Answer::Rest));
        assert_eq!(meant(0x03), Some(Answer::Nothing));
        assert_eq!(meant(b'x'), None);
    }
}
