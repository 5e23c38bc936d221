//! Execution of Grid Engine's programs.

use std::process::Command;
use std::time::Duration;

use sdm_system::run_bounded::{Bounds, run};
use sdm_system::{files, programs};
use sdm_text::printable;

use crate::error::ManagerError;

/// Time limit of one program.
const WAIT: Duration = Duration::from_secs(90);
/// Maximum number of output lines of one program.
const LINES_MAX: usize = 32 << 20;

/// Runs a query program and returns its output lines. Times and names are in the C locale and UTC, even if the user has
/// set others.
pub(super) fn ask(program: &str, arguments: &[&str]) -> Result<Vec<String>, ManagerError> {
    let mut command = command(program, arguments)?;
    command.env("LC_ALL", "C").env("TZ", "UTC");
    said(program, command, "")
}

/// Runs a command that changes jobs and returns its output lines. The user's environment is kept, as jobs inherit it.
pub(super) fn order(
    program: &str,
    arguments: &[&str],
    input: &str,
) -> Result<Vec<String>, ManagerError> {
    said(program, command(program, arguments)?, input)
}

fn command(program: &str, arguments: &[&str]) -> Result<Command, ManagerError> {
    let found = files::search(program);
    let path = found.ok_or_else(|| ManagerError::NoProgram(program.to_owned()))?;
    let mut command = programs::at(path);
    command.args(arguments);
    Ok(command)
}

fn said(program: &str, mut command: Command, input: &str) -> Result<Vec<String>, ManagerError> {
    let bounds = Bounds {
        wait: WAIT,
        lines_max: LINES_MAX,
    };
    let said =
        run(&mut command, input.as_bytes(), bounds).map_err(ManagerError::system(program))?;
    if said.status.success() {
        return Ok(said.lines);
    }
    let complaint = said.complaints.last().or(said.lines.last());
    let words = complaint.map_or_else(
        || said.status.to_string(),
        |line| printable(line.as_bytes()).to_string(),
    );
    Err(ManagerError::program(program, words))
}
