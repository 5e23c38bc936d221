//! Times the start of an Open MPI job in five ways: under `sdm run` with and without `mpirun`, in a batch, under `mpirun
//! gdb`, and without a debugger. The time ends when each rank is stopped at a breakpoint after `MPI_Init`, or has printed that it
//! is there.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sdm_child::gdb_arguments;
use sdm_debug::GdbOptions;

/// A line after `MPI_Init` of the program `rounds.c`.
pub const BEHIND_INIT: &str = "rounds.c:17";

/// The debugger of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// `sdm run` under Open MPI's `mpirun`.
    Sdm,
    /// `sdm run` with its own PMIx servers, without `mpirun`.
    SdmAlone,
    /// `sdm run --batch` under Open MPI's `mpirun`: no rank has a gdb.
    Batch,
    /// No debugger: plain `mpirun`, whose ranks print when they are past `MPI_Init`.
    Nobody,
    /// `mpirun gdb`: one gdb for each rank, without a common front-end.
    PlainGdbs,
}

/// A job of Open MPI, with the breakpoint at which its ranks are to stop.
pub struct Job<'a> {
    /// The program.
    pub program: &'a Path,
    /// The program's argument.
    pub argument: &'a str,
    /// Location of the breakpoint: `FILE:LINE`.
    pub place: &'a str,
    /// Number of ranks.
    pub ranks: u32,
}

impl Job<'_> {
    /// Time until every rank is stopped at the breakpoint, or is past `MPI_Init` for [`By::Nobody`] and [`By::Batch`].
    /// The job is ended afterwards.
    ///
    /// # Errors
    /// The job cannot be started, or ends before.
    pub fn reach(&self, by: By) -> Result<Duration> {
        let mut command = match by {
            By::Sdm => self.sdm("mpirun")?,
            By::SdmAlone => self.sdm("local")?,
            By::Batch => self.batch()?,
            By::Nobody => self.nobody(),
            By::PlainGdbs => self.plain(),
        };
        let began = Instant::now();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("start {:?}", command.get_program()))?;
        let reached = self.wait(by, &mut child);
        let took = began.elapsed();
        end(&mut child)?;
        reached.map(|()| took)
    }

    /// Reads output until every rank has been reported as stopped at the breakpoint, or as past `MPI_Init`.
    fn wait(&self, by: By, child: &mut Child) -> Result<()> {
        let stdout = child.stdout.take().context("it was piped")?;
        let mut left = self.ranks;
        for line in BufReader::new(stdout).lines() {
            let line = line.context("read what a debugger prints")?;
            left -= match by {
                By::Sdm | By::SdmAlone => stopped(&line),
                By::PlainGdbs => said(THERE, &line),
                By::Batch | By::Nobody => said(INITIALIZED, &line),
            };
            if left == 0 {
                return Ok(());
            }
        }
        ensure!(
            left == 0,
            "{left} of {} ranks did not get there",
            self.ranks
        );
        Ok(())
    }

    fn sdm(&self, launcher: &str) -> Result<Command> {
        let mut command = Command::new(crate::tree::binaries()?.join("sdm"));
        let place = format!("break {}", self.place);
        command
            .args(["run", "-n", &self.ranks.to_string(), "--launcher", launcher])
            .args(["-c", &place, "-c", "continue", "--"])
            .arg(self.program)
            .arg(self.argument);
        Ok(command)
    }

    fn batch(&self) -> Result<Command> {
        let mut command = Command::new(crate::tree::binaries()?.join("sdm"));
        // Each rank prints its own line.
        command
            .args(["run", "--batch", "--no-report", "--output", "launcher"])
            .args(["-n", &self.ranks.to_string(), "--launcher", "mpirun", "--"])
            .arg(self.program)
            .args([self.argument, "say"]);
        Ok(command)
    }

    /// An `mpirun` command without the program to start.
    fn mpirun(&self) -> Command {
        let mut command = Command::new("mpirun.openmpi");
        command
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
            .env("LC_ALL", "C")
            .args([
                "--oversubscribe",
                "--bind-to",
                "none",
                "-n",
                &self.ranks.to_string(),
            ]);
        command
    }

    fn nobody(&self) -> Command {
        let mut command = self.mpirun();
        command.arg(self.program).args([self.argument, "say"]);
        command
    }

    fn plain(&self) -> Command {
        let mut command = self.mpirun();
        command.args(["gdb", "--batch"]);
        // Its command line in the place of MI, which would wait for a reader.
        let options = GdbOptions::default();
        let settings = gdb_arguments(&options).into_iter();
        command.args(settings.filter(|argument| !argument.starts_with("-i=")));
        command
            .args(["-ex", &format!("break {}", self.place), "-ex", "run"])
            // A rank that ends first would end the job for the others.
            .args([
                "-ex",
                &format!("python print('{THERE}'); import time; time.sleep(600)"),
                "--args",
            ])
            .arg(self.program)
            .arg(self.argument);
        command
    }
}

/// Number of ranks that a line of `sdm` reports as stopped: `ranks 0-15 (16): stopped at ...`.
fn stopped(line: &str) -> u32 {
    let Some((who, _)) = line.split_once(": stopped at breakpoint 1") else {
        return 0;
    };
    let count = who
        .rsplit_once('(')
        .map(|(_, count)| count.trim_end_matches(')'));
    match count {
        Some(count) => count.parse().unwrap_or(0),
        None => u32::from(who.starts_with("rank ")),
    }
}

/// Text that a plain gdb prints once its rank is stopped at the breakpoint. It arrives in one piece, which gdb's own
/// message about the stop does not.
const THERE: &str = "rank-stands-there";

/// Text that a rank without a debugger prints after `MPI_Init`.
const INITIALIZED: &str = "rank-is-initialized";

/// Number of times that `word` is in a line: the output of several ranks may come as one line.
fn said(word: &str, line: &str) -> u32 {
    u32::try_from(line.matches(word).count()).expect("a line has few")
}

/// Ends a launcher or a session; the processes that it has started end with it.
fn end(child: &mut Child) -> Result<()> {
    let pid = Pid::from_raw(child.id().cast_signed());
    // It may have ended by itself.
    let _ = kill(pid, Signal::SIGTERM);
    child.wait().context("wait for the end of a job")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_reported_at_breakpoint_1_are_counted_in_a_line() {
        assert_eq!(
            stopped("ranks 0-15 (16): stopped at breakpoint 1, main () at a.c:1"),
            16
        );
        assert_eq!(
            stopped("rank 3: stopped at breakpoint 1, main () at a.c:1"),
            1
        );
        assert_eq!(stopped("ranks 0-15 (16): at main () at a.c:1"), 0);
        let two = "rank-stands-thererank-stands-there";
        assert_eq!(said(THERE, two), 2);
    }
}
