//! A snapshot of the runtime platform for the screen.

use sdm_runtime::attribute as id;
use sdm_runtime::wire::event::Kind;
use sdm_runtime::{JOB_NUMBERS, JobAttributes};
use sdm_text::printable;

/// A defined cluster with its resource manager.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// The name of the cluster.
    pub name: String,
    /// The type of resource manager: `slurm`, `local`, ...
    pub rm_type: String,
    /// The host; empty for this one.
    pub host: String,
    /// Further options for ssh.
    pub ssh_options: Vec<String>,
    /// The agent's path on that host; empty for the default.
    pub agent: String,
    /// Further arguments for the agent.
    pub agent_args: Vec<String>,
    /// The user's description of the cluster.
    pub description: String,
    /// The state, a word of "PTP runtime platform, Resource Manager".
    pub state: String,
    /// Time at which it entered its state, in seconds of Unix time; 0 if unknown.
    pub since: u64,
    /// The reason of its state; empty if unknown.
    pub reason: String,
    /// True if its elements are out of date.
    pub stale: bool,
    /// Age of its elements, in seconds, rounded up; `None` if it is not known.
    pub age: Option<u64>,
    /// The user's name there; empty if unknown.
    pub user: String,
}

/// Elements of one kind with equal attributes, or a single element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The name of the cluster that has the elements.
    pub cluster: String,
    /// The kind of element.
    pub kind: Kind,
    /// The id of the parent element.
    pub parent: String,
    /// The elements' ids, as a range set.
    pub ids: String,
    /// Attribute ids, with their values as text.
    pub attributes: Vec<(String, String)>,
    /// Attribute ids, with the elements' numbers as range sets.
    pub sets: Vec<(String, String)>,
}

/// The end of a job's output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The path of the file.
    pub path: String,
    /// The last lines of the file.
    pub lines: Vec<String>,
    /// The error; empty on success.
    pub error: String,
}

/// A snapshot of the runtime platform.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The defined resource managers.
    pub clusters: Vec<Cluster>,
    /// Machines, nodes, queues and jobs, and the processes of the requested job ([`Wants`]).
    pub items: Vec<Item>,
    /// The names of launch configurations.
    pub profiles: Vec<String>,
    /// The output of the requested job; None if no process of it is shown in detail.
    pub output: Option<Output>,
    /// The error that prevented the snapshot; empty on success.
    pub error: String,
}

/// Details that the screen requests in addition to a snapshot's standard content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// The cluster and the element id of the job whose processes are shown. None if none are shown.
    pub job: Option<(String, String)>,
    /// The element id of the process of that job that is shown in detail, together with the job's output. None if none
    /// is shown.
    pub process: Option<String>,
}

impl Facts {
    /// The age of the oldest elements, to be shown behind other text; empty if it is not known.
    pub(crate) fn age_text(&self) -> String {
        let ages = self.clusters.iter().filter_map(|it| it.age);
        let text = |age| format!("  age: {age} s");
        ages.max().map_or_else(String::new, text)
    }

    /// Escapes control characters in all texts.
    pub(crate) fn escaped(mut self) -> Self {
        for it in &mut self.clusters {
            let texts = [&mut it.name, &mut it.rm_type, &mut it.host, &mut it.state];
            texts.into_iter().for_each(escape);
            let texts = [
                &mut it.reason,
                &mut it.user,
                &mut it.agent,
                &mut it.description,
            ];
            texts.into_iter().for_each(escape);
            let words = it.ssh_options.iter_mut().chain(&mut it.agent_args);
            words.for_each(escape);
        }
        for it in &mut self.items {
            [&mut it.cluster, &mut it.parent, &mut it.ids]
                .into_iter()
                .for_each(escape);
            for (id, value) in it.attributes.iter_mut().chain(&mut it.sets) {
                escape(id);
                escape(value);
            }
        }
        self.profiles.iter_mut().for_each(escape);
        if let Some(output) = &mut self.output {
            escape(&mut output.path);
            escape(&mut output.error);
            output.lines.iter_mut().for_each(escape);
        }
        escape(&mut self.error);
        self
    }

    pub(crate) fn of(&self, kind: Kind) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(move |item| item.kind == kind)
    }
}

impl JobAttributes for Item {
    fn attribute(&self, id: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(known, _)| known == id);
        found.map(|(_, value)| &**value).filter(|it| !it.is_empty())
    }
}

impl Item {
    pub(crate) fn get(&self, id: &str) -> Option<&str> {
        self.attribute(id)
    }

    pub(crate) fn text(&self, id: &str) -> String {
        self.get(id).unwrap_or_default().to_owned()
    }

    pub(crate) fn set(&self, id: &str) -> &str {
        let found = self.sets.iter().find(|(known, _)| known == id);
        found.map_or("", |(_, numbers)| numbers)
    }

    pub(crate) fn name(&self) -> &str {
        self.get(id::NAME).unwrap_or(&self.ids)
    }

    /// A job's number, as its manager's own commands take it.
    pub(crate) fn job(&self) -> &str {
        let known = JOB_NUMBERS.into_iter().find_map(|id| self.get(id));
        known.unwrap_or(&self.ids)
    }

    /// The ranges of the elements' numbers, ascending. Empty for an element with a string id.
    pub(crate) fn ranges(&self) -> Vec<(u32, u32)> {
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            (first <= last).then_some((first, last))
        };
        let all: Option<Vec<_>> = self.ids.split(',').map(range).collect();
        all.unwrap_or_default()
    }

    /// Number of elements in the group.
    pub(crate) fn count(&self) -> u64 {
        let each = self.ranges().into_iter();
        let sum: u64 = each.map(|(first, last)| u64::from(last - first) + 1).sum();
        sum.max(1)
    }
}

fn escape(text: &mut String) {
    if text.bytes().any(|byte| !(b' '..=b'~').contains(&byte)) {
        *text = printable(text.as_bytes()).replace('\t', " ");
    }
}
