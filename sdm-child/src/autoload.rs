//! Decides which scripts of programs and libraries gdb executes (auto-load).

use std::sync::LazyLock;

/// The loader's code for gdb's Python.
const LOADER: &str = include_str!("autoload.py");

/// Prefix of its messages about a script.
pub const MARK: &str = "sdm: ";

static COMMAND: LazyLock<String> = LazyLock::new(|| command_of(LOADER));

/// The command that makes gdb load scripts by these rules. A gdb without Python prints an error, and loads none.
pub(super) fn command() -> &'static str {
    &COMMAND
}

/// Python code as one gdb command line, in a namespace of its own.
fn command_of(code: &str) -> String {
    let mut line = String::from("python exec(\"");
    for code in code.lines() {
        let text = code.trim_start_matches(' ');
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        // One blank per level of indentation is sufficient.
        line.push_str(&" ".repeat((code.len() - text.len()) / 4));
        for character in text.chars() {
            if matches!(character, '\\' | '"') {
                line.push('\\');
            }
            line.push(character);
        }
        line.push_str("\\n");
    }
    line.push_str("\", {\"__name__\": \"sdm\"})");
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_code_becomes_one_gdb_command() {
        let code = "# why\nif a:\n    b = \"\\n\"\n\n    # too\n    c\n";
        let expect = r#"python exec("if a:\n b = \"\\n\"\n c\n", {"__name__": "sdm"})"#;
        assert_eq!(command_of(code), expect);
        assert!(!command().contains('\n') && command().is_ascii());
    }
}
