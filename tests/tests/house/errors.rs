//! Errors have types of their own: a caller cannot decide by a text.

use crate::sources;

/// End of a `Result` type whose error is a text.
const TEXT: &str = ", String>";

#[test]
fn no_error_type_is_a_string() {
    let mut found = Vec::new();
    let all = sources::all();
    // The shared code of tests may report errors as text.
    let shipped = all.iter().filter(|it| !it.is_test && it.member != "tests");
    for source in shipped {
        for (index, line) in source.shipped().lines().enumerate() {
            let mut parts = line.split("Result<").skip(1);
            if parts.any(|part| ends_so(part, TEXT)) || line.contains("type Err = String") {
                found.push(format!("{}:{}: {}", source.path, index + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "give them a type:\n{}", found.join("\n"));
}

/// True if the arguments of a `Result`, up to the bracket that ends them, end with this text.
fn ends_so(arguments: &str, text: &str) -> bool {
    let mut depth = 0;
    let end = arguments.find(|it| {
        depth += i32::from(it == '<') - i32::from(it == '>');
        depth < 0
    });
    end.is_some_and(|end| arguments[..=end].ends_with(text))
}

#[test]
fn string_as_error_is_distinguished_from_string_in_a_type() {
    for (line, expect) in [
        ("Vec<u8>, String> {", true),
        ("(A, B), String>", true),
        ("BTreeMap<u8, String>, E>", false),
        ("Map<u8, String>>", false),
        ("String>", false),
    ] {
        assert_eq!(ends_so(line, TEXT), expect, "{line}");
    }
}
