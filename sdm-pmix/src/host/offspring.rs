//! Jobs that processes have started (`MPI_Comm_spawn`). Their processes have ranks of their own from 0 on, and numbers among all
//! tasks of the session, by which everything else here and on other nodes knows them.

use std::collections::BTreeMap;

use sdm_idset::{IdSet, TaskId};
use sdm_pmix::notes::{Offspring, Question};
use sdm_pmix::wire::frame;
use sdm_pmix::{FromHost, HostProgram};

use super::post::Asker;
use super::request::{Among, Done, SpawnCallback};
use super::{Host, OUT_OF_RESOURCE, SUCCESS, Serving, UNREACHABLE};
use crate::ffi::Proc;

/// What the library calls a program that cannot be started.
const JOB_FAILED_TO_START: i32 = -181;

/// Programs that are being started.
struct Spawn {
    done: Done<SpawnCallback>,
    namespace: String,
    /// How many other nodes do not know of it yet.
    unknown: usize,
    /// What a server of this node is told once all nodes do, and which one.
    message: Option<FromHost>,
    peer: u64,
}

/// Programs that are being started, by their numbers here.
#[derive(Default)]
pub(crate) struct Spawns {
    next: u64,
    open: BTreeMap<u64, Spawn>,
}

impl Host {
    /// A process wants programs to be started, which are one job.
    pub(super) fn spawn(
        &mut self,
        by: &Proc,
        (programs, is_held): (Vec<HostProgram>, bool),
        done: Done<SpawnCallback>,
    ) {
        let number = self.spawns.next;
        self.spawns.next += 1;
        let (peer, offspring, message) = match self.begin_spawn(number, by, (programs, is_held)) {
            Ok(begun) => begun,
            Err(status) => return done.tell(status, ""),
        };
        let others = self.serving.as_ref().map(Serving::first_ranks_elsewhere);
        let others = others.unwrap_or_default();
        let spawn = Spawn {
            done,
            namespace: offspring.namespace.clone(),
            unknown: others.len(),
            message: Some(message),
            peer,
        };
        self.spawns.open.insert(number, spawn);
        for rank in others {
            let question = Question::Know(offspring.clone());
            self.ask(rank, question, Asker::Known(number));
        }
        self.go_on_spawning(number);
    }

    /// Makes a job of the programs, and finds the server that is to start them.
    fn begin_spawn(
        &mut self,
        number: u64,
        by: &Proc,
        (programs, is_held): (Vec<HostProgram>, bool),
    ) -> Result<(u64, Offspring, FromHost), i32> {
        let by = self.serving.as_ref().and_then(|it| it.task_of(by));
        if by.is_none() {
            // It is a tool, and has what they print.
            self.want_output();
        }
        let serving = self.serving.as_mut().ok_or(UNREACHABLE)?;
        let counts = programs.iter().map(|it| it.count);
        let count = counts.fold(0, u32::saturating_add);
        let room = self.peers.iter_mut().find_map(|peer| {
            let first = peer.spare.first()?.0;
            let tasks = IdSet::from_range(first..=first.checked_add(count.checked_sub(1)?)?);
            tasks.is_subset(&peer.spare).then_some((peer, tasks))
        });
        let (peer, tasks) = room.ok_or(OUT_OF_RESOURCE)?;
        let offspring = Offspring {
            namespace: format!("{}.{}.{number}", serving.job.namespace, serving.job.own),
            first: tasks.first().map_or(0, |first| first.0),
            count,
            node: serving.job.own,
            parent: by,
            is_held,
        };
        let environment = serving.adopt(&offspring).map_err(|error| {
            crate::say::say(&format!("{error:#}"));
            JOB_FAILED_TO_START
        })?;
        let message = FromHost::Spawn {
            number,
            by,
            tasks: tasks.clone(),
            programs,
            environment,
        };
        frame(&message).map_err(|_| OUT_OF_RESOURCE)?;
        peer.spare.subtract(&tasks);
        if let Some(ranks) = &mut peer.ranks {
            ranks.union_with(&tasks);
        }
        Ok((peer.id, offspring, message))
    }

    /// Another node knows of a job that is about to be started, or cannot be asked.
    pub(super) fn is_known(&mut self, number: u64) {
        if let Some(spawn) = self.spawns.open.get_mut(&number) {
            spawn.unknown = spawn.unknown.saturating_sub(1);
            self.go_on_spawning(number);
        }
    }

    /// Has the programs started once all nodes know of their job.
    fn go_on_spawning(&mut self, number: u64) {
        let spawn = self.spawns.open.get_mut(&number);
        let Some(spawn) = spawn.filter(|it| it.unknown == 0) else {
            return;
        };
        let (message, id) = (spawn.message.take(), spawn.peer);
        let peer = self.peers.iter_mut().find(|it| it.id == id);
        if let (Some(message), Some(peer)) = (message, peer)
            && !peer.send_all(&[message])
        {
            self.forget(id);
        }
    }

    /// The programs run, or cannot be started.
    pub(super) fn end_spawn(&mut self, number: u64, is_started: bool) {
        if let Some(spawn) = self.spawns.open.remove(&number) {
            match is_started {
                true => spawn.done.tell(SUCCESS, &spawn.namespace),
                false => spawn.done.tell(JOB_FAILED_TO_START, ""),
            }
        }
    }

    /// A server is gone: nobody starts what it was to start.
    pub(super) fn forget_starter(&mut self, peer: u64) {
        let open = self.spawns.open.iter();
        let its = open.filter(|(_, it)| it.peer == peer);
        let its: Vec<u64> = its.map(|(number, _)| *number).collect();
        for number in its {
            self.end_spawn(number, false);
        }
    }

    /// A job is about to be started at another node; gives the status to be told.
    pub(super) fn know(&mut self, offspring: &Offspring) -> i32 {
        let Some(serving) = &mut self.serving else {
            return UNREACHABLE;
        };
        if serving.offspring.contains(offspring) {
            return SUCCESS;
        }
        match serving.adopt(offspring) {
            Ok(_) => SUCCESS,
            Err(error) => {
                crate::say::say(&format!("{error:#}"));
                UNREACHABLE
            }
        }
    }
}

impl Serving {
    /// Takes in a job that a process has started; gives what its processes find in their environment, where they are on this node.
    fn adopt(&mut self, offspring: &Offspring) -> anyhow::Result<Vec<(String, String)>> {
        let parent = offspring.parent.map(|it| self.process_of(it));
        let environment =
            self.library
                .adopt(&self.job, &self.folder.0, offspring, parent.as_ref())?;
        self.offspring.push(offspring.clone());
        Ok(environment)
    }

    /// The task that a process is; none where its job is not known.
    pub(super) fn task_of(&self, process: &Proc) -> Option<u32> {
        let namespace = process.name();
        if namespace == self.job.namespace {
            return Some(process.rank);
        }
        let its = self.offspring.iter().find(|it| it.namespace == namespace)?;
        (process.rank < its.count).then(|| its.first + process.rank)
    }

    /// What the library calls a task.
    pub(super) fn process_of(&self, task: u32) -> Proc {
        match self.offspring.iter().find(|it| it.has(task)) {
            Some(its) => Proc::new(&its.namespace, task - its.first),
            None => Proc::new(&self.job.namespace, task),
        }
    }

    /// The tasks of these; none where there are some of a job that is not known.
    pub(super) fn tasks_among(&self, among: &Among) -> Option<IdSet> {
        let mut all = IdSet::new();
        for part in &among.parts {
            let tasks = self.tasks_of_job(&part.namespace)?;
            let first = tasks.first().map_or(0, |first| first.0);
            let some = part
                .ranks
                .iter()
                .filter_map(|rank| first.checked_add(*rank));
            match part.is_all {
                true => all.union_with(&tasks),
                false => all.extend(some.map(TaskId)),
            }
        }
        Some(all)
    }

    /// The tasks of a job.
    pub(super) fn tasks_of_job(&self, namespace: &str) -> Option<IdSet> {
        if namespace == self.job.namespace {
            return Some(self.job.ranks());
        }
        let its = self.offspring.iter().find(|it| it.namespace == namespace);
        its.map(Offspring::tasks)
    }

    /// The tasks of this node.
    pub(super) fn own_tasks(&self) -> IdSet {
        let here = self.offspring.iter().filter(|it| it.node == self.job.own);
        let mut own = self.job.own_node().ranks.clone();
        here.for_each(|it| own.union_with(&it.tasks()));
        own
    }
}
