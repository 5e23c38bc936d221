//! SDM's code for gdb's Python. It loads the scripts of programs and libraries that other users cannot change
//! (auto-load). It also has printers and functions for values of C++, Fortran and Rust.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::LazyLock;

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::sys::out_of_the_way;

/// The code for gdb's Python: the loader, the printers of values that gdb shows as addresses, and the functions for
/// expressions in Fortran and Rust.
const LOADER: &str = concat!(
    include_str!("autoload.py"),
    "\n",
    include_str!("printers.py"),
    "\n",
    include_str!("expressions.py"),
    "\n",
    include_str!("returned.py")
);

/// Prefix of the loader's messages about a script.
pub const MARK: &str = "sdm: ";

static COMMAND: LazyLock<String> = LazyLock::new(|| command_of(LOADER));

/// Name of the memory file with the loader's code, as `/proc` shows it.
const NAME: &str = "sdm-scripts";

/// The command that makes gdb load scripts by these rules. A gdb without Python prints an error, and loads none.
pub(super) fn command() -> &'static str {
    &COMMAND
}

/// The loader's code in a file that a gdb inherits, so that gdb's command line is short.
pub(super) struct Handed {
    pub(super) file: OwnedFd,
    /// The gdb command that executes the file's code and closes the file, so that no program that gdb starts inherits
    /// it.
    pub(super) command: String,
}

/// The loader's code in a file that gdbs inherit; `None` if the file could not be made.
pub(super) fn handed() -> Option<&'static Handed> {
    static HANDED: LazyLock<Option<Handed>> = LazyLock::new(|| {
        hand_over()
            .inspect_err(|error| {
                tracing::warn!("cannot create the file for gdb's scripts: {error}")
            })
            .ok()
    });
    HANDED.as_ref()
}

fn hand_over() -> io::Result<Handed> {
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let mut file = File::from(memfd_create(NAME, flags)?);
    file.write_all(LOADER.as_bytes())?;
    fcntl(&file, FcntlArg::F_ADD_SEALS(SealFlag::all()))?;
    let file = out_of_the_way(file.into());
    let fd = file.as_raw_fd();
    // Opened anew: several gdbs that inherit one file share the place in it.
    let command = format!(
        "python import os; f = open(\"/dev/fd/{fd}\"); os.close({fd}); t = f.read(); f.close(); exec(t, {{\"__name__\": \"sdm\"}}); del f, t, os"
    );
    Ok(Handed { file, command })
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
    /// The parts are one Python program: a second function with the same name would replace the first, in the loader
    /// too.
    #[test]
    fn each_python_name_is_defined_once() {
        let mut names = std::collections::BTreeSet::new();
        for line in LOADER.lines() {
            let function = line.strip_prefix("def ").or(line.strip_prefix("class "));
            let name = match function {
                Some(rest) => rest.split(['(', ':']).next(),
                None => line.split_once(" = ").map(|(name, _)| name),
            };
            let Some(name) = name.filter(|name| !name.contains([' ', '.', '#'])) else {
                continue;
            };
            assert!(names.insert(name), "{name} is defined twice");
        }
        assert!(
            names.contains("CALLER") && names.contains("flaw"),
            "{names:?}"
        );
    }
}
