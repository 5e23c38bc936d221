//! Memory use of the task's process, as the kernel counts it. gdb is not asked, so that running tasks answer too.

use sdm_debug::reply::Usage;
use sdm_debug::{Failure, FailureCode, Reply};

use crate::gdb::Gdb;

/// Answers with the memory use of the task's process.
pub(crate) fn memory(gdb: &Gdb) -> Result<Reply, Failure> {
    if let Some(failure) = gdb.get().why_not_live() {
        return Err(failure);
    }
    let pid = gdb.get().pid();
    // A core file has no process, and an ending process has no memory left.
    let found = pid.and_then(|pid| gdb.host().memory(pid));
    let (resident_bytes, peak_bytes) =
        found.ok_or_else(|| Failure::new(FailureCode::NotRunning, "the rank has no process"))?;
    Ok(Reply::Usage(Usage {
        resident_bytes,
        peak_bytes,
    }))
}
