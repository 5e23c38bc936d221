//! Extraction of a call's arguments from source lines, and detection of expressions without side effects.

use sdm_mpi::{PROFILING_PREFIXES, without_binding};

use crate::quotes::outside_quotes;

/// Maximum length of an expression that is evaluated, in bytes.
const EXPRESSION_BYTES_MAX: usize = 512;
/// Maximum length of the source text that is read, in bytes.
const TEXT_BYTES_MAX: usize = 8 << 10;

/// The arguments of the first call of `function` in the statements that begin on the first line of `text`. Calls in
/// later statements are ignored: the first line may contain the call in a macro. `None` if no complete call is found.
/// Also `None` if another call with different arguments begins on the same line, since the right one is then unknown.
/// Fortran names match in any case.
#[must_use]
pub fn call_arguments(text: &str, function: &str) -> Option<Vec<String>> {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let plain = without_comments(&text[..end]);
    in_plain(begun_on_first_line(&plain), function)
}

/// The text up to the end of the last statement that begins on its first line.
fn begun_on_first_line(text: &str) -> &str {
    let (mut depth, mut last) = (0_i32, ' ');
    for (at, c) in outside_quotes(text) {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '\n' if depth <= 0 && matches!(last, ';' | '{' | '}') => return &text[..at],
            _ => {}
        }
        if !c.is_whitespace() {
            last = c;
        }
    }
    text
}

/// Like `call_arguments`, for text without comments.
pub(super) fn in_plain(text: &str, function: &str) -> Option<Vec<String>> {
    let lower = text.to_ascii_lowercase();
    let name = function.to_ascii_lowercase();
    let [.., profiling] = PROFILING_PREFIXES;
    let name = without_binding(name.trim_start_matches(profiling));
    let mut from = 0;
    let mut first: Option<(usize, Vec<String>)> = None;
    while let Some(found) = lower[from..].find(name) {
        let start = from + found;
        if let Some((first, _)) = &first
            && text[*first..start].contains('\n')
        {
            break;
        }
        let after = start + name.len();
        let rest = text[after..].trim_start();
        let whole_word = !text[..start].ends_with(|c: char| c.is_alphanumeric() || c == '_')
            || lower[..start].ends_with(profiling);
        if whole_word && rest.starts_with('(') {
            let these = arguments(&rest[1..])?;
            match &first {
                Some((_, known)) if *known != these => return None,
                Some(_) => {}
                None => first = Some((start, these)),
            }
        }
        from = after;
    }
    first.map(|(_, arguments)| arguments)
}

/// True for an expression whose evaluation changes nothing in the program and runs none of it: no call, no assignment,
/// no `++` or `--`. An element of a Fortran array looks like a call and counts as one. False also for an expression
/// longer than 512 bytes.
#[must_use]
pub fn is_harmless(expression: &str) -> bool {
    let plain: String = outside_quotes(expression).map(|(_, c)| c).collect();
    let mut before = ' ';
    for (at, c) in plain.char_indices() {
        let next = plain[at + c.len_utf8()..].chars().next();
        let harmful = match c {
            '(' => before.is_alphanumeric() || matches!(before, '_' | ')' | ']' | '$' | '>'),
            '+' | '-' => next == Some(c),
            '=' => next != Some('=') && !matches!(before, '=' | '!' | '<' | '>'),
            _ => false,
        };
        // `<<=` and `>>=` assign; `<=` and `>=` compare.
        let shifts = c == '=' && (plain[..at].ends_with("<<") || plain[..at].ends_with(">>"));
        if harmful || shifts || plain.len() > EXPRESSION_BYTES_MAX {
            return false;
        }
        if !c.is_whitespace() {
            before = c;
        }
    }
    true
}

pub(super) fn arguments(text: &str) -> Option<Vec<String>> {
    let (mut depth, mut from) = (0_i32, 0);
    let mut found = Vec::new();
    for (at, c) in outside_quotes(text) {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' if depth == 0 => {
                found.push(tidy(&text[from..at]));
                return Some(found);
            }
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(tidy(&text[from..at]));
                from = at + 1;
            }
            _ => {}
        }
    }
    None
}

/// The text as one line, without continuation marks.
pub(super) fn tidy(text: &str) -> String {
    let lines = text.lines();
    let lines = lines.map(|line| line.trim().trim_end_matches(['&', '\\']));
    let words = lines.flat_map(str::split_whitespace);
    words.collect::<Vec<_>>().join(" ")
}

pub(super) fn without_comments(text: &str) -> String {
    let mut plain = text.to_owned();
    while let Some(start) = plain.find("/*") {
        let end = plain[start..].find("*/");
        let end = end.map_or(plain.len(), |at| start + at + 2);
        plain.replace_range(start..end, " ");
    }
    let lines = plain.lines();
    let lines = lines.map(|line| line.split("//").next().unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_arguments_are_parsed_over_lines_and_comments() {
        let text = "    rc = MPI_Recv(&cells[f(1, 2)], 1, MPI_DOUBLE, left, /* not, this */\n\
                    \t\ttag + 1, // nor, this\n\t\tcomm, &status);\n";
        let expect = [
            "&cells[f(1, 2)]",
            "1",
            "MPI_DOUBLE",
            "left",
            "tag + 1",
            "comm",
            "&status",
        ];
        assert_eq!(call_arguments(text, "MPI_Recv").unwrap(), expect);
        let text = "      call mpi_recv(buf, n, MPI_REAL, src, &\n     tag, comm, st, ierr)";
        assert_eq!(
            call_arguments(text, "mpi_recv_").unwrap()[3..5],
            ["src", "tag"]
        );
        assert_eq!(
            call_arguments("flock(fd, LOCK_EX)", "flock").unwrap()[0],
            "fd"
        );
    }

    #[test]
    fn expression_with_side_effects_is_recognized() {
        for harmless in [
            "left",
            "(rank + 1) % size",
            "&cells[3 * (row + 1)]",
            "a == b",
            "a <= b",
            "-1",
            "p->tag",
            "*(int *) p",
            "\"f(x)\"",
        ] {
            assert!(is_harmless(harmless), "{harmless}");
        }
        for harmful in [
            "next()",
            "f (x)",
            "tag++",
            "--n",
            "n = 3",
            "n += 1",
            "n <<= 1",
            "ops[i](x)",
            "(*f)(x)",
        ] {
            assert!(!is_harmless(harmful), "{harmful}");
        }
        assert!(!is_harmless(&"a+".repeat(EXPRESSION_BYTES_MAX)));
    }

    #[test]
    fn two_different_calls_on_one_line_yield_no_arguments() {
        let two = "if (rank % 2) MPI_Recv(a, 1, t, left, 1, c, s); else MPI_Recv(a, 1, t, right, 1, c, s);";
        assert_eq!(call_arguments(two, "MPI_Recv"), None);
        let alike = two.replace("right", "left");
        let found = call_arguments(&alike, "MPI_Recv").unwrap();
        assert_eq!(found[3], "left");
        let below = two.replace("else", "else\n");
        assert_eq!(call_arguments(&below, "MPI_Recv").unwrap()[3], "left");
        let other = two.replace("else MPI_Recv", "else MPI_Send");
        assert_eq!(call_arguments(&other, "MPI_Recv").unwrap()[3], "left");
    }

    #[test]
    fn call_arguments_are_not_taken_from_the_next_statement() {
        let below = "\n    MPI_Recv(a, 1, t, 3, 1, c, s);\n";
        for first in [
            "GET(0, 7);",
            "    if (x) { GET(0, 7); }",
            "turn(\";\"); // MPI_Recv(a, b)",
        ] {
            let text = format!("{first}{below}");
            assert_eq!(call_arguments(&text, "MPI_Recv"), None, "{first}");
        }
        // Statements that end on lines below.
        for first in ["", "while (x)", "rc =", "rc = check(__LINE__,"] {
            let text = format!("{first}{below}");
            let found = call_arguments(&text, "MPI_Recv").unwrap();
            assert_eq!(found[3], "3", "{first}");
        }
    }

    #[test]
    fn incomplete_call_is_not_parsed() {
        for text in [
            "",
            "MPI_Recv",
            "MPI_Recv(a, b",
            "xMPI_Recv(a)",
            "MPI_Recvx(a)",
        ] {
            assert_eq!(call_arguments(text, "MPI_Recv"), None, "{text}");
        }
    }
}
