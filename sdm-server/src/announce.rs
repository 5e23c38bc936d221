//! Output of a server to its launcher: lines on standard output.

use std::io::Write;

use anyhow::Result;

/// Prints a line to standard output.
pub(crate) fn say(line: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(format!("{line}\n").as_bytes())?;
    Ok(stdout.flush()?)
}
