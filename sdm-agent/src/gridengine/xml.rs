//! Parser of the XML output of `qstat` and `qhost`.

use std::collections::BTreeMap;

use roxmltree::{Document, Node, ParsingOptions};
use sdm_runtime::attribute as id;
use sdm_runtime::states::{self, Queue};

use super::job_words;
use crate::program::Program;
use crate::snapshot::{self, Attributes, Job, Process, set, set_state};

/// Maximum number of nodes of XML in one answer: a job has some forty, with its white space. One takes 48 bytes.
const NODES_MAX: u32 = 16 << 20;
/// Temporary attributes of a job, kept until all its rows are read: the row of the parallel environment's master task,
/// and the number of granted slots.
const MASTER: &str = " master";
const GRANTED: &str = " granted";
/// Maximum number of processes of a job that are reported.
const PROCESSES_MAX: usize = 1 << 20;

/// The variable of a job's context that marks it as held by SDM, and its value.
pub(super) const HELD: (&str, &str) = ("sdm", "held");

/// Fault of an answer that cannot be parsed.
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

/// The text of the child element with this name; empty if there is none.
fn value<'a>(node: Node<'a, '_>, name: &str) -> &'a str {
    whole(node, name).trim()
}

/// The text of the child element with this name, with its white space; empty if there is none.
fn whole<'a>(node: Node<'a, '_>, name: &str) -> &'a str {
    let mut children = node.children();
    let child = children.find(|child| child.has_tag_name(name));
    child.and_then(|child| child.text()).unwrap_or_default()
}

/// Hosts and queues.
pub(super) type HostsAndQueues = (BTreeMap<String, Attributes>, BTreeMap<String, Attributes>);

/// Parses the nodes and the queues from the output of `qhost -q -xml`.
pub(super) fn places(text: &str) -> Result<HostsAndQueues, UnreadableXml> {
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
        set(&mut node, id::NAME, name);
        // One that does not report has no load.
        let is_up = of("load_avg") != "-";
        set_state(
            &mut node,
            if is_up {
                states::Node::Up
            } else {
                states::Node::Down
            },
        );
        set(&mut node, id::NODE_NUMBER, nodes.len().to_string());
        for (id, text) in [
            (id::NODE_CPUS, of("num_proc").to_owned()),
            (id::NODE_MEMORY, mebibytes(of("mem_total"))),
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
            set(known, id::NAME, name);
            // A queue accepts jobs if one of its hosts does.
            let is_open = !state.contains(['d', 'D', 'E', 'u', 's', 'S', 'C']);
            let was_open = snapshot::state(known) == Some(Queue::Normal);
            let model_state = match is_open || was_open {
                true => Queue::Normal,
                false => Queue::Stopped,
            };
            set_state(known, model_state);
            if !state.is_empty() {
                states.push(format!("{name}:{state}"));
            }
        }
        set(&mut node, id::NODE_STATUS, states.join(","));
        nodes.insert(name.to_owned(), node);
    }
    Ok((nodes, queues))
}

/// Converts a size such as `23.5G` to a number of MiB; empty if it is not a size.
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

/// Parses the jobs of `qstat -u * -g dt -r -xml`. A running job has a row for each of its slots. An array has a row for
/// each member that waits.
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
        // A pending job has the queue that it requests, or none yet.
        let (queue, host) = match value(row, "queue_name").split_once('@') {
            Some((queue, host)) => (queue, Some(host)),
            None => (value(row, "hard_req_queue"), None),
        };
        let queue = queue.split('@').next().unwrap_or_default();
        let job = jobs.entry(key.clone()).or_insert_with(|| {
            let mut attributes = Attributes::new();
            let letters = value(row, "state");
            let name = match value(row, "full_job_name") {
                "" => value(row, "JB_name"),
                name => name,
            };
            set(&mut attributes, id::NAME, name);
            set_state(&mut attributes, state(letters));
            set(&mut attributes, id::JOB_STATUS, letters);
            set(&mut attributes, id::SYSTEM_JOB_ID, &*key);
            set(&mut attributes, id::ARRAY_INDEX, task);
            set(&mut attributes, id::USER_ID, value(row, "JB_owner"));
            let asked = match value(row, "requested_pe") {
                "" => value(row, "slots"),
                count => count,
            };
            // For a range, `2-8`, the final number is unknown before the job runs; the minimum is reported.
            let asked = asked.split('-').next().unwrap_or_default();
            set(&mut attributes, id::JOB_NUM_PROCS, asked);
            for (id, name) in [
                (id::SUBMIT_TIME, "JB_submission_time"),
                (id::START_TIME, "JAT_start_time"),
            ] {
                set(&mut attributes, id, seconds(value(row, name)));
            }
            Job {
                queue: queue.to_owned(),
                attributes,
                processes: Vec::new(),
            }
        });
        let Some(host) = host else { continue };
        if value(row, "master") == "MASTER" {
            set(&mut job.attributes, MASTER, job.processes.len().to_string());
        }
        set(&mut job.attributes, GRANTED, value(row, "granted_pe"));
        if job.processes.len() < PROCESSES_MAX {
            let mut attributes = Attributes::new();
            set_state(&mut attributes, states::Process::Running);
            let node = Some(host.to_owned());
            job.processes.push(Process { node, attributes });
        }
    }
    jobs.values_mut().for_each(add_places);
    Ok(jobs)
}

/// Sets the number of a job's processes, and their nodes, once all rows of the job are read.
fn add_places(job: &mut Job) {
    let mut taken = |id: &str| job.attributes.remove(id)?.parse::<usize>().ok();
    let (master, granted) = (taken(MASTER), taken(GRANTED));
    if job.processes.is_empty() {
        return;
    }
    // The master has a row in addition to that of its slot, unless its parallel environment has `job_is_first_task`.
    if let (Some(master), Some(granted)) = (master, granted)
        && job.processes.len() == granted + 1
    {
        job.processes.remove(master);
    }
    let count = job.processes.len().to_string();
    set(&mut job.attributes, id::JOB_NUM_PROCS, count);
    let nodes = job.processes.iter().filter_map(|it| it.node.as_deref());
    let mut nodes: Vec<&str> = nodes.collect();
    nodes.sort_unstable();
    nodes.dedup();
    let nodes = nodes.join(",");
    set(&mut job.attributes, id::JOB_NODES, nodes);
}

/// Maps the letters of Grid Engine's job state (`qw`, `r`, `Eqw`) to a job state of the runtime model.
fn state(letters: &str) -> states::Job {
    match letters {
        // It could not be started, and waits for someone who clears the error or deletes the job.
        _ if letters.contains('E') => states::Job::Error,
        _ if letters.contains(['s', 'S', 'T']) => states::Job::Suspended,
        _ if letters.contains('r') => states::Job::Running,
        _ if letters.contains('t') => states::Job::Started,
        _ if letters.contains(['q', 'w']) => states::Job::Pending,
        _ => states::Job::Unknown,
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

/// Details of a job from `qstat -j`, in addition to its rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Details {
    /// Requested path of the job's output; empty if none was requested.
    pub(super) output: String,
    /// Requested path of the job's errors; empty if none was requested.
    pub(super) errors: String,
    /// True if the job's errors are written to its output.
    pub(super) is_merged: bool,
    /// The working folder of the job; empty for the user's home.
    pub(super) folder: String,
    pub(super) account: String,
    /// True if the job's context marks it as held by SDM.
    pub(super) is_held: bool,
    /// The job's program, as SDM or `qsub` was given it, and the variables that `qsub -v` or `-V` sets.
    pub(super) program: Program,
    /// Reasons of error states, by array index; the index is 1 for a job that is not an array.
    pub(super) reasons: BTreeMap<String, String>,
}

/// Parses the details of jobs from the output of `qstat -j N,N -xml`, by job number.
pub(super) fn details(text: &str) -> Result<BTreeMap<String, Details>, UnreadableXml> {
    let document = document("qstat -j", text)?;
    let mut all = BTreeMap::new();
    let known = document
        .descendants()
        .filter(|node| node.has_tag_name("djob_info"))
        .flat_map(|node| node.children())
        .filter(|node| node.has_tag_name("element"));
    for job in known {
        let number = value(job, "JB_job_number");
        let named = |name: &'static str| job.descendants().filter(move |it| it.has_tag_name(name));
        let path = |name: &'static str| {
            let mut paths = named(name).flat_map(|list| list.descendants());
            let path = paths.find(|node| node.has_tag_name("PN_path"));
            let path = path.and_then(|it| it.text()).unwrap_or_default();
            path.trim().to_owned()
        };
        let mut context = named("context_list");
        let (variable, word) = HELD;
        let is_held =
            context.any(|it| value(it, "VA_variable") == variable && value(it, "VA_value") == word);
        let tasks = named("JB_ja_tasks").flat_map(|list| list.children());
        let reasons = tasks.filter_map(|task| {
            let mut all = task.descendants();
            let reason = all.find(|node| node.has_tag_name("QIM_message"))?;
            let number = value(task, "JAT_task_number").to_owned();
            Some((number, reason.text()?.trim().to_owned()))
        });
        let details = Details {
            output: path("JB_stdout_path_list"),
            errors: path("JB_stderr_path_list"),
            is_merged: value(job, "JB_merge_stderr") == "true",
            folder: value(job, "JB_cwd").to_owned(),
            account: value(job, "JB_account").to_owned(),
            is_held,
            program: program(job),
            reasons: reasons.collect(),
        };
        all.insert(number.to_owned(), details);
    }
    Ok(all)
}

/// The program of a job from its details. The name of a script from standard input is none.
fn program(job: Node<'_, '_>) -> Program {
    let list = |name: &'static str| job.children().filter(move |it| it.has_tag_name(name));
    let items = |name| list(name).flat_map(|it| it.children().filter(Node::is_element));
    let arguments = items("JB_job_args").map(|it| whole(it, "ST_name").to_owned());
    let variables = items("JB_env_list").filter_map(|it| {
        let name = value(it, "VA_variable");
        // Grid Engine's own, such as the home of the user who has submitted the job.
        let is_own = name.is_empty() || name.starts_with("__SGE_PREFIX__");
        (!is_own).then(|| format!("{name}={}", whole(it, "VA_value")))
    });
    Program {
        words: job_words::read(value(job, "JB_script_file"), arguments.collect()),
        environment: variables.collect(),
    }
}
