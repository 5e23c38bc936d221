//! Checks of a cluster: its definition, the process that follows its agent, and the agent's state.

use std::path::Path;
use std::time::Duration;

use sdm_doctor::{Check, Finding};
use sdm_hosts::job::Target;
use sdm_rm::{Clusters, Definition, Question};
use sdm_runtime::states::Manager;

use super::section::Section;
use super::{host, job};
use crate::cli::DoctorArgs;
use crate::cluster::{Located, LocatedPlace, locate};

/// Time limit for a cluster's process to answer.
const ANSWER_WAIT: Duration = Duration::from_secs(20);

/// Checks a cluster, by its name. Returns the findings.
pub(super) fn look(name: &str) -> Section {
    let place = format!("cluster {name}");
    let check = Check::Cluster;
    let known = Clusters::load().and_then(|clusters| clusters.get(name).cloned());
    let definition = match known {
        Ok(definition) => definition,
        Err(error) => {
            let remedy =
                "`sdm cluster list` shows the defined clusters, `sdm cluster add` defines one";
            return Section::new(place, vec![Finding::bad(check, error.to_string(), remedy)]);
        }
    };
    let host = definition.host.as_deref();
    let by_host = host.map_or_else(String::new, |host| {
        format!("; `sdm doctor --host {host}` checks the connection")
    });
    let host = host.map_or_else(String::new, |host| format!(" on {host}"));
    let what = format!("{}{host}", definition.rm_type);
    let start = format!("`sdm cluster start {name}` connects to it");
    if !sdm_rm::is_running(name) {
        let finding = Finding::unknown(check, format!("{what}: not started"), start);
        return Section::new(place, vec![finding]);
    }
    let finding = match sdm_rm::ask(name, &Question::State, ANSWER_WAIT) {
        Err(error) => Finding::bad(
            check,
            format!("{what}: {error}"),
            format!("run `sdm cluster stop {name}`, then `sdm cluster start {name}`"),
        ),
        Ok(answer) => {
            let reason = answer.manager.reason;
            let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
            match answer.manager.state {
                Manager::Started => Finding::good(check, format!("{what} answers{reason}")),
                Manager::Starting => {
                    let text = format!("{what} has not reported its jobs and nodes yet{reason}");
                    Finding::unknown(check, text, "run `sdm doctor` again in a moment")
                }
                _ => Finding::bad(
                    check,
                    format!("{what} does not answer{reason}"),
                    format!("fix the reported cause, then run `sdm cluster start {name}`{by_host}"),
                ),
            }
        }
    };
    Section::new(place, vec![finding])
}

/// The cluster job that a target names. None for other targets.
pub(super) fn job_of(target: &Target) -> Option<Located> {
    match target {
        Target::Name(name) => locate(name),
        _ => None,
    }
}

/// Checks a cluster, its job, and the host where a debugger for the job runs. Returns also the names of the
/// job's other hosts.
pub(super) fn look_at_job(args: &DoctorArgs, located: Located) -> (Vec<Section>, Vec<String>) {
    let definition = &located.cluster;
    let mut sections = Vec::new();
    if args.cluster.as_ref() != Some(&definition.name) {
        sections.push(look(&definition.name));
    }
    let place = format!("job {}", located.text);
    match located.place {
        Err(error) => {
            let remedy = format!("`sdm jobs -M {}` shows its jobs", definition.name);
            let finding = Finding::bad(Check::Job, error.to_string(), remedy);
            sections.push(Section::new(place, vec![finding]));
            (sections, Vec::new())
        }
        Ok(LocatedPlace::Here(target)) => {
            let (section, others) = job::look(&target);
            sections.push(section);
            (sections, others)
        }
        Ok(LocatedPlace::There(word)) => {
            let host = definition.host.as_deref().unwrap_or_default();
            let text = format!("the job was found; `sdm attach` debugs it from {host}");
            let remedy = format!("run `sdm doctor {word}` on {host} to check its processes");
            let finding = Finding::unknown(Check::Target, text, remedy);
            sections.push(Section::new(place, vec![finding]));
            sections.push(host::look(&as_reached(args, definition), host));
            (sections, Vec::new())
        }
    }
}

/// The arguments for checks of a cluster's host: the user's ssh options, then the cluster's. If the user gives no path
/// of the server, it is next to the agent.
fn as_reached(args: &DoctorArgs, definition: &Definition) -> DoctorArgs {
    let mut args = args.clone();
    let options = definition.ssh_options.iter().map(Into::into);
    args.reach.launcher_options.extend(options);
    let beside = |agent: &String| Path::new(agent).with_file_name("sdm-server");
    let server = definition.agent.as_ref().map(beside);
    args.reach.server_path = args.reach.server_path.or(server);
    args
}
