//! A job whose ranks record the times for which they did not run.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::{processes, tree};

/// Size of a rank's record in the file, in bytes: its longest pause, and its number of sleeps.
const PLACE_BYTES: u64 = 16;
/// Time limit for the ranks to sleep again.
const PATIENCE: Duration = Duration::from_secs(120);
/// Interval between checks of the ranks' records.
const TURN: Duration = Duration::from_millis(2);

/// The program `pauses`, in C or in C++, under `mpirun`. Drop ends the job.
pub struct Pauses {
    launcher: Child,
    places: File,
    path: PathBuf,
    name: String,
    ranks: u32,
}

impl Pauses {
    /// Starts `ranks` ranks, and waits until all of them sleep.
    ///
    /// # Errors
    /// The job cannot be started, or ends.
    pub fn start(program: &Path, ranks: u32) -> Result<Self> {
        let path = tree::binaries()?.join(format!("pauses.{ranks}"));
        fs::write(&path, "")?;
        let places = File::options().read(true).write(true).open(&path)?;
        places.set_len(place(ranks))?;
        let launcher = Command::new("mpirun")
            .args(["--allow-run-as-root", "--oversubscribe", "-n"])
            .arg(ranks.to_string())
            .arg(program)
            .arg(&path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("start mpirun")?;
        let name = program.file_name().context("a program has a name")?;
        let job = Self {
            launcher,
            places,
            path,
            name: name.to_string_lossy().into_owned(),
            ranks,
        };
        job.settle()?;
        Ok(job)
    }

    /// The launcher's pid.
    #[must_use]
    pub fn launcher(&self) -> u32 {
        self.launcher.id()
    }

    /// Pids of the ranks' processes.
    ///
    /// # Errors
    /// The number of processes differs from the number of ranks.
    pub fn pids(&self) -> Result<Vec<i32>> {
        let pids = processes::named(&processes::descendants(), &self.name);
        ensure!(pids.len() == self.ranks as usize, "{pids:?} are not all");
        Ok(pids.into_iter().map(u32::cast_signed).collect())
    }

    /// Runs `what`. Returns its result, and the longest pause of each rank meanwhile.
    ///
    /// # Errors
    /// `what` fails, or a rank does not sleep any more.
    pub fn during<T>(&self, what: impl FnOnce() -> Result<T>) -> Result<(T, Vec<Duration>)> {
        for rank in 0..self.ranks {
            self.places.write_all_at(&[0; 8], place(rank))?;
        }
        let result = what()?;
        self.settle()?;
        let pauses =
            (0..self.ranks).map(|rank| Ok(Duration::from_nanos(self.number(place(rank))?)));
        Ok((result, pauses.collect::<Result<_>>()?))
    }

    /// Waits until each rank has slept twice, so that its record includes the time up to now.
    fn settle(&self) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        for rank in 0..self.ranks {
            let at = place(rank) + 8;
            let before = self.number(at)?;
            while self.number(at)? < before + 2 {
                ensure!(Instant::now() < until, "rank {rank} does not sleep");
                thread::sleep(TURN);
            }
        }
        Ok(())
    }

    fn number(&self, at: u64) -> Result<u64> {
        let mut bytes = [0; 8];
        self.places.read_exact_at(&mut bytes, at)?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

fn place(rank: u32) -> u64 {
    u64::from(rank) * PLACE_BYTES
}

impl Drop for Pauses {
    fn drop(&mut self) {
        // It was ours to end; its ranks go with it.
        let _ = nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(self.launcher.id().cast_signed()),
            nix::sys::signal::Signal::SIGTERM,
        );
        let _ = self.launcher.wait();
        let _ = fs::remove_file(&self.path);
    }
}
