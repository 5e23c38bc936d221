//! Jobs that Slurm's controller has forgotten: parser of `sacct`'s output.

use std::collections::BTreeMap;

use sdm_runtime::attribute as id;

use super::states;
use super::text::{PART, known, minutes, seconds};
use crate::snapshot::{Attributes, Job, set, set_state};

/// Fields of the query: Slurm's own numbers and words first, and the user's texts last.
const FIELDS: [&str; 16] = [
    "JobIDRaw",
    "JobID",
    "State",
    "ExitCode",
    "User",
    "Account",
    "QOS",
    "Partition",
    "NTasks",
    "NodeList",
    "Submit",
    "Start",
    "End",
    "Timelimit",
    "Comment",
    "JobName",
];

/// The arguments of `sacct` that query the jobs of these numbers. If the list is empty, they query this user's jobs
/// that ended within the last day.
pub(super) fn arguments(numbers: &[String]) -> Vec<String> {
    let mut words = ["-X", "-n", "-P", "--delimiter"]
        .map(str::to_owned)
        .to_vec();
    words.push(PART.to_string());
    words.push("-o".to_owned());
    words.push(FIELDS.join(","));
    match numbers {
        [] => words.extend(
            [
                "-S",
                "now-1days",
                "-E",
                "now",
                "-s",
                "BF,CA,CD,DL,F,NF,OOM,PR,TO",
            ]
            .map(str::to_owned),
        ),
        _ => words.extend(["-j".to_owned(), numbers.join(",")]),
    }
    words
}

/// The ended jobs, from output lines with the fields that [`arguments`] requests.
pub(super) fn jobs(lines: &[String]) -> BTreeMap<String, Job> {
    let jobs = lines.iter().filter_map(|line| {
        let fields: Vec<&str> = line.splitn(FIELDS.len(), PART).collect();
        let fields: [&str; 16] = fields.try_into().ok()?;
        let number = fields[0];
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let job = job(fields);
        let has_ended = job.state().is_some_and(sdm_runtime::states::Job::has_ended);
        (is_number && has_ended).then(|| (number.to_owned(), job))
    });
    jobs.collect()
}

fn job(fields: [&str; 16]) -> Job {
    let [
        _,
        shown,
        state,
        code,
        user,
        account,
        qos,
        partition,
        tasks,
        nodes,
        submit,
        start,
        end,
        limit,
        comment,
        name,
    ] = fields;
    let mut attributes = Attributes::new();
    // `CANCELLED by 1000` is one state.
    let word = state.split(' ').next().unwrap_or_default();
    set(&mut attributes, id::NAME, name);
    set_state(&mut attributes, states::job(&[word.to_owned()]));
    set(&mut attributes, id::JOB_STATUS, word);
    if word != state {
        set(&mut attributes, id::JOB_STATUS_MESSAGE, state);
    }
    set(&mut attributes, id::SYSTEM_JOB_ID, shown);
    set(&mut attributes, id::JOB_NUM_PROCS, tasks);
    set(
        &mut attributes,
        id::TIME_LIMIT_MINUTES,
        minutes(&limit.to_uppercase()),
    );
    for (id, text) in [
        (id::USER_ID, user),
        ("account", account),
        ("qos", qos),
        (id::JOB_NODES, nodes),
    ] {
        set(&mut attributes, id, known(text));
    }
    for (id, text) in [
        (id::SUBMIT_TIME, submit),
        (id::START_TIME, start),
        (id::END_TIME, end),
    ] {
        set(&mut attributes, id, seconds(text));
    }
    let (status, signal) = code.split_once(':').unwrap_or((code, "0"));
    set(&mut attributes, id::EXIT_CODE, status);
    let [number, told] = [status, signal].map(|it| it.parse().unwrap_or(0));
    let signal = states::signal(&[word.to_owned()], number, told);
    if signal > 0 {
        set(&mut attributes, id::EXIT_SIGNAL, signal.to_string());
    }
    super::failed_start::mark(&mut attributes, comment);
    Job {
        queue: super::output::first_of(partition),
        attributes,
        processes: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sacct_line_becomes_an_ended_job() {
        let line = "13|12_3|CANCELLED by 1000|0:15|ann|phys|normal|debug||n[1-2]|1795410400|1795410403|1795410500|1-00:00:00||my | job";
        let of = |line: &str| line.replacen('|', &PART.to_string(), 15);
        let runs = "14|14|RUNNING|0:0|ann|phys|normal|debug|4|n1|1795410400|1795410403|Unknown|UNLIMITED||other";
        let jobs = jobs(&[of(line), of(runs), "cut".to_owned()]);
        assert_eq!(jobs.keys().collect::<Vec<_>>(), ["13"]);
        let value = |id: &str| jobs["13"].attributes.get(id).map(String::as_str);
        assert_eq!(value("systemJobId"), Some("12_3"));
        assert_eq!(value("jobState"), Some("TERMINATED"));
        assert_eq!(value("jobStatusMessage"), Some("CANCELLED by 1000"));
        assert_eq!(value("exitSignal"), Some("15"));
        assert_eq!(value("endTime"), Some("1795410500"));
        assert_eq!(value("timeLimitMinutes"), Some("1440"));
        assert_eq!(value("jobNumProcs"), None);
        assert_eq!(value("name"), Some("my | job"));
    }
}
