//! Selection of the clusters to query, and of the job that is meant.

use std::time::Duration;

use sdm_rm::{Answer, Clusters, Definition, Kind, Look, Question};
use sdm_runtime::JOB_NUMBERS;

use super::element::Element;
use super::error::ClusterError;
use crate::sink::complain;

/// Time limit for a manager to answer a query.
pub(super) const ANSWER_WAIT: Duration = Duration::from_secs(20);
/// Time limit for a manager to carry out a request: its commands can wait for a controller.
pub(super) const DONE_WAIT: Duration = Duration::from_secs(180);

/// The named cluster, or all defined ones.
///
/// # Errors
/// No cluster is defined, or none has this name.
pub(super) fn defined(named: Option<&str>) -> Result<Vec<Definition>, ClusterError> {
    let clusters = Clusters::load()?;
    if let Some(name) = named {
        return Ok(vec![clusters.get(name)?.clone()]);
    }
    let all: Vec<Definition> = clusters.iter().cloned().collect();
    match all.is_empty() {
        true => Err(ClusterError::NoneDefined),
        false => Ok(all),
    }
}

/// The named cluster, or all defined ones, without those that are not started.
///
/// # Errors
/// No cluster is started, or those of [`defined`].
pub(super) fn started(named: Option<&str>) -> Result<Vec<Definition>, ClusterError> {
    let all = defined(named)?;
    let names = all
        .iter()
        .map(|definition| definition.name.clone())
        .collect();
    let started: Vec<Definition> = all
        .into_iter()
        .filter(|definition| sdm_rm::is_running(&definition.name))
        .collect();
    match started.is_empty() {
        true => Err(ClusterError::NoneStarted(names)),
        false => Ok(started),
    }
}

/// Queries a manager. A refusal is an error.
///
/// # Errors
/// The manager cannot be queried, or refuses.
pub(super) fn ask(name: &str, question: &Question, wait: Duration) -> Result<Answer, ClusterError> {
    let answer = sdm_rm::ask(name, question, wait)?;
    match answer.error {
        Some(said) => Err(ClusterError::Refused {
            cluster: name.to_owned(),
            said,
        }),
        None => Ok(answer),
    }
}

/// Queries the named manager, or all started ones. A manager that cannot be queried is reported, and the others'
/// answers are returned.
///
/// # Errors
/// No manager could be queried.
pub(super) fn look(named: Option<&str>, looks: &[Look]) -> Result<Vec<Answer>, ClusterError> {
    look_at(&started(named)?, looks)
}

/// Queries these managers at the same time, as [`look`] does.
///
/// # Errors
/// None of the managers could be queried.
pub(super) fn look_at(
    clusters: &[Definition],
    looks: &[Look],
) -> Result<Vec<Answer>, ClusterError> {
    let question = Question::Elements {
        looks: looks.to_vec(),
        is_fresh: true,
    };
    let asked = std::thread::scope(|scope| {
        let ask = |of: &Definition| ask(&of.name, &question, ANSWER_WAIT);
        let asking = clusters.iter().map(|of| scope.spawn(move || ask(of)));
        let asking: Vec<_> = asking.collect();
        let ended = asking.into_iter().map(|it| it.join());
        let ended: Vec<_> = ended.map(|it| it.expect("it does not panic")).collect();
        ended
    });
    let mut answers = Vec::new();
    let mut first = None;
    for asked in asked {
        match asked {
            Ok(answer) => answers.push(answer),
            Err(error) => {
                if let Some(earlier) = first.replace(error) {
                    complain(format_args!("sdm: {earlier}"));
                }
            }
        }
    }
    match first {
        Some(error) if answers.is_empty() => Err(error),
        Some(error) => {
            complain(format_args!("sdm: {error}"));
            Ok(answers)
        }
        None => Ok(answers),
    }
}

/// A job of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// The cluster's name.
    pub(crate) cluster: String,
    /// The job's number, as its manager's own commands take it.
    pub(crate) job: String,
    /// The id of the job's element.
    pub(crate) id: String,
}

/// Splits `CLUSTER:REST` if a cluster of this name is defined. Otherwise returns the whole text with the cluster
/// `named`, if there is one.
pub(super) fn split<'a>(
    text: &'a str,
    named: Option<&'a str>,
) -> Result<(Option<&'a str>, &'a str), ClusterError> {
    if let Some((cluster, rest)) = text.split_once(':')
        && defined(None)?.iter().any(|it| it.name == cluster)
    {
        return Ok((Some(cluster), rest));
    }
    Ok((named, text))
}

/// The job with this number: in the cluster that `text` or `named` names, otherwise in any started one.
///
/// # Errors
/// No cluster has a job of this number, or several have one.
pub(super) fn job(text: &str, named: Option<&str>) -> Result<Chosen, ClusterError> {
    let (named, number) = split(text, named)?;
    let numbers = Look {
        by: Some(JOB_NUMBERS.map(str::to_owned).to_vec()),
        ..Look::at(&[Kind::Job])
    };
    let answers = look(named, &[numbers])?;
    let found: Vec<Chosen> = Element::all(&answers, Kind::Job)
        .filter(|element| element.job() == number)
        .map(|element| Chosen {
            cluster: element.cluster().to_owned(),
            job: element.job().to_owned(),
            id: element.group.ids.clone(),
        })
        .collect();
    let names = || answers.iter().map(|it| it.manager.name.clone()).collect();
    match &found[..] {
        [one] => Ok(one.clone()),
        [] => Err(ClusterError::NoJob(number.to_owned(), names())),
        several => {
            let each = several.iter();
            let each = each.map(|it| format!("{}:{}", it.cluster, it.job));
            Err(ClusterError::WhichJob(number.to_owned(), each.collect()))
        }
    }
}
