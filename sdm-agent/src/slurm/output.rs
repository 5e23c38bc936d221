//! Parser of the JSON output of `squeue` and `sinfo` about jobs and nodes, and of lines about partitions.

use std::collections::BTreeMap;

use sdm_hosts::hostlist::names;
use sdm_runtime::attribute as id;
use serde_json::Value;

use super::json::{is_infinite, moment, number, text, words};
use super::states;
use crate::snapshot::{Attributes, Job, Snapshot, set, set_state};

/// Fault of an answer of Slurm that cannot be parsed.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The answer is not JSON.
    #[error("{0}: {1}")]
    Json(&'static str, serde_json::Error),
    /// A field is missing that all versions of Slurm have.
    #[error("the JSON output of {0} has no list of {1}")]
    Missing(&'static str, &'static str),
}

/// Parses the nodes from the output of `sinfo --json` or `scontrol show nodes --json`.
pub(super) fn nodes(said: &str) -> Result<BTreeMap<String, Attributes>, Unreadable> {
    let all: Value = serde_json::from_str(said).map_err(|why| Unreadable::Json("nodes", why))?;
    let list = all.get("nodes").and_then(Value::as_array);
    let list = list.ok_or(Unreadable::Missing("Slurm", "nodes"))?;
    let mut nodes = BTreeMap::new();
    for (index, node) in list.iter().enumerate() {
        let name = text(&node["name"]);
        if name.is_empty() {
            continue;
        }
        let mut state = words(&node["state"]);
        state.extend(words(&node["state_flags"]));
        let mut attributes = Attributes::new();
        set(&mut attributes, id::NAME, name);
        set_state(&mut attributes, states::node(&state));
        set(
            &mut attributes,
            id::NODE_STATUS,
            state.join("+").to_lowercase(),
        );
        set(&mut attributes, id::NODE_NUMBER, index.to_string());
        set(&mut attributes, id::NODE_REASON, text(&node["reason"]));
        set(&mut attributes, id::NODE_GRES, text(&node["gres"]));
        for (id, field) in [(id::NODE_CPUS, "cpus"), (id::NODE_MEMORY, "real_memory")] {
            let found = number(&node[field]).map(|number| number.to_string());
            set(&mut attributes, id, found.unwrap_or_default());
        }
        nodes.insert(name.to_owned(), attributes);
    }
    Ok(nodes)
}

/// Parses the partitions from lines in the format [`super::PARTITIONS`]: `name|up|limit|name*`. The last field ends
/// with `*` for the default partition.
pub(super) fn queues(lines: &[String]) -> BTreeMap<String, Attributes> {
    let mut queues = BTreeMap::new();
    for line in lines {
        let fields: Vec<&str> = line.split('|').collect();
        let [name, state, limit, marked] = fields[..] else {
            continue;
        };
        let mut attributes = Attributes::new();
        set(&mut attributes, id::NAME, name);
        set_state(&mut attributes, states::queue(state));
        set(&mut attributes, id::QUEUE_STATUS, state);
        set(&mut attributes, id::QUEUE_TIME_LIMIT, limit);
        let is_default = marked.ends_with('*');
        set(
            &mut attributes,
            id::QUEUE_IS_DEFAULT,
            is_default.to_string(),
        );
        queues.insert(name.to_owned(), attributes);
    }
    queues
}

/// Parses the jobs from the output of `squeue --json`.
pub(super) fn jobs(said: &str) -> Result<BTreeMap<String, Job>, Unreadable> {
    let all: Value = serde_json::from_str(said).map_err(|why| Unreadable::Json("jobs", why))?;
    let list = all.get("jobs").and_then(Value::as_array);
    let list = list.ok_or(Unreadable::Missing("Slurm", "jobs"))?;
    let jobs = list.iter().filter_map(|job| {
        let id = number(&job["job_id"])?;
        Some((id.to_string(), read_job(id, job)))
    });
    Ok(jobs.collect())
}

fn read_job(id: i64, job: &Value) -> Job {
    let mut attributes = Attributes::new();
    let state = words(&job["job_state"]);
    let model_state = states::job(&state);
    set(&mut attributes, id::NAME, text(&job["name"]));
    set_state(&mut attributes, model_state);
    set(&mut attributes, id::JOB_STATUS, state.join("+"));
    let reason = text(&job["state_reason"]);
    if reason != "None" {
        set(&mut attributes, id::JOB_STATUS_MESSAGE, reason);
    }
    set(&mut attributes, id::SYSTEM_JOB_ID, display_id(id, job));
    // Later versions have separate comments, of which the job's own counts.
    let comment = text(job["comment"].get("job").unwrap_or(&job["comment"]));
    super::held_jobs::tell(&mut attributes, comment, &id.to_string());
    match array_index(job) {
        Some(Members::One(index)) => set(&mut attributes, id::ARRAY_INDEX, index.to_string()),
        Some(Members::Waiting(list)) => set(&mut attributes, id::ARRAY_INDEX, list),
        None => {}
    }
    for (attribute, field) in [
        (id::USER_ID, "user_name"),
        ("account", "account"),
        ("qos", "qos"),
        ("dependency", "dependency"),
        (id::JOB_NODES, "nodes"),
        (id::WORKING_DIR, "current_working_directory"),
    ] {
        set(&mut attributes, attribute, text(&job[field]));
    }
    let gpus = text(&job["tres_alloc_str"]).split(',');
    let gpus = gpus.filter(|it| it.starts_with("gres/gpu"));
    let gpus = gpus.collect::<Vec<_>>().join(",");
    let asked = text(&job["tres_per_node"]);
    set(
        &mut attributes,
        id::GPUS,
        if asked.is_empty() { &gpus } else { asked },
    );
    let command = text(&job["command"]);
    let (path, name) = command.rsplit_once('/').unwrap_or(("", command));
    set(&mut attributes, id::EXEC_PATH, path);
    set(&mut attributes, id::EXEC_NAME, name);
    set_times(job, model_state.has_ended(), &mut attributes);
    let limit = time_limit(&job["time_limit"]);
    set(&mut attributes, id::TIME_LIMIT_MINUTES, limit);
    output_paths(id, job, &mut attributes);
    if model_state.has_ended() {
        end(job, &mut attributes);
    }
    let count = number(&job["tasks"])
        .or_else(|| number(&job["cpus"]))
        .unwrap_or(1);
    set(&mut attributes, id::JOB_NUM_PROCS, count.to_string());
    super::failed_start::mark(&mut attributes, comment);
    Job {
        queue: first_of(text(&job["partition"])),
        attributes,
        processes: Vec::new(),
    }
}

/// Sets the times of a job. For a job that has not ended, Slurm's end time is the time at which its limit is over.
fn set_times(job: &Value, has_ended: bool, attributes: &mut Attributes) {
    let times = [
        (id::SUBMIT_TIME, "submit_time"),
        (id::START_TIME, "start_time"),
        (id::END_TIME, "end_time"),
    ];
    for (attribute, field) in times {
        let found = moment(&job[field]).filter(|_| has_ended || attribute != id::END_TIME);
        let found = found.map(|seconds| seconds.to_string());
        set(attributes, attribute, found.unwrap_or_default());
    }
}

/// A time limit in minutes, as text.
fn time_limit(limit: &Value) -> String {
    if is_infinite(limit) {
        return "unlimited".to_owned();
    }
    let minutes = number(limit).map(|minutes| minutes.to_string());
    minutes.unwrap_or_default()
}

/// The first of several partitions: a pending job may name several.
pub(super) fn first_of(partitions: &str) -> String {
    let first = partitions.split(',').next();
    first.unwrap_or_default().to_owned()
}

/// The number of a job as Slurm displays it: `17`, `17_3` for a member of an array, `17_[5-9%2]` for waiting members,
/// `17+1` for a part of a heterogeneous job.
fn display_id(id: i64, job: &Value) -> String {
    let above = |field: &str| number(&job[field]).filter(|&number| number > 0);
    match (above("array_job_id"), array_index(job)) {
        (Some(array), Some(Members::One(index))) => return format!("{array}_{index}"),
        (Some(array), Some(Members::Waiting(list))) => return format!("{array}_[{list}]"),
        _ => {}
    }
    match above("het_job_id") {
        Some(whole) => format!("{whole}+{}", number(&job["het_job_offset"]).unwrap_or(0)),
        None => id.to_string(),
    }
}

/// The members of a job array that one record of Slurm describes.
enum Members {
    One(i64),
    /// Waiting members, in Slurm's notation: `5-9%2`.
    Waiting(String),
}

fn array_index(job: &Value) -> Option<Members> {
    let waiting = text(&job["array_task_string"]);
    if !waiting.is_empty() {
        return Some(Members::Waiting(waiting.to_owned()));
    }
    number(&job["array_task_id"]).map(Members::One)
}

/// Sets the paths of a job's output and errors; for the output of a batch job, a path that Slurm does not report is
/// replaced by Slurm's default name. Errors without a path go to the output.
fn output_paths(id: i64, job: &Value, attributes: &mut Attributes) {
    let is_batch =
        job["batch_flag"].as_bool() == Some(true) || number(&job["batch_flag"]) == Some(1);
    let usual = match array_index(job) {
        Some(_) => "slurm-%A_%a.out",
        None => "slurm-%j.out",
    };
    let path = |said: &str| {
        let directory = text(&job["current_working_directory"]);
        let path = expand(said, id, job);
        match path.starts_with('/') {
            true => path,
            false => format!("{}/{path}", directory.trim_end_matches('/')),
        }
    };
    let output = match text(&job["standard_output"]) {
        "" if is_batch => path(usual),
        "" => String::new(),
        said => path(said),
    };
    let errors = match text(&job["standard_error"]) {
        "" => output.clone(),
        said => path(said),
    };
    set(attributes, id::OUTPUT_PATH, output);
    set(attributes, id::ERROR_PATH, errors);
}

/// A path with `sbatch`'s patterns such as `%j` expanded; patterns that only a node can expand stay.
fn expand(pattern: &str, id: i64, job: &Value) -> String {
    let mut path = String::new();
    let mut rest = pattern;
    while let Some((before, behind)) = rest.split_once('%') {
        path.push_str(before);
        let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
        let width = behind[..digits].parse::<usize>().unwrap_or(0).min(10);
        let mut letters = behind[digits..].chars();
        let array = number(&job["array_job_id"]).filter(|&number| number > 0);
        let value = match letters.next() {
            Some('j' | 'J') => format!("{id:0width$}"),
            Some('A') => format!("{:0width$}", array.unwrap_or(id)),
            Some('a') => match array_index(job) {
                Some(Members::One(index)) => format!("{index:0width$}"),
                // Each member has its own.
                _ => "%a".to_owned(),
            },
            Some('x') => text(&job["name"]).to_owned(),
            Some('u') => text(&job["user_name"]).to_owned(),
            Some('%') => "%".to_owned(),
            Some(other) => format!("%{}{other}", &behind[..digits]),
            None => format!("%{behind}"),
        };
        path.push_str(&value);
        rest = letters.as_str();
    }
    path + rest
}

/// Sets a job's exit code, and the signal that ended the job, if one did.
fn end(job: &Value, attributes: &mut Attributes) {
    let code = &job["exit_code"];
    // From version 23.02 the code is in parts; before, it is a status as of `wait`.
    let parts = code.get("return_code").map(|parts| {
        let signal = code.pointer("/signal/id").and_then(number);
        (number(parts).unwrap_or(0), signal.unwrap_or(0))
    });
    let whole = number(code).unwrap_or(0);
    let (status, signal) = parts.unwrap_or((whole >> 8 & 0xFF, whole & 0x7F));
    set(attributes, id::EXIT_CODE, status.to_string());
    let signal = states::signal(&words(&job["job_state"]), status, signal);
    if signal > 0 {
        set(attributes, id::EXIT_SIGNAL, signal.to_string());
    }
}

/// Sets the use of each node: by jobs of this user, by jobs of others, or exclusively by one job.
pub(super) fn mark_nodes(snapshot: &mut Snapshot, user: &str) {
    let nodes_of = |job: &Job| {
        let list = job.attributes.get(id::JOB_NODES).map_or("", String::as_str);
        names(list).unwrap_or_default()
    };
    let is_full = |node: &Attributes| {
        let status = node.get(id::NODE_STATUS).map_or("", String::as_str);
        status.starts_with("allocated")
    };
    snapshot.mark_nodes(user, nodes_of, is_full);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn array_and_heterogeneous_jobs_have_slurm_names() {
        let said = |job: &str| {
            let all = format!(r#"{{"jobs": [{job}]}}"#);
            let (_, job) = jobs(&all).unwrap().pop_first().unwrap();
            let value = |id: &str| job.attributes.get(id).cloned().unwrap_or_default();
            format!(
                "{} {} {}",
                value("systemJobId"),
                value("arrayIndex"),
                value("outputPath")
            )
        };
        let usual = r#""batch_flag": true, "current_working_directory": "/w", "name": "n""#;
        for (job, expected) in [
            (
                r#""job_id": 1, "array_job_id": 0, "array_task_id": null, "standard_output": "o-%4j-%x-%t%%""#,
                "1  /w/o-0001-n-%t%",
            ),
            (
                r#""job_id": 5, "array_job_id": 2, "array_task_id": 1"#,
                "2_1 1 /w/slurm-2_1.out",
            ),
            (
                r#""job_id": 2, "array_job_id": {"set": true, "number": 2}, "array_task_id": {"set": false}, "array_task_string": "5-9%2""#,
                "2_[5-9%2] 5-9%2 /w/slurm-2_%a.out",
            ),
            (
                r#""job_id": 4, "het_job_id": 3, "het_job_offset": 1, "standard_output": "/o%""#,
                "3+1  /o%",
            ),
        ] {
            assert_eq!(said(&format!("{{{job}, {usual}}}")), expected);
        }
    }

    #[test]
    fn end_time_of_a_running_slurm_job_is_omitted() {
        let all = |state: &str| {
            format!(
                r#"{{"jobs": [{{"job_id": 1, "job_state": "{state}", "end_time": 1827758395}}]}}"#
            )
        };
        let end = |state: &str| {
            let (_, job) = jobs(&all(state)).unwrap().pop_first().unwrap();
            job.attributes.get(id::END_TIME).cloned()
        };
        assert_eq!(end("RUNNING"), None);
        assert_eq!(end("COMPLETED").as_deref(), Some("1827758395"));
    }
}
