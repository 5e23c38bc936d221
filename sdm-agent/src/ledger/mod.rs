//! The elements reported to the client, and the events that update the client to a new snapshot of the manager.

mod changes;

use std::collections::BTreeMap;
use std::vec;

use roaring::RoaringBitmap;
use sdm_runtime::attribute as id;
use sdm_runtime::states::{self, Machine};
use sdm_runtime::wire::event::Kind;

use crate::snapshot::{self, Attributes, Job, Process, Snapshot, set, set_end, set_state};
use changes::{Changes, ReportedElement, push_removed};
pub use changes::{EqualElements, Notice};

/// Approximate size of one batch of events. Later batches report the elements as they are then.
pub const BATCH_BYTES: usize = 1 << 20;

struct ReportedJob {
    /// The id of the job's parent: the queue in which it was reported, which is not always its present one.
    parent: u32,
    job: ReportedElement,
    processes: Vec<ReportedElement>,
}

/// All elements of one manager that were reported.
pub struct Ledger {
    base: u32,
    last: u32,
    machine: Option<ReportedElement>,
    nodes: BTreeMap<String, ReportedElement>,
    queues: BTreeMap<String, ReportedElement>,
    jobs: BTreeMap<String, ReportedJob>,
    /// Submission ids by job number, for jobs that have not been reported to the client yet.
    submitted: BTreeMap<String, String>,
    untold: PendingSnapshot,
}

/// The part of the last snapshot that the ledger has not compared yet.
#[derive(Default)]
struct PendingSnapshot {
    machine: Option<Attributes>,
    nodes: BTreeMap<String, Attributes>,
    queues: BTreeMap<String, Attributes>,
    jobs: BTreeMap<String, Job>,
    processes: Option<JobProcesses>,
}

/// A job of the new snapshot whose processes are compared in several batches.
struct JobProcesses {
    number: String,
    next: usize,
    /// Number of all processes of the job.
    count: usize,
    rest: vec::IntoIter<Process>,
}

impl Ledger {
    /// A ledger in which nothing has been reported. `base` is the manager's own id; the elements' ids follow it.
    #[must_use]
    pub fn new(base: u32) -> Self {
        Self {
            base,
            last: base,
            machine: None,
            nodes: BTreeMap::new(),
            queues: BTreeMap::new(),
            jobs: BTreeMap::new(),
            submitted: BTreeMap::new(),
            untold: PendingSnapshot::default(),
        }
    }

    /// Records that a submission has started a job. The job is later reported with the submission's id.
    pub fn submitted(&mut self, job: String, submission: String) {
        self.submitted.insert(job, submission);
    }

    /// The number of a job by its element's id; `None` if no job has the id.
    #[must_use]
    pub fn job(&self, id: u32) -> Option<&str> {
        let mut jobs = self.jobs.iter();
        jobs.find(|(_, told)| told.job.id == id)
            .map(|(number, _)| &**number)
    }

    /// The name of a queue by its element's id; `None` if no queue has the id.
    #[must_use]
    pub fn queue(&self, id: u32) -> Option<&str> {
        let mut queues = self.queues.iter();
        queues
            .find(|(_, told)| told.id == id)
            .map(|(name, _)| &**name)
    }

    /// Reports a new state of the machine, without a snapshot of the other elements. Returns no notice before the first
    /// snapshot.
    pub fn machine_is(&mut self, state: Machine) -> Vec<Notice> {
        let Some(told) = &mut self.machine else {
            return Vec::new();
        };
        let mut attributes = told.attributes.clone();
        set_state(&mut attributes, state);
        let mut changes = Changes::default();
        changes.update(told, attributes);
        changes.into_notices(Kind::Machine, None, None)
    }

    /// Takes a new snapshot and returns the first batch of changes; they count as reported. [`Ledger::more`]
    /// returns the rest. Changes of an earlier snapshot that were not reported are replaced by those of this one.
    pub fn update(&mut self, mut now: Snapshot) -> Vec<Notice> {
        let mut notices = self.gone(&mut now);
        self.untold = PendingSnapshot {
            machine: Some(now.machine),
            nodes: now.nodes,
            queues: now.queues,
            jobs: now.jobs,
            processes: None,
        };
        notices.extend(self.more());
        notices
    }

    /// True if [`Ledger::more`] may return further events.
    #[must_use]
    pub fn has_more(&self) -> bool {
        let it = &self.untold;
        let is_told = it.machine.is_none() && it.nodes.is_empty() && it.queues.is_empty();
        !(is_told && it.jobs.is_empty() && it.processes.is_none())
    }

    /// Returns the next batch of changes: about [`BATCH_BYTES`], exceeded by at most one element; empty once all
    /// were reported.
    pub fn more(&mut self) -> Vec<Notice> {
        let mut left = BATCH_BYTES;
        let mut notices = Vec::new();
        while left > 0 && notices.is_empty() && self.has_more() {
            notices.extend(self.machine());
            let machine = self.machine.as_ref().map(|told| told.id);
            let nodes = &mut self.untold.nodes;
            let changes = follow(&mut self.nodes, nodes, &mut self.last, &mut left);
            notices.extend(changes.into_notices(Kind::Node, machine, None));
            let queues = &mut self.untold.queues;
            let changes = follow(&mut self.queues, queues, &mut self.last, &mut left);
            notices.extend(changes.into_notices(Kind::Queue, Some(self.base), None));
            notices.extend(self.jobs(&mut left));
        }
        notices
    }

    /// The reported elements among these, with their attributes as reported; parents come before their children.
    #[must_use]
    pub fn reported(&self, ids: &RoaringBitmap) -> Vec<Notice> {
        let notices = |kind, parent, all: &mut dyn Iterator<Item = &ReportedElement>| {
            let mut changes = Changes::default();
            all.filter(|it| ids.contains(it.id))
                .for_each(|it| changes.again(it));
            changes.into_notices(kind, Some(parent), None)
        };
        let base = self.base;
        let machine = self.machine.as_ref().map_or(base, |it| it.id);
        let mut all = notices(Kind::Machine, base, &mut self.machine.iter());
        all.extend(notices(Kind::Node, machine, &mut self.nodes.values()));
        all.extend(notices(Kind::Queue, base, &mut self.queues.values()));
        for told in self.jobs.values() {
            let job = &mut std::iter::once(&told.job);
            all.extend(notices(Kind::Job, told.parent, job));
            let processes = &mut told.processes.iter();
            all.extend(notices(Kind::Process, told.job.id, processes));
        }
        all
    }

    fn machine(&mut self) -> Vec<Notice> {
        let Some(now) = self.untold.machine.take() else {
            return Vec::new();
        };
        let mut changes = Changes::default();
        match &mut self.machine {
            Some(told) => changes.update(told, now),
            None => self.machine = Some(changes.add(now, &mut self.last)),
        }
        changes.into_notices(Kind::Machine, Some(self.base), None)
    }

    /// Removes elements that have disappeared; child elements are removed before their parents. A queue stays, stopped,
    /// while a job is reported in it: clients drop a removed queue's jobs.
    fn gone(&mut self, now: &mut Snapshot) -> Vec<Notice> {
        let mut notices = Vec::new();
        let mut jobs = RoaringBitmap::new();
        self.jobs.retain(|number, told| {
            let stays = now.jobs.contains_key(number);
            if !stays {
                let processes = told.processes.iter().map(|process| process.id).collect();
                push_removed(&mut notices, Kind::Process, Some(told.job.id), processes);
                jobs.insert(told.job.id);
            }
            stays
        });
        push_removed(&mut notices, Kind::Job, None, jobs);
        let parents: RoaringBitmap = self.jobs.values().map(|told| told.parent).collect();
        for (name, told) in &self.queues {
            if parents.contains(told.id) {
                now.queues.entry(name.clone()).or_insert_with(|| {
                    let mut queue = told.attributes.clone();
                    set_state(&mut queue, states::Queue::Stopped);
                    set(&mut queue, id::QUEUE_STATUS, "no longer listed");
                    queue
                });
            }
        }
        let queues = gone(&mut self.queues, &now.queues);
        push_removed(&mut notices, Kind::Queue, None, queues);
        let nodes = gone(&mut self.nodes, &now.nodes);
        push_removed(&mut notices, Kind::Node, None, nodes);
        notices
    }

    fn jobs(&mut self, left: &mut usize) -> Vec<Notice> {
        let mut new: BTreeMap<u32, Changes> = BTreeMap::new();
        let mut changes = Changes::default();
        let mut later = Vec::new();
        if let Some(rest) = self.untold.processes.take() {
            later.extend(self.processes(rest, left));
        }
        while *left > 0
            && let Some((number, job)) = self.untold.jobs.pop_first()
        {
            let queue = self.queues.get(&job.queue);
            let queue = queue.map_or(self.base, |queue| queue.id);
            let mut attributes = job.attributes;
            attributes.insert(id::QUEUE_ID.to_owned(), queue.to_string());
            let used = match self.jobs.get_mut(&number) {
                Some(told) => changes.counted(|changes| changes.update(&mut told.job, attributes)),
                None => {
                    if let Some(submission) = self.submitted.remove(&number) {
                        attributes.insert(id::JOB_SUB_ID.to_owned(), submission);
                    }
                    new.entry(queue).or_default().counted(|added| {
                        let job = added.add(attributes, &mut self.last);
                        let processes = Vec::new();
                        let told = ReportedJob {
                            parent: queue,
                            job,
                            processes,
                        };
                        self.jobs.insert(number.clone(), told);
                    })
                }
            };
            *left = left.saturating_sub(used);
            let processes = JobProcesses {
                number,
                next: 0,
                count: job.processes.len(),
                rest: job.processes.into_iter(),
            };
            later.extend(self.processes(processes, left));
        }
        let mut notices = Vec::new();
        for (queue, added) in new {
            notices.extend(added.into_notices(Kind::Job, Some(queue), None));
        }
        notices.extend(changes.into_notices(Kind::Job, None, None));
        notices.extend(later);
        notices
    }

    /// Compares the processes of a reported job, as many as fit into `left` bytes. If the snapshot lists none for an
    /// ended job, the processes already reported stay, with the job's end as their own.
    fn processes(&mut self, mut now: JobProcesses, left: &mut usize) -> Vec<Notice> {
        let Some(told) = self.jobs.get_mut(&now.number) else {
            return Vec::new();
        };
        let mut changes = Changes::default();
        let state: Option<states::Job> = snapshot::state(&told.job.attributes);
        if now.count == 0 && state.is_some_and(states::Job::has_ended) {
            for process in &mut told.processes {
                let mut attributes = process.attributes.clone();
                set_end(&mut attributes, &told.job.attributes);
                changes.update(process, attributes);
            }
        } else {
            for gone in told.processes.drain(now.count.min(told.processes.len())..) {
                changes.removed.insert(gone.id);
            }
            while *left > 0
                && let Some(process) = now.rest.next()
            {
                let mut attributes = process.attributes;
                let name = || format!("process {}", now.next);
                attributes.entry(id::NAME.to_owned()).or_insert_with(name);
                attributes.insert(id::PROCESS_INDEX.to_owned(), now.next.to_string());
                let node = process.node.as_ref().and_then(|name| self.nodes.get(name));
                if let Some(node) = node {
                    attributes.insert(id::PROCESS_NODE_ID.to_owned(), node.id.to_string());
                }
                let used = changes.counted(|changes| match told.processes.get_mut(now.next) {
                    Some(known) => changes.update(known, attributes),
                    None => told.processes.push(changes.add(attributes, &mut self.last)),
                });
                *left = left.saturating_sub(used);
                now.next += 1;
            }
        }
        let job = Some(told.job.id);
        if now.rest.len() > 0 {
            self.untold.processes = Some(now);
        }
        changes.into_notices(Kind::Process, job, job)
    }
}

/// Removes named elements that are not in the snapshot, and returns their ids.
fn gone(
    told: &mut BTreeMap<String, ReportedElement>,
    now: &BTreeMap<String, Attributes>,
) -> RoaringBitmap {
    let mut gone = RoaringBitmap::new();
    told.retain(|name, element| {
        let stays = now.contains_key(name);
        if !stays {
            gone.insert(element.id);
        }
        stays
    });
    gone
}

/// Compares the reported elements with those of the snapshot by name, as many as fit into `left` bytes.
fn follow(
    told: &mut BTreeMap<String, ReportedElement>,
    now: &mut BTreeMap<String, Attributes>,
    last: &mut u32,
    left: &mut usize,
) -> Changes {
    let mut changes = Changes::default();
    while *left > 0
        && let Some((name, attributes)) = now.pop_first()
    {
        let used = changes.counted(|changes| match told.get_mut(&name) {
            Some(known) => changes.update(known, attributes),
            None => {
                let element = changes.add(attributes, last);
                told.insert(name, element);
            }
        });
        *left = left.saturating_sub(used);
    }
    changes
}

#[cfg(test)]
mod tests;
