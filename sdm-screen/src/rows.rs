//! The rows of each view's table, from a snapshot.

use std::collections::{BTreeMap, HashMap};

use sdm_runtime::wire::event::Kind;
use sdm_runtime::{JobAttributes, attribute as id, states};
use sdm_text::span;

use crate::platform_state::{Facts, Item};
use crate::table::{Column, Row, cut, left, right};

pub(crate) const MANAGERS: &[Column] = &[
    left("CLUSTER"),
    left("TYPE"),
    cut("HOST"),
    left("STATE"),
    right("SINCE"),
    cut("REASON"),
];
pub(crate) const MACHINES: &[Column] = &[cut("MACHINE"), left("STATE"), right("NODES")];
pub(crate) const JOBS: &[Column] = &[
    left("CLUSTER"),
    right("JOB"),
    cut("NAME"),
    left("USER"),
    left("STATE"),
    left("QUEUE"),
    right("PROCS"),
    right("TIME"),
    cut("NODES"),
    cut("REASON"),
];
pub(crate) const PROCESSES: &[Column] = &[
    cut("RANKS"),
    right("COUNT"),
    left("STATE"),
    cut("NODE"),
    left("EXIT"),
    cut("PIDS"),
];

/// The sort key of jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Order {
    /// Cluster and number.
    #[default]
    Number,
    State,
    User,
    Processes,
    Time,
}

impl Order {
    pub(crate) fn next(self) -> Self {
        match self {
            Self::Number => Self::State,
            Self::State => Self::User,
            Self::User => Self::Processes,
            Self::Processes => Self::Time,
            Self::Time => Self::Number,
        }
    }

    /// The sort key with this name; None for an unknown name.
    pub(crate) fn named(word: &str) -> Option<Self> {
        let first = Some(Self::default());
        let all =
            std::iter::successors(first, |it| Some(it.next()).filter(|it| Some(*it) != first));
        all.into_iter().find(|it| it.word() == word)
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::State => "state",
            Self::User => "user",
            Self::Processes => "processes",
            Self::Time => "time",
        }
    }
}

/// The order and selection of listed jobs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Listing {
    pub(crate) order: Order,
    pub(crate) reverse: bool,
    /// True if only the user's own jobs are listed.
    pub(crate) own: bool,
}

pub(crate) fn managers(facts: &Facts, now: u64) -> Vec<Row> {
    let row = |it: &crate::platform_state::Cluster| {
        let since = (it.since > 0).then(|| span(now.saturating_sub(it.since)));
        let reason = match it.stale {
            true => format!("not up to date: {}", it.reason),
            false => it.reason.clone(),
        };
        Row {
            key: (it.name.clone(), String::new()),
            name: it.name.clone(),
            state: it.state.clone(),
            cells: vec![
                it.name.clone(),
                it.rm_type.clone(),
                it.host.clone(),
                it.state.clone(),
                since.unwrap_or_default(),
                reason,
            ],
        }
    };
    facts.clusters.iter().map(row).collect()
}

pub(crate) fn machines(facts: &Facts) -> Vec<Row> {
    let mut nodes: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for node in facts.of(Kind::Node) {
        *nodes.entry((&node.cluster, &node.parent)).or_default() += node.count();
    }
    let row = |it: &Item| {
        let state = it.text(id::MACHINE_STATE);
        let count = nodes.get(&(&*it.cluster, &*it.ids)).copied();
        Row {
            key: (it.cluster.clone(), it.ids.clone()),
            name: it.name().to_owned(),
            cells: vec![
                it.name().to_owned(),
                state.clone(),
                count.unwrap_or_default().to_string(),
            ],
            state,
        }
    };
    facts.of(Kind::Machine).map(row).collect()
}

pub(crate) fn jobs(facts: &Facts, listing: Listing, now: u64) -> Vec<Row> {
    let users = facts.clusters.iter().map(|it| (&*it.name, &*it.user));
    let users: BTreeMap<&str, &str> = users.filter(|(_, user)| !user.is_empty()).collect();
    let queues: BTreeMap<(&str, &str), &str> = facts
        .of(Kind::Queue)
        .map(|it| ((&*it.cluster, &*it.ids), it.name()))
        .collect();
    let is_shown = |job: &&Item| match (users.get(&*job.cluster), job.get(id::USER_ID)) {
        (Some(user), Some(owner)) => !listing.own || *user == owner,
        _ => true,
    };
    let mut jobs: Vec<&Item> = facts.of(Kind::Job).filter(is_shown).collect();
    // Sorted by number: job 17_3 follows job 2.
    jobs.sort_by_cached_key(|job| {
        let digits = job.job().split(|c: char| !c.is_ascii_digit()).next();
        let number: Option<u64> = digits.and_then(|digits| digits.parse().ok());
        (&job.cluster, number, job.job())
    });
    match listing.order {
        Order::Number => {}
        Order::State => jobs.sort_by_cached_key(|job| job.text(id::JOB_STATE)),
        Order::User => jobs.sort_by_cached_key(|job| job.text(id::USER_ID)),
        Order::Processes => jobs.sort_by_cached_key(|job| job.number(id::JOB_NUM_PROCS)),
        Order::Time => jobs.sort_by_cached_key(|job| job.run_time(now)),
    }
    if listing.reverse {
        jobs.reverse();
    }
    let row = |job: &Item| {
        let queue = job.get(id::QUEUE_ID).unwrap_or_default();
        let queue = queues.get(&(&*job.cluster, queue)).copied();
        let word = match job.get(id::DEBUG_SESSION) {
            Some(_) => Some("DEBUGGED"),
            None => job.get(id::JOB_STATUS).or_else(|| job.get(id::JOB_STATE)),
        };
        Row {
            key: (job.cluster.clone(), job.ids.clone()),
            name: format!("{}:{}", job.cluster, job.job()),
            state: job
                .get(id::JOB_STATE)
                .unwrap_or(states::JOB.default)
                .to_owned(),
            cells: vec![
                job.cluster.clone(),
                job.job().to_owned(),
                job.name().to_owned(),
                job.text(id::USER_ID),
                word.unwrap_or_default().to_owned(),
                queue.unwrap_or_default().to_owned(),
                job.text(id::JOB_NUM_PROCS),
                job.run_time(now).map(span).unwrap_or_default(),
                job.text(id::JOB_NODES),
                job.reason(),
            ],
        }
    };
    jobs.into_iter().map(row).collect()
}

/// The processes of one job, named by its cluster and id. Equal ones share a row.
pub(crate) fn processes(facts: &Facts, job: &(String, String)) -> Vec<Row> {
    let nodes: HashMap<(&str, &str), &str> = facts
        .of(Kind::Node)
        .filter_map(|it| Some(((&*it.cluster, &*it.ids), it.get(id::NAME)?)))
        .collect();
    let row = |it: &Item| {
        let node = it.get(id::PROCESS_NODE_ID).unwrap_or_default();
        let node = nodes.get(&(&*it.cluster, node)).copied().unwrap_or(node);
        let exit = it.get(id::PROCESS_SIGNAL_NAME);
        let exit = exit.or_else(|| it.get(id::PROCESS_EXIT_CODE));
        let state = it.text(id::PROCESS_STATE);
        let first = it.ids.split([',', '-']).next().unwrap_or_default();
        Row {
            key: (it.cluster.clone(), first.to_owned()),
            name: it.set(id::PROCESS_INDEX).to_owned(),
            cells: vec![
                it.set(id::PROCESS_INDEX).to_owned(),
                it.count().to_string(),
                state.clone(),
                node.to_owned(),
                exit.unwrap_or_default().to_owned(),
                it.set(id::PROCESS_PID).to_owned(),
            ],
            state,
        }
    };
    // Processes of a query for everything have no sets. The known facts may still belong to a job that was
    // selected before.
    let alike = facts
        .of(Kind::Process)
        .filter(|it| !it.sets.is_empty())
        .filter(|it| (&it.cluster, &it.parent) == (&job.0, &job.1));
    alike.map(row).collect()
}
