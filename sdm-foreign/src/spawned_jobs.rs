//! Jobs that a process or a tool has started (`MPI_Comm_spawn`), as the PMIx servers of all nodes know them.

use std::collections::BTreeSet;

use sdm_idset::IdSet;
use serde::{Deserialize, Serialize};

/// Processes of a spawned job on one node, with consecutive ranks and consecutive tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Index of the node among the nodes of the first job.
    pub node: u32,
    /// Task number of the first of these processes.
    pub first: u32,
    /// Number of these processes.
    pub count: u32,
}

impl Share {
    /// Task numbers of these processes.
    #[must_use]
    pub fn tasks(&self) -> IdSet {
        row(self.first, self.count)
    }
}

/// A job that a process or a tool has started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpawnedJob {
    /// Namespace of the job, which differs from that of any job of another PMIx server.
    pub namespace: String,
    /// Processes of the job by node, in the order of their ranks.
    pub shares: Vec<Share>,
    /// The task that has started the job; `None` if a tool has started it.
    pub parent: Option<u32>,
    /// True if the job's processes wait in `PMIx_Init` for a debugger.
    pub is_held: bool,
    /// The processes that the job's processes debug: a namespace, and a rank or the wildcard. `None` if the job is
    /// no debugger's.
    pub target: Option<(String, u32)>,
}

impl SpawnedJob {
    /// Number of the job's processes on all nodes.
    #[must_use]
    pub fn count(&self) -> u32 {
        let counts = self.shares.iter().map(|it| it.count);
        counts.fold(0, u32::saturating_add)
    }

    /// Task numbers of the job's processes.
    #[must_use]
    pub fn tasks(&self) -> IdSet {
        IdSet::union_all(
            self.shares
                .iter()
                .map(Share::tasks)
                .collect::<Vec<_>>()
                .iter(),
        )
    }

    /// Task numbers of the job's processes on a node.
    #[must_use]
    pub fn tasks_on(&self, node: u32) -> IdSet {
        let its = self.shares.iter().filter(|it| it.node == node);
        IdSet::union_all(its.map(Share::tasks).collect::<Vec<_>>().iter())
    }

    /// Ranks of the job's processes on a node.
    #[must_use]
    pub fn ranks_on(&self, node: u32) -> IdSet {
        let mut ranks = IdSet::new();
        for (first, share) in self.firsts() {
            if share.node == node {
                ranks.union_with(&row(first, share.count));
            }
        }
        ranks
    }

    /// The nodes on which the job has processes.
    #[must_use]
    pub fn nodes(&self) -> BTreeSet<u32> {
        let its = self.shares.iter().filter(|it| it.count > 0);
        its.map(|it| it.node).collect()
    }

    /// The task number of a rank of the job; `None` if the job has no such rank.
    #[must_use]
    pub fn task_of(&self, rank: u32) -> Option<u32> {
        self.firsts().find_map(|(first, share)| {
            let at = rank.checked_sub(first).filter(|at| *at < share.count)?;
            share.first.checked_add(at)
        })
    }

    /// The rank of a task in the job, and its node; `None` if the task is not of this job.
    #[must_use]
    pub fn rank_of(&self, task: u32) -> Option<(u32, u32)> {
        self.firsts().find_map(|(first, share)| {
            let at = task
                .checked_sub(share.first)
                .filter(|at| *at < share.count)?;
            Some((first.checked_add(at)?, share.node))
        })
    }

    /// The shares, each with its first rank.
    fn firsts(&self) -> impl Iterator<Item = (u32, &Share)> {
        let mut next = 0_u32;
        self.shares.iter().map(move |share| {
            let first = next;
            next = next.saturating_add(share.count);
            (first, share)
        })
    }
}

fn row(first: u32, count: u32) -> IdSet {
    match first.checked_add(count) {
        Some(end) if end > first => IdSet::from_range(first..=end - 1),
        _ => IdSet::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spawned_ranks_are_numbered_over_nodes_in_order() {
        let share = |node, first, count| Share { node, first, count };
        let job = SpawnedJob {
            namespace: "sdm-1.0.0".to_owned(),
            shares: vec![share(1, 500, 2), share(0, 100, 1), share(1, 502, 1)],
            parent: None,
            is_held: false,
            target: None,
        };
        let tasks: Vec<_> = (0..5).map(|rank| job.task_of(rank)).collect();
        assert_eq!(tasks, [Some(500), Some(501), Some(100), Some(502), None]);
        for rank in 0..4 {
            let task = job.task_of(rank).expect("it has it");
            assert_eq!(job.rank_of(task).map(|(rank, _)| rank), Some(rank));
        }
        assert_eq!(job.rank_of(503), None);
        assert_eq!(job.ranks_on(1).to_string(), "0-1,3");
        assert_eq!(job.tasks_on(1).to_string(), "500-502");
        assert_eq!(job.tasks().to_string(), "100,500-502");
        assert_eq!(job.count(), 4);
        assert_eq!(job.nodes(), BTreeSet::from([0, 1]));
    }

    #[test]
    fn spawned_job_beyond_the_last_task_number_has_no_tasks() {
        let share = Share {
            node: 0,
            first: u32::MAX,
            count: u32::MAX,
        };
        let job = SpawnedJob {
            namespace: String::new(),
            shares: vec![share, share],
            parent: None,
            is_held: false,
            target: None,
        };
        assert!(job.tasks().is_empty());
        assert_eq!(job.task_of(1), None);
        assert_eq!(job.count(), u32::MAX);
    }
}
