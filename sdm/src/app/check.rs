//! `sdm run --check`: the environment variables that load the library that checks the use of MPI into the programs.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sdm_check::{LIBRARY_VARIABLE, STRICT_VARIABLE, SUPPRESS_VARIABLE, Source, Suppressions};
use sdm_hosts::mpi::Linked;
use sdm_shell::exit_codes::NOT_STARTED;
use sdm_system::files;
use sdm_text::printable_name;

use super::opener::Refused;
use crate::cli::{CheckArgs, CheckHow, ControlBy, RunArgs};
use crate::sink::complain;

/// The message before a library is compiled.
const COMPILING: &str =
    "--check: compiling the library for this MPI once, which takes about 8 s of processor time";

/// Environment variables for a program, each with its value. None removes the variable.
pub(super) type Given = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// The variables for a program that is linked with this MPI and started by this launcher. Empty without
/// checks.
pub(super) fn variables(
    args: &RunArgs,
    program: &OsString,
    linked: &Linked,
    launcher: &str,
) -> Result<Given, Refused> {
    let Some(how) = args.check.check else {
        return Ok(Vec::new());
    };
    if args.control != ControlBy::Plain || args.gdb_use.memcheck {
        let text = "--check cannot be used with --control or --memcheck: with them sdm does not start the program itself";
        return Err((2, text.to_owned()));
    }
    let library = match &args.check.check_library {
        Some(path) => given_library(path)?,
        None => made_library(program, linked, launcher)?,
    };
    let mut given = vec![(LIBRARY_VARIABLE, library.as_os_str().as_bytes().to_vec())];
    if how == CheckHow::Strict {
        given.push((STRICT_VARIABLE, b"1".to_vec()));
    }
    if let Some(text) = suppressions(&args.check)? {
        given.push((SUPPRESS_VARIABLE, text.into_bytes()));
    }
    let given = given.into_iter();
    let given = given.map(|(name, value)| (name.as_bytes().to_vec(), Some(value)));
    Ok(given.collect())
}

fn given_library(path: &Path) -> Result<PathBuf, Refused> {
    let refused = |error: std::io::Error| {
        let text = format!("--check-library {}: {error}", printable_name(path));
        (NOT_STARTED, text)
    };
    files::open_own(path).map_err(refused)?;
    let whole = path.canonicalize().map_err(refused)?;
    let name = whole.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with("sdm-check") && name.ends_with(".so") {
        return Ok(whole);
    }
    let text =
        "the library must be named sdm-check*.so, so that stacks distinguish it from the program";
    Err(refused(std::io::Error::other(text)))
}

fn made_library(program: &OsString, linked: &Linked, launcher: &str) -> Result<PathBuf, Refused> {
    let name = printable_name(program);
    if linked.is_in_itself() {
        let text = format!(
            "--check: {name} is linked statically with MPI: link it with MPI's shared library"
        );
        return Err((NOT_STARTED, text));
    }
    // A program such as Python loads MPI later: it is assumed to be the MPI of the launcher.
    let of_launcher = || sdm_launch::find(launcher).ok()?.mpi();
    let Some(family) = linked.mpi.or_else(of_launcher) else {
        let text = format!(
            "--check: the MPI of {name} is unknown: neither the program nor {launcher} belongs to one; use --launcher mpirun or mpiexec"
        );
        return Err((NOT_STARTED, text));
    };
    let library = linked.library.clone();
    let tell = || complain(format_args!("{COMPILING}"));
    sdm_check::library(&Source { family, library }, tell)
        .map_err(|error| (NOT_STARTED, error.to_string()))
}

fn suppressions(args: &CheckArgs) -> Result<Option<String>, Refused> {
    let Some(path) = &args.check_suppress else {
        return Ok(None);
    };
    let refused = |error: &dyn std::fmt::Display| {
        let text = format!("--check-suppress {}: {error}", printable_name(path));
        (NOT_STARTED, text)
    };
    let text = files::read_text(path).map_err(|error| refused(&error))?;
    Suppressions::read(&text).map_err(|error| refused(&error))?;
    Ok(Some(text))
}
