//! Costs of each test: one line per test in the file that `SDM_TEST_COSTS` names.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

/// Environment variable with the path of the costs file. `scripts/test` creates the file so that every user can write
/// to it.
const VARIABLE: &str = "SDM_TEST_COSTS";

/// The costs of one program, from now on. The file is opened before this process becomes an ordinary user.
pub(crate) struct Costs {
    file: Option<File>,
    program: String,
    test: String,
    began: Instant,
}

impl Costs {
    /// Begins to measure; without the variable nothing is written.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub(crate) fn begin(program: &Path, test: &str) -> Result<Self> {
        let file = std::env::var_os(VARIABLE).map(|path| {
            let file = OpenOptions::new().append(true).create(true).open(&path);
            file.with_context(|| format!("supervise: {VARIABLE}: {}", path.display()))
        });
        Ok(Self {
            file: file.transpose()?,
            program: name_of(program),
            test: test.to_owned(),
            began: Instant::now(),
        })
    }

    /// Appends the line, once every process of the test has been reaped: the kernel counts only those.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(mut self, exit_code: u8) -> Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let used = getrusage(UsageWho::RUSAGE_CHILDREN).context("supervise: processor time")?;
        let used = [used.user_time(), used.system_time()].map(duration);
        let line = line(
            &self.program,
            &self.test,
            self.began.elapsed(),
            used[0] + used[1],
            exit_code,
        );
        append(file, &line).context("supervise: write the costs")
    }
}

/// A test program's name without the hash that cargo appends.
fn name_of(program: &Path) -> String {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let hashed = name.rsplit_once('-');
    hashed.map_or(&*name, |(name, _)| name).to_owned()
}

/// Test program, test, wall time and processor time in seconds, exit code: parted by tabs.
fn line(program: &str, test: &str, wall: Duration, used: Duration, exit_code: u8) -> String {
    format!(
        "{program}\t{test}\t{:.3}\t{:.3}\t{exit_code}\n",
        wall.as_secs_f64(),
        used.as_secs_f64()
    )
}

/// Writes a line in one piece: several tests append to one file.
fn append(file: &mut impl Write, line: &str) -> io::Result<()> {
    match file.write(line.as_bytes())? {
        all if all == line.len() => Ok(()),
        part => Err(io::Error::other(format!("{part} of {} bytes", line.len()))),
    }
}

fn duration(time: TimeVal) -> Duration {
    let micros = time.tv_sec() * 1_000_000 + time.tv_usec();
    Duration::from_micros(micros.cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_line_has_five_fields_and_is_written_at_once() {
        let (wall, used) = (Duration::from_millis(12_345), Duration::from_micros(6_789));
        let line = line("launchers", "pmix::one", wall, used, 101);
        assert_eq!(line, "launchers\tpmix::one\t12.345\t0.007\t101\n");
        // The file accepts only a part of the line: the rest must not become a line of its own.
        let mut short = [0_u8; 8];
        assert!(append(&mut &mut short[..], &line).is_err());
        let mut whole = Vec::new();
        append(&mut whole, &line).unwrap();
        assert_eq!(whole, line.as_bytes());
    }

    #[test]
    fn test_program_is_named_without_its_hash() {
        let name = |path: &str| name_of(Path::new(path));
        assert_eq!(name("/t/deps/launchers-0011aabb"), "launchers");
        assert_eq!(name("/t/deps/sdm_rm-0011aabb"), "sdm_rm");
    }
}
