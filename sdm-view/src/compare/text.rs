//! Differences within long texts, as gdb prints them: `"ab\\n", 'x' <repeats 30 times>, "c"`.

/// Maximum number of characters of one text that are compared.
pub(super) const CHARACTERS_MAX: usize = 1 << 16;
/// Maximum length of a printed text that is compared as a whole, in bytes. In a longer one the first differing
/// character is named.
const SHOWN_MAX: usize = 100;

/// The difference between two long texts.
pub(super) struct TextDifference {
    /// Path of the first character that differs.
    pub(super) path: String,
    /// Number of characters that differ.
    pub(super) count: usize,
    /// Number of characters of the reference.
    pub(super) length: usize,
    /// The reference's character. None if the reference is shorter.
    pub(super) reference: Option<String>,
    /// The character of the other text. None if the other text is shorter.
    pub(super) value: Option<String>,
}

/// Finds the first character in which two values differ. None for short values, for values that are not texts, and
/// where the index of the character is unknown.
pub(super) fn difference(reference: &str, value: &str) -> Option<TextDifference> {
    if reference.len().max(value.len()) <= SHOWN_MAX {
        return None;
    }
    let (a, b) = (characters(reference)?, characters(value)?);
    let is_other = |at: &usize| a.get(*at) != b.get(*at);
    let at = (0..a.len().max(b.len())).find(is_other)?;
    let before = a[..at.min(a.len())].iter();
    if before.into_iter().any(|one| !one.is_ascii()) {
        return None;
    }
    let shown = |all: &[&str]| Some(format!("'{}'", all.get(at)?));
    // Texts of C have `"` around what is not repeated.
    let is_fortran = [reference, value].iter().all(|it| it.starts_with('\''));
    Some(TextDifference {
        path: match is_fortran {
            true => format!("({0}:{0})", at + 1),
            false => format!("[{at}]"),
        },
        count: (at..a.len().max(b.len())).filter(is_other).count(),
        length: a.len(),
        reference: shown(&a),
        value: shown(&b),
    })
}

/// The characters of a printed text, escaped as gdb does. None for other values, and for more than [`CHARACTERS_MAX`]
/// characters.
fn characters(text: &str) -> Option<Vec<&str>> {
    let mut rest = behind_address(text);
    let mut found = Vec::new();
    loop {
        rest = rest.trim_start_matches(['L', 'u', 'U', '8']);
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        rest = &rest[1..];
        let begin = found.len();
        while !rest.starts_with(quote) {
            let (one, behind) = rest.split_at(length(rest)?);
            found.push(one);
            rest = behind;
        }
        rest = &rest[1..];
        if let Some(count) = rest.strip_prefix(" <repeats ") {
            let (count, behind) = count.split_once(" times>")?;
            let count: usize = count.parse().ok()?;
            let [one] = found[begin..] else { return None };
            if count > CHARACTERS_MAX {
                return None;
            }
            found.resize(begin + count, one);
            rest = behind;
        }
        if found.len() > CHARACTERS_MAX {
            return None;
        }
        match rest.strip_prefix(", ") {
            Some(more) => rest = more,
            None => return rest.is_empty().then_some(found),
        }
    }
}

/// The text that a pointer points to, without the address in front. Any other text as it is.
fn behind_address(text: &str) -> &str {
    let Some(digits) = text.strip_prefix("0x") else {
        return text;
    };
    let behind = digits.trim_start_matches(|c: char| c.is_ascii_hexdigit());
    behind.strip_prefix(' ').unwrap_or(text)
}

/// Length of the first character in bytes, with its escape: `\\n`, `\\001`. None at the end.
fn length(text: &str) -> Option<usize> {
    let mut chars = text.chars();
    let first = chars.next()?;
    if first != '\\' {
        return Some(first.len_utf8());
    }
    let digits = chars.clone().take(3);
    let digits = digits.take_while(|c| c.is_digit(8)).count();
    match digits {
        0 => Some(1 + chars.next()?.len_utf8()),
        digits => Some(1 + digits),
    }
}
