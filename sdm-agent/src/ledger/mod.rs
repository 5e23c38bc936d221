//! The elements reported to the client, and the events that update the client to a new snapshot of the manager.

mod changes;

use std::collections::BTreeMap;
use std::vec;

use roaring::RoaringBitmap;
use sdm_runtime::attribute as id;
use sdm_runtime::states::{self, Machine};
use sdm_runtime::wire::event::Kind;

use crate::snapshot::{self, Attributes, Job, Process, Snapshot, set_end, set_state};
use changes::{Changes, ReportedElement, push_removed};
pub use changes::{EqualElements, Notice};

/// Approximate size of one batch of events. Later batches report the elements as they are then.
pub const BATCH_BYTES: usize = 1 << 20;

struct ReportedJob {
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
    pub fn update(&mut self, now: Snapshot) -> Vec<Notice> {
        let mut notices = self.gone(&now);
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
            let queue = told.job.attributes.get(id::QUEUE_ID);
            let queue = queue.and_then(|id| id.parse().ok()).unwrap_or(base);
            let job = &mut std::iter::once(&told.job);
            all.extend(notices(Kind::Job, queue, job));
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

    /// Removes elements that have disappeared; child elements are removed before their parents.
    fn gone(&mut self, now: &Snapshot) -> Vec<Notice> {
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
                        self.jobs
                            .insert(number.clone(), ReportedJob { job, processes });
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
mod tests {
    use super::*;
    use crate::manager::machine;

    fn attributes(text: &str) -> Attributes {
        let pair = |part: &str| {
            part.split_once('=')
                .map(|(id, value)| (id.to_owned(), value.to_owned()))
        };
        text.split(' ').filter_map(pair).collect()
    }

    fn snapshot(nodes: &[(&str, &str)], jobs: &[(&str, &str, usize)]) -> Snapshot {
        let node = |(name, text): &(&str, &str)| ((*name).to_owned(), attributes(text));
        let job = |(number, text, count): &(&str, &str, usize)| {
            let process = Process {
                node: Some("n1".to_owned()),
                attributes: attributes("processState=RUNNING"),
            };
            let job = Job {
                queue: "debug".to_owned(),
                attributes: attributes(text),
                processes: vec![process; *count],
            };
            ((*number).to_owned(), job)
        };
        Snapshot {
            machine: machine("m", Machine::Up),
            nodes: nodes.iter().map(node).collect(),
            queues: [("debug".to_owned(), attributes("name=debug"))].into(),
            jobs: jobs.iter().map(job).collect(),
            ..Snapshot::default()
        }
    }

    /// One line for each group.
    fn told(notices: &[Notice]) -> Vec<String> {
        let set = |ids: &RoaringBitmap| {
            ids.iter()
                .map(|id| id.to_string())
                .collect::<Vec<_>>()
                .join(",")
        };
        let lines = |what: String, groups: &[EqualElements]| {
            let line = |group: &EqualElements| {
                let pair = |(id, value): &(String, String)| format!(" {id}={value}");
                let pairs: String = group.attributes.iter().map(pair).collect();
                format!("{what} {}{pairs}", set(&group.ids))
            };
            groups.iter().map(line).collect::<Vec<_>>()
        };
        let of = |notice: &Notice| match notice {
            Notice::New(kind, parent, groups) => lines(format!("new {kind:?} of {parent}"), groups),
            Notice::Changed(kind, _, groups) => lines(format!("changed {kind:?}"), groups),
            Notice::Removed(kind, _, ids) => vec![format!("removed {kind:?} {}", set(ids))],
        };
        notices.iter().flat_map(of).collect()
    }

    #[test]
    fn ledger_reports_only_changes() {
        let mut ledger = Ledger::new(100);
        let nodes = [
            ("n1", "nodeState=UP"),
            ("n2", "nodeState=UP"),
            ("n3", "nodeState=DOWN"),
        ];
        let first = ledger.update(snapshot(&nodes, &[("7", "jobState=PENDING", 0)]));
        let expected = [
            "new Machine of 100 101 machineState=UP name=m",
            "new Node of 101 102,103 nodeState=UP",
            "new Node of 101 104 nodeState=DOWN",
            "new Queue of 100 105 name=debug",
            "new Job of 105 106 jobState=PENDING queueId=105",
        ];
        assert_eq!(told(&first), expected);
        assert_eq!(ledger.job(106), Some("7"));
        assert_eq!(ledger.queue(105), Some("debug"));
        assert!(
            ledger
                .update(snapshot(&nodes, &[("7", "jobState=PENDING", 0)]))
                .is_empty()
        );
        let running = ledger.update(snapshot(&nodes[..2], &[("7", "jobState=RUNNING", 2)]));
        let expected = [
            "removed Node 104",
            "changed Job 106 jobState=RUNNING",
            "new Process of 106 107 name=process 0 processIndex=0 processNodeId=102 processState=RUNNING",
            "new Process of 106 108 name=process 1 processIndex=1 processNodeId=102 processState=RUNNING",
        ];
        assert_eq!(told(&running), expected);
        let ended = ledger.update(snapshot(&nodes[..2], &[("7", "jobState=TERMINATED", 0)]));
        let expected = [
            "changed Job 106 jobState=TERMINATED",
            "changed Process 107,108 processState=EXITED",
        ];
        assert_eq!(told(&ended), expected);
        let killed = snapshot(&nodes[..2], &[("8", "exitSignal=9 jobState=TERMINATED", 0)]);
        let _new = ledger.update(snapshot(&nodes[..2], &[("8", "jobState=RUNNING", 1)]));
        let signalled =
            "changed Process 110 processSignalName=SIGKILL processState=EXITED_SIGNALLED";
        assert_eq!(told(&ledger.update(killed))[1..], [signalled]);
        let gone = ledger.update(snapshot(&nodes[..2], &[]));
        assert_eq!(told(&gone), ["removed Process 110", "removed Job 109"]);
    }

    #[test]
    fn submission_is_reported_once_and_vanished_attribute_reset() {
        let mut ledger = Ledger::new(0);
        ledger.update(snapshot(&[], &[]));
        ledger.submitted("9".to_owned(), "JOB_1".to_owned());
        let new = ledger.update(snapshot(&[], &[("9", "exitCode=3 jobState=PENDING", 0)]));
        let expected = "new Job of 2 3 exitCode=3 jobState=PENDING jobSubId=JOB_1 queueId=2";
        assert_eq!(told(&new), [expected]);
        let changed = ledger.update(snapshot(&[], &[("9", "jobState=PENDING", 0)]));
        assert_eq!(told(&changed), ["changed Job 3 exitCode=0"]);
        let down = ledger.machine_is(Machine::Alert);
        assert_eq!(told(&down), ["changed Machine 1 machineState=ALERT"]);
        let up = ledger.update(snapshot(&[], &[("9", "jobState=PENDING", 0)]));
        assert_eq!(told(&up), ["changed Machine 1 machineState=UP"]);
    }
}
