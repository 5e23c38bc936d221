//! Indices in Rust expressions. gdb counts from a reference to a container as from a pointer, and reads other memory:
//! `row[1]` of a `row: &mut Vec<f64>` is what lies behind the vector. A function in gdb's Python finds the element.

use sdm_debug::quotes::outside_quotes;

/// The function with a value, an index, and the number of elements if it is not 1.
const INDEX: &str = "$_sdm_index(";

/// An open bracket, and the place of the operand before it in the rewritten text.
struct Open {
    operand: Option<usize>,
    is_index: bool,
}

/// The expression with a function in place of each index; `None` without an index.
pub(super) fn indexed(expression: &str) -> Option<String> {
    let (mut text, mut last, mut found) = (String::new(), 0, false);
    let mut open: Vec<Open> = Vec::new();
    // The beginning of the operand that ends here.
    let mut operand: Option<usize> = None;
    for (at, c) in outside_quotes(expression) {
        text.push_str(&expression[last..at]);
        last = at + c.len_utf8();
        match c {
            '[' | '(' => {
                let is_index = c == '[' && operand.is_some();
                if let Some(from) = operand.filter(|_| is_index) {
                    text.insert_str(from, INDEX);
                }
                let begin = operand.or((c == '(').then_some(text.len()));
                open.push(Open {
                    operand: begin,
                    is_index,
                });
                text.push_str(if is_index {
                    ", "
                } else {
                    &expression[at..last]
                });
                operand = None;
                found |= is_index;
            }
            ']' | ')' => {
                let before = open.pop()?;
                if before.is_index
                    && let Some(count) = run(&expression[last..])
                {
                    text.push_str(", ");
                    text.push_str(count);
                }
                text.push(if before.is_index { ')' } else { c });
                operand = before.operand;
            }
            c => {
                let is_name = c.is_alphanumeric() || matches!(c, '_' | '$' | '.' | ':');
                operand = is_name.then(|| operand.unwrap_or(text.len()));
                text.push(c);
            }
        }
    }
    text.push_str(&expression[last..]);
    (found && open.is_empty()).then_some(text)
}

/// The number of elements in `@3` behind an index.
fn run(behind: &str) -> Option<&str> {
    let count = behind.trim_start().strip_prefix('@')?.trim_start();
    let end = count.find(|c: char| !c.is_ascii_digit());
    Some(&count[..end.unwrap_or(count.len())]).filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_index_becomes_a_call_of_a_convenience_function() {
        for (expression, expect) in [
            ("row[1]", Some("$_sdm_index(row, 1)")),
            ("p.tags[i + 1].len", Some("$_sdm_index(p.tags, i + 1).len")),
            ("grid[2][j]", Some("$_sdm_index($_sdm_index(grid, 2), j)")),
            (
                "a[b[0]] + c[1]",
                Some("$_sdm_index(a, $_sdm_index(b, 0)) + $_sdm_index(c, 1)"),
            ),
            ("(*p)[1]", Some("$_sdm_index((*p), 1)")),
            ("&row[1]", Some("&$_sdm_index(row, 1)")),
            ("row[0]@3", Some("$_sdm_index(row, 0, 3)@3")),
            ("map[\"a[1]\"]", Some("$_sdm_index(map, \"a[1]\")")),
            ("[1, 2]", None),
            ("x as [i32; 2]", None),
            ("row", None),
            ("row[1", None),
        ] {
            assert_eq!(indexed(expression).as_deref(), expect, "{expression}");
        }
    }
}
