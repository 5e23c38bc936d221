//! Checks of a running job.

use std::fs;

use sdm_doctor::{Check, Finding};
use sdm_hosts::job::{self, Access, JobProcess, Obstacle, Target};
use sdm_system::proc;
use sdm_text::{counted, printable_name};

use super::section::Section;

/// The namespaces in which names differ, with their words in messages.
const NAMESPACES: [(&str, &str); 3] = [("mnt", "mount"), ("pid", "pid"), ("user", "user")];
/// Maximum number of processes whose obstacles are listed individually.
const LISTED_MAX: usize = 8;

/// Checks a job: whether it is found, and the obstacles to attaching. Returns also the names of its other
/// hosts that are to be reached through ssh.
pub(super) fn look(target: &Target) -> (Section, Vec<String>) {
    let found = match job::find(target) {
        Ok(found) => found,
        Err(error) => {
            let remedy =
                "give a target of `sdm attach`: a pid, a program's name, slurm:JOB or CLUSTER:JOB";
            let finding = Finding::bad(Check::Job, error.to_string(), remedy);
            return (Section::new("the job", vec![finding]), Vec::new());
        }
    };
    let place = found.source.clone();
    let processes = counted(found.processes.len(), "process");
    let mut hosts: Vec<String> = Vec::new();
    for process in &found.processes {
        if !job::is_this_host(&process.host) && !hosts.contains(&process.host) {
            hosts.push(process.host.clone());
        }
    }
    let is_here = found.processes.iter().any(|it| job::is_this_host(&it.host));
    let text = match (is_here, hosts.len()) {
        (_, 0) => format!("{processes} on this host"),
        (true, others) => format!("{processes} on {} hosts", others + 1),
        (false, 1) => format!("{processes} on {}", hosts[0]),
        (false, others) => format!("{processes} on {others} other hosts"),
    };
    let mut findings = vec![match &found.incomplete {
        None => Finding::good(Check::Job, text),
        Some(why) => Finding::unknown(
            Check::Job,
            format!("{text}: {why}"),
            "check these hosts with `sdm doctor --host`",
        ),
    }];
    let here = found
        .processes
        .iter()
        .filter(|it| job::is_this_host(&it.host));
    let here: Vec<&JobProcess> = here.collect();
    let pids: Vec<i32> = here.iter().map(|it| it.pid).collect();
    let obstacles = job::obstacles(&pids, Access::Attach);
    findings.extend(obstacles.iter().take(LISTED_MAX).map(|(pid, obstacle)| {
        Finding::bad(
            Check::Target,
            format!("process {pid} {obstacle}"),
            remedy(obstacle),
        )
    }));
    if obstacles.len() > LISTED_MAX {
        let text = format!(
            "gdb cannot attach to {processes} for reasons like those above",
            processes = counted(obstacles.len() - LISTED_MAX, "more process")
        );
        findings.push(Finding::bad(Check::Target, text, "as above"));
    }
    findings.extend(left(pids.iter().copied().filter(is_stopped)));
    if obstacles.is_empty() && !pids.is_empty() {
        let text = format!(
            "gdb can attach to {} on this host",
            counted(pids.len(), "process")
        );
        findings.push(Finding::good(Check::Target, text));
    }
    findings.extend(container(&pids));
    if found.slurm.is_some() && !hosts.is_empty() {
        // Servers reach a node of a job as this answer did: through Slurm, and not through ssh.
        let text = format!("`srun --overlap` reaches {hosts}", hosts = hosts.join(", "));
        findings.push(Finding::good(Check::Target, text));
        hosts.clear();
    }
    (Section::new(place, findings), hosts)
}

/// A finding about stopped processes of this user that a killed debugger has left. Only processes that it has certainly
/// left are included. None if there are none.
pub(super) fn left_behind() -> Option<Finding> {
    let pids = proc::pids().into_iter().flatten();
    left(pids.filter(|pid| sdm_inferior::is_left_stopped(*pid)))
}

/// A finding about these processes, which a signal has stopped. None if there are none.
fn left(pids: impl Iterator<Item = i32>) -> Option<Finding> {
    let pids: Vec<String> = pids.map(|pid| pid.to_string()).collect();
    let named = pids.join(" ");
    let text = match pids.len() {
        0 => return None,
        1 => format!("process {named} is stopped by a signal, and no debugger is attached to it"),
        _ => format!(
            "processes {named} are stopped by a signal, and no debugger is attached to them"
        ),
    };
    let remedy = format!("if a debugger was killed: sdm rescue {named}");
    Some(Finding::bad(Check::Target, text, remedy))
}

fn is_stopped(pid: &i32) -> bool {
    proc::of(*pid).state().is_some_and(proc::State::is_stopped)
}

fn remedy(obstacle: &Obstacle) -> &'static str {
    match obstacle {
        Obstacle::Gone => "give the pid of a running process",
        Obstacle::Headless => {
            "let the main thread wait for the other threads (pthread_join) before it ends"
        }
        Obstacle::Foreign { .. } => "only the owner of a job, or root, can debug it",
        Obstacle::Undumpable => {
            "the program has changed its privileges or called prctl(PR_SET_DUMPABLE, 0): start it without that, or \
             run sdm as root"
        }
        Obstacle::Traced { ours: true, .. } => {
            "debug the process in the sdm session that traces it, or read that session's report"
        }
        Obstacle::Traced { .. } => {
            "end the other debugger, strace or profiler that traces the process"
        }
        Obstacle::Forbidden { .. } => "see the check `ptrace-scope`",
    }
}

/// A finding about the first of these processes that is in other namespaces than `sdm`. None if there is none.
fn container(pids: &[i32]) -> Option<Finding> {
    let of = |process: &proc::Process, name: &str| {
        fs::read_link(process.path(&format!("ns/{name}"))).ok()
    };
    let own = proc::own();
    let differing = |pid: i32| {
        let process = proc::of(pid);
        let differs = |name: &str| of(&process, name).is_some_and(|it| Some(it) != of(&own, name));
        let named = NAMESPACES.iter().filter(|(name, _)| differs(name));
        named.map(|(_, what)| *what).collect::<Vec<_>>()
    };
    let (pid, names) = pids
        .iter()
        .map(|pid| (*pid, differing(*pid)))
        .find(|(_, names)| !names.is_empty())?;
    let program = proc::of(pid)
        .program()
        .map(printable_name)
        .unwrap_or_default();
    let text = format!(
        "process {pid} ({program}) is in a container: its {} namespaces are its own",
        names.join(", ")
    );
    // gdb enters the mount namespace to read programs and libraries, for which it needs the same rights there.
    Some(Finding::good(Check::Namespaces, text))
}
