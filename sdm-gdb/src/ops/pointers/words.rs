//! The words and signs of a Fortran expression.

use sdm_debug::calls::is_gdb_function;

/// First words of the names of gdb's types.
const TYPES: [&str; 7] = [
    "character",
    "complex",
    "double",
    "integer",
    "logical",
    "precision",
    "real",
];

/// Fortran's inquiry whether a variable is allocated. gdb itself knows it for arrays only.
pub(super) const ALLOCATED: &str = "allocated";
/// gdb's operator for the size of a type: it evaluates nothing.
pub(super) const SIZEOF: &str = "sizeof";

/// True for the name of a variable that gdb takes for a function, or for a word of its own (`single precision`).
pub(super) fn is_taken(name: &str) -> bool {
    is_gdb_function(name) || name.trim().eq_ignore_ascii_case("single")
}

/// True for the name of one of gdb's types: `integer`, `real_8`.
pub(super) fn is_type(word: &str) -> bool {
    let is_kind = |rest: &str| {
        let digits = rest.strip_prefix('_');
        rest.is_empty() || digits.is_some_and(|it| it.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let mut behind = TYPES.iter().filter_map(|it| word.strip_prefix(it));
    behind.any(is_kind)
}

/// True if an operand begins here, and no operator.
pub(super) fn is_operand(rest: &str) -> bool {
    if let Some(word) = dotted(rest) {
        return [".true.", ".false."]
            .iter()
            .any(|it| it.eq_ignore_ascii_case(word));
    }
    rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '\'' | '(' | '.'))
}

/// The dotted word at the beginning, such as `.and.` or `.true.`; `None` if there is none.
pub(super) fn dotted(rest: &str) -> Option<&str> {
    let word = rest.strip_prefix('.')?;
    let end = word.find(|c: char| !c.is_ascii_alphabetic())?;
    (end > 0 && word[end..].starts_with('.')).then(|| &rest[..end + 2])
}

/// The offset of the bracket that closes the first one; `None` if none does.
pub(super) fn matching(text: &str) -> Option<usize> {
    let (mut depth, mut is_quoted) = (0_usize, false);
    for (at, c) in text.char_indices() {
        match c {
            '\'' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '(' => depth += 1,
            ')' if depth == 1 => return Some(at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}
