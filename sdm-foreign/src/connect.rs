//! Connecting a tool to a PMIx server, with retries in a fresh process.

use std::ffi::CStr;
use std::os::unix::process::CommandExt;
use std::path::Path;

use anyhow::{Context, Result};
use sdm_system::programs;

use crate::tool_lock::ToolLock;
use crate::{connection_holder, library};

/// Environment variable with the number of failed attempts to connect, across re-executions of this process.
const TRIES: &str = "SDM_PMIX_TRIES";
/// Maximum number of repeated attempts, which take half a minute. No condition outside the server tells when to try: its
/// list of tools is in its memory only, and [`UNREACHED`] stands for each reason.
const TRIES_MAX: u32 = 24;
/// Status of libpmix for a server that cannot be reached.
const UNREACHED: i32 = -25;

/// Connects to a server, once this tool holds the server's lock ([`ToolLock`]).
///
/// While a server still lists a tool that died earlier, connecting fails as if the server were unreachable. libpmix
/// cannot be initialised twice in one process, so this process then executes itself again, at most [`TRIES_MAX`] times.
/// It holds the lock until the server has forgotten the failed attempt. A `prterun` refuses all later tools after
/// some tools have tried again within that time.
pub(crate) fn connect(
    library: &Path,
    server: i32,
    file: Option<&CStr>,
) -> Result<(library::Tool, ToolLock)> {
    connection_holder::check_runs(server)?;
    let turn = ToolLock::take(server)
        .with_context(|| format!("cannot use the PMIx server in process {server}"))?;
    // Before anything is connected, and while this process has one thread.
    let keeper =
        connection_holder::start(server, turn.descriptor(), library::ends_with_job(server))?;
    let error = match library::Tool::connect(library, server, file) {
        Ok(tool) => return Ok((tool, turn)),
        Err(error) => error,
    };
    let known = error.downcast_ref::<library::CallError>();
    let tries = std::env::var(TRIES).ok().and_then(|it| it.parse().ok());
    let tries: u32 = tries.unwrap_or(0);
    if known.is_none_or(|known| known.status != UNREACHED) || tries >= TRIES_MAX {
        // The server may still be busy with this one.
        turn.leave_to_keeper();
        return Err(error);
    }
    // The executed program takes the lock anew, and starts a keeper of its own.
    keeper.dismiss();
    let mut again = programs::at("/proc/self/exe");
    again.args(std::env::args_os().skip(1));
    Err(again.env(TRIES, (tries + 1).to_string()).exec()).context("cannot start sdm-pmix again")
}

/// Waits for the lock again, and disconnects from the server; also without the lock, if other tools hold it for too
/// long. The keeper releases the lock once the server has removed this tool.
pub(crate) fn leave(tool: library::Tool, turn: ToolLock) {
    // Without the lock this process disconnects all the same: other tools have not finished within the time limit.
    let turn = turn.take_again();
    tool.finish();
    if let Ok(turn) = turn {
        turn.leave_to_keeper();
    }
}
