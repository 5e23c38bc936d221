//! The elements of a resource manager at one time, identified by the manager's own names and numbers.

use std::collections::{BTreeMap, BTreeSet};

use nix::sys::signal::Signal;
use sdm_runtime::attribute as id;
use sdm_runtime::states::{self, NodeUse, State};
use serde::{Deserialize, Serialize};

/// The attributes of an element: values by attribute id, as the proxy protocol writes them.
pub type Attributes = BTreeMap<String, String>;

/// All elements of a manager at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Attributes of the machine that the manager manages.
    pub machine: Attributes,
    /// The nodes by their names.
    pub nodes: BTreeMap<String, Attributes>,
    /// The queues by their names; at least one.
    pub queues: BTreeMap<String, Attributes>,
    /// The jobs by their numbers, as the manager writes them.
    pub jobs: BTreeMap<String, Job>,
    /// True if jobs have disappeared whose end the manager does not know yet: it should be queried again soon.
    pub is_unsettled: bool,
}

impl Snapshot {
    /// Sets the use of each node ("PTP runtime platform, Node"): by jobs of this user, or only by those of others.
    /// `nodes_of` returns a job's nodes. `is_full` returns true if one job has all of a node.
    pub(crate) fn mark_nodes(
        &mut self,
        user: &str,
        nodes_of: impl Fn(&Job) -> Vec<String>,
        is_full: impl Fn(&Attributes) -> bool,
    ) {
        // For each node, the number of jobs and whether one is the user's.
        let mut on: BTreeMap<String, (usize, bool)> = BTreeMap::new();
        for job in self.jobs.values() {
            if !job.state().is_some_and(states::Job::has_nodes) {
                continue;
            }
            let owner = job.attributes.get(id::USER_ID);
            let is_own = owner.is_some_and(|owner| owner == user);
            let nodes: BTreeSet<String> = nodes_of(job).into_iter().collect();
            for node in nodes {
                let (count, own) = on.entry(node).or_default();
                *count += 1;
                *own |= is_own;
            }
        }
        for (name, node) in &mut self.nodes {
            let used = match on.get(name) {
                None => NodeUse::None,
                Some((1, true)) if is_full(node) => NodeUse::UserExclusive,
                Some((_, true)) => NodeUse::UserShared,
                Some((1, false)) if is_full(node) => NodeUse::OtherExclusive,
                Some((_, false)) => NodeUse::OtherShared,
            };
            set_state(node, used);
        }
    }
}

/// A job of a resource manager.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Name of the queue in which the job is.
    pub queue: String,
    /// Attributes of the job, without `queueId`.
    pub attributes: Attributes,
    /// Processes of the job, in the order of their indices.
    pub processes: Vec<Process>,
}

impl Job {
    /// State of the job; `None` if the manager does not report it.
    pub(crate) fn state(&self) -> Option<states::Job> {
        state(&self.attributes)
    }

    /// Sets the states of the job and of its processes that have not ended to unknown, with the reason.
    pub(crate) fn set_unknown(&mut self, why: &str) {
        set_state(&mut self.attributes, states::Job::Unknown);
        set(&mut self.attributes, id::JOB_STATUS_MESSAGE, why);
        self.processes.iter_mut().for_each(Process::set_unknown);
    }
}

/// A process of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Name of the process's node; `None` if it is unknown.
    pub node: Option<String>,
    /// Attributes of the process, without `processNodeId` and `processIndex`.
    pub attributes: Attributes,
}

impl Process {
    /// Sets the state of the process to unknown, unless it has ended.
    pub(crate) fn set_unknown(&mut self) {
        if !has_ended(&self.attributes) {
            set_state(&mut self.attributes, states::Process::Unknown);
        }
    }
}

/// True for the attributes of a process that has ended.
fn has_ended(process: &Attributes) -> bool {
    use states::Process::{Error, Exited, Signalled};
    matches!(state(process), Some(Error | Exited | Signalled))
}

/// Sets an attribute, unless the value is empty.
pub(crate) fn set(attributes: &mut Attributes, id: &str, value: impl Into<String>) {
    let value = value.into();
    if !value.is_empty() {
        attributes.insert(id.to_owned(), value);
    }
}

/// Sets an attribute of the type ARRAY; each item ends with a zero byte in its value.
pub(crate) fn set_items<'a>(
    attributes: &mut Attributes,
    id: &str,
    items: impl IntoIterator<Item = &'a String>,
) {
    let items = items.into_iter().map(|item| format!("{item}\0"));
    set(attributes, id, items.collect::<String>());
}

/// The attributes as the wire has them: an attribute of the type ARRAY is repeated, once for each item.
pub(crate) fn wire_attributes(attributes: &[(String, String)]) -> Vec<(String, String)> {
    let pairs = attributes.iter().flat_map(|(id, value)| {
        let items: Vec<&str> = match [id::PROG_ARGS, id::ENV].contains(&&**id) {
            true => value.split_terminator('\0').collect(),
            false => vec![value],
        };
        items.into_iter().map(|item| (id.clone(), item.to_owned()))
    });
    pairs.collect()
}

/// Sets the end of a process whose job has ended: the job's signal, if one has ended the job. A process that had ended
/// before stays as it is.
pub(crate) fn set_end(process: &mut Attributes, job: &Attributes) {
    if has_ended(process) {
        return;
    }
    let signal = job.get(id::EXIT_SIGNAL).and_then(|it| it.parse().ok());
    match signal.and_then(|it: i32| Signal::try_from(it).ok()) {
        Some(signal) => {
            set_state(process, states::Process::Signalled);
            set(process, id::PROCESS_SIGNAL_NAME, signal.as_str());
        }
        None => set_state(process, states::Process::Exited),
    }
}

/// Sets the state attribute that belongs to the type of `state`.
pub(crate) fn set_state<S: State>(attributes: &mut Attributes, state: S) {
    set(attributes, S::STATES.attribute, state.word());
}

/// The state of type `S` among the attributes; `None` if it is missing or unknown.
pub(crate) fn state<S: State>(attributes: &Attributes) -> Option<S> {
    S::read(attributes.get(S::STATES.attribute)?)
}

/// Sets the debug session (`prefix` and `number`) of a job that is held for a debugger, once the job runs.
pub(crate) fn set_session(attributes: &mut Attributes, prefix: &str, number: &str) {
    if state(attributes) == Some(states::Job::Running) {
        set(attributes, id::DEBUG_SESSION, format!("{prefix}{number}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The use of a node, where these users' jobs are in these states, and a job has all of the node or not.
    fn use_of(jobs: &[(&str, states::Job)], is_full: bool) -> NodeUse {
        let mut snapshot = Snapshot::default();
        snapshot.nodes.insert("n1".to_owned(), Attributes::new());
        for (number, (user, state)) in (1..).zip(jobs) {
            let mut job = Job::default();
            set(&mut job.attributes, id::USER_ID, *user);
            set_state(&mut job.attributes, *state);
            snapshot.jobs.insert(number.to_string(), job);
        }
        snapshot.mark_nodes("ann", |_| vec!["n1".to_owned()], |_| is_full);
        state(&snapshot.nodes["n1"]).unwrap()
    }

    #[test]
    fn array_attribute_is_sent_as_one_pair_per_item() {
        let mut attributes = Attributes::new();
        set_items(
            &mut attributes,
            id::PROG_ARGS,
            &["-a", "", "b c"].map(str::to_owned),
        );
        set_items(&mut attributes, id::ENV, &[]);
        set(&mut attributes, id::NAME, "n");
        let all: Vec<_> = attributes.into_iter().collect();
        let pairs = wire_attributes(&all).into_iter();
        let pairs: Vec<String> = pairs.map(|(id, value)| format!("{id}={value}")).collect();
        assert_eq!(
            pairs,
            ["name=n", "progArgs=-a", "progArgs=", "progArgs=b c"]
        );
    }

    #[test]
    fn processes_of_a_killed_job_have_its_signal() {
        let ended = |state: states::Process, signal: &str| {
            let (mut process, mut job) = (Attributes::new(), Attributes::new());
            set_state(&mut process, state);
            set(&mut job, id::EXIT_SIGNAL, signal);
            set_end(&mut process, &job);
            let name = process.get(id::PROCESS_SIGNAL_NAME).cloned();
            (process[id::PROCESS_STATE].clone(), name)
        };
        let signalled = ("EXITED_SIGNALLED".to_owned(), Some("SIGTERM".to_owned()));
        assert_eq!(ended(states::Process::Running, "15"), signalled);
        assert_eq!(ended(states::Process::Suspended, "15"), signalled);
        let exited = ("EXITED".to_owned(), None);
        assert_eq!(ended(states::Process::Running, ""), exited);
        assert_eq!(ended(states::Process::Exited, "15"), exited);
    }

    #[test]
    fn node_is_exclusive_only_if_filled_by_one_job() {
        use states::Job::{Pending, Running, Suspended};
        let (own, other) = (("ann", Running), ("bob", Running));
        for (jobs, is_full, expected) in [
            (vec![own], true, NodeUse::UserExclusive),
            (vec![own], false, NodeUse::UserShared),
            (vec![other], true, NodeUse::OtherExclusive),
            (vec![other], false, NodeUse::OtherShared),
            (vec![other, ("ann", Suspended)], true, NodeUse::UserShared),
            (vec![other, other], true, NodeUse::OtherShared),
            (vec![("ann", Pending)], true, NodeUse::None),
            (vec![], true, NodeUse::None),
        ] {
            assert_eq!(use_of(&jobs, is_full), expected, "{jobs:?} {is_full}");
        }
    }
}
