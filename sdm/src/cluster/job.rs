//! One job: its processes, and where a debugger finds them.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use sdm_rm::{Answer, Definition, Kind, Look, Question};
use serde_json::{Value, json};

use super::choose::{ANSWER_WAIT, Chosen, ask, defined, job, split};
use super::element::{Element, managers, names};
use super::error::ClusterError;
use super::table::{Stand, Table};
use super::watch::{Shown, list};
use crate::cli::{PsArgs, TargetArgs};

/// What tells processes of a job apart in a table.
const LIKENESS: [&str; 4] = [
    "processNodeId",
    "processState",
    "processSignalName",
    "processExitCode",
];

/// `sdm ps`.
pub(super) fn processes(args: &PsArgs) -> Result<u8, ClusterError> {
    let chosen = job(&args.job, args.list.of.manager.as_deref())?;
    let mut of = args.list.clone();
    of.of.manager = Some(chosen.cluster.clone());
    let mut processes = of_job(&chosen);
    if !args.list.json {
        processes.by = Some(LIKENESS.map(str::to_owned).to_vec());
        processes.sets = ["processIndex", "processPID"].map(str::to_owned).to_vec();
    }
    let nodes = Look {
        by: Some(vec!["name".to_owned()]),
        ..Look::at(&[Kind::Node])
    };
    list(&of, &[nodes, processes], |answers| match args.list.json {
        true => Shown::Json(json(answers, &chosen)),
        false => Shown::Table(table(answers), "no processes are known"),
    })
}

/// A job's processes, each with all that is known of it.
fn of_job(chosen: &Chosen) -> Look {
    Look {
        parent: Some(chosen.id.clone()),
        ..Look::at(&[Kind::Process])
    }
}

fn json(answers: &[Answer], chosen: &Chosen) -> Value {
    let processes = Element::all(answers, Kind::Process);
    let processes: Value = processes.map(|it| it.json()).collect();
    json!({ "clusters": managers(answers), "job": chosen.job, "processes": processes })
}

/// Processes alike in one row: where they are, and how it is with them.
fn table(answers: &[Answer]) -> Table {
    let mut table = Table::new(&[
        ("RANKS", Stand::Cut),
        ("NODE", Stand::Left),
        ("STATE", Stand::Left),
        ("EXIT", Stand::Left),
        ("PIDS", Stand::Cut),
    ]);
    let nodes = names(answers, Kind::Node);
    let mut rows: Vec<_> = Element::all(answers, Kind::Process)
        .map(|process| (process.set("processIndex"), process))
        .collect();
    rows.sort_by_key(|(ranks, _)| ranks.first());
    for (ranks, process) in rows {
        let node = process.get("processNodeId").unwrap_or_default();
        let node = nodes.get(&(process.cluster(), node)).copied();
        let exit = process.get("processSignalName");
        let exit = exit.or_else(|| process.get("processExitCode"));
        table.push(vec![
            ranks.to_string(),
            node.unwrap_or_default().to_owned(),
            process.text("processState"),
            exit.unwrap_or_default().to_owned(),
            process.set("processPID").to_string(),
        ]);
    }
    table
}

/// Where a debugger finds a job of a cluster.
struct JobTarget {
    /// The cluster.
    definition: Definition,
    /// What `sdm attach` takes on the cluster's host.
    word: String,
}

/// `CLUSTER:NUMBER` as what a debugger attaches to: a job of this host takes the target's place; one that is behind ssh is
/// that host's, where the command line `args` is carried out, and this process becomes ssh.
///
/// # Errors
/// The cluster cannot be asked, has no such job, or nothing is known of its processes.
pub(super) fn find(target: &mut TargetArgs, args: &[OsString]) -> Result<(), ClusterError> {
    let Some(text) = target.name().map(str::to_owned) else {
        return Ok(());
    };
    let Some(found) = job_target(&text)? else {
        return Ok(());
    };
    let Some(host) = &found.definition.host else {
        let named = found.word.parse();
        target.choose(named.map_err(|_| ClusterError::NoProcesses(text))?);
        return Ok(());
    };
    let mut ssh = Command::new("ssh");
    ssh.args(&found.definition.ssh_options);
    ssh.arg(if io::stdin().is_terminal() {
        "-t"
    } else {
        "-T"
    });
    ssh.args(["--", host, &there(&found, &text, args)?]);
    let source = ssh.exec();
    Err(ClusterError::Program {
        program: "ssh",
        source,
    })
}

/// The command line for the shell of the cluster's host, where `sdm` is beside the agent.
fn there(found: &JobTarget, text: &str, args: &[OsString]) -> Result<String, ClusterError> {
    let agent = found.definition.agent.as_deref().map(Path::new);
    let sdm = agent.map_or_else(|| "sdm".into(), |agent| agent.with_file_name("sdm"));
    let mut words = vec![sdm.to_string_lossy().into_owned()];
    for arg in args.iter().skip(1) {
        let word = arg
            .to_str()
            .ok_or_else(|| ClusterError::NoText(arg.clone()))?;
        let is_target = word == text;
        words.push(if is_target { &*found.word } else { word }.to_owned());
    }
    Ok(shell_words::join(words))
}

/// What `CLUSTER:NUMBER` means to a debugger; nothing where no such cluster is defined.
fn job_target(text: &str) -> Result<Option<JobTarget>, ClusterError> {
    let Ok((Some(cluster), _)) = split(text, None) else {
        return Ok(None);
    };
    let [definition] = &defined(Some(cluster))?[..] else {
        return Ok(None);
    };
    let target = |word: String| {
        let definition = definition.clone();
        Ok(Some(JobTarget { definition, word }))
    };
    let chosen = job(text, None)?;
    if definition.rm_type == "slurm" {
        return target(format!("slurm:{}", chosen.job));
    }
    let looks = vec![of_job(&chosen)];
    let answers = [ask(cluster, &Question::Elements { looks }, ANSWER_WAIT)?];
    let runs = |process: &Element<'_>| process.get("processState") == Some("RUNNING");
    let processes = Element::all(&answers, Kind::Process).filter(runs);
    let pids: Vec<&str> = processes.filter_map(|it| it.get("processPID")).collect();
    match pids.is_empty() {
        true => Err(ClusterError::NoProcesses(text.to_owned())),
        false => target(pids.join(",")),
    }
}
