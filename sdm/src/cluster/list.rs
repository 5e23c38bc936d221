//! Nodes, queues and jobs as tables and as JSON.

use std::collections::BTreeMap;

use sdm_hosts::hostlist;
use sdm_rm::{Answer, Definition, Kind, Look};
use sdm_runtime::JobAttributes;
use sdm_runtime::attribute as id;
use sdm_runtime::states::{self, Job};
use sdm_text::span;
use serde_json::{Value, json};

use super::choose::{look_at, started};
use super::element::{Element, managers, names};
use super::table::{Stand, Table};
use super::times;
use crate::sink::complain;

/// Time for which an ended job is listed without `--all`, in seconds.
const SHOWN_SECONDS: u64 = 86_400;

/// The subject of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// The nodes, equal ones in one row.
    Nodes,
    /// The queues.
    Queues,
    /// Jobs.
    Jobs {
        /// True for the jobs of all users, and for older ones.
        all: bool,
    },
}

impl Which {
    /// The kinds of elements to query.
    pub(super) fn kinds(self) -> &'static [Kind] {
        match self {
            Self::Nodes => &[Kind::Machine, Kind::Node],
            Self::Queues => &[Kind::Queue, Kind::Job],
            Self::Jobs { .. } => &[Kind::Machine, Kind::Queue, Kind::Job],
        }
    }

    pub(super) fn table(self, answers: &[Answer], now: u64) -> Table {
        match self {
            Self::Nodes => nodes(answers),
            Self::Queues => queues(answers),
            Self::Jobs { all } => jobs(answers, all, now),
        }
    }

    pub(super) fn json(self, answers: &[Answer]) -> Value {
        let of = |kind| Element::all(answers, kind).map(|it| it.json());
        let (name, elements): (&str, Value) = match self {
            Self::Nodes => ("nodes", of(Kind::Node).collect()),
            Self::Queues => ("queues", of(Kind::Queue).collect()),
            Self::Jobs { all } => {
                let shown = shown_jobs(answers, all, times::now());
                ("jobs", shown.iter().map(Element::json).collect())
            }
        };
        json!({ "clusters": managers(answers), name: elements })
    }

    /// The text for an empty table.
    pub(super) fn nothing(self) -> &'static str {
        match self {
            Self::Nodes => "no nodes",
            Self::Queues => "no queues",
            Self::Jobs { all: true } => "no jobs",
            Self::Jobs { all: false } => {
                "you have no jobs; --all shows the jobs of all users, and older ones"
            }
        }
    }
}

/// The cluster's name. Empty if only one cluster has answered.
fn cluster(answers: &[Answer], element: &Element<'_>) -> String {
    match answers.len() {
        0 | 1 => String::new(),
        _ => element.cluster().to_owned(),
    }
}

fn nodes(answers: &[Answer]) -> Table {
    let mut table = Table::new(&[
        ("CLUSTER", Stand::Left),
        ("STATE", Stand::Left),
        ("USE", Stand::Left),
        ("NODES", Stand::Right),
        ("CPUS", Stand::Right),
        ("NAMES", Stand::Cut),
        ("REASON", Stand::Cut),
    ]);
    let mut alike: BTreeMap<[String; 5], Vec<&str>> = BTreeMap::new();
    for node in Element::all(answers, Kind::Node) {
        let used = [states::NODE_EXTRA, states::NODE_PROCESSES];
        let used = used.map(|it| node.text(it.attribute));
        let used = used
            .into_iter()
            .filter(|it| !it.is_empty() && it != states::NODE_EXTRA.default);
        let like = [
            cluster(answers, &node),
            node.text(id::NODE_STATE),
            used.collect::<Vec<_>>().join(" "),
            node.text(id::NODE_CPUS),
            node.text(id::NODE_REASON),
        ];
        alike.entry(like).or_default().push(node.name());
    }
    for ([cluster, state, used, cpus, reason], names) in alike {
        let count = names.len().to_string();
        let names = hostlist::list(names);
        table.push(vec![cluster, state, used, count, cpus, names, reason]);
    }
    table
}

fn queues(answers: &[Answer]) -> Table {
    let mut table = Table::new(&[
        ("CLUSTER", Stand::Left),
        ("QUEUE", Stand::Left),
        ("STATE", Stand::Left),
        ("LIMIT", Stand::Left),
        ("RUNNING", Stand::Right),
        ("PENDING", Stand::Right),
    ]);
    for queue in Element::all(answers, Kind::Queue) {
        let jobs = |is_counted: fn(Job) -> bool| {
            let of_it = |job: &Element<'_>| {
                let is_here = job.get(id::QUEUE_ID) == Some(&*queue.group.ids);
                is_here && job.state().is_some_and(is_counted)
            };
            let jobs = Element::all(std::slice::from_ref(queue.of), Kind::Job);
            jobs.filter(of_it).count().to_string()
        };
        // sinfo marks the default queue in this way, too.
        let mark = match queue.get(id::QUEUE_IS_DEFAULT) {
            Some("true") => "*",
            _ => "",
        };
        table.push(vec![
            cluster(answers, &queue),
            format!("{}{mark}", queue.name()),
            queue.text(id::QUEUE_STATE),
            queue.text(id::QUEUE_TIME_LIMIT),
            jobs(Job::has_nodes),
            jobs(|state| state == Job::Pending),
        ]);
    }
    table
}

/// The user's jobs, including those that ended within the last day. A job whose owner or whose cluster's user is
/// unknown counts as the user's. With `all`, the jobs of all users and older ones.
fn shown_jobs(answers: &[Answer], all: bool, now: u64) -> Vec<Element<'_>> {
    let is_recent = |job: &Element<'_>| {
        let end = job.number(id::END_TIME).filter(|end| *end > 0);
        !job.state().is_some_and(Job::has_ended)
            || end.is_none_or(|end| now.saturating_sub(end) < SHOWN_SECONDS)
    };
    let users: BTreeMap<&str, &str> = Element::all(answers, Kind::Machine)
        .filter_map(|machine| Some((machine.cluster(), machine.get(id::USER_ID)?)))
        .collect();
    let is_own = |job: &Element<'_>| match (users.get(job.cluster()), job.get(id::USER_ID)) {
        (Some(user), Some(owner)) => *user == owner,
        _ => true,
    };
    let jobs = Element::all(answers, Kind::Job);
    let shown = jobs.filter(|job| all || is_own(job) && is_recent(job));
    let mut shown: Vec<_> = shown.collect();
    // Sorted by number: job 17_3 follows job 2.
    shown.sort_by_cached_key(|job| {
        let digits = job.job().split(|c: char| !c.is_ascii_digit()).next();
        let number: Option<u64> = digits.and_then(|digits| digits.parse().ok());
        (job.cluster(), number, job.job())
    });
    shown
}

/// A running job that is not being debugged.
pub(crate) struct RunningJob {
    /// The target for `sdm attach`: `CLUSTER:JOB`.
    pub(crate) target: String,
    /// A label for a person.
    pub(crate) label: String,
    /// The pid of the job's launcher; None if it is not known.
    pub(crate) starter: Option<i32>,
}

/// The user's running jobs that are not being debugged, in clusters of this host that are started. A manager that does
/// not answer is reported.
pub(crate) fn running() -> Vec<RunningJob> {
    let here = |it: &Definition| it.host.is_none();
    let clusters = started(None).unwrap_or_default().into_iter().filter(here);
    let clusters: Vec<Definition> = clusters.collect();
    let answers = look_at(&clusters, &[Look::at(&[Kind::Machine, Kind::Job])]);
    let answers = answers.unwrap_or_else(|error| {
        complain(format_args!("sdm: {error}"));
        Vec::new()
    });
    let runs = |job: &Element<'_>| {
        job.state() == Some(Job::Running) && job.get(id::DEBUG_SESSION).is_none()
    };
    let jobs = shown_jobs(&answers, false, times::now());
    let jobs = jobs.into_iter().filter(runs);
    jobs.map(|job| RunningJob {
        target: format!("{}:{}", job.cluster(), job.job()),
        label: label(&job),
        starter: job
            .number(id::STARTER_PID)
            .and_then(|pid| i32::try_from(pid).ok()),
    })
    .collect()
}

fn label(job: &Element<'_>) -> String {
    let name = sdm_text::printable(job.name().as_bytes());
    match job.number(id::JOB_NUM_PROCS) {
        Some(count) if count > 1 => format!("{name}, {count} processes"),
        _ => name,
    }
}

fn jobs(answers: &[Answer], all: bool, now: u64) -> Table {
    let mut table = Table::new(&[
        ("CLUSTER", Stand::Left),
        ("JOB", Stand::Right),
        ("NAME", Stand::Cut),
        ("USER", Stand::Left),
        ("STATE", Stand::Left),
        ("QUEUE", Stand::Left),
        ("PROCS", Stand::Right),
        ("TIME", Stand::Right),
        ("NODES", Stand::Cut),
        ("REASON", Stand::Cut),
    ]);
    let queues = names(answers, Kind::Queue);
    for job in shown_jobs(answers, all, now) {
        let queue = job.get(id::QUEUE_ID).unwrap_or_default();
        let queue = queues.get(&(job.cluster(), queue)).copied();
        let state = match job.get(id::DEBUG_SESSION) {
            Some(_) => Some("DEBUGGED"),
            None => job.get(id::JOB_STATUS).or_else(|| job.get(id::JOB_STATE)),
        };
        table.push(vec![
            cluster(answers, &job),
            job.job().to_owned(),
            job.name().to_owned(),
            if all {
                job.text(id::USER_ID)
            } else {
                String::new()
            },
            state.unwrap_or_default().to_owned(),
            queue.unwrap_or_default().to_owned(),
            job.text(id::JOB_NUM_PROCS),
            job.run_time(now).map(span).unwrap_or_default(),
            job.text(id::JOB_NODES),
            job.reason(),
        ]);
    }
    table
}
