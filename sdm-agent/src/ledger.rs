//! What the client has been told, and what it has to be told when a manager is looked at again.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;

use crate::manager::DEFINITIONS;
use crate::snapshot::{Attributes, Job, Process, Snapshot};

/// A kind of element below a resource manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A machine, of which a manager has one here.
    Machine,
    /// A node of the machine.
    Node,
    /// A queue of the manager.
    Queue,
    /// A job of a queue.
    Job,
    /// A process of a job.
    Process,
}

/// Elements that have the same values.
#[derive(Clone, Debug, PartialEq)]
pub struct Alike {
    /// Their ids.
    pub ids: RoaringBitmap,
    /// The values, of ascending ids of definitions.
    pub attributes: Vec<(String, String)>,
}

/// Something that the client is told, in the order in which it is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// Elements that are new.
    New(Kind, u32, Vec<Alike>),
    /// Values that are others now; of processes, of this job.
    Changed(Kind, Option<u32>, Vec<Alike>),
    /// Elements that are no more; of processes, of this job.
    Removed(Kind, Option<u32>, RoaringBitmap),
}

/// An element that was told of.
struct Told {
    id: u32,
    attributes: Attributes,
}

struct ToldJob {
    job: Told,
    processes: Vec<Told>,
}

/// Everything that was told of one manager.
pub struct Ledger {
    base: u32,
    last: u32,
    machine: Option<Told>,
    nodes: BTreeMap<String, Told>,
    queues: BTreeMap<String, Told>,
    jobs: BTreeMap<String, ToldJob>,
    /// The submissions by the numbers of their jobs, of which the client has not been told yet.
    submitted: BTreeMap<String, String>,
}

impl Ledger {
    /// Nothing was told; ids follow `base`, which is the manager's own.
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
        }
    }

    /// A job was started for this submission: it carries its id when it is told of.
    pub fn submitted(&mut self, job: String, submission: String) {
        self.submitted.insert(job, submission);
    }

    /// The number of a job by its element's id.
    #[must_use]
    pub fn job(&self, id: u32) -> Option<&str> {
        let mut jobs = self.jobs.iter();
        jobs.find(|(_, told)| told.job.id == id)
            .map(|(number, _)| &**number)
    }

    /// The name of a queue by its element's id.
    #[must_use]
    pub fn queue(&self, id: u32) -> Option<&str> {
        let mut queues = self.queues.iter();
        queues
            .find(|(_, told)| told.id == id)
            .map(|(name, _)| &**name)
    }

    /// The machine is in another state; nothing else is known.
    pub fn machine_is(&mut self, state: &str) -> Vec<Notice> {
        let Some(told) = &mut self.machine else {
            return Vec::new();
        };
        let mut attributes = told.attributes.clone();
        attributes.insert("machineState".to_owned(), state.to_owned());
        let mut changes = Changes::default();
        changes.update(told, attributes);
        changes.into_notices(Kind::Machine, None, None)
    }

    /// What is to be told, for the client to know what `now` says; it counts as told.
    pub fn update(&mut self, now: Snapshot) -> Vec<Notice> {
        let mut notices = self.machine(now.machine);
        let machine = self.machine.as_ref().map(|told| told.id);
        let changes = follow(&mut self.nodes, now.nodes, &mut self.last);
        notices.extend(changes.into_notices(Kind::Node, machine, None));
        let changes = follow(&mut self.queues, now.queues, &mut self.last);
        notices.extend(changes.into_notices(Kind::Queue, Some(self.base), None));
        notices.extend(self.jobs(now.jobs));
        notices
    }

    fn machine(&mut self, now: Attributes) -> Vec<Notice> {
        let mut changes = Changes::default();
        match &mut self.machine {
            Some(told) => changes.update(told, now),
            None => self.machine = Some(changes.add(now, &mut self.last)),
        }
        changes.into_notices(Kind::Machine, Some(self.base), None)
    }

    fn jobs(&mut self, now: BTreeMap<String, Job>) -> Vec<Notice> {
        let mut notices = Vec::new();
        let mut new: BTreeMap<u32, Changes> = BTreeMap::new();
        let mut changes = Changes::default();
        let gone: Vec<String> = self
            .jobs
            .keys()
            .filter(|id| !now.contains_key(*id))
            .cloned()
            .collect();
        for number in gone {
            if let Some(told) = self.jobs.remove(&number) {
                let processes = told.processes.iter().map(|process| process.id).collect();
                push_removed(&mut notices, Kind::Process, Some(told.job.id), processes);
                changes.removed.insert(told.job.id);
            }
        }
        let mut later = Vec::new();
        for (number, job) in now {
            let queue = self
                .queues
                .get(&job.queue)
                .map_or(self.base, |queue| queue.id);
            let mut attributes = job.attributes;
            attributes.insert("queueId".to_owned(), queue.to_string());
            let told = match self.jobs.get_mut(&number) {
                Some(told) => {
                    changes.update(&mut told.job, attributes);
                    told
                }
                None => {
                    if let Some(submission) = self.submitted.remove(&number) {
                        attributes.insert("jobSubId".to_owned(), submission);
                    }
                    let added = new.entry(queue).or_default();
                    let job = added.add(attributes, &mut self.last);
                    let processes = Vec::new();
                    self.jobs
                        .entry(number)
                        .or_insert(ToldJob { job, processes })
                }
            };
            later.extend(processes(told, job.processes, &self.nodes, &mut self.last));
        }
        for (queue, added) in new {
            notices.extend(added.into_notices(Kind::Job, Some(queue), None));
        }
        notices.extend(changes.into_notices(Kind::Job, None, None));
        notices.extend(later);
        notices
    }
}

/// The processes of a job that is told of. Those of one that has ended stay, as ended.
fn processes(
    told: &mut ToldJob,
    now: Vec<Process>,
    nodes: &BTreeMap<String, Told>,
    last: &mut u32,
) -> Vec<Notice> {
    let mut changes = Changes::default();
    let state = told.job.attributes.get("jobState").map(String::as_str);
    if now.is_empty() && matches!(state, Some("TERMINATED" | "ERROR")) {
        for process in &mut told.processes {
            let mut attributes = process.attributes.clone();
            attributes.insert("processState".to_owned(), "EXITED".to_owned());
            changes.update(process, attributes);
        }
    } else {
        for gone in told.processes.drain(now.len().min(told.processes.len())..) {
            changes.removed.insert(gone.id);
        }
        for (index, process) in now.into_iter().enumerate() {
            let mut attributes = process.attributes;
            attributes.insert("processIndex".to_owned(), index.to_string());
            if let Some(node) = process.node.as_ref().and_then(|name| nodes.get(name)) {
                attributes.insert("processNodeId".to_owned(), node.id.to_string());
            }
            match told.processes.get_mut(index) {
                Some(known) => changes.update(known, attributes),
                None => told.processes.push(changes.add(attributes, last)),
            }
        }
    }
    let job = Some(told.job.id);
    changes.into_notices(Kind::Process, job, job)
}

/// Follows named elements.
fn follow(
    told: &mut BTreeMap<String, Told>,
    now: BTreeMap<String, Attributes>,
    last: &mut u32,
) -> Changes {
    let mut changes = Changes::default();
    told.retain(|name, element| {
        let stays = now.contains_key(name);
        if !stays {
            changes.removed.insert(element.id);
        }
        stays
    });
    for (name, attributes) in now {
        match told.get_mut(&name) {
            Some(known) => changes.update(known, attributes),
            None => {
                let element = changes.add(attributes, last);
                told.insert(name, element);
            }
        }
    }
    changes
}

/// What differs among elements of one kind, those alike together.
#[derive(Default)]
struct Changes {
    new: BTreeMap<Vec<(String, String)>, RoaringBitmap>,
    changed: BTreeMap<Vec<(String, String)>, RoaringBitmap>,
    removed: RoaringBitmap,
}

impl Changes {
    fn add(&mut self, attributes: Attributes, last: &mut u32) -> Told {
        *last += 1;
        let list = attributes.clone().into_iter().collect();
        self.new.entry(list).or_default().insert(*last);
        Told {
            id: *last,
            attributes,
        }
    }

    fn update(&mut self, told: &mut Told, now: Attributes) {
        let known = &told.attributes;
        let differs = |(id, value): &(&String, &String)| known.get(*id) != Some(*value);
        let pair = |(id, value): (&String, &String)| (id.clone(), value.clone());
        let mut list: Vec<_> = now.iter().filter(differs).map(pair).collect();
        // One that has no value any more has what it had at first.
        let gone = known
            .keys()
            .filter(|id| !now.contains_key(*id) && *id != "jobSubId");
        list.extend(gone.map(|id| (id.clone(), default(id).to_owned())));
        list.sort();
        if list.is_empty() {
            return;
        }
        self.changed.entry(list).or_default().insert(told.id);
        let submission = told.attributes.remove("jobSubId");
        told.attributes = now;
        if let Some(submission) = submission {
            told.attributes.insert("jobSubId".to_owned(), submission);
        }
    }

    /// `parent` is that of new elements, `of` the job of processes.
    fn into_notices(self, kind: Kind, parent: Option<u32>, of: Option<u32>) -> Vec<Notice> {
        let groups = |map: BTreeMap<_, _>| -> Vec<Alike> {
            let mut groups: Vec<Alike> = map
                .into_iter()
                .map(|(attributes, ids)| Alike { ids, attributes })
                .collect();
            groups.sort_by_key(|group| group.ids.min());
            groups
        };
        let mut notices = Vec::new();
        push_removed(&mut notices, kind, of, self.removed);
        if let Some(parent) = parent.filter(|_| !self.new.is_empty()) {
            notices.push(Notice::New(kind, parent, groups(self.new)));
        }
        if !self.changed.is_empty() {
            notices.push(Notice::Changed(kind, of, groups(self.changed)));
        }
        notices
    }
}

fn push_removed(notices: &mut Vec<Notice>, kind: Kind, of: Option<u32>, ids: RoaringBitmap) {
    if !ids.is_empty() {
        notices.push(Notice::Removed(kind, of, ids));
    }
}

/// The default of an attribute.
fn default(id: &str) -> &'static str {
    let mut known = DEFINITIONS.iter();
    known.find(|it| it.0 == id).map_or("", |it| it.4)
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
            machine: machine("m", "UP"),
            nodes: nodes.iter().map(node).collect(),
            queues: [("debug".to_owned(), attributes("name=debug"))].into(),
            jobs: jobs.iter().map(job).collect(),
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
        let lines = |what: String, groups: &[Alike]| {
            let line = |group: &Alike| {
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
    fn only_what_is_new_is_told() {
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
            "new Process of 106 107 processIndex=0 processNodeId=102 processState=RUNNING",
            "new Process of 106 108 processIndex=1 processNodeId=102 processState=RUNNING",
        ];
        assert_eq!(told(&running), expected);
        let ended = ledger.update(snapshot(&nodes[..2], &[("7", "jobState=TERMINATED", 0)]));
        let expected = [
            "changed Job 106 jobState=TERMINATED",
            "changed Process 107,108 processState=EXITED",
        ];
        assert_eq!(told(&ended), expected);
        let gone = ledger.update(snapshot(&nodes[..2], &[]));
        assert_eq!(told(&gone), ["removed Process 107,108", "removed Job 106"]);
    }

    #[test]
    fn a_submission_is_told_once_and_a_value_that_is_gone_is_its_default() {
        let mut ledger = Ledger::new(0);
        ledger.update(snapshot(&[], &[]));
        ledger.submitted("9".to_owned(), "JOB_1".to_owned());
        let new = ledger.update(snapshot(&[], &[("9", "exitCode=3 jobState=PENDING", 0)]));
        let expected = "new Job of 2 3 exitCode=3 jobState=PENDING jobSubId=JOB_1 queueId=2";
        assert_eq!(told(&new), [expected]);
        let changed = ledger.update(snapshot(&[], &[("9", "jobState=PENDING", 0)]));
        assert_eq!(told(&changed), ["changed Job 3 exitCode=0"]);
        let down = ledger.machine_is("ALERT");
        assert_eq!(told(&down), ["changed Machine 1 machineState=ALERT"]);
        let up = ledger.update(snapshot(&[], &[("9", "jobState=PENDING", 0)]));
        assert_eq!(told(&up), ["changed Machine 1 machineState=UP"]);
    }
}
