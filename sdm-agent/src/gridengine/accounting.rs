//! Parser of `qacct`'s output about jobs that have ended.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use sdm_runtime::{attribute as id, states};

use crate::snapshot::{Attributes, Job, set, set_state};

/// The codes of `failed` for a job that could not be started (`sge_status(5)`). With 30 its script has said so.
const NOT_BEGUN: [RangeInclusive<u8>; 4] = [1..=11, 21..=21, 26..=36, 38..=38];

/// The arguments of `qacct` for all the jobs of a user that ended within the last day.
pub(super) fn of_user(user: &str) -> [&str; 8] {
    // Of a job on several hosts the master's record alone.
    ["-m", "-E", "-d", "1", "-o", user, "-j", "*"]
}

/// The ended jobs by their numbers, from the output lines of `qacct -j`. A job that was started again has several
/// records, of which the last counts.
pub(super) fn jobs(lines: &[String]) -> BTreeMap<String, Job> {
    let mut jobs = BTreeMap::new();
    for record in lines.split(|line| line.starts_with("====")) {
        let fields = record.iter().filter_map(|line| {
            let (name, value) = line.split_once(char::is_whitespace)?;
            Some((name, value.trim()))
        });
        let fields: BTreeMap<&str, &str> = fields.collect();
        let value = |name: &str| fields.get(name).copied().unwrap_or_default();
        let (number, task) = (value("jobnumber"), value("taskid"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        if !is_number(number) {
            continue;
        }
        let key = match is_number(task) {
            true => format!("{number}.{task}"),
            false => number.to_owned(),
        };
        let job = job(&key, &value);
        jobs.insert(key, job);
    }
    jobs
}

fn job<'a>(key: &str, value: &dyn Fn(&str) -> &'a str) -> Job {
    let mut attributes = Attributes::new();
    set_state(&mut attributes, states::Job::Terminated);
    set(&mut attributes, id::SYSTEM_JOB_ID, key);
    for (id, name) in [
        (id::NAME, "jobname"),
        (id::USER_ID, "owner"),
        (id::ACCOUNT, "account"),
        (id::JOB_NUM_PROCS, "slots"),
    ] {
        set(&mut attributes, id, value(name));
    }
    if let Some((_, task)) = key.split_once('.') {
        set(&mut attributes, id::ARRAY_INDEX, task);
    }
    for (id, name) in [
        (id::SUBMIT_TIME, "qsub_time"),
        (id::START_TIME, "start_time"),
        (id::END_TIME, "end_time"),
    ] {
        set(&mut attributes, id, seconds(value(name)));
    }
    let code = value("exit_status").split_whitespace().next();
    if let Some(code) = code.and_then(|code| code.parse::<u8>().ok()) {
        set(&mut attributes, id::EXIT_CODE, code.to_string());
        // A shell's way to say by which signal.
        if code > 128 {
            set(&mut attributes, id::EXIT_SIGNAL, (code - 128).to_string());
        }
    }
    let failed = value("failed");
    let code = failed.split_whitespace().next();
    if code.is_some_and(|it| it != "0") {
        set(&mut attributes, id::JOB_STATUS_MESSAGE, failed);
    }
    let code = code.and_then(|code| code.parse::<u8>().ok());
    if code.is_some_and(|code| NOT_BEGUN.iter().any(|codes| codes.contains(&code))) {
        set_state(&mut attributes, states::Job::Error);
    }
    Job {
        queue: value("qname").to_owned(),
        attributes,
        processes: Vec::new(),
    }
}

/// A moment of UTC as `qacct` writes it, `Mon Nov 23 15:13:02 2026` or `11/23/2026 15:13:02.123`, in seconds of Unix
/// time.
fn seconds(text: &str) -> String {
    let forms = ["%a %b %d %H:%M:%S %Y", "%m/%d/%Y %H:%M:%S%.f"];
    let mut moments = forms
        .iter()
        .filter_map(|form| jiff::civil::DateTime::strptime(form, text).ok());
    let zoned = moments
        .next()
        .and_then(|it| it.to_zoned(jiff::tz::TimeZone::UTC).ok());
    zoned
        .map(|it| it.timestamp().as_second().to_string())
        .unwrap_or_default()
}
