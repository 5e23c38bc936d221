//! The program of a rank that wrappers have started: a script, `timeout`, `strace`, a container.
//!
//! Wrappers are not recognised by their names. The processes of a rank are the one that the launcher has started, and
//! its descendants with the launcher's rank in their environment. The program is the deepest of them that has an MPI
//! library mapped. Without one, it is the process with the most processor time.

use sdm_system::rank_program::{Candidate, choose};
use sdm_text::{counted, printable_name};

use super::processes::{Environment, Process, Processes};
use super::ranks::{EnvironmentRank, given};
use crate::mpi;

/// Maximum number of processes of one rank that are examined.
const PROCESSES_MAX: usize = 4096;

/// The process that is taken for a rank's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) pid: i32,
    /// Pids of other processes that may be the program instead.
    pub(super) others: Vec<i32>,
    /// Pids of descendants that may be the program but have no rank in their environment, if the chosen process has no
    /// MPI library.
    pub(super) unranked: Vec<i32>,
    /// True if the launcher is one of MPI, but no MPI library is mapped in the process.
    pub(super) lacks_mpi: bool,
}

impl Program {
    fn of(pid: i32, others: Vec<i32>) -> Self {
        Self {
            pid,
            others,
            unranked: Vec::new(),
            lacks_mpi: false,
        }
    }
}

/// The program of the rank whose outermost process is `top`.
pub(super) fn program_of(processes: &Processes, top: i32) -> Program {
    let none = Environment::default();
    let wanted = given(processes, top, &none);
    let Below { all, unranked } = below(processes, top, wanted.as_ref());
    let (pid, others) = choose(&all).unwrap_or_else(|| (top, Vec::new()));
    let mut program = Program::of(pid, others);
    let is_of_mpi = wanted.is_some_and(|wanted| wanted.is_of_mpi);
    program.lacks_mpi = is_of_mpi && lacks_mpi(processes, program.pid);
    if program.lacks_mpi {
        let chosen = |pid: i32| {
            let found = below(processes, pid, None);
            choose(&found.all).map_or(pid, |(pid, _)| pid)
        };
        program.unranked = unranked.into_iter().map(chosen).collect();
    }
    program
}

/// The processes of a rank.
struct Below {
    all: Vec<Candidate>,
    /// Children of the processes in `all` that have no rank in their environment.
    unranked: Vec<i32>,
}

/// A process and its descendants of the same rank; all its descendants if the process has no rank.
fn below(processes: &Processes, top: i32, wanted: Option<&EnvironmentRank>) -> Below {
    let none = Environment::default();
    let candidate = |pid, parent, depth| Candidate {
        pid,
        parent,
        depth,
        has_mpi: has_mpi(processes, pid),
        used_ticks: processes.get(pid).map_or(0, |it| it.used_ticks),
        is_fork: depth > 0 && is_fork(processes, parent, pid),
    };
    let mut found = Below {
        all: vec![candidate(top, top, 0)],
        unranked: Vec::new(),
    };
    let mut at = 0;
    while let Some(Candidate { pid, depth, .. }) = found.all.get(at).copied() {
        at += 1;
        for child in processes.children(pid) {
            if found.all.len() + found.unranked.len() >= PROCESSES_MAX {
                break;
            }
            let own = wanted.map(|wanted| (wanted, given(processes, child.pid, &none)));
            match own {
                Some((_, None)) => found.unranked.push(child.pid),
                Some((wanted, Some(own))) if *wanted != own => {}
                _ => found.all.push(candidate(child.pid, pid, depth + 1)),
            }
        }
    }
    found
}

/// True for a forked child that has not executed another program.
fn is_fork(processes: &Processes, parent: i32, child: i32) -> bool {
    let words = |pid| processes.get(pid).map(Process::words);
    let file = |pid| processes.process(pid).program().ok();
    words(parent) == words(child) && file(parent) == file(child)
}

/// True for a process in which an MPI library is mapped, or whose program is statically linked with MPI.
fn has_mpi(processes: &Processes, pid: i32) -> bool {
    let process = processes.process(pid);
    let maps = process.maps().unwrap_or_default();
    let mut files = maps.iter().filter_map(|it| it.file());
    files.any(mpi::is_library) || mpi::is_in(&process.path("exe"))
}

/// True for a process in which no MPI library is mapped; false if its memory map cannot be read.
fn lacks_mpi(processes: &Processes, pid: i32) -> bool {
    let is_mapped = processes.process(pid).maps().is_ok_and(|it| !it.is_empty());
    is_mapped && !has_mpi(processes, pid)
}

/// Sentences about ranks whose program is uncertain: one for each reason.
pub(super) fn doubts(processes: &Processes, ranks: &[(u32, Program)]) -> Vec<String> {
    let name = |pid: &i32| {
        let program = processes.get(*pid).map_or("", Process::program);
        format!("{} (pid {pid})", printable_name(program))
    };
    let names = |pids: &[i32]| {
        let names: Vec<String> = pids.iter().take(SHOWN_MAX).map(name).collect();
        names.join(", ")
    };
    // The first of these ranks, and words on the others.
    let first = |is_one: &dyn Fn(&Program) -> bool| {
        let mut found = ranks.iter().filter(|(_, program)| is_one(program));
        let (rank, program) = found.next()?;
        let more = match found.count() {
            0 => String::new(),
            more => format!(", and likewise for {}", counted(more, "more rank")),
        };
        Some((rank, program, more))
    };
    let several = first(&|it| !it.others.is_empty()).map(|(rank, program, more)| {
        let (used, others) = (name(&program.pid), names(&program.others));
        format!(
            "several processes have rank {rank}: {used} is used, not {others}{more} (--pids selects others)"
        )
    });
    let unranked = first(&|it| !it.unranked.is_empty()).map(|(rank, program, more)| {
        let (used, others) = (name(&program.pid), names(&program.unranked));
        format!(
            "rank {rank} is {used}: sdm does not use its descendants without a rank in the environment ({others}){more} (--pids selects others)"
        )
    });
    let is_early = |it: &Program| it.lacks_mpi && it.others.is_empty() && it.unranked.is_empty();
    let early = first(&is_early).map(|(rank, program, more)| {
        let used = name(&program.pid);
        format!(
            "rank {rank} is {used}, which has no MPI library{more}: a wrapper may not have started its program yet"
        )
    });
    several.into_iter().chain(unranked).chain(early).collect()
}

/// Maximum number of a rank's other processes that are listed.
const SHOWN_MAX: usize = 4;
