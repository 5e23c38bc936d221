//! Current names for a shell's completions. A manager that cannot be queried contributes none, without a
//! message.

use std::time::Duration;

use sdm_rm::{Answer, Clusters, Kind, Look, Question};
use sdm_runtime::JOB_NUMBERS;
use sdm_runtime::attribute as id;

use super::choose::look;
use super::element::Element;
use super::error::ClusterError;

/// Time limit for a manager, because a user waits at a prompt.
const WAIT: Duration = Duration::from_secs(2);
/// The types of resource managers with an agent in SDM.
const TYPES: [&str; 7] = [
    "slurm",
    "gridengine",
    "openmpi",
    "hydra",
    "prrte",
    "ssh",
    "local",
];

/// Names of the defined clusters.
pub(crate) fn clusters() -> Vec<String> {
    let defined = Clusters::load().map(|all| all.iter().map(|it| it.name.clone()).collect());
    defined.unwrap_or_default()
}

/// The types of clusters.
pub(crate) fn types() -> Vec<String> {
    TYPES.map(str::to_owned).to_vec()
}

/// Names of the queues of started clusters.
pub(crate) fn queues() -> Vec<String> {
    named(&[Kind::Queue])
}

/// The queues of the started clusters, with their states. If several clusters answer, names have the form
/// `CLUSTER:QUEUE`.
///
/// # Errors
/// No cluster is started, or none can be queried.
pub(crate) fn queue_states() -> Result<Vec<(String, String)>, ClusterError> {
    let answers = look(None, &[Look::at(&[Kind::Queue])])?;
    let queues = Element::all(&answers, Kind::Queue).map(|queue| {
        let name = match answers.len() {
            1 => queue.name().to_owned(),
            _ => format!("{}:{}", queue.cluster(), queue.name()),
        };
        (name, queue.text(id::QUEUE_STATE))
    });
    Ok(queues.collect())
}

/// Names that `sdm show` accepts.
pub(crate) fn elements() -> Vec<String> {
    [
        clusters(),
        named(&[Kind::Machine, Kind::Node, Kind::Queue]),
        jobs(),
    ]
    .concat()
}

/// The numbers of jobs. A number that several clusters have gets its cluster's name.
pub(crate) fn jobs() -> Vec<String> {
    let answers = numbered();
    let all: Vec<_> = Element::all(&answers, Kind::Job).collect();
    let several = |job: &Element<'_>| all.iter().filter(|it| it.job() == job.job()).count() > 1;
    let name = |job: &Element<'_>| match several(job) {
        true => format!("{}:{}", job.cluster(), job.job()),
        false => job.job().to_owned(),
    };
    all.iter().map(name).collect()
}

/// Jobs as targets for a debugger.
pub(crate) fn jobs_of_clusters() -> Vec<String> {
    let answers = numbered();
    let jobs = Element::all(&answers, Kind::Job);
    jobs.map(|job| format!("{}:{}", job.cluster(), job.job()))
        .collect()
}

fn numbered() -> Vec<Answer> {
    ask(Look {
        by: Some(JOB_NUMBERS.map(str::to_owned).to_vec()),
        ..Look::at(&[Kind::Job])
    })
}

fn named(kinds: &[Kind]) -> Vec<String> {
    let answers = ask(Look {
        by: Some(vec![id::NAME.to_owned()]),
        ..Look::at(kinds)
    });
    let of = |kind| Element::all(&answers, kind).map(|it| it.name().to_owned());
    let mut names: Vec<String> = kinds.iter().copied().flat_map(of).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn ask(look: Look) -> Vec<Answer> {
    let question = Question::Elements {
        looks: vec![look],
        is_fresh: false,
    };
    let names = clusters().into_iter();
    let started = names.filter(|name| sdm_rm::is_running(name));
    started
        .filter_map(|name| sdm_rm::ask(&name, &question, WAIT).ok())
        .collect()
}
