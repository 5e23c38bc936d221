//! The arguments of a call, read from its line of source.

use crate::quoted::outside_quotes;

/// The longest text that is read, in bytes.
const TEXT_BYTES_MAX: usize = 8 << 10;

/// The arguments of the first call of `function` in some lines of source; absent where there is
/// no whole call. Fortran's names are found in any case.
#[must_use]
pub fn call_arguments(text: &str, function: &str) -> Option<Vec<String>> {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = without_comments(&text[..end]);
    let lower = text.to_ascii_lowercase();
    let name = function.to_ascii_lowercase();
    let name = name.trim_start_matches("pmpi_").trim_end_matches('_');
    let name = name.trim_end_matches("_f08");
    let mut from = 0;
    while let Some(found) = lower[from..].find(name) {
        let start = from + found;
        let after = start + name.len();
        let rest = text[after..].trim_start();
        let whole_word = !text[..start].ends_with(|c: char| c.is_alphanumeric() || c == '_')
            || lower[..start].ends_with("pmpi_");
        if whole_word && rest.starts_with('(') {
            return arguments(&rest[1..]);
        }
        from = after;
    }
    None
}

fn arguments(text: &str) -> Option<Vec<String>> {
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

/// One line, without continuation marks.
fn tidy(text: &str) -> String {
    let lines = text.lines();
    let lines = lines.map(|line| line.trim().trim_end_matches(['&', '\\']));
    let words = lines.flat_map(str::split_whitespace);
    words.collect::<Vec<_>>().join(" ")
}

fn without_comments(text: &str) -> String {
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
    fn arguments_are_read_over_lines_and_comments() {
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
    fn what_is_no_whole_call_is_none() {
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
