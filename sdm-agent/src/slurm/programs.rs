//! Execution of Slurm's programs.

use std::path::PathBuf;
use std::time::Duration;

use sdm_system::run_bounded::{Bounds, run};
use sdm_system::{files, programs};
use sdm_text::printable;

use crate::error::ManagerError;

/// Time limit of one program. Slurm's own time-outs are about a minute.
const WAIT: Duration = Duration::from_secs(90);
/// Maximum number of output lines of one program: a job takes some hundred lines of JSON.
const LINES_MAX: usize = 64 << 20;

/// The program of this name on `PATH`.
pub(super) fn find(program: &str) -> Result<PathBuf, ManagerError> {
    files::search(program).ok_or_else(|| ManagerError::NoProgram(program.to_owned()))
}

/// Runs one of Slurm's programs and returns its output lines.
pub(super) fn ask(
    program: &str,
    arguments: &[&str],
    input: &[u8],
) -> Result<Vec<String>, ManagerError> {
    let bounds = Bounds {
        wait: WAIT,
        lines_max: LINES_MAX,
    };
    let mut command = programs::at(find(program)?);
    // Times and names as they are everywhere.
    command
        .args(arguments)
        .env("LC_ALL", "C")
        .env("SLURM_TIME_FORMAT", "%s");
    for variable in [
        "SQUEUE_FORMAT",
        "SINFO_FORMAT",
        "SQUEUE_USERS",
        "SQUEUE_STATES",
        "SQUEUE_PARTITION",
    ] {
        command.env_remove(variable);
    }
    let said = run(&mut command, input, bounds).map_err(ManagerError::system(program))?;
    if said.status.success() {
        return Ok(said.lines);
    }
    let complaint = said.complaints.last().or(said.lines.last());
    let complaint = complaint.map_or_else(
        || said.status.to_string(),
        |line| printable(line.as_bytes()).to_string(),
    );
    // Most begin with their own name.
    let words = complaint.strip_prefix(program).unwrap_or(&complaint);
    Err(ManagerError::program(
        program,
        words.trim_start_matches([':', ' ']),
    ))
}
