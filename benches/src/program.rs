//! Compiles the programs that benches debug.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");

/// Compiles a program of `fixtures/` into the folder of this build's binaries.
///
/// # Errors
/// The compiler does not exist, or fails.
pub fn build(name: &str, source: &str, compiler: &str, options: &[&str]) -> Result<PathBuf> {
    let program = crate::tree::binaries()?.join(name);
    let status = Command::new(compiler)
        .args(["-g", "-O0"])
        .arg(Path::new(FIXTURES).join(source))
        .arg("-o")
        .arg(&program)
        .args(options)
        .status()
        .with_context(|| format!("start {compiler}"))?;
    ensure!(status.success(), "{compiler}: {status}");
    Ok(program)
}
