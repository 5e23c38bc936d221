//! The characters that the terminal shows, by the locale that its user has set.

use std::borrow::Cow;
use std::ffi::OsString;
use std::sync::LazyLock;

/// Variables that name the locale of characters; the first that is set counts.
const VARIABLES: [&str; 3] = ["LC_ALL", "LC_CTYPE", "LANG"];

static IS_UNICODE: LazyLock<bool> = LazyLock::new(|| is_unicode_by(|name| std::env::var_os(name)));

/// False if the user's locale does not use UTF-8. True if no locale is set.
pub(crate) fn is_unicode() -> bool {
    *IS_UNICODE
}

fn is_unicode_by(lookup: impl Fn(&str) -> Option<OsString>) -> bool {
    let mut set = VARIABLES.iter().filter_map(|name| lookup(name));
    let Some(locale) = set.find(|value| !value.is_empty()) else {
        return true;
    };
    let locale = locale.to_string_lossy().to_ascii_lowercase();
    let charset = locale.split_once('.').map(|(_, charset)| charset);
    let charset = charset.and_then(|charset| charset.split('@').next());
    // A locale without a charset has a charset older than UTF-8.
    matches!(charset, Some("utf-8" | "utf8"))
}

/// The text as this locale can show it. Without Unicode, drawn characters are replaced by ASCII.
pub(crate) fn drawn(text: &str) -> Cow<'_, str> {
    match is_unicode() || text.is_ascii() {
        true => Cow::Borrowed(text),
        false => Cow::Owned(text.chars().map(in_ascii).collect()),
    }
}

/// The ASCII substitute for a character of a line, a bar or a mark that SDM draws. Other characters are unchanged.
fn in_ascii(drawn: char) -> char {
    match drawn {
        '─' | '━' => '-',
        '│' | '┃' => '|',
        '├' | '┤' | '┬' | '┴' | '┼' | '┌' | '┐' | '┘' => '+',
        '└' => '`',
        '▁' | '▂' => '.',
        '▃' | '▄' => ':',
        '▅' | '▆' => '|',
        '▇' | '█' => '#',
        '…' => '~',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locale_determines_unicode_support() {
        let check = |variables: &[(&str, &str)], expect: bool| {
            let lookup = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| OsString::from(value))
            };
            assert_eq!(is_unicode_by(lookup), expect, "{variables:?}");
        };
        check(&[], true);
        check(&[("LANG", "")], true);
        check(&[("LANG", "C.UTF-8")], true);
        check(&[("LANG", "de_DE.utf8@euro")], true);
        check(&[("LANG", "C")], false);
        check(&[("LANG", "de_DE")], false);
        check(&[("LANG", "en_US.ISO-8859-1")], false);
        check(&[("LC_ALL", "C"), ("LANG", "C.UTF-8")], false);
        check(&[("LC_CTYPE", "C.UTF-8"), ("LANG", "C")], true);
    }

    #[test]
    fn drawn_characters_have_ascii_substitutes() {
        let tree = "├─ a…\n│  é\n└─ █▁";
        let text: String = tree.chars().map(in_ascii).collect();
        assert_eq!(text, "+- a~\n|  é\n`- #.");
    }
}
