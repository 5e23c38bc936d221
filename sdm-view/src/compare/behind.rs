//! Differences behind the elements that gdb has printed.

use sdm_idset::IdSet;

use super::Difference;

/// Number of characters that are shown of a value's end, where values are equal up to the end of what gdb
/// printed.
const END_CHARS: usize = 60;

/// The difference of two values whose printed elements are equal: their ends. For truncated values that is
/// the length and hash of the full value.
pub(super) fn behind(tasks: &IdSet, reference: &str, own: &str) -> Difference {
    let end = |text: &str| match text.char_indices().rev().nth(END_CHARS - 1) {
        Some((begin, _)) if begin > 0 => format!("...{}", text[begin..].trim_end()),
        _ => text.trim().to_owned(),
    };
    let mut shown = [reference, own].map(end);
    if shown[0] == shown[1] {
        // They differ before, as in the capacity of a container.
        shown = [reference, own].map(str::to_owned);
    }
    let [reference, value] = shown.map(Some);
    Difference {
        tasks: tasks.clone(),
        count: 1,
        of: 1,
        path: String::new(),
        reference,
        value,
    }
}
