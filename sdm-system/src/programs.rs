//! The project's own programs, and the only way to start others.
//!
//! Helpers are found in those directories of `PATH` to which only root or this user can write, and find their own
//! helpers there: see [`crate::files::search_path`].

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use sdm_text::{printable_name, shell_word};

use crate::files;
use crate::search_path::{passed_over, search_in};
use crate::sys::hand_on_sigpipe;

/// Name of the directory in which cargo puts test programs. The tested programs are in its parent.
const OF_TESTS: &str = "deps";
/// Path of the shell for scripts.
const SHELL: &str = "/bin/sh";

/// Finds the program `name` of this project: in the directory `first`, beside the running program (for a test in the
/// directory above), or on `PATH`. `None` if it is in none of them.
#[must_use]
pub fn own_program(name: &str, first: Option<&Path>) -> Option<PathBuf> {
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent);
    // Only the folder of test programs is trusted with its parent. Other users may be able to write above a folder of
    // this user.
    let of_tests = beside.filter(|folder| folder.ends_with(OF_TESTS));
    let above = of_tests.and_then(Path::parent);
    let folders = [first, beside, above].into_iter().flatten();
    folders
        .map(Path::to_owned)
        .chain(std::env::split_paths(&files::search_path()))
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}

/// A command for the program at a path. A name without a directory means a file in the working directory, and is not
/// searched on `PATH`.
#[must_use]
pub fn at(path: impl AsRef<Path>) -> Command {
    let path = path.as_ref();
    let mut command = match path.components().count() {
        1 => Command::new(Path::new(".").join(path)),
        _ => Command::new(path),
    };
    hand_on_sigpipe(&mut command);
    command
}

/// Finds the program that a word names. A path is taken as it is; a name is searched in the trusted directories among
/// `folders`.
///
/// # Errors
/// The program is in none of these directories. If it is in an untrusted one, the error says so.
pub fn find(word: &OsStr, folders: &OsStr) -> io::Result<PathBuf> {
    if word.as_bytes().contains(&b'/') {
        return Ok(word.into());
    }
    search_in(word, folders).ok_or_else(|| {
        let why = passed_over(word, folders).map_or_else(String::new, |why| format!(" ({why})"));
        let program = printable_name(word);
        let text = format!("no {program} on PATH{why}");
        io::Error::new(io::ErrorKind::NotFound, text)
    })
}

/// A command for the program that a word names: a path, or a name that is searched in the trusted directories of
/// `PATH`.
///
/// # Errors
/// As [`find`].
pub fn named(word: impl AsRef<OsStr>) -> io::Result<Command> {
    find(word.as_ref(), &files::given_path()).map(at)
}

/// A command for the helper program with this name, which gets a `PATH` of trusted directories.
///
/// # Errors
/// As [`find`].
pub fn helper(name: impl AsRef<OsStr>) -> io::Result<Command> {
    find(name.as_ref(), &files::given_path()).map(helper_at)
}

/// A command for the helper program at a path, as by [`at`], which gets a `PATH` of trusted directories. Such a program
/// starts others by name: gdb starts `iconv`, and `mpicc` a compiler.
#[must_use]
pub fn helper_at(path: impl AsRef<Path>) -> Command {
    let mut command = at(path);
    command.env("PATH", files::search_path());
    command
}

/// A shell that runs a script of this project, with a `PATH` of trusted directories.
#[must_use]
pub fn shell(script: &str) -> Command {
    let mut command = user_shell(script);
    command.env("PATH", files::search_path());
    command
}

/// A shell for a line that the user has written. It has the user's own `PATH`.
#[must_use]
pub fn user_shell(line: &str) -> Command {
    let mut command = at(SHELL);
    command.args(["-c", line]);
    command
}

/// A command line for the login shell of another host, whatever shell that is. It executes `/bin/sh` with a script of
/// this project, and with that host's system tools.
#[must_use]
pub fn remote_line(script: &str, arguments: &[&str]) -> String {
    let script = format!("PATH={}; {script}", files::USUAL_PATH);
    let words = [SHELL, "-c", &script, "sh"];
    let words = words.iter().chain(arguments).map(|word| shell_word(word));
    format!("exec {}", words.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_program_name_is_not_searched_for() {
        assert_eq!(at("cat").get_program(), "./cat");
        assert_eq!(at("/bin/cat").get_program(), "/bin/cat");
        assert_eq!(at("bin/cat").get_program(), "bin/cat");
        let error = helper("no-such-helper").unwrap_err();
        assert_eq!(error.to_string(), "no no-such-helper on PATH");
    }

    #[test]
    fn remote_command_uses_system_tools() {
        let line = remote_line("printf '%s\\n' \"$PATH\" \"$1\"", &["a b"]);
        let said = user_shell(&line).env("PATH", "/nowhere").output().unwrap();
        let expect = "/usr/local/bin:/usr/bin:/bin\na b\n";
        assert_eq!(String::from_utf8_lossy(&said.stdout), expect);
    }
}
