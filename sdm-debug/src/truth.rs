//! Truth of a value in the program's language, for `@if` and for `if` and `while` in a breakpoint's commands.

use crate::quotes::outside_quotes;

/// Words for false and for null pointers, in the languages that gdb knows; in lower case.
const FALSE_WORDS: [&str; 6] = ["false", ".false.", "null", "nullptr", "nil", "none"];

/// A printed value that is neither true nor false: an object or a container.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is neither true nor false")]
pub struct NoTruth(String);

/// True if a value that gdb has printed is true in the language of the program.
///
/// # Errors
/// The value is an object or a container, which is neither true nor false.
pub fn truth(value: &str) -> Result<bool, NoTruth> {
    match has_truth(value) {
        true => Ok(is_true(value)),
        false => Err(NoTruth(value.to_owned())),
    }
}

/// True if a program takes gdb's printed value for true: any number but zero, any pointer but null, any word that
/// does not mean false. A value that gdb cannot print (`<optimized out>`) is not true.
fn is_true(value: &str) -> bool {
    let value = value.trim();
    // A pointer is behind its type: `(int *) 0x0`.
    let plain = match value.rsplit_once(") ") {
        Some((kind, rest)) if kind.starts_with('(') => rest,
        _ => value,
    };
    // A character is behind its code (`0 '\000'`), a symbol behind its address.
    let word = plain.split_whitespace().next().unwrap_or_default();
    if word.is_empty() || word.starts_with('<') {
        return false;
    }
    let word = word.to_ascii_lowercase();
    if let Some(digits) = word.strip_prefix("0x") {
        return digits.is_empty() || digits.contains(|digit| digit != '0');
    }
    let is_zero = word.parse::<f64>().is_ok_and(|number| number == 0.0);
    !is_zero && !FALSE_WORDS.contains(&word.as_str())
}

/// False for a printed object or container, as `{id = 0}` or `std::unique_ptr<T> = {...}`: it is neither true nor false.
fn has_truth(value: &str) -> bool {
    let plain: String = outside_quotes(value).map(|(_, c)| c).collect();
    let parts = [" = ", " of length ", " [no contained value]"];
    !parts.iter().any(|part| plain.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn true_and_false_of_all_languages_are_recognized() {
        for no in [
            "",
            "0",
            "-0",
            "0.0",
            "-0.000",
            "0e+00",
            "0 '\\000'",
            "false",
            "False",
            ".FALSE.",
            "null",
            "nullptr",
            "nil",
            "None",
            "0x0",
            "0x0000",
            "(int *) 0x0",
            "(char (*)[4]) 0x0",
            "0x0 <f>",
            "<optimized out>",
            " 0 ",
        ] {
            assert!(!is_true(no), "{no}");
        }
        for yes in [
            "1",
            "-3",
            "0.5",
            "1e-05",
            "nan(0x8000000000000)",
            "inf",
            "97 'a'",
            "true",
            ".TRUE.",
            "0x10",
            "(int *) 0x10 <x>",
            "(int (*)(void)) 0x1139 <f(int) const>",
            "0x4005 \"a 0\"",
            "\"0\"",
            "{0, 0}",
            "RED",
        ] {
            assert!(is_true(yes), "{yes}");
            assert!(has_truth(yes), "{yes}");
        }
    }

    #[test]
    fn object_is_neither_true_nor_false() {
        for neither in [
            "{id = 0, heat = 2.5}",
            "( id = 3, next = 0x0 )",
            "std::unique_ptr<Cell> = {get() = 0x0}",
            "std::vector of length 0, capacity 0",
            "std::optional<int> [no contained value]",
        ] {
            assert!(!has_truth(neither), "{neither}");
        }
        for one in ["\"a = b\"", "0x10 \"x = {1}\"", "(A | C)", "1 '='"] {
            assert!(has_truth(one), "{one}");
        }
    }
}
