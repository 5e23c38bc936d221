//! Text of the debugged language and of gdb's values: what stands outside of quotes and brackets.

/// The characters outside of string and character literals, each with its place; the quotes
/// themselves are left out too.
pub fn outside_quotes(text: &str) -> impl Iterator<Item = (usize, char)> {
    let (mut quote, mut escaped) = (None, false);
    text.char_indices().filter(move |(_, c)| {
        if escaped {
            escaped = false;
            return false;
        }
        match (*c, quote) {
            ('\\', Some(_)) => escaped = true,
            (c, Some(open)) if c == open => quote = None,
            (_, Some(_)) => {}
            (c @ ('"' | '\''), None) => quote = Some(c),
            _ => return true,
        }
        false
    })
}

/// Splits at commas outside of brackets and quotes; the parts are trimmed and may be empty.
pub fn split_at_commas(text: &str) -> Vec<&str> {
    let (mut depth, mut from) = (0_i32, 0);
    let mut parts = Vec::new();
    for (at, c) in outside_quotes(text) {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[from..].trim());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_in_brackets_and_quotes_do_not_split() {
        let text = r#"a[1, 2], "x,\",y" , ',', f(b, {c, d}),"#;
        let expect = ["a[1, 2]", r#""x,\",y""#, "','", "f(b, {c, d})", ""];
        assert_eq!(split_at_commas(text), expect);
        assert_eq!(split_at_commas(""), [""]);
    }

    #[test]
    fn quotes_hide_what_is_in_them() {
        let seen = |text| outside_quotes(text).map(|(_, c)| c).collect::<String>();
        assert_eq!(seen(r#"a"b'\"c"d'"'e"#), "ade");
        assert_eq!(seen(r"a\b"), r"a\b");
        assert_eq!(seen("a\"never closed"), "a");
    }
}
