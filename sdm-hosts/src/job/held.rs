//! Whether the processes of a job are held at their beginning.

use std::path::Path;

use sdm_system::proc::{self, State};

use super::processes::Processes;
use super::{JobError, ranks};

/// Whether all ranks of the job below a starter are there and stopped. Those on other hosts cannot be seen.
///
/// # Errors
/// Two processes of one rank, or `/proc` cannot be read.
pub fn stand_still_below(starter: i32) -> Result<bool, JobError> {
    let processes = Processes::read(Path::new("/proc"));
    let processes = processes.map_err(|source| JobError::Proc { source })?;
    let found = ranks::below(&processes, starter)?;
    let count = u32::try_from(found.pids.len()).unwrap_or(u32::MAX);
    let all = count > 0 && found.size.is_none_or(|size| size <= count);
    Ok(all && found.pids.iter().all(|(_, pid)| is_stopped(*pid)))
}

fn is_stopped(pid: i32) -> bool {
    proc::of(pid).state().is_some_and(State::is_stopped)
}
