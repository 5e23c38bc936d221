//! Differences behind the elements that gdb has printed.

/// Number of characters that are shown of a value's end, where values are equal up to the end of what gdb
/// printed.
const END_CHARS: usize = 60;

/// The ends of two values whose printed elements are equal. For truncated values that is the length and hash of the
/// full value.
pub(super) fn ends(reference: &str, own: &str) -> [String; 2] {
    let end = |text: &str| match text.char_indices().rev().nth(END_CHARS - 1) {
        Some((begin, _)) if begin > 0 => format!("...{}", text[begin..].trim_end()),
        _ => text.trim().to_owned(),
    };
    let shown = [reference, own].map(end);
    match shown[0] == shown[1] {
        // They differ before, as in the capacity of a container.
        true => [reference, own].map(str::to_owned),
        false => shown,
    }
}
