//! Errors of the search for a job, with advice for the user.

use std::io;

use sdm_text::printable_name;
use thiserror::Error;

/// Maximum number of processes that an error message lists.
const LISTED_MAX: usize = 16;

/// Error of the search for a job, with advice.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum JobError {
    #[error("target {text:?}: {what}")]
    Target { text: String, what: &'static str },
    #[error("cannot read /proc: {source}")]
    Proc { source: io::Error },
    #[error("process {pid}: no such process on this machine (has it ended?)")]
    NoProcess { pid: i32 },
    #[error(
        "{thread} is a thread of {process} (pid {pid}): give that pid",
        process = printable_name(program)
    )]
    Thread {
        thread: i32,
        pid: i32,
        program: String,
    },
    #[error(
        "none of your processes has the name `{}` or runs a program of that name (give a pid, or the pid of mpirun, \
         mpiexec or srun)",
        printable_name(name)
    )]
    NoName { name: String },
    #[error(
        "{program} matches several processes; give one pid: {pids}",
        program = printable_name(name),
        pids = list(found)
    )]
    Ambiguous {
        name: String,
        found: Vec<(i32, String)>,
    },
    #[error(
        "{program} runs in several jobs: give the pid of one launcher, or the processes by --pids: {launchers}",
        program = printable_name(name),
        launchers = jobs.join("; ")
    )]
    SeveralJobs { name: String, jobs: Vec<String> },
    #[error(
        "{process} (pid {pid}) belongs to {owner}: run sdm as {alternative}root",
        process = printable_name(program),
        alternative = either(owner)
    )]
    Foreign {
        pid: i32,
        program: String,
        owner: String,
    },
    #[error(
        "{process} (pid {pid}) has not started any process on this machine: wait for it, or give the pids of the \
         processes",
        process = printable_name(program)
    )]
    NothingStarted { pid: i32, program: String },
    #[error("cannot read the memory of process {pid}: {source}{}", hint(source))]
    Memory { pid: i32, source: io::Error },
    #[error(
        "two descendants of process {starter} have rank {rank} (pids {first} and {second}): give the pid of one job's \
         launcher",
        first = pids.0,
        second = pids.1
    )]
    SameRank {
        starter: i32,
        rank: u32,
        pids: (i32, i32),
    },
    #[error(
        "Slurm job {id}: none of your srun processes on this machine belongs to it, and Slurm did not report its \
         processes: {what}"
    )]
    NoSrun { id: String, what: String },
    #[error("Slurm job {id} has several steps; name one: {steps}", steps = shown.join(", "))]
    Steps { id: String, shown: Vec<String> },
    #[error(
        "{number} is both a process on this host ({process}) and a Slurm job: use --pids {number} or slurm:{number}",
        process = printable_name(program)
    )]
    PidAndJob { number: i32, program: String },
    #[error("{job}: rank {rank}: host {host}: {what}")]
    Host {
        job: String,
        rank: u32,
        /// The invalid host name, escaped and cut for display.
        host: String,
        what: &'static str,
    },
    #[error("{what}")]
    NotTheirs { what: String },
    #[error(
        "{process} (pid {pid}) runs several jobs; name one: {names}{advice}",
        process = printable_name(program),
        names = namespaces.join(", "),
        advice = whose(owner.as_ref())
    )]
    Namespaces {
        pid: i32,
        program: String,
        /// Name of the process's owner; `None` if it is this user.
        owner: Option<String>,
        namespaces: Vec<String>,
    },
    #[error(
        "none of your PMIx servers on this machine knows the namespace {name}{others}: run sdm on the host of prterun or \
         prte",
        others = known(namespaces)
    )]
    NoNamespace {
        name: String,
        namespaces: Vec<String>,
    },
    #[error("{count} processes: a session can have at most {max}")]
    TooMany { count: usize, max: u32 },
}

impl JobError {
    /// True if the error is that the process ended before its memory was read.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Self::Memory { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

fn whose(owner: Option<&String>) -> String {
    let text = |owner| format!(" (run sdm as {owner}: PMIx servers of other users are not asked)");
    owner.map(text).unwrap_or_default()
}

fn known(namespaces: &[String]) -> String {
    match namespaces {
        [] => String::new(),
        names => format!(" (known: {})", names.join(", ")),
    }
}

fn list(found: &[(i32, String)]) -> String {
    let mut names: Vec<String> = found
        .iter()
        .take(LISTED_MAX)
        .map(|(pid, program)| format!("{pid} ({})", printable_name(program)))
        .collect();
    if found.len() > LISTED_MAX {
        names.push(format!("and {} more", found.len() - LISTED_MAX));
    }
    names.join(", ")
}

/// Words before `root` in advice: `USER or as `; empty if the owner is root.
pub(super) fn either(owner: &str) -> String {
    match owner {
        "root" => String::new(),
        owner => format!("{owner} or as "),
    }
}

fn hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => {
            " (it must be yours, and kernel.yama.ptrace_scope must allow it; or run sdm as root)"
        }
        _ => "",
    }
}
