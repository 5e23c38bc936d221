//! Jobs of a PMIx server, as the server reports them to a tool.
//!
//! The process `sdm-pmix` queries the server, so that faults and delays of the foreign library affect no other process.
//! Only `prterun` and `prte` are queried. Open MPI 4's `mpirun` crashes when a tool connects, and ends the user's job;
//! its table is read by MPIR.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::unistd::geteuid;
use sdm_system::proc::{self, Mapping};
use sdm_system::run_bounded::{self, Bounds, Said};
use sdm_system::{files, programs};

use super::PROCESSES_MAX;
use super::processes::{Environment, Process, owner};
use super::{JobProcess, STARTERS};

/// Programs with a PMIx server that accepts tools.
const SERVERS: &[&str] = &["prterun", "prte"];
/// Output of `sdm-pmix` while its server has no job yet. `sdm-pmix` must not be killed then, since the server would end
/// with it.
pub const STARTING: &str = "starting";
/// Time limit for the answer of `sdm-pmix`. An answer normally takes a second, and much less if there is no server.
const ANSWER_WAIT: Duration = Duration::from_secs(15);
/// Variables that `sdm-pmix` gets from the server's environment: the library's own paths, and those by which it finds
/// the server. It gets none of this process's environment.
const VARIABLES: &[&str] = &[
    "HOME",
    "LD_LIBRARY_PATH",
    "OPAL_PREFIX",
    "PMIX_INSTALL_PREFIX",
    "PMIX_PREFIX",
    "PMIX_SERVER_TMPDIR",
    "PMIX_SYSTEM_TMPDIR",
    "PRTE_PREFIX",
    "TEMP",
    "TMP",
    "TMPDIR",
];

/// A job of a PMIx server, with its namespace.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Namespace {
    pub(super) name: String,
    pub(super) processes: Vec<JobProcess>,
}

/// Reason for which a PMIx server was not queried, or did not answer.
#[derive(Debug, thiserror::Error)]
pub enum PmixError {
    /// `sdm-pmix` is not installed.
    #[error("sdm-pmix was found neither in the folder of sdm nor on PATH: install it there")]
    NoHelper,
    /// The server's process cannot be read.
    #[error("process {pid}: {source}")]
    Process {
        /// The server's pid.
        pid: i32,
        /// The error of the system.
        source: io::Error,
    },
    /// The process has no libpmix, so it is not a PMIx server.
    #[error("the process has not loaded libpmix.so")]
    NoLibrary,
    /// The server has ended.
    #[error("the PMIx server has ended")]
    Ended,
    /// The server has rights that its owner does not have.
    #[error("the PMIx server cannot be inspected")]
    Undumpable,
    /// The server's user and group ids cannot be read.
    #[error("{0}")]
    Status(io::Error),
    /// The server's group id cannot be read.
    #[error("the group of the PMIx server (Gid) is missing in its /proc/PID/status")]
    NoGroup,
    /// The server belongs to another user.
    #[error("the PMIx server belongs to {0}")]
    Foreign(String),
    /// `sdm-pmix` cannot be started, or does not answer.
    #[error("sdm-pmix failed: {0}")]
    Run(io::Error),
    /// The server is still starting its daemons.
    #[error("the PMIx server is still starting and has no job yet")]
    Starting,
    /// The error message of `sdm-pmix`, or its exit status if it printed none.
    #[error("{0}")]
    Said(String),
}

/// True if a process is a PMIx server that accepts tools, by the file name of its executable. The process's own
/// name does not count.
pub(super) fn is_server(process: &Process) -> bool {
    let program = proc::of(process.pid).program();
    let name = program
        .ok()
        .and_then(|path| path.file_name().map(ToOwned::to_owned));
    name.is_some_and(|name| SERVERS.iter().any(|server| name == *server))
}

/// The jobs of the server in a process, without those of tools.
///
/// # Errors
/// [`PmixError`]: the reason why the server cannot be queried, or has not answered.
pub(super) fn ask(server: i32) -> Result<Vec<Namespace>, PmixError> {
    answer(&mut helper(server, &[])?, ANSWER_WAIT)
}

/// The command of an `sdm-pmix` that is to load the library of the server in process `pid`. Its arguments are `words`,
/// the library and the pid. It has only the rights of the server's owner. It gets no session, terminal, descriptors,
/// environment or folder of the caller.
///
/// # Errors
/// [`PmixError`]: the reason why the server cannot be asked.
pub(crate) fn helper(pid: i32, words: &[&str]) -> Result<Command, PmixError> {
    let helper = sdm_system::own_program("sdm-pmix", None).ok_or(PmixError::NoHelper)?;
    let failed = |source| PmixError::Process { pid, source };
    // All reads go through this folder, and so concern this process even if its pid is reused.
    let folder = File::open(proc::of(pid).path("")).map_err(failed)?;
    let held = proc::own().path(&format!("fd/{}", folder.as_raw_fd()));
    let process = proc::at(held);
    let mut command = programs::at(helper);
    give_up_rights(&mut command, &process)?;
    let library = library_of(&process, pid).ok_or(PmixError::NoLibrary)?;
    command.args(words).arg(library).arg(pid.to_string());
    let environment = Environment::of(&process);
    command
        .env_clear()
        .envs(taken_over(&environment))
        .env("PATH", "/usr/bin:/bin")
        // Both sides must use the same authentication method; this one always exists.
        .env("PMIX_MCA_psec", "native")
        .current_dir("/");
    sdm_system::confine(&mut command);
    Ok(command)
}

/// True if a process has a libpmix in its memory.
pub(crate) fn has_pmix(process: &proc::Process, pid: i32) -> bool {
    library_of(process, pid).is_some()
}

/// Replaces root's user and groups by those of the server's owner. The server accepts only tools of its owner, and its
/// library belongs to the owner.
fn give_up_rights(command: &mut Command, process: &proc::Process) -> Result<(), PmixError> {
    let (uid, plain) = owner(process).ok_or(PmixError::Ended)?;
    let own = geteuid().as_raw();
    match (uid == own, plain) {
        (_, false) => Err(PmixError::Undumpable),
        (true, true) => Ok(()),
        (false, true) if own == 0 => {
            let status = process.status().map_err(PmixError::Status)?;
            let group = status.ids("Gid").map(|ids| ids[0]);
            // All further groups go, too.
            command.uid(uid).gid(group.ok_or(PmixError::NoGroup)?);
            Ok(())
        }
        (false, true) => Err(PmixError::Foreign(files::user(uid))),
    }
}

fn taken_over(environment: &Environment) -> BTreeMap<&str, &OsStr> {
    let set = |name: &&'static str| Some((*name, environment.get(name)?));
    VARIABLES.iter().filter_map(set).collect()
}

fn answer(command: &mut Command, wait: Duration) -> Result<Vec<Namespace>, PmixError> {
    let bounds = Bounds {
        wait,
        lines_max: 2 * PROCESSES_MAX as usize,
    };
    let mut is_starting = false;
    let said = run_bounded::run_unless(command, &[], bounds, |lines| {
        is_starting = lines.iter().any(|line| line == STARTING);
        is_starting
    });
    let said = said.map_err(|error| match is_starting {
        true => PmixError::Starting,
        false => PmixError::Run(error),
    })?;
    if !said.status.success() || said.lines.last().map(String::as_str) != Some("end") {
        return Err(PmixError::Said(why(&said)));
    }
    let mut found: Vec<Namespace> = Vec::new();
    for line in &said.lines {
        let words: Vec<&str> = line.split('\t').collect();
        let ["process", name, rank, pid, host, program] = words[..] else {
            continue;
        };
        let (Ok(rank), Ok(pid)) = (rank.parse(), pid.parse()) else {
            continue;
        };
        let process = JobProcess {
            rank,
            host: host.to_owned(),
            program: program.to_owned(),
            pid,
        };
        match found.last_mut().filter(|last| last.name == name) {
            Some(last) => last.processes.push(process),
            None => found.push(Namespace {
                name: name.to_owned(),
                processes: vec![process],
            }),
        }
    }
    found.retain(|it| !it.processes.iter().all(is_tool));
    for namespace in &mut found {
        namespace.processes.sort_by_key(|process| process.rank);
    }
    Ok(found)
}

/// True if a process is a tool and not a rank of a job. Launchers of other jobs and SDM's own tools connect to the
/// server, and each has a namespace of its own.
fn is_tool(process: &JobProcess) -> bool {
    let name = process.program.rsplit('/').next().unwrap_or_default();
    name == "sdm-pmix" || STARTERS.contains(&name)
}

fn why(said: &Said) -> String {
    let last = said
        .complaints
        .iter()
        .rev()
        .find(|line| line.starts_with("sdm-pmix: "));
    match last {
        Some(line) => line.clone(),
        None => format!("sdm-pmix: {}", said.status),
    }
}

/// Path by which this process can open the libpmix that another process has loaded; `None` if it has loaded none.
fn library_of(process: &proc::Process, pid: i32) -> Option<PathBuf> {
    let maps = process.maps().ok()?;
    let is_it = |path: &&Path| {
        let name = path.file_name().map(OsStr::as_bytes);
        name.is_some_and(|name| name.starts_with(b"libpmix.so"))
    };
    let path = maps.iter().filter_map(Mapping::file).find(is_it)?;
    if path.is_file() {
        return Some(path.to_owned());
    }
    Some(proc::of(pid).inside(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn helper(script: &str) -> Result<Vec<Namespace>, PmixError> {
        let mut command = Command::new("/bin/sh");
        answer(command.args(["-c", script]), Duration::from_secs(60))
    }

    #[test]
    fn sdm_pmix_output_is_parsed_as_a_job() {
        let found = helper(
            "printf 'chatter of the library\\nnamespace\\tp@1\\nprocess\\tp@1\\t1\\t8\\th2\\t/x/halo\\n\
             process\\tp@1\\t0\\t7\\th1\\t/x/halo\\nnamespace\\tp@2\\nprocess\\tp@2\\t0\\t9\\th1\\t/x/sdm-pmix\\nend\\n'",
        );
        let found = found.unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        let ranks: Vec<_> = found[0]
            .processes
            .iter()
            .map(|it| (it.rank, it.pid, &*it.host))
            .collect();
        assert_eq!(
            (&*found[0].name, ranks),
            ("p@1", vec![(0, 7, "h1"), (1, 8, "h2")])
        );
    }

    #[test]
    fn failing_sdm_pmix_yields_an_error_message() {
        let crash = helper("kill -SEGV $$").unwrap_err().to_string();
        assert!(crash.contains("signal: 11"), "{crash}");
        let refused = helper("echo 'sdm-pmix: connect: UNREACH' >&2; exit 1").unwrap_err();
        assert_eq!(refused.to_string(), "sdm-pmix: connect: UNREACH");
        assert!(helper("echo process").is_err());
        let mut hang = Command::new("/bin/sh");
        let hang = answer(hang.args(["-c", "exec sleep 1000"]), Duration::ZERO);
        let hang = hang.unwrap_err().to_string();
        assert!(hang.contains("no answer within"), "{hang}");
    }

    #[test]
    fn timeout_during_server_start_is_reported_as_starting() {
        let is_told = |seconds| {
            let mut command = Command::new("/bin/sh");
            let script = command.args(["-c", "echo starting; exec sleep 20"]);
            let answer = answer(script, Duration::from_secs(seconds));
            matches!(answer, Err(PmixError::Starting))
        };
        // On a busy machine it may begin late.
        assert!((1..8).any(is_told));
    }
}
