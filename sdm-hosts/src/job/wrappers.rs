//! The program of a rank that runs below wrappers: a script, `timeout`, `strace`, a container.
//!
//! Wrappers are not recognised by their names. A rank's processes are the descendants of the one that the launcher
//! has started, as far as they have the launcher's rank in their environment. The program is the deepest of them
//! that has an MPI library mapped; without one, the process with the most processor time.

use sdm_text::printable_name;

use super::processes::{Environment, Process, Processes};
use super::ranks::given;
use crate::mpi;

/// Maximum number of processes of one rank that are examined.
const PROCESSES_MAX: usize = 4096;

/// The process that is taken for a rank's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) pid: i32,
    /// Pids of other processes that may be the program instead.
    pub(super) others: Vec<i32>,
}

/// A process of a rank, as the choice among them needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) pid: i32,
    /// Its parent's pid.
    pub(super) parent: i32,
    /// Number of levels below the outermost process.
    pub(super) depth: u64,
    /// True where an MPI library is mapped in the process.
    pub(super) has_mpi: bool,
    /// Processor time used, in clock ticks.
    pub(super) used_ticks: u64,
    /// True for a fork without an exec, which runs its parent's program.
    pub(super) is_fork: bool,
}

/// Selects the program among the processes of one rank; `None` where the list is empty.
pub(super) fn choose(all: &[Candidate]) -> Option<Program> {
    let programs = || all.iter().filter(|it| !it.is_fork);
    let is_by_mpi = programs().any(|it| it.has_mpi);
    let candidates = || programs().filter(|it| it.has_mpi || !is_by_mpi);
    let weight = |it: &&Candidate| match is_by_mpi {
        true => (it.depth, it.used_ticks, -it.pid),
        false => (it.used_ticks, it.depth, -it.pid),
    };
    let pid = candidates().max_by_key(weight)?.pid;
    // Where the program is known by its MPI library, its ancestors are not candidates.
    let mut above = vec![pid];
    while let Some(one) = all.iter().find(|it| Some(&it.pid) == above.last()) {
        match is_by_mpi && !above.contains(&one.parent) {
            true => above.push(one.parent),
            false => break,
        }
    }
    let others = candidates().map(|it| it.pid);
    let others = others.filter(|it| !above.contains(it)).collect();
    Some(Program { pid, others })
}

/// The program of the rank whose outermost process is `top`.
pub(super) fn program_of(processes: &Processes, top: i32) -> Program {
    let alone = Program {
        pid: top,
        others: Vec::new(),
    };
    if processes.children(top).next().is_none() {
        return alone;
    }
    choose(&below(processes, top)).unwrap_or(alone)
}

/// The process of this rank and those below it of the same rank.
fn below(processes: &Processes, top: i32) -> Vec<Candidate> {
    let none = Environment::default();
    let wanted = given(processes, top, &none);
    let candidate = |pid, parent, depth| Candidate {
        pid,
        parent,
        depth,
        has_mpi: has_mpi(processes, pid),
        used_ticks: processes.get(pid).map_or(0, |it| it.used_ticks),
        is_fork: depth > 0 && is_fork(processes, parent, pid),
    };
    let mut found = vec![candidate(top, top, 0)];
    let mut at = 0;
    while let Some(Candidate { pid, depth, .. }) = found.get(at).copied() {
        at += 1;
        for child in processes.children(pid) {
            let is_rank = || match &wanted {
                Some(wanted) => given(processes, child.pid, &none).as_ref() == Some(wanted),
                None => true,
            };
            if found.len() < PROCESSES_MAX && is_rank() {
                found.push(candidate(child.pid, pid, depth + 1));
            }
        }
    }
    found
}

/// True for a child that has not begun another program.
fn is_fork(processes: &Processes, parent: i32, child: i32) -> bool {
    let words = |pid| processes.get(pid).map(Process::words);
    let file = |pid| processes.process(pid).program().ok();
    words(parent) == words(child) && file(parent) == file(child)
}

/// True for a process with an MPI library in it.
fn has_mpi(processes: &Processes, pid: i32) -> bool {
    let process = processes.process(pid);
    let maps = process.maps().unwrap_or_default();
    let mut files = maps.iter().filter_map(|it| it.file());
    files.any(mpi::is_library) || mpi::is_in(&process.path("exe"))
}

/// A sentence on ranks with several possible programs; `None` where there are no such ranks.
pub(super) fn doubt(processes: &Processes, ranks: &[(u32, Program)]) -> Option<String> {
    let name = |pid: &i32| {
        let program = processes.get(*pid).map_or("", Process::program);
        format!("{} (pid {pid})", printable_name(program))
    };
    let mut doubtful = ranks
        .iter()
        .filter(|(_, program)| !program.others.is_empty());
    let (rank, first) = doubtful.next()?;
    let others: Vec<String> = first.others.iter().take(SHOWN_MAX).map(name).collect();
    let more = match doubtful.count() {
        0 => String::new(),
        more => format!(", and likewise for {more} more ranks"),
    };
    Some(format!(
        "several processes have rank {rank}: {} is used, not {}{more} (--pids selects others)",
        name(&first.pid),
        others.join(", ")
    ))
}

/// Maximum number of a rank's other processes that are named.
const SHOWN_MAX: usize = 4;
