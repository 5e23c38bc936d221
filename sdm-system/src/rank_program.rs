//! Choice of a rank's program among the rank's processes: wrappers may have started it.
//!
//! Wrappers are not recognised by their names. The program is the deepest process that has an MPI library mapped. If
//! none has one, it is the process with the most processor time. A fork that has not executed another program is never
//! chosen.

/// A process of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Pid of the process.
    pub pid: i32,
    /// Pid of the process's parent.
    pub parent: i32,
    /// Number of levels at which the process is below the outermost process of the rank.
    pub depth: u64,
    /// True if an MPI library is mapped in the process.
    pub has_mpi: bool,
    /// Processor time used, in clock ticks.
    pub used_ticks: u64,
    /// True for a forked process that has not executed another program.
    pub is_fork: bool,
}

/// Selects the program among the processes of one rank. Returns its pid, and the pids of other processes that may be
/// the program instead. `None` if the list has no process except forks.
#[must_use]
pub fn choose(all: &[Candidate]) -> Option<(i32, Vec<i32>)> {
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
    Some((pid, others))
}
