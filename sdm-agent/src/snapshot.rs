//! What a resource manager has at one time, in its own names.

use std::collections::BTreeMap;

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
