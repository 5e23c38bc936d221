//! One job: its processes, and the target by which a debugger finds them.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use sdm_hosts::job::Target;
use sdm_rm::{Answer, Definition, Kind, Look, Question};
use sdm_runtime::{attribute as id, states};
use sdm_system::programs;
use serde_json::{Value, json};

use super::choose::{ANSWER_WAIT, Chosen, ask, defined, job, split};
use super::element::{Element, managers, names};
use super::error::ClusterError;
use super::table::{Stand, Table};
use super::watch::{Shown, list};
use crate::cli::{PsArgs, TargetArgs};

/// The attributes that distinguish the processes of a job in a table.
const LIKENESS: [&str; 4] = [
    id::PROCESS_NODE_ID,
    id::PROCESS_STATE,
    id::PROCESS_SIGNAL_NAME,
    id::PROCESS_EXIT_CODE,
];

/// Carries out `sdm ps`.
pub(super) fn processes(args: &PsArgs) -> Result<u8, ClusterError> {
    let chosen = job(&args.job, args.list.of.manager.as_deref())?;
    let mut of = args.list.clone();
    of.of.manager = Some(chosen.cluster.clone());
    let mut processes = of_job(&chosen);
    if !args.list.json {
        processes.by = Some(LIKENESS.map(str::to_owned).to_vec());
        processes.sets = [id::PROCESS_INDEX, id::PROCESS_PID]
            .map(str::to_owned)
            .to_vec();
    }
    let nodes = Look {
        by: Some(vec![id::NAME.to_owned()]),
        ..Look::at(&[Kind::Node])
    };
    list(&of, &[nodes, processes], |answers| match args.list.json {
        true => Shown::Json(json(answers, &chosen)),
        false => Shown::Table(
            table(answers),
            format!(
                "the resource manager lists no processes of job {}:{}",
                chosen.cluster, chosen.job
            ),
        ),
    })
}

/// The query for a job's processes, with all attributes of each.
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

/// The table of processes with place and state. Equal ones share a row.
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
        .map(|process| (process.set(id::PROCESS_INDEX), process))
        .collect();
    rows.sort_by_key(|(ranks, _)| first(ranks));
    for (ranks, process) in rows {
        let node = process.get(id::PROCESS_NODE_ID).unwrap_or_default();
        let node = nodes.get(&(process.cluster(), node)).copied();
        let exit = process.get(id::PROCESS_SIGNAL_NAME);
        let exit = exit.or_else(|| process.get(id::PROCESS_EXIT_CODE));
        table.push(vec![
            ranks.to_string(),
            node.unwrap_or_default().to_owned(),
            process.text(id::PROCESS_STATE),
            exit.unwrap_or_default().to_owned(),
            process.set(id::PROCESS_PID).to_owned(),
        ]);
    }
    table
}

/// The first number in the text of a set; None if the text does not begin with one.
fn first(set: &str) -> Option<u64> {
    let digits = set.split(|c: char| !c.is_ascii_digit()).next();
    digits.and_then(|digits| digits.parse().ok())
}

/// The target by which a debugger finds a job of a cluster.
struct JobTarget {
    /// The cluster of the job.
    definition: Definition,
    what: TargetKind,
}

/// The kinds of target of a job.
enum TargetKind {
    /// A word that `sdm attach` accepts on the cluster's host.
    Word(String),
    /// Process ids on the cluster's host, or that of the launcher.
    Pids(String),
    /// A command on the cluster's host that connects to the session that debugs the job.
    Session(Vec<String>),
}

/// Resolves `CLUSTER:NUMBER`. A job of this host replaces the target. For a cluster behind ssh, the command line `args`
/// is run on its host, and this process becomes ssh. With `comes_to_stay`, this process instead becomes a client of the
/// session that debugs the job, if there is one.
///
/// # Errors
/// The cluster cannot be queried or has no such job. The job has not started, has ended, or its processes are not
/// known. A session debugs the job, unless `comes_to_stay` is true.
pub(super) fn find(
    target: &mut TargetArgs,
    args: &[OsString],
    comes_to_stay: bool,
) -> Result<(), ClusterError> {
    let Some(text) = target.name().map(str::to_owned) else {
        return Ok(());
    };
    let Some(found) = job_target(&text, comes_to_stay)? else {
        return Ok(());
    };
    let words = match (&found.what, &found.definition.host) {
        (TargetKind::Session(words), None) => return become_program(&words[0], &words[1..]),
        (TargetKind::Session(words), Some(_)) => words.clone(),
        (TargetKind::Word(word), Some(_)) => there(&found.definition, &[word], &text, args)?,
        (TargetKind::Pids(pids), Some(_)) => {
            there(&found.definition, &["--pids", pids], &text, args)?
        }
        (way, None) => return choose(target, way, text),
    };
    let host = found.definition.host.clone().unwrap_or_default();
    let terminal = match io::stdin().is_terminal() {
        true => "-t",
        false => "-T",
    };
    let mut ssh = found.definition.ssh_options.clone();
    ssh.extend([terminal, "--", &host].map(str::to_owned));
    ssh.push(shell_words::join(words));
    become_program("ssh", &ssh)
}

/// Resolves `CLUSTER:NUMBER` for a program that cannot become ssh. A job of another host is an error.
///
/// # Errors
/// The cluster is on another host, cannot be queried or has no such job. The job has not started, has ended, is
/// debugged by a session, or its processes are not known.
pub(crate) fn find_here(target: &mut TargetArgs) -> Result<(), ClusterError> {
    let Some(text) = target.name().map(str::to_owned) else {
        return Ok(());
    };
    let Some(found) = job_target(&text, false)? else {
        return Ok(());
    };
    match found.definition.host {
        Some(host) => Err(ClusterError::Elsewhere { job: text, host }),
        None => choose(target, &found.what, text),
    }
}

/// Replaces the target by a job of this host.
fn choose(target: &mut TargetArgs, way: &TargetKind, text: String) -> Result<(), ClusterError> {
    target.choose(here(way).ok_or(ClusterError::NoProcesses(text))?);
    Ok(())
}

/// The target for processes on this host. None if a session debugs them, or if the word names no target.
fn here(what: &TargetKind) -> Option<Target> {
    match what {
        TargetKind::Word(word) => word.parse().ok(),
        TargetKind::Pids(pids) => {
            let pids: Result<Vec<i32>, _> = pids.split(',').map(str::parse).collect();
            pids.ok().map(Target::Pids)
        }
        TargetKind::Session(_) => None,
    }
}

/// A job of a cluster, for an inspection before anything attaches to it.
pub(crate) struct Located {
    /// The name of the job, as given.
    pub(crate) text: String,
    /// The cluster of the job.
    pub(crate) cluster: Definition,
    /// The location of the job's processes.
    pub(crate) place: Result<LocatedPlace, ClusterError>,
}

/// The location of the processes of a cluster's job.
pub(crate) enum LocatedPlace {
    /// On this host: the target for a debugger.
    Here(Target),
    /// On the cluster's host: the target for `sdm attach` on that host.
    There(String),
}

/// Locates `CLUSTER:NUMBER` on any host. None if no such cluster is defined.
pub(crate) fn locate(text: &str) -> Option<Located> {
    let (name, _) = split(text, None).ok()?;
    let cluster = defined(Some(name?)).ok()?.into_iter().next()?;
    let none = || ClusterError::NoProcesses(text.to_owned());
    let place = job_target(text, false).and_then(|found| {
        let found = found.ok_or_else(none)?;
        match (found.what, &cluster.host) {
            (TargetKind::Word(word) | TargetKind::Pids(word), Some(_)) => {
                Ok(LocatedPlace::There(word))
            }
            (what, _) => here(&what).map(LocatedPlace::Here).ok_or_else(none),
        }
    });
    let text = text.to_owned();
    Some(Located {
        text,
        cluster,
        place,
    })
}

/// Replaces this process by a program. Returns only on failure.
fn become_program(program: &str, args: &[String]) -> Result<(), ClusterError> {
    let become_it = |mut command: Command| command.args(args).exec();
    let source = programs::named(program).map_or_else(|why| why, become_it);
    Err(ClusterError::Program {
        program: program.to_owned(),
        source,
    })
}

/// The path of `sdm` on the cluster's host, next to the agent; on this host, the path of this program.
fn sdm_there(definition: &Definition) -> String {
    if definition.host.is_none() {
        let own = std::env::current_exe();
        return own.map_or_else(|_| "sdm".to_owned(), |it| it.to_string_lossy().into_owned());
    }
    let agent = definition.agent.as_deref().map(Path::new);
    let sdm = agent.map_or_else(|| "sdm".into(), |agent| agent.with_file_name("sdm"));
    sdm.to_string_lossy().into_owned()
}

/// A command line for the shell of the cluster's host.
fn there(
    definition: &Definition,
    job: &[&str],
    text: &str,
    args: &[OsString],
) -> Result<Vec<String>, ClusterError> {
    let mut words = vec![sdm_there(definition)];
    for arg in args.iter().skip(1) {
        let word = arg
            .to_str()
            .ok_or_else(|| ClusterError::NoText(arg.clone()))?;
        let replaced = if word == text { job } else { &[word] };
        words.extend(replaced.iter().map(|it| (*it).to_owned()));
    }
    Ok(words)
}

/// The target for `CLUSTER:NUMBER`. None for another text, which may be a program's name.
fn job_target(text: &str, comes_to_stay: bool) -> Result<Option<JobTarget>, ClusterError> {
    let Ok((Some(cluster), _)) = split(text, None) else {
        return no_cluster(text).map_or(Ok(None), Err);
    };
    let [definition] = &defined(Some(cluster))?[..] else {
        return Ok(None);
    };
    let target = |what| {
        let definition = definition.clone();
        Ok(Some(JobTarget { definition, what }))
    };
    let chosen = job(text, None)?;
    let one = Look {
        ids: Some(vec![chosen.id.clone()]),
        ..Look::at(&[Kind::Job])
    };
    let question = Question::Elements {
        looks: vec![one],
        is_fresh: false,
    };
    let answers = [ask(cluster, &question, ANSWER_WAIT)?];
    let known = |id| Element::all(&answers, Kind::Job).find_map(|it| it.get(id));
    let state = Element::all(&answers, Kind::Job).find_map(|it| it.state());
    let how = || {
        let word = known(id::JOB_STATUS).or_else(|| known(id::JOB_STATE));
        let word = word.unwrap_or_default();
        match known(id::JOB_STATUS_MESSAGE) {
            Some(reason) => format!("{word}: {reason}"),
            None => word.to_owned(),
        }
    };
    let job_name = || text.to_owned();
    match state {
        Some(states::Job::Pending) => {
            let (job, how) = (job_name(), how());
            return Err(ClusterError::NotBegun { job, how });
        }
        Some(state) if state.has_ended() => {
            let (job, how) = (job_name(), how());
            return Err(ClusterError::Ended { job, how });
        }
        _ => {}
    }
    if let Some(session) = known(id::DEBUG_SESSION) {
        return match comes_to_stay {
            true => target(TargetKind::Session(session_command(
                &chosen, definition, session,
            ))),
            false => Err(ClusterError::InSession(job_name())),
        };
    }
    if let Some(starter) = known(id::STARTER_PID).filter(|pid| *pid != "0") {
        return target(TargetKind::Pids(starter.to_owned()));
    }
    if definition.rm_type == "slurm" {
        return target(TargetKind::Word(format!("slurm:{}", chosen.job)));
    }
    let looks = vec![of_job(&chosen)];
    let is_fresh = false;
    let answers = [ask(
        cluster,
        &Question::Elements { looks, is_fresh },
        ANSWER_WAIT,
    )?];
    let runs = |process: &Element<'_>| process.state() == Some(states::Process::Running);
    let processes = Element::all(&answers, Kind::Process).filter(runs);
    let pids: Vec<&str> = processes.filter_map(|it| it.get(id::PROCESS_PID)).collect();
    match pids.is_empty() {
        true => Err(ClusterError::NoProcesses(text.to_owned())),
        false => target(TargetKind::Pids(pids.join(","))),
    }
}

/// The error of a `NAME:NUMBER` whose cluster is not defined; none for other words, which may be a program's name.
fn no_cluster(text: &str) -> Option<ClusterError> {
    let (cluster, number) = text.split_once(':')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let is_job = number.starts_with(|c: char| c.is_ascii_digit())
        && number
            .chars()
            .all(|c| c.is_ascii_digit() || "._[]-".contains(c));
    if cluster.is_empty() || !cluster.chars().all(is_name) || !is_job {
        return None;
    }
    let defined = defined(None).unwrap_or_default().into_iter();
    Some(ClusterError::NoCluster {
        job: text.to_owned(),
        cluster: cluster.to_owned(),
        defined: defined.map(|it| it.name).collect(),
    })
}

/// The command that connects to the session that debugs a job.
fn session_command(chosen: &Chosen, definition: &Definition, session: &str) -> Vec<String> {
    let mut words = vec![sdm_there(definition)];
    words.extend(["resume", session].map(str::to_owned));
    if definition.rm_type == "slurm" {
        // The session runs on the node of the job's script, so the command runs there in a step of the job.
        let number = format!("--jobid={}", chosen.job);
        let step = [
            "srun",
            &number,
            "--overlap",
            "--nodes=1",
            "--ntasks=1",
            "--pty",
        ];
        words.splice(0..0, step.map(str::to_owned));
    }
    words
}
