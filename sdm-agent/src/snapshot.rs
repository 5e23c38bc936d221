//! What a resource manager has at one time, in its own names.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// The values of an element by the ids of their definitions, as the wire writes them.
pub type Attributes = BTreeMap<String, String>;

/// All that a manager has, as one look at it found it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The machine that it manages.
    pub machine: Attributes,
    /// Its nodes by their names.
    pub nodes: BTreeMap<String, Attributes>,
    /// Its queues by their names; one at least.
    pub queues: BTreeMap<String, Attributes>,
    /// Its jobs by their numbers, as the manager writes them.
    pub jobs: BTreeMap<String, Job>,
    /// Jobs are gone whose end it does not know yet: it is to be asked again soon.
    pub is_unsettled: bool,
}

impl Snapshot {
    /// Says of each node who has it ("PTP runtime platform, Node"): jobs of this user's, or of others only; `nodes_of` says where a job
    /// is, and `is_full` of what nodes one job has all.
    pub(crate) fn mark_nodes(
        &mut self,
        user: &str,
        nodes_of: impl Fn(&Job) -> Vec<String>,
        is_full: impl Fn(&Attributes) -> bool,
    ) {
        // How many jobs are there, and whether one is the user's.
        let mut on: BTreeMap<String, (usize, bool)> = BTreeMap::new();
        for job in self.jobs.values() {
            let value = |id: &str| job.attributes.get(id).map(String::as_str);
            let has_nodes = matches!(value("jobState"), Some("STARTED" | "RUNNING" | "SUSPENDED"));
            if !has_nodes {
                continue;
            }
            let is_own = value("userId") == Some(user);
            let nodes: BTreeSet<String> = nodes_of(job).into_iter().collect();
            for node in nodes {
                let (count, own) = on.entry(node).or_default();
                *count += 1;
                *own |= is_own;
            }
        }
        for (name, node) in &mut self.nodes {
            let word = match on.get(name) {
                None => "NONE",
                Some((1, true)) if is_full(node) => "USER_ALLOC_EXCL",
                Some((_, true)) => "USER_ALLOC_SHARED",
                Some((1, false)) if is_full(node) => "OTHER_ALLOC_EXCL",
                Some((_, false)) => "OTHER_ALLOC_SHARED",
            };
            set(node, "nodeExtraState", word);
        }
    }
}

/// A job of a manager.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The name of its queue.
    pub queue: String,
    /// Its attributes, without `queueId`.
    pub attributes: Attributes,
    /// Its processes in the order of their indices.
    pub processes: Vec<Process>,
}

/// A process of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// The name of the node that it is on, where that is known.
    pub node: Option<String>,
    /// Its attributes, without `processNodeId` and `processIndex`.
    pub attributes: Attributes,
}

/// Sets a value where there is one: what is empty is not told.
pub(crate) fn set(attributes: &mut Attributes, id: &str, value: impl Into<String>) {
    let value = value.into();
    if !value.is_empty() {
        attributes.insert(id.to_owned(), value);
    }
}

/// Tells of the kept session of a job that waits in one, once it runs.
pub(crate) fn set_session(attributes: &mut Attributes, prefix: &str, number: &str) {
    if attributes.get("jobState").is_some_and(|it| it == "RUNNING") {
        set(attributes, "debugSession", format!("{prefix}{number}"));
    }
}
