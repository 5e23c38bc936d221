//! Records on disk of this user's jobs: one folder per job. An agent writes the order, the job's runner writes the
//! state, and every agent reads both.
//!
//! `jobs/17/order.json` is the order, `state.json` the job's state, `out` and `err` its output, `ranks.json` the pids
//! that an agent has found of a launcher's processes. Several login nodes may share the folder, so a record names its
//! host.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sdm_system::files;
use sdm_system::proc;
use sdm_text::printable_name;
use serde::{Deserialize, Serialize};

/// A submitted job as it is stored: the command to start, its environment and its working directory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// Name of the host on which the job's runner runs.
    pub host: String,
    /// Time of the submission, in seconds of Unix time.
    pub submitted: i64,
    /// Name of the job.
    pub name: String,
    /// The program of the job, a path or a name.
    #[serde(default)]
    pub program: String,
    /// The arguments of the program.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Words of the command line that is started: the program with its arguments, the launcher with its own, or `sdm`
    /// with those of a kept session.
    pub words: Vec<String>,
    /// Number of times that the command is started: 1 for a launcher or a kept session, which starts the processes.
    pub copies: u32,
    /// Number of the job's processes.
    pub processes: u32,
    /// True if a launcher starts the processes: `words` are those of the launcher, or of a kept session that uses it.
    #[serde(default)]
    pub is_launched: bool,
    /// Programs of the words, besides the first, that must exist on this host for the job to start.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Additional environment variables, as `NAME=value`.
    pub environment: Vec<String>,
    /// The folder that the job runs in.
    pub directory: PathBuf,
}

/// State of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The pid of the job's runner; 0 before it has started.
    pub runner: i32,
    /// Start time of the runner, in clock ticks since the boot of its host. It distinguishes the runner from a later
    /// process with the same pid.
    pub runner_began: u64,
    /// Time at which the job ended, in seconds of Unix time; `None` before.
    pub ended: Option<i64>,
    /// The error for which the job could not be started; `None` if there is none.
    pub error: Option<String>,
    /// The processes that the runner has started, in order.
    pub started: Vec<Started>,
}

/// A process that a runner has started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// Pid of the process.
    pub pid: i32,
    /// Exit code of the process; `None` if it has not ended by itself.
    pub code: Option<i32>,
    /// Name of the signal that ended the process; `None` if no signal did.
    pub signal: Option<String>,
}

/// The folder with the records of one manager's jobs.
#[derive(Clone, Debug)]
pub struct Records {
    folder: PathBuf,
}

impl Records {
    /// The records of this user: `sdm/KIND` in the folder for programs' state (`XDG_STATE_HOME`, or `.local/state`
    /// in the home).
    ///
    /// # Errors
    /// There is no home, or a folder on the way is not this user's alone.
    pub fn of(kind: &str) -> io::Result<Self> {
        let given = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
        let state = given.filter(|path| path.is_absolute()).or_else(|| {
            let home = std::env::home_dir().filter(|home| home.is_absolute())?;
            Some(home.join(".local/state"))
        });
        let state = state.ok_or_else(|| {
            io::Error::other("no folder for the records of jobs: set HOME or XDG_STATE_HOME")
        })?;
        fs::create_dir_all(&state)?;
        Self::below(&state.join("sdm"), kind)
    }

    /// The records below this folder, which is created if it does not exist.
    ///
    /// # Errors
    /// A folder on the way is not this user's alone.
    pub fn below(folder: &Path, kind: &str) -> io::Result<Self> {
        let folder_of_kind = folder.join(kind);
        for path in [folder, folder_of_kind.as_path()] {
            files::private_folder(path).map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", printable_name(path)))
            })?;
        }
        Ok(Self {
            folder: folder_of_kind,
        })
    }

    /// Records an order under a new number, one above the highest.
    ///
    /// # Errors
    /// [`io::Error`] of the file system.
    pub fn add(&self, order: &Order) -> io::Result<u32> {
        let mut number = self.numbers()?.last().map_or(1, |last| last + 1);
        loop {
            match fs::create_dir(self.place(number)) {
                Ok(()) => break,
                // Another agent has just taken it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        }
        write(&self.place(number).join("order.json"), order)?;
        Ok(number)
    }

    /// The numbers of all jobs, ascending.
    ///
    /// # Errors
    /// [`io::Error`] of the file system.
    pub fn numbers(&self) -> io::Result<Vec<u32>> {
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            numbers.extend(name.to_str().and_then(|name| name.parse::<u32>().ok()));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Removes the record of a job of this host that ended before `since`, in seconds of Unix time. Returns true if it
    /// was removed.
    pub fn prune(&self, number: u32, order: &Order, host: &str, since: i64) -> bool {
        let folder = self.place(number);
        let has_ended = || state(&folder).is_ok_and(|it| it.ended.is_some_and(|end| end < since));
        // Its age is that of its order at least: most need no second look.
        order.host == host
            && order.submitted < since
            && has_ended()
            && fs::remove_dir_all(&folder).is_ok()
    }

    /// The folder of a job.
    #[must_use]
    pub fn place(&self, number: u32) -> PathBuf {
        self.folder.join(number.to_string())
    }
}

/// Reads the order of a job.
///
/// # Errors
/// The job has no record, or the record cannot be read.
pub fn order(folder: &Path) -> io::Result<Order> {
    read(&folder.join("order.json"))
}

/// Reads the state of a job. The file does not exist before its runner has started.
///
/// # Errors
/// The job has no state yet, or the state cannot be read.
pub fn state(folder: &Path) -> io::Result<State> {
    read(&folder.join("state.json"))
}

/// Writes the state of a job, in place of the earlier one, atomically.
///
/// # Errors
/// [`io::Error`] of the file system.
pub fn set_state(folder: &Path, state: &State) -> io::Result<()> {
    write(&folder.join("state.json"), state)
}

/// The pids of the processes that a job's launcher has started, in the order of their ranks; empty if they were never
/// known.
#[must_use]
pub fn ranks(folder: &Path) -> Vec<i32> {
    read(&folder.join("ranks.json")).unwrap_or_default()
}

/// Records the pids of the processes that a job's launcher has started.
///
/// # Errors
/// [`io::Error`] of the file system.
pub fn set_ranks(folder: &Path, pids: &[i32]) -> io::Result<()> {
    write(&folder.join("ranks.json"), &pids)
}

/// Start time of a process of this host, in clock ticks since boot; `None` if the process does not exist or has
/// ended.
#[must_use]
pub fn began(pid: i32) -> Option<u64> {
    let stat = proc::of(pid).stat().ok()?;
    stat.began_ticks().filter(|_| !stat.state().has_ended())
}

fn read<T: for<'a> Deserialize<'a>>(path: &Path) -> io::Result<T> {
    serde_json::from_str(&files::read_text(path)?).map_err(io::Error::other)
}

fn write(path: &Path, what: &impl Serialize) -> io::Result<()> {
    files::replace(path, &serde_json::to_vec(what)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_ended_job_of_this_host_is_pruned() {
        let folder = std::env::temp_dir().join(format!("sdm-prune-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let records = Records::below(&folder.join("sdm"), "local").unwrap();
        let job = |host: &str, submitted: i64, ended: Option<i64>| {
            let order = Order {
                host: host.to_owned(),
                submitted,
                ..Order::default()
            };
            let number = records.add(&order).unwrap();
            let state = State {
                ended,
                ..State::default()
            };
            set_state(&records.place(number), &state).unwrap();
            records.prune(number, &order, "here", 1000)
        };
        assert!(job("here", 10, Some(999)));
        assert!(!job("here", 10, Some(1000)), "not long ago");
        assert!(!job("here", 10, None), "it may run");
        assert!(!job("there", 10, Some(999)), "another host's");
        assert_eq!(records.numbers().unwrap().len(), 3);
        fs::remove_dir_all(folder).unwrap();
    }
}
