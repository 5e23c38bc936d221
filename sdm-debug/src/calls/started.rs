//! Calls around a waiting call in a source file: nonblocking collective operations with the same request, polling
//! functions, and the loop around a line.

use std::collections::BTreeSet;

use sdm_mpi::{WaitsFor, started_collective, waits_for};

use super::source::{arguments, without_comments};

/// The functions by which a source text starts a collective operation with this request: `MPI_Ibarrier`. Elements of an
/// array count as the same request. Fortran names match in any case.
#[must_use]
pub fn started_collectives(text: &str, request: &str) -> BTreeSet<String> {
    let wanted = variable(request);
    let text = without_comments(text);
    let lower = text.to_ascii_lowercase();
    let mut found = BTreeSet::new();
    for (start, _) in lower.match_indices("mpi_") {
        let rest = &text[start..];
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let before = lower[..start].strip_suffix('p').unwrap_or(&lower[..start]);
        let name = &rest[..rest.find(|c| !is_name(c)).unwrap_or(rest.len())];
        let is_call = !before.ends_with(is_name) && started_collective(name).is_some();
        let list = rest[name.len()..].trim_start().strip_prefix('(');
        let Some(these) = list.filter(|_| is_call).and_then(arguments) else {
            continue;
        };
        // In Fortran the error code follows the request.
        let last = these.iter().rev().take(2);
        if last.map(|one| variable(one)).any(|one| one == wanted) {
            found.insert(name.to_owned());
        }
    }
    found
}

/// The first function that a text calls to poll for a message or a request: `MPI_Test`. `None` if there is none.
/// Fortran names match in any case.
#[must_use]
pub fn polling_function(text: &str) -> Option<String> {
    let text = without_comments(text);
    let lower = text.to_ascii_lowercase();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut starts = lower.match_indices("mpi_").map(|(start, _)| start);
    starts.find_map(|start| {
        let rest = &text[start..];
        let before = lower[..start].strip_suffix('p').unwrap_or(&lower[..start]);
        let (name, after) = rest.split_at(rest.find(|c| !is_name(c))?);
        let is_call = !before.ends_with(is_name) && after.trim_start().starts_with('(');
        let polls = waits_for(name) == Some(WaitsFor::Poll);
        (is_call && polls).then(|| name.to_owned())
    })
}

/// The function that polls in the body of a C function that `part` calls: `MPI_Test`. `text` is the file with the body.
/// `None` if there is none.
#[must_use]
pub fn polling_function_of_callee(text: &str, part: &str) -> Option<String> {
    let (text, part) = (without_comments(text), without_comments(part));
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut calls = part.match_indices('(').map(|(at, _)| part[..at].trim_end());
    calls.find_map(|before| {
        let name = &before[before.trim_end_matches(is_name).len()..];
        let starts_name = |at: usize| !text[..at].ends_with(is_name);
        let found = text.match_indices(name).map(|(at, _)| at);
        let mut found = found.filter(|at| !name.is_empty() && starts_name(*at));
        let body = found.find_map(|at| {
            let list = text[at + name.len()..].trim_start().strip_prefix('(')?;
            let body = list[closing(list)? + 1..].trim_start().strip_prefix('{')?;
            Some(&body[..closing(body)?])
        });
        polling_function(body.filter(|_| !has_word(name, &["for", "if", "switch", "while"]))?)
    })
}

/// The place of the bracket that closes one before the text.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_i32;
    let mut brackets = text.char_indices().filter(|(_, c)| "(){}".contains(*c));
    let end = brackets.find(|(_, c)| {
        depth += if "({".contains(*c) { 1 } else { -1 };
        depth < 0
    });
    end.map(|(at, _)| at)
}

/// The first and the last line, counted from 0, of the innermost loop of C around the line `at`. `None` if there is no
/// loop, or if `lines` do not contain the whole loop.
#[must_use]
pub fn loop_of_c(lines: &[String], at: usize) -> Option<(usize, usize)> {
    // The open blocks: the line of a loop's head, or none for other blocks.
    let mut blocks: Vec<Option<usize>> = Vec::new();
    let (mut head, mut parentheses) = (None, 0_i32);
    for (number, line) in lines.iter().enumerate() {
        let line = without_comments(line);
        if has_word(&line, &["for", "while", "do"]) {
            head = Some(number);
        }
        for c in line.chars() {
            let ended = match c {
                '(' | ')' => {
                    parentheses += if c == '(' { 1 } else { -1 };
                    None
                }
                '{' => {
                    blocks.push(head.take());
                    None
                }
                '}' => blocks.pop().flatten(),
                // A loop of one statement.
                ';' if parentheses <= 0 => head.take(),
                _ => None,
            };
            let around = ended.map(|from| (from, number));
            if let Some(found) = around.filter(|(from, to)| (*from..=*to).contains(&at)) {
                return Some(found);
            }
        }
    }
    None
}

/// As [`loop_of_c`], for a loop of Fortran.
#[must_use]
pub fn loop_of_fortran(lines: &[String], at: usize) -> Option<(usize, usize)> {
    let mut loops: Vec<usize> = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let line = line.trim_start().to_ascii_lowercase();
        if line.starts_with("enddo") || line.starts_with("end do") {
            let ended = loops.pop().map(|from| (from, number));
            if ended.is_some_and(|(from, to)| (from..=to).contains(&at)) {
                return ended;
            }
        } else if line.split([' ', ':']).any(|word| word.trim_end() == "do") {
            loops.push(number);
        }
    }
    None
}

fn has_word(line: &str, wanted: &[&str]) -> bool {
    let mut words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.any(|word| wanted.contains(&word))
}

/// The name of the variable in a request's expression, in lower case: `all` for `&all[2]`, `all + 2` and `ALL(2)`.
fn variable(expression: &str) -> String {
    let value = expression.rsplit('=').next().unwrap_or(expression);
    let value = value.trim_start_matches(['&', '(', ' ']);
    let end = value.find(['[', '(', '+', ')']).unwrap_or(value.len());
    value[..end].trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_text_names_collectives_that_started_a_request() {
        let check = |text: &str, request: &str, expect: &str| {
            let found: Vec<String> = started_collectives(text, request).into_iter().collect();
            assert_eq!(found.join(" "), expect, "{request} in {text}");
        };
        let c = "MPI_Init(&c, &v);\n// MPI_Ibcast(b, 1, t, 0, comm, &q);\nif (me) MPI_Ibarrier(comm, &q);\n\
                 PMPI_Iallreduce(a, b, 1, t,\n  op, comm, &all[2]); MPI_Isend(b, 1, t, 0, 1, comm, &q);\n\
                 my_MPI_Ibcast(b, &q); MPI_Wait(&q, &s); MPI_Gather_init(a, 1, t, b, 1, t, 0, comm, i, &p.r);";
        check(c, "&q", "MPI_Ibarrier");
        check(c, "q", "MPI_Ibarrier");
        check(c, "all", "MPI_Iallreduce");
        check(c, "&all[i + 1]", "MPI_Iallreduce");
        check(c, "&other", "");
        check(c, "&r", "");
        check(
            "MPI_Ibcast(b, 1, t, 0, comm, q); MPI_Ireduce(b, c, 1, t, op, 0, comm, q);",
            "q",
            "MPI_Ibcast MPI_Ireduce",
        );
        let fortran = "call MPI_IBARRIER(MPI_COMM_WORLD, &\n   REQ(1), ierr)\ncall mpi_ibcast(b, 1, t, 0, comm, request=two)";
        check(fortran, "req", "MPI_IBARRIER");
        check(fortran, "two", "mpi_ibcast");
        check("MPI_Ibarrier(comm, &q", "&q", "");
    }

    #[test]
    fn innermost_loop_around_a_line_is_found() {
        let check = |text: &str, expect: Option<(usize, usize)>| {
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            let at = lines.iter().position(|line| line.contains("nap(")).unwrap();
            let found = match text.contains("end do") {
                true => loop_of_fortran(&lines, at),
                false => loop_of_c(&lines, at),
            };
            assert_eq!(found, expect, "{text}");
        };
        check("while (!done) {\n  test();\n  nap(1);\n}", Some((0, 3)));
        check(
            "do\n{\n  test();\n  if (x) {\n    nap(1);\n  }\n} while (!done);",
            Some((0, 6)),
        );
        // The polling loop before it, in another function, is not around it.
        check(
            "  for (;;) {\n    test();\n  }\n}\n\nvoid f(void)\n{\n  while (is_there())\n    nap(1);\n  g();\n}",
            Some((7, 8)),
        );
        check("  test();\n  }\n}\nvoid f(void)\n{\n  nap(1);\n}", None);
        check(
            "for (i = 0; i < n; i++) a[i] = 0;\nif (x) {\n  nap(1);\n}",
            None,
        );
        check(
            "for (;;) {\n  test();\n  for (k = 0; k < 3; k++)\n    nap(1);\n}",
            Some((2, 3)),
        );
        check("while (a) {\n  nap(1);\n  test();", None);
        check(
            "do while (.not. done)\n  call test()\n  call nap(1)\nend do",
            Some((0, 3)),
        );
        check("do i = 1, 3\n x = 1\nend do\ncall nap(1)\nend", None);
    }

    #[test]
    fn polling_call_is_found_in_a_line() {
        let check = |text: &str, expect: Option<&str>| {
            assert_eq!(polling_function(text).as_deref(), expect, "{text}");
        };
        check("while (MPI_Test(&r, &done, &s), !done)", Some("MPI_Test"));
        check("  PMPI_Iprobe (0, 1, comm, &flag, &s);", Some("MPI_Iprobe"));
        check("call mpi_testall(2, r, done, s, ierr)", Some("mpi_testall"));
        check("MPI_Wait(&r, &s); // MPI_Test(&r)", None);
        check("my_MPI_Test(&r); MPI_Test", None);
    }

    #[test]
    fn polling_call_is_found_in_a_called_function() {
        let text = "static int is_there(struct reply *a)\n{\n  int flag;\n  if (a) { f(); }\n  MPI_Test(&a->r, &flag, s);\n\
                    return flag;\n}\nint nap(int n) { return n; }\nvoid g(void) { while (is_there(&a)) { MPI_Iprobe(0); } }";
        let check = |part: &str, expect: Option<&str>| {
            let found = polling_function_of_callee(text, part);
            assert_eq!(found.as_deref(), expect, "{part}");
        };
        check("while (!is_there(&a)) nap(1);", Some("MPI_Test"));
        check("while (nap(1)) { nap (is_there (&b)); }", Some("MPI_Test"));
        check("while (nap(1)) there(2); // is_there(&a)", None);
        check("while (!(a)) { }", None);
    }
}
