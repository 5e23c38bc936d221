//! Expected screens, stored as files in `golden`: `UPDATE_GOLDEN=1` rewrites them.

use std::fs;
use std::path::Path;

use crate::place::Place;

/// Compares a text with `golden/NAME.txt`, or writes the file.
///
/// # Panics
/// If the texts differ: both are shown.
pub fn check(name: &str, text: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let path = folder.join(format!("{name}.txt"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(&path, text).expect("a file");
        return;
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let first = kept.lines().zip(text.lines()).position(|(a, b)| a != b);
    let line = first.map_or_else(
        || kept.lines().count().min(text.lines().count()) + 1,
        |at| at + 1,
    );
    assert!(
        kept == text,
        "{name}: line {line} is another (UPDATE_GOLDEN=1 writes it anew); now:\n{text}\nkept:\n{kept}"
    );
}

/// Replaces the parts of a text that differ from run to run: the place's path, addresses, pids, seconds.
#[must_use]
pub fn normalised(text: &str, place: &Place) -> String {
    let text = text.replace(&place.path().display().to_string(), "PLACE");
    let decimal = |c: char| c.is_ascii_digit();
    let mut normal = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(c) = rest.chars().next() {
        let found = [
            run_behind(rest, "0x", |c| c.is_ascii_hexdigit(), "").filter(|length| *length >= 6),
            run_behind(rest, "pid ", decimal, ""),
            run_behind(rest, "(", decimal, " s"),
        ];
        let heads = ["0x", "pid ", "("];
        let found = heads.into_iter().zip(found);
        match found.into_iter().find_map(|(head, run)| Some((head, run?))) {
            Some((head, run)) => {
                normal.push_str(head);
                normal.push('_');
                rest = &rest[head.len() + run..];
            }
            None => {
                normal.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    normal
}

/// Number of characters of a kind between `head` and `tail` at the beginning of a text; `None` if the text does
/// not begin in this form.
fn run_behind(text: &str, head: &str, is: impl Fn(char) -> bool, tail: &str) -> Option<usize> {
    let rest = text.strip_prefix(head)?;
    let end = rest.find(|c| !is(c)).unwrap_or(rest.len());
    (end > 0 && rest[end..].starts_with(tail)).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_text_masks_paths_addresses_times_and_pids() {
        let place = Place::new();
        let path = place.path().display();
        let text = format!("{path}/a 0x55554321 0x1f (12 s) (4) pid 77, 3 s");
        let expect = "PLACE/a 0x_ 0x1f (_ s) (4) pid _, 3 s";
        assert_eq!(normalised(&text, &place), expect);
    }
}
