//! The processes of ranks on other hosts, parsed from the output of scripts on these hosts.

use std::collections::BTreeMap;

use sdm_system::rank_program::{Candidate, choose};

use super::{JobProcess, PROCESSES_MAX};

/// A process of a rank on another host, as a script there reports it.
pub(super) struct RemoteProcess {
    rank: u32,
    pid: i32,
    parent: i32,
    has_mpi: bool,
    used_ticks: u64,
    host: String,
    program: String,
}

impl RemoteProcess {
    /// Parses rank, pid, parent, a flag for a mapped MPI library, and clock ticks; `None` if rank, pid or parent is
    /// invalid.
    pub(super) fn read(numbers: [&str; 5], (host, program): (&str, &str)) -> Option<Self> {
        let [rank, pid, parent, mpi, ticks] = numbers;
        let rank = rank.parse().ok().filter(|rank| *rank < PROCESSES_MAX)?;
        let pid = pid.parse().ok().filter(|pid| *pid > 0)?;
        Some(Self {
            rank,
            pid,
            parent: parent.parse().ok()?,
            has_mpi: mpi == "1",
            used_ticks: ticks.parse().unwrap_or(0),
            host: host.to_owned(),
            program: program.to_owned(),
        })
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    pub(super) fn parent(&self) -> i32 {
        self.parent
    }
}

/// The program of each rank, by rising rank.
pub(super) fn programs(all: Vec<RemoteProcess>) -> Vec<JobProcess> {
    let mut ranks: BTreeMap<u32, BTreeMap<i32, RemoteProcess>> = BTreeMap::new();
    for one in all {
        ranks.entry(one.rank).or_default().insert(one.pid, one);
    }
    let chosen = |(rank, mut found): (u32, BTreeMap<i32, RemoteProcess>)| {
        let pid = choose(&candidates(&found))?.0;
        let one = found.remove(&pid)?;
        Some(JobProcess {
            rank,
            host: one.host,
            program: base(&one.program).to_owned(),
            pid,
        })
    };
    ranks.into_iter().filter_map(chosen).collect()
}

/// The processes from which the program of a rank is chosen: the outermost one and its descendants.
fn candidates(found: &BTreeMap<i32, RemoteProcess>) -> Vec<Candidate> {
    let is_outermost = |one: &&RemoteProcess| !found.contains_key(&one.parent);
    let Some(top) = found.values().find(is_outermost) else {
        return Vec::new();
    };
    let candidate = |one: &RemoteProcess, depth| Candidate {
        pid: one.pid,
        parent: one.parent,
        depth,
        has_mpi: one.has_mpi,
        used_ticks: one.used_ticks,
        // Two nested shells are both wrappers, so it does not matter if one counts as a fork of the other.
        is_fork: found
            .get(&one.parent)
            .is_some_and(|it| it.program == one.program),
    };
    let mut all = vec![candidate(top, 0)];
    let mut at = 0;
    while let Some(Candidate { pid, depth, .. }) = all.get(at).copied() {
        at += 1;
        let children = found
            .values()
            .filter(|it| it.parent == pid && it.pid != pid);
        all.extend(children.map(|it| candidate(it, depth + 1)));
    }
    all
}

fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}
