//! What a server says to its launcher.

use std::io::Write;

use anyhow::Result;

/// A line on stdout.
pub(crate) fn say(line: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(format!("{line}\n").as_bytes())?;
    Ok(stdout.flush()?)
}
