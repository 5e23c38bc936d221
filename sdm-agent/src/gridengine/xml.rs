//! What `qstat` and `qhost` say, in XML, and `qacct` in lines.

use std::collections::BTreeMap;

use roxmltree::{Document, Node, ParsingOptions};

use crate::snapshot::{Attributes, Job, Process, set};

/// The most elements of one answer: a million jobs of a dozen values.
const NODES_MAX: u32 = 16 << 20;
/// Processes of a job that are told of at most.
const PROCESSES_MAX: usize = 1 << 20;

/// Why an answer cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{0}: {1}")]
pub struct UnreadableXml(&'static str, #[source] roxmltree::Error);

fn document<'a>(what: &'static str, text: &'a str) -> Result<Document<'a>, UnreadableXml> {
    let options = ParsingOptions {
        allow_dtd: false,
        nodes_limit: NODES_MAX,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(text, options).map_err(|why| UnreadableXml(what, why))
}

/// The text of the child of this name.
fn value<'a>(node: Node<'a, '_>, name: &str) -> &'a str {
    let mut children = node.children();
    let child = children.find(|child| child.has_tag_name(name));
    child
        .and_then(|child| child.text())
        .unwrap_or_default()
        .trim()
}

/// Hosts and queues.
pub(super) type Places = (BTreeMap<String, Attributes>, BTreeMap<String, Attributes>);

/// The nodes and the queues, of `qhost -q -xml`.
pub(super) fn places(text: &str) -> Result<Places, UnreadableXml> {
    let document = document("qhost", text)?;
    let (mut nodes, mut queues) = (BTreeMap::new(), BTreeMap::<String, Attributes>::new());
    let hosts = document
        .descendants()
        .filter(|node| node.has_tag_name("host"));
    for host in hosts.filter(|host| host.attribute("name") != Some("global")) {
        let name = host.attribute("name").unwrap_or_default();
        let of = |wanted: &str| {
            let values = host.children().filter(|it| it.has_tag_name("hostvalue"));
            let mut named = values.filter(|it| it.attribute("name") == Some(wanted));
            named
                .next()
                .and_then(|it| it.text())
                .unwrap_or_default()
                .trim()
        };
        let mut node = Attributes::new();
        set(&mut node, "name", name);
        // One that does not report has no load.
        let is_up = of("load_avg") != "-";
        set(&mut node, "nodeState", if is_up { "UP" } else { "DOWN" });
        set(&mut node, "nodeNumber", nodes.len().to_string());
        for (id, text) in [
            ("nodeCpus", of("num_proc").to_owned()),
            ("nodeMemory", mebibytes(of("mem_total"))),
        ] {
            set(
                &mut node,
                id,
                if text == "-" { String::new() } else { text },
            );
        }
        let mut states = Vec::new();
        for queue in host.children().filter(|it| it.has_tag_name("queue")) {
            let name = queue.attribute("name").unwrap_or_default();
            let mut values = queue.children();
            let state = values.find(|it| it.attribute("name") == Some("state_string"));
            let state = state.and_then(|it| it.text()).unwrap_or_default().trim();
            let known = queues.entry(name.to_owned()).or_default();
            set(known, "name", name);
            // It takes jobs where one of its hosts does.
            let is_open = !state.contains(['d', 'D', 'E', 'u', 's', 'S', 'C']);
            let was_open = known.get("queueState").is_some_and(|it| it == "NORMAL");
            set(
                known,
                "queueState",
                if is_open || was_open {
                    "NORMAL"
                } else {
                    "STOPPED"
                },
            );
            if !state.is_empty() {
                states.push(format!("{name}:{state}"));
            }
        }
        set(&mut node, "nodeStatus", states.join(","));
        nodes.insert(name.to_owned(), node);
    }
    Ok((nodes, queues))
}

/// `23.5G` in MiB.
fn mebibytes(text: &str) -> String {
    let (number, factor) = match text.strip_suffix(['K', 'M', 'G', 'T']) {
        Some(number) => {
            let factor = match text.chars().last() {
                Some('K') => 1.0 / 1024.0,
                Some('G') => 1024.0,
                Some('T') => 1024.0 * 1024.0,
                _ => 1.0,
            };
            (number, factor)
        }
        None => (text, 1.0 / (1024.0 * 1024.0)),
    };
    let number: Option<f64> = number.parse().ok();
    let number = number.filter(|it| it.is_finite() && *it >= 0.0);
    number
        .map(|it| format!("{:.0}", it * factor))
        .unwrap_or_default()
}

/// The jobs, of `qstat -u * -g dt -xml`: a row for each slot of one that runs, for each member of an array that waits.
pub(super) fn jobs(text: &str) -> Result<BTreeMap<String, Job>, UnreadableXml> {
    let document = document("qstat", text)?;
    let mut jobs: BTreeMap<String, Job> = BTreeMap::new();
    let rows = document
        .descendants()
        .filter(|node| node.has_tag_name("job_list"));
    for row in rows {
        let number = value(row, "JB_job_number");
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let task = value(row, "tasks");
        let key = match task.is_empty() {
            true => number.to_owned(),
            false => format!("{number}.{task}"),
        };
        let (queue, host) = match value(row, "queue_name").split_once('@') {
            Some((queue, host)) => (queue, Some(host)),
            None => (value(row, "queue_name"), None),
        };
        let job = jobs.entry(key.clone()).or_insert_with(|| {
            let mut attributes = Attributes::new();
            let letters = value(row, "state");
            set(&mut attributes, "name", value(row, "JB_name"));
            set(&mut attributes, "jobState", state(letters));
            set(&mut attributes, "jobStatus", letters);
            set(&mut attributes, "systemJobId", &*key);
            set(&mut attributes, "arrayIndex", task);
            set(&mut attributes, "userId", value(row, "JB_owner"));
            set(&mut attributes, "jobNumProcs", value(row, "slots"));
            for (id, name) in [
                ("submitTime", "JB_submission_time"),
                ("startTime", "JAT_start_time"),
            ] {
                set(&mut attributes, id, seconds(value(row, name)));
            }
            Job {
                queue: queue.to_owned(),
                attributes,
                processes: Vec::new(),
            }
        });
        // Where a job has slaves, the master has a row of its own beside its slot.
        let Some(host) = host else { continue };
        let is_slave = value(row, "master") == "SLAVE";
        if is_slave && job.attributes.remove("masterOnly").is_some() {
            job.processes.clear();
        }
        if !is_slave {
            job.attributes
                .insert("masterOnly".to_owned(), String::new());
        }
        if job.processes.len() < PROCESSES_MAX {
            job.processes.push(Process {
                node: Some(host.to_owned()),
                attributes: [("processState".to_owned(), "RUNNING".to_owned())].into(),
            });
        }
    }
    jobs.values_mut().for_each(add_places);
    Ok(jobs)
}

/// How many processes a job has, and on which nodes, once all its rows are known.
fn add_places(job: &mut Job) {
    job.attributes.remove("masterOnly");
    if job.processes.is_empty() {
        return;
    }
    let count = job.processes.len().to_string();
    set(&mut job.attributes, "jobNumProcs", count);
    let nodes = job.processes.iter().filter_map(|it| it.node.as_deref());
    let mut nodes: Vec<&str> = nodes.collect();
    nodes.sort_unstable();
    nodes.dedup();
    let nodes = nodes.join(",");
    set(&mut job.attributes, "jobNodes", nodes);
}

/// The model's word for Grid Engine's letters.
fn state(letters: &str) -> &'static str {
    match letters {
        _ if letters.contains(['s', 'S', 'T']) => "SUSPENDED",
        _ if letters.contains('r') => "RUNNING",
        _ if letters.contains('t') => "STARTED",
        _ if letters.contains(['q', 'w']) => "PENDING",
        _ => "UNKNOWN",
    }
}

/// A moment of UTC in seconds of Unix time.
fn seconds(text: &str) -> String {
    let moment: Option<jiff::civil::DateTime> = text.parse().ok();
    let zoned = moment.and_then(|moment| moment.to_zoned(jiff::tz::TimeZone::UTC).ok());
    zoned
        .map(|it| it.timestamp().as_second().to_string())
        .unwrap_or_default()
}

/// Where a job prints and runs, of `qstat -j N -xml`: output, errors (none where they go with the output) and folder.
pub(super) fn paths(text: &str) -> Result<[String; 3], UnreadableXml> {
    let document = document("qstat -j", text)?;
    let named = |name: &str| {
        let mut all = document.descendants();
        all.find(|node| node.has_tag_name(name))
    };
    let path = |name: &str| {
        let list = named(name)?;
        let path = list
            .descendants()
            .find(|node| node.has_tag_name("PN_path"))?;
        Some(path.text()?.trim().to_owned())
    };
    let cwd = named("JB_cwd")
        .and_then(|node| node.text())
        .unwrap_or_default();
    Ok([
        path("JB_stdout_path_list").unwrap_or_default(),
        path("JB_stderr_path_list").unwrap_or_default(),
        cwd.trim().to_owned(),
    ])
}

/// How a job has ended, of the lines of `qacct -j`: times, exit code, signal and what failed. Of several accounts, of a job that
/// was started again, the last counts.
pub(super) fn ended(lines: &[String]) -> Attributes {
    let mut attributes = Attributes::new();
    for line in lines {
        let (name, value) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let value = value.trim();
        match name {
            "exit_status" => {
                let code = value.split_whitespace().next().unwrap_or_default();
                let code: i32 = code.parse().unwrap_or(0);
                // A shell's way to say by which signal.
                let signal = (code > 128).then(|| code - 128);
                attributes.insert("exitCode".to_owned(), code.to_string());
                let signal = signal.map(|it| it.to_string()).unwrap_or_default();
                attributes.insert("exitSignal".to_owned(), signal);
            }
            "failed" => {
                let what = if value.starts_with("0") { "" } else { value };
                attributes.insert("jobStatusMessage".to_owned(), what.to_owned());
            }
            "start_time" | "end_time" => {
                let id = if name == "start_time" {
                    "startTime"
                } else {
                    "endTime"
                };
                let moment = jiff::civil::DateTime::strptime("%a %b %d %H:%M:%S %Y", value);
                let zoned = moment.and_then(|it| it.to_zoned(jiff::tz::TimeZone::UTC));
                let text = zoned.map(|it| it.timestamp().as_second().to_string());
                attributes.insert(id.to_owned(), text.unwrap_or_default());
            }
            _ => {}
        }
    }
    attributes.retain(|_, value| !value.is_empty());
    attributes
}
