//! Finds programs, and explains why one cannot be run.

use std::ffi::OsStr;
use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sdm_debug::{Failure, FailureCode};
use sdm_system::files;
use sdm_system::search_path::{passed_over, search_in};
use sdm_text::{printable, printable_name};

/// The absolute path of an executable program; `directory` is its working directory.
///
/// # Errors
/// There is no such program, or it cannot be executed.
pub fn find_program(
    name: &[u8],
    directory: &Path,
    search_path: Option<&OsStr>,
    takes_scripts: bool,
) -> Result<PathBuf, Failure> {
    if name.is_empty() {
        return Err(no_program("expected a program"));
    }
    let shown = printable(name);
    let path = if name.contains(&b'/') {
        directory.join(OsStr::from_bytes(name))
    } else {
        let (name, folders) = (OsStr::from_bytes(name), search_path.unwrap_or_default());
        search_in(name, folders).ok_or_else(|| {
            let failure = not_found(format!("{shown}: not found on PATH"));
            let here = in_directory(name, directory);
            failure.with_hint(
                here.or_else(|| passed_over(name, folders))
                    .unwrap_or_default(),
            )
        })?
    };
    check_program(&path, &shown, takes_scripts)?;
    Ok(path)
}

/// A hint for a program that is in its working directory, which is not searched; `None` for other programs.
fn in_directory(name: &OsStr, directory: &Path) -> Option<String> {
    let shown = printable(name.as_bytes());
    let is_there = files::is_program(&directory.join(name));
    is_there.then(|| format!("to run the program in this folder, write ./{shown}"))
}

/// The absolute path of a gdb, from its path or its name on `PATH`; without a name, of `gdb` on `PATH`.
pub(crate) fn find_gdb(name: Option<&[u8]>) -> Result<PathBuf, Failure> {
    let name = OsStr::from_bytes(name.unwrap_or(b"gdb"));
    let shown = printable_name(name);
    let found = if name.as_bytes().contains(&b'/') {
        std::path::absolute(name)
            .ok()
            .filter(|path| is_executable(path))
    } else {
        // A file with this name in the working directory is not meant.
        files::search(name)
    };
    found.ok_or_else(|| {
        let mut text = format!("{shown}: no such gdb on this host");
        if let Some(why) = files::passed_over(name) {
            text = format!("{text} ({why})");
        }
        Failure::new(FailureCode::NoGdb, text).with_hint(
            "install gdb, or select one with --gdb; `sdm doctor` lists the installed ones (gdb)",
        )
    })
}

/// The absolute working directory of a program; without `directory` that of this process.
pub fn find_directory(directory: Option<&[u8]>) -> Result<PathBuf, Failure> {
    let current = std::env::current_dir().map_err(|error| {
        no_program(format!(
            "cannot determine the working directory of sdm-server: {error}"
        ))
    })?;
    let Some(directory) = directory else {
        return Ok(current);
    };
    let shown = printable(directory);
    let path = current.join(OsStr::from_bytes(directory));
    match fs::metadata(&path) {
        Ok(found) if found.is_dir() => Ok(path),
        Ok(_) => Err(no_program(format!("directory {shown}: not a directory"))),
        Err(error) => Err(no_program(format!("directory {shown}: {}", plain(&error)))),
    }
}

fn not_found(text: String) -> Failure {
    Failure::new(FailureCode::NotFound, text)
}

pub(crate) fn no_program(text: impl Into<String>) -> Failure {
    Failure::new(FailureCode::NoProgram, text)
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

fn check_program(path: &Path, shown: &str, takes_scripts: bool) -> Result<(), Failure> {
    let found = fs::metadata(path).map_err(|error| {
        let text = format!("{shown}: {}", plain(&error));
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => not_found(text),
            _ => no_program(text),
        }
    })?;
    if found.is_dir() {
        return Err(no_program(format!("{shown}: is a directory")));
    }
    files::check_plain(&found).map_err(|error| no_program(format!("{shown}: {error}")))?;
    if !is_executable(path) {
        return Err(no_program(format!("{shown}: not executable"))
            .with_hint("if this file is a program, run chmod +x on it"));
    }
    let mut head = [0; 128];
    // A program can be executable and not readable. gdb reports that.
    let read = files::open(path)
        .and_then(|mut file| file.read(&mut head))
        .unwrap_or(0);
    let head = &head[..read];
    if let Some(line) = head.strip_prefix(b"#!") {
        if takes_scripts {
            return Ok(());
        }
        let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let interpreter = printable(line.trim_ascii());
        return Err(no_program(format!(
            "{shown}: this is a script (#!{interpreter}): give the interpreter as the program"
        )));
    }
    if read >= 4 && !head.starts_with(b"\x7fELF") || (1..4).contains(&read) {
        return Err(no_program(format!("{shown}: this is not an ELF program")));
    }
    Ok(())
}

fn plain(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "no such file".to_owned(),
        ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, expect: &str) {
        let found = find_program(
            name.as_bytes(),
            Path::new("/"),
            Some(OsStr::new("/usr/bin:/bin")),
            false,
        );
        let text = match found {
            Ok(path) => path.display().to_string(),
            Err(failure) => failure.text,
        };
        assert!(text.contains(expect), "{name}: {text}");
    }

    #[test]
    fn program_lookup_finds_executables_or_names_the_error() {
        check("env", "/bin/env");
        check("/usr/bin/env", "/usr/bin/env");
        check("usr/bin/env", "/usr/bin/env");
        check("", "expected a program");
        check("/nosuch", "/nosuch: no such file");
        check("nosuch-program", "nosuch-program: not found on PATH");
        check("/usr", "/usr: is a directory");
        check("/etc/passwd", "/etc/passwd: not executable");
        let script = std::env::temp_dir().join(format!("sdm-script-{}", std::process::id()));
        fs::write(&script, "#!/bin/sh -e\nexit\n").unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        check(
            script.to_str().unwrap(),
            "a script (#!/bin/sh -e): give the interpreter",
        );
        fs::remove_file(&script).unwrap();
    }

    #[test]
    fn missing_gdb_is_reported_with_a_hint() {
        let failure = find_gdb(Some(b"/nosuch/gdb")).unwrap_err();
        assert_eq!(failure.code, FailureCode::NoGdb);
        assert!(failure.hint.contains("install gdb"), "{failure}");
        assert!(
            find_directory(Some(b"/nosuch"))
                .unwrap_err()
                .text
                .contains("no such file")
        );
        assert!(
            find_directory(Some(b"/etc/passwd"))
                .unwrap_err()
                .text
                .contains("not a directory")
        );
    }
}
