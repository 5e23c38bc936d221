//! Parses text of the debugged language and values that gdb prints: commas and characters outside quotes and brackets,
//! type prefixes, and parts that gdb could not read.

/// The characters outside of string and character literals, each with its byte position. The quotes themselves are
/// left out too.
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

/// Splits at commas outside of brackets and quotes. The parts are trimmed and may be empty.
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

/// gdb's printed value without its type prefix. For a reference the prefix is its type and its address, as in
/// `(Cell &) @0x7ffe: `; for a pointer or an object, its type, as in `(Cell *) `.
#[must_use]
pub fn bare(printed: &str) -> &str {
    behind_type(printed).map_or(printed, |(_, value)| value)
}

/// gdb's printed value without the type and the address of a reference: the address differs between tasks.
#[must_use]
pub fn referred(printed: &str) -> &str {
    let behind = behind_type(printed).filter(|(is_reference, _)| *is_reference);
    behind.map_or(printed, |(_, value)| value)
}

/// The text after the type prefix of a printed value; `None` without a prefix. The flag is true for the prefix of a
/// reference or an object, false for that of a pointer. In lists of variables gdb prints a reference's address without
/// its type.
fn behind_type(printed: &str) -> Option<(bool, &str)> {
    if let Some(address) = printed.strip_prefix("@0x") {
        return address.split_once(": ").map(|(_, value)| (true, value));
    }
    let mut depth = 0_u32;
    let close = outside_quotes(printed).find_map(|(at, c)| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        (depth == 0).then_some((at, c))
    });
    let (close, _) = close.filter(|(at, c)| *at > 0 && *c == ')')?;
    let (name, rest) = (&printed[1..close], printed[close + 1..].trim_start());
    if rest.starts_with("0x") {
        return Some((false, rest));
    }
    if rest.starts_with("@0x") {
        return behind_type(rest);
    }
    // An object in memory, with the type that it has.
    if rest.starts_with('{') {
        return Some((true, rest));
    }
    // The user has set `print address off`.
    let is_reference = name.ends_with('&') || name.contains("(&)") || name.contains("(&&)");
    is_reference.then_some((true, rest))
}

/// True if gdb has left out a part of the printed value.
#[must_use]
pub fn is_left_out(printed: &str) -> bool {
    let plain: String = outside_quotes(printed).map(|(_, c)| c).collect();
    plain.contains("...") || plain.contains("<unavailable>")
}

/// Texts that gdb prints in place of a value, or of a part of one, that it cannot read.
const UNREAD: [&str; 9] = [
    "<optimized out>",
    "<error: ",
    "<error reading variable",
    "<synthetic pointer>",
    "<unavailable>",
    "<invalid address>",
    "<not saved>",
    "<not followed>",
    "<incomplete type>",
];

/// The first part of a printed value that gdb could not read, as gdb prints it; `None` if it has read all.
#[must_use]
pub fn unread_part(printed: &str) -> Option<&str> {
    let mut starts = outside_quotes(printed).filter(|(_, c)| *c == '<');
    let (start, _) =
        starts.find(|(at, _)| UNREAD.iter().any(|it| printed[*at..].starts_with(it)))?;
    let end = printed[start..]
        .find('>')
        .map_or(printed.len(), |at| start + at + 1);
    Some(&printed[start..end])
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
    fn quoted_text_is_skipped() {
        let seen = |text| outside_quotes(text).map(|(_, c)| c).collect::<String>();
        assert_eq!(seen(r#"a"b'\"c"d'"'e"#), "ade");
        assert_eq!(seen(r"a\b"), r"a\b");
        assert_eq!(seen("a\"never closed"), "a");
    }

    #[test]
    fn type_and_address_prefixes_are_removed() {
        let check = |printed, expect| assert_eq!(bare(printed), expect, "{printed}");
        check("(Cell &) @0x7ffe: {id = 1}", "{id = 1}");
        check("(int (&)[3]) @0x7f5c: {1, 2, 3}", "{1, 2, 3}");
        check("(Cell *&) @0x7f68: 0x7f70", "0x7f70");
        check("(Cell *) 0x7f70", "0x7f70");
        check("(void (*)(int)) 0x1139 <f(int)>", "0x1139 <f(int)>");
        check("(PTR TO -> ( integer(kind=4) )) 0x90 <v>", "0x90 <v>");
        check("(const int &) 5", "5");
        check("@0x7ffe: \"a: b\"", "\"a: b\"");
        check("@0x7ffe", "@0x7ffe");
        check("(std::map<char, int> &&) @0x7ffe: 5", "5");
        let refer = |printed, expect| assert_eq!(referred(printed), expect, "{printed}");
        refer("(Cell &) @0x7ffe: {id = 1}", "{id = 1}");
        refer("(Cell *&) @0x7f68: 0x7f70", "0x7f70");
        refer("(Cell *) 0x7f70", "(Cell *) 0x7f70");
        refer("(1,-2)", "(1,-2)");
        for same in [
            "1",
            "{id = 1}",
            "(1,-2)",
            "(0.5, 1.5)",
            "((1, 2) (3, 4))",
            "(A | unknown: 0x8)",
            "( id = 3, w = (2.5) )",
            "0x55 \"(x) 0x1\"",
            "\"(Cell &) @0x7ffe: 1\"",
            "('a', 'b')",
            "(",
            ")",
            "() @0x7ffe",
            "",
        ] {
            check(same, same);
        }
    }

    #[test]
    fn gdb_markers_of_unreadable_values_are_recognized() {
        for (printed, part) in [
            ("<optimized out>", "<optimized out>"),
            ("<incomplete type>", "<incomplete type>"),
            (
                "0x10 <error: Cannot access memory at address 0x10>",
                "<error: Cannot access memory at address 0x10>",
            ),
            (
                "{a = \"<error: >\", b = <synthetic pointer>}",
                "<synthetic pointer>",
            ),
        ] {
            assert_eq!(unread_part(printed), Some(part));
        }
        for read in [
            "1",
            "0x1139 <error::handler(int)>",
            "\"<optimized out>\"",
            "<not associated>",
            "0 <repeats 12 times>",
        ] {
            assert_eq!(unread_part(read), None, "{read}");
        }
    }

    #[test]
    fn truncated_values_are_recognized() {
        for whole in ["1", "{1, 2}", "\"...\"", "'.'", "{a = \"x...\"}"] {
            assert!(!is_left_out(whole), "{whole}");
        }
        for cut in [
            "{1, 2...}",
            "\"abc\"...",
            "{a = {...}}",
            "{a = <unavailable>}",
        ] {
            assert!(is_left_out(cut), "{cut}");
        }
    }
}
