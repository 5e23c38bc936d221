//! Parser of the text output of `squeue` and `sinfo`, for Slurm before 21.08 and for Slurm that was built without JSON.

use std::collections::BTreeMap;

use sdm_runtime::attribute as id;

use super::output::first_of;
use super::states;
use crate::snapshot::{Attributes, Job, set, set_state};

/// Separator of a job's fields: a character that users do not write.
pub(super) const PART: char = '\u{1f}';
/// Format of the query for jobs: Slurm's own numbers and words and the comment first, the user's other texts last.
const JOB_FIELDS: [&str; 17] = [
    "%A", "%k", "%i", "%T", "%r", "%u", "%a", "%q", "%P", "%C", "%N", "%S", "%e", "%V", "%l", "%Z",
    "%j",
];
/// Format of the query for nodes; the reason is free text.
pub(super) const NODES: &str = "%N|%T|%c|%m|%G|%E";

/// The format of [`jobs`].
pub(super) fn job_format() -> String {
    JOB_FIELDS.join(&PART.to_string())
}

/// Parses the jobs from lines in [`job_format`]. An incomplete line is skipped: a job's name may contain a line end.
pub(super) fn jobs(lines: &[String]) -> BTreeMap<String, Job> {
    let jobs = lines.iter().filter_map(|line| {
        let fields: Vec<&str> = line.splitn(JOB_FIELDS.len(), PART).collect();
        let fields: [&str; 17] = fields.try_into().ok()?;
        let is_number =
            !fields[0].is_empty() && fields[0].bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| (fields[0].to_owned(), job(fields)))
    });
    jobs.collect()
}

fn job(fields: [&str; 17]) -> Job {
    let [
        number,
        comment,
        shown,
        word,
        reason,
        user,
        account,
        qos,
        partition,
        count,
        nodes,
        start,
        end,
        submit,
        limit,
        directory,
        name,
    ] = fields;
    let mut attributes = Attributes::new();
    let state = states::job(&[word.to_owned()]);
    set(&mut attributes, id::NAME, name);
    set_state(&mut attributes, state);
    set(&mut attributes, id::JOB_STATUS, word);
    set(&mut attributes, id::SYSTEM_JOB_ID, shown);
    set(&mut attributes, id::JOB_NUM_PROCS, count);
    super::held_jobs::tell(&mut attributes, comment, number);
    let index = shown.split_once('_').map_or("", |(_, index)| index);
    set(&mut attributes, id::ARRAY_INDEX, index);
    set(&mut attributes, id::TIME_LIMIT_MINUTES, minutes(limit));
    for (id, text) in [
        (id::JOB_STATUS_MESSAGE, reason),
        (id::USER_ID, user),
        ("account", account),
        ("qos", qos),
        (id::JOB_NODES, nodes),
        (id::WORKING_DIR, directory),
    ] {
        set(&mut attributes, id, known(text));
    }
    for (id, text) in [
        (id::START_TIME, start),
        // Before its end it is the time of the job's limit.
        (id::END_TIME, if state.has_ended() { end } else { "" }),
        (id::SUBMIT_TIME, submit),
    ] {
        set(&mut attributes, id, seconds(text));
    }
    super::failed_start::mark(&mut attributes, comment);
    Job {
        queue: first_of(partition),
        attributes,
        processes: Vec::new(),
    }
}

/// A field's text; empty if Slurm writes a word for an absent value, such as `(null)` or `N/A`.
pub(super) fn known(text: &str) -> &str {
    match text {
        "(null)" | "N/A" | "None" | "None assigned" => "",
        text => text,
    }
}

/// A time in seconds of Unix time; empty if Slurm writes a word instead, such as `N/A`.
pub(super) fn seconds(text: &str) -> &str {
    if text.parse::<i64>().is_ok() {
        text
    } else {
        ""
    }
}

/// Converts a time limit to minutes. It has the form `days-hours:minutes:seconds`; parts may be missing. The result is
/// `unlimited` for no limit, and empty for other text.
pub(super) fn minutes(limit: &str) -> String {
    if limit == "UNLIMITED" {
        return "unlimited".to_owned();
    }
    let (days, rest) = limit.split_once('-').unwrap_or(("0", limit));
    let parts: Option<Vec<u64>> = rest.split(':').map(|part| part.parse().ok()).collect();
    let minutes = match parts.as_deref() {
        Some([hours, minutes, _]) => hours * 60 + minutes,
        Some([minutes, _] | [minutes]) => *minutes,
        _ => return String::new(),
    };
    let days: u64 = days.parse().unwrap_or(0);
    (days * 24 * 60 + minutes).to_string()
}

/// Parses the nodes from lines in the format [`NODES`]; a node has a line for each of its partitions.
pub(super) fn nodes(lines: &[String]) -> BTreeMap<String, Attributes> {
    let mut nodes = BTreeMap::new();
    for line in lines {
        let fields: Vec<&str> = line.splitn(6, '|').collect();
        let [name, state, cpus, memory, gres, reason] = fields[..] else {
            continue;
        };
        let number = nodes.len();
        nodes.entry(name.to_owned()).or_insert_with(|| {
            // Marks after the state: `*` for a node that does not respond, others for power and maintenance.
            let mut words = vec![
                state
                    .trim_end_matches(['*', '~', '#', '!', '%', '$', '@', '^', '-'])
                    .to_uppercase(),
            ];
            if state.contains('*') {
                words.push("NOT_RESPONDING".to_owned());
            }
            let mut attributes = Attributes::new();
            set(&mut attributes, id::NAME, name);
            set_state(&mut attributes, states::node(&words));
            set(
                &mut attributes,
                id::NODE_STATUS,
                words.join("+").to_lowercase(),
            );
            set(&mut attributes, id::NODE_NUMBER, number.to_string());
            set(&mut attributes, id::NODE_CPUS, cpus);
            set(&mut attributes, id::NODE_MEMORY, memory);
            set(
                &mut attributes,
                id::NODE_GRES,
                if gres == "(null)" { "" } else { gres },
            );
            set(
                &mut attributes,
                id::NODE_REASON,
                if reason == "none" { "" } else { reason },
            );
            attributes
        });
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squeue_line_becomes_a_job() {
        let line = "12|(null)|12_3|RUNNING|None|ann|(null)|normal|debug|4|n[1-2]|1795410403|1795413403|1795410400|1-02:03:00|/home/ann|my | job";
        let line = line.replacen('|', &PART.to_string(), 16);
        let jobs = jobs(&[line, "cut".to_owned()]);
        let job = &jobs["12"];
        assert_eq!(job.queue, "debug");
        let value = |id: &str| job.attributes.get(id).map(String::as_str);
        assert_eq!(value("name"), Some("my | job"));
        assert_eq!(value("systemJobId"), Some("12_3"));
        assert_eq!(value("jobState"), Some("RUNNING"));
        assert_eq!(value("account"), None);
        assert_eq!(value("startTime"), Some("1795410403"));
        assert_eq!(value("endTime"), None);
        assert_eq!(value("timeLimitMinutes"), Some("1563"));
        assert_eq!(jobs.len(), 1);
    }

    #[test]
    fn node_in_two_partitions_is_listed_once() {
        let lines = [
            "n1|idle|16|1|(null)|none",
            "n1|idle|16|1|(null)|none",
            "n2|down*|16|1|gpu:4|no | power",
        ];
        let nodes = nodes(&lines.map(str::to_owned));
        assert_eq!(nodes.len(), 2);
        assert_eq!(nodes["n2"]["nodeState"], "DOWN");
        assert_eq!(nodes["n2"]["nodeReason"], "no | power");
        assert_eq!(nodes["n2"]["nodeNumber"], "1");
        assert_eq!(nodes["n1"]["nodeState"], "UP");
    }
}
