//! The floor of a debugger: plain gdb processes, driven over MI by a loop that does nothing else.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};
use sdm_child::gdb_arguments;
use sdm_debug::GdbOptions;

struct Gdb {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

/// Some gdb processes, each with a program of its own, started with SDM's settings.
pub struct PlainGdbs {
    members: Vec<Gdb>,
}

impl PlainGdbs {
    /// Starts `count` gdbs, each with the program stopped at `main`.
    ///
    /// # Errors
    /// A gdb does not start, or does not reach `main`.
    pub fn start(count: u32, program: &Path) -> Result<Self> {
        let mut gdbs = Self {
            members: Vec::new(),
        };
        for _ in 0..count {
            // Sessions of their own, as under SDM: the kernel shares its time by sessions.
            let mut child = Command::new("setsid")
                .arg("gdb")
                .args(gdb_arguments(&GdbOptions::default()))
                .env("LC_ALL", "C")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .context("start gdb")?;
            let stdin = child.stdin.take();
            let stdout = BufReader::new(child.stdout.take().context("it was piped")?);
            gdbs.members.push(Gdb {
                child,
                stdin,
                stdout,
            });
        }
        let file = format!("-file-exec-and-symbols {}", program.display());
        gdbs.write(&format!("{file}\n-exec-run --start"))?;
        gdbs.wait_for("*stopped")?;
        Ok(gdbs)
    }

    /// Sends a query to all and reads all answers.
    ///
    /// # Errors
    /// One that fails.
    pub fn query(&mut self, line: &str) -> Result<()> {
        self.write(line)?;
        self.wait_for("^done")
    }

    /// Runs all programs until all have stopped.
    ///
    /// # Errors
    /// One does not run.
    pub fn run(&mut self, line: &str) -> Result<()> {
        self.write(line)?;
        self.wait_for("*stopped")
    }

    fn write(&mut self, line: &str) -> Result<()> {
        for gdb in &mut self.members {
            let stdin = gdb.stdin.as_mut().context("open until the end")?;
            stdin
                .write_all(format!("{line}\n").as_bytes())
                .context("write to gdb")?;
        }
        Ok(())
    }

    fn wait_for(&mut self, wanted: &str) -> Result<()> {
        let mut line = String::new();
        for gdb in &mut self.members {
            loop {
                line.clear();
                let count = gdb.stdout.read_line(&mut line).context("read from gdb")?;
                ensure!(count > 0, "gdb has ended");
                ensure!(!line.starts_with("^error"), "gdb: {}", line.trim());
                if line.starts_with(wanted) {
                    break;
                }
            }
        }
        Ok(())
    }
}

impl Drop for PlainGdbs {
    fn drop(&mut self) {
        // At the end of its input gdb kills its program and leaves.
        for gdb in &mut self.members {
            gdb.stdin = None;
        }
        for gdb in &mut self.members {
            // It fails only where it was waited for already.
            let _ = gdb.child.wait();
        }
    }
}
