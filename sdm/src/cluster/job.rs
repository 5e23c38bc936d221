//! One job: its processes, and where a debugger finds them.

use std::collections::BTreeMap;

use sdm_rm::{Answer, Definition, Kind, Question};
use serde_json::{Value, json};

use super::choose::{ANSWER_WAIT, Chosen, ask, defined, job, split};
use super::element::{Element, managers, names};
use super::error::ClusterError;
use super::fold::ranges;
use super::table::{Stand, Table};
use super::watch::{Shown, list};
use crate::cli::PsArgs;

/// `sdm ps`.
pub(super) fn processes(args: &PsArgs) -> Result<u8, ClusterError> {
    let chosen = job(&args.job, args.list.of.manager.as_deref())?;
    let mut of = args.list.clone();
    of.of.manager = Some(chosen.cluster.clone());
    list(&of, &[Kind::Node, Kind::Process], |answers| {
        let processes = of_job(answers, &chosen);
        match args.list.json {
            true => Shown::Json(json(answers, &chosen, &processes)),
            false => Shown::Table(table(answers, &processes), "no processes are known"),
        }
    })
}

fn of_job<'a>(answers: &'a [Answer], chosen: &Chosen) -> Vec<Element<'a>> {
    let all = Element::all(answers, Kind::Process);
    all.filter(|process| process.group.parent == chosen.id)
        .collect()
}

fn json(answers: &[Answer], chosen: &Chosen, processes: &[Element<'_>]) -> Value {
    let processes: Value = processes.iter().map(Element::json).collect();
    json!({ "clusters": managers(answers), "job": chosen.job, "processes": processes })
}

/// Processes alike in one row: where they are, and how it is with them.
fn table(answers: &[Answer], processes: &[Element<'_>]) -> Table {
    let mut table = Table::new(&[
        ("RANKS", Stand::Cut),
        ("NODE", Stand::Left),
        ("STATE", Stand::Left),
        ("EXIT", Stand::Left),
        ("PIDS", Stand::Cut),
    ]);
    let nodes = names(answers, Kind::Node);
    let mut alike: BTreeMap<[&str; 3], (Vec<u64>, Vec<u64>)> = BTreeMap::new();
    for process in processes {
        let node = process.get("processNodeId").unwrap_or_default();
        let node = nodes.get(&(process.cluster(), node)).copied();
        let state = process.get("processState").unwrap_or_default();
        let exit = process.get("processSignalName");
        let exit = exit.or_else(|| process.get("processExitCode"));
        let like = [node.unwrap_or_default(), state, exit.unwrap_or_default()];
        let (ranks, pids) = alike.entry(like).or_default();
        ranks.extend(process.number("processIndex"));
        pids.extend(process.number("processPID"));
    }
    let mut rows: Vec<_> = alike.into_iter().collect();
    for (_, (ranks, pids)) in &mut rows {
        ranks.sort_unstable();
        pids.sort_unstable();
    }
    rows.sort_by_key(|(_, (ranks, _))| ranks.first().copied());
    for ([node, state, exit], (ranks, pids)) in rows {
        table.push(vec![
            ranges(&ranks, 0),
            node.to_owned(),
            state.to_owned(),
            exit.to_owned(),
            ranges(&pids, 0),
        ]);
    }
    table
}

/// Where a debugger finds a job of a cluster.
pub(crate) enum JobTarget {
    /// On this host: what `sdm attach` takes, as a word of its command line.
    Here(String),
    /// Behind ssh: this cluster's host has to do it.
    There(Box<Definition>, Chosen),
}

/// What `CLUSTER:NUMBER` means to a debugger; nothing where no such cluster is defined.
///
/// # Errors
/// The cluster cannot be asked, has no such job, or nothing is known of its processes.
pub(crate) fn job_target(text: &str) -> Result<Option<JobTarget>, ClusterError> {
    let Ok((Some(cluster), _)) = split(text, None) else {
        return Ok(None);
    };
    let [definition] = &defined(Some(cluster))?[..] else {
        return Ok(None);
    };
    let chosen = job(text, None)?;
    if definition.host.is_some() {
        return Ok(Some(JobTarget::There(Box::new(definition.clone()), chosen)));
    }
    if definition.rm_type == "slurm" {
        return Ok(Some(JobTarget::Here(format!("slurm:{}", chosen.job))));
    }
    let question = Question::Elements {
        kinds: vec![Kind::Job, Kind::Process],
        parent: None,
        ids: None,
    };
    let answers = [ask(cluster, &question, ANSWER_WAIT)?];
    let mut jobs = Element::all(&answers, Kind::Job);
    let starter = jobs.find(|job| job.group.ids == chosen.id);
    if let Some(pid) = starter.and_then(|job| job.get("starterPid")) {
        return Ok(Some(JobTarget::Here(pid.to_owned())));
    }
    let processes = of_job(&answers, &chosen);
    let runs = |process: &&Element<'_>| process.get("processState") == Some("RUNNING");
    let pids = processes.iter().filter(runs);
    let pids: Vec<&str> = pids.filter_map(|it| it.get("processPID")).collect();
    match pids.is_empty() {
        true => Err(ClusterError::NoProcesses(text.to_owned())),
        false => Ok(Some(JobTarget::Here(pids.join(",")))),
    }
}
