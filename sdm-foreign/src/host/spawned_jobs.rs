//! The jobs of a node: the first one, and those that processes and tools have started. A process has a rank in its job,
//! from 0 on, and a task number in the session. The other modules, and other nodes, identify it by its task number.

use sdm_foreign::SpawnedJob;
use sdm_idset::{IdSet, TaskId};

use super::Serving;
use super::request::Participants;
use crate::ffi::Proc;

impl Serving {
    /// Adds a job that a process or a tool has started to the known jobs.
    pub(super) fn adopt(&mut self, job: &SpawnedJob) -> anyhow::Result<()> {
        let parent = job.parent.map(|it| self.process_of(it));
        self.library
            .adopt(&self.job, &self.folder.path, job, parent.as_ref())?;
        self.offspring.push(job.clone());
        Ok(())
    }

    /// Environment variables for the processes of a spawned job on this node.
    pub(super) fn environment_of(&self, job: &SpawnedJob) -> anyhow::Result<Vec<(String, String)>> {
        let ranks = job.ranks_on(self.job.own);
        self.library.environment(&job.namespace, &ranks)
    }

    /// The task number of a process; `None` if its job is not known.
    pub(super) fn task_of(&self, process: &Proc) -> Option<u32> {
        let namespace = process.name();
        if namespace == self.job.namespace {
            return Some(process.rank);
        }
        let mut offspring = self.offspring.iter();
        let its = offspring.find(|it| it.namespace == namespace)?;
        its.task_of(process.rank)
    }

    /// libpmix's name of a task: namespace and rank.
    pub(super) fn process_of(&self, task: u32) -> Proc {
        let mut offspring = self.offspring.iter();
        let its = offspring.find_map(|it| Some((it, it.rank_of(task)?)));
        match its {
            Some((its, (rank, _))) => Proc::new(&its.namespace, rank),
            None => Proc::new(&self.job.namespace, task),
        }
    }

    /// Task numbers of these processes; `None` if some belong to an unknown job.
    pub(super) fn tasks_among(&self, among: &Participants) -> Option<IdSet> {
        let mut all = IdSet::new();
        for part in &among.parts {
            let tasks = self.tasks_of_job(&part.namespace)?;
            if part.is_all {
                all.union_with(&tasks);
                continue;
            }
            let task = |rank: &u32| self.task_of(&Proc::new(&part.namespace, *rank));
            all.extend(part.ranks.iter().filter_map(task).map(TaskId));
        }
        Some(all)
    }

    /// The tasks of a job; `None` for an unknown job.
    pub(super) fn tasks_of_job(&self, namespace: &str) -> Option<IdSet> {
        if namespace == self.job.namespace {
            return Some(self.job.ranks());
        }
        let its = self.offspring.iter().find(|it| it.namespace == namespace);
        its.map(SpawnedJob::tasks)
    }

    /// The tasks of this node.
    pub(super) fn own_tasks(&self) -> IdSet {
        self.tasks_on(self.job.own)
    }

    /// The tasks of a node, which is given by its index among those of the first job.
    pub(super) fn tasks_on(&self, node: u32) -> IdSet {
        let first = self.job.nodes.get(node as usize);
        let mut tasks = first.map(|it| it.ranks.clone()).unwrap_or_default();
        for job in &self.offspring {
            tasks.union_with(&job.tasks_on(node));
        }
        tasks
    }
}
