//! The command `sdm submit`.

use sdm_rm::{Definition, Question};
use sdm_runtime::attribute as id;
use serde_json::json;

use super::choose::{DONE_WAIT, ask, started};
use super::error::ClusterError;
use crate::cli::SubmitArgs;
use crate::sink::Sink;

/// Maximum size of the passed environment, in bytes, because requests are bounded.
const ENVIRONMENT_BYTES_MAX: usize = 512 << 10;

/// Submits a job, and prints its number.
pub(super) fn submit(args: &SubmitArgs) -> Result<u8, ClusterError> {
    let clusters = started(args.to.manager.as_deref())?;
    let [cluster] = &clusters[..] else {
        let names = clusters.into_iter().map(|cluster| cluster.name);
        return Err(ClusterError::WhichCluster(names.collect()));
    };
    let attributes = attributes(args, cluster)?;
    let answer = ask(&cluster.name, &Question::Submit { attributes }, DONE_WAIT)?;
    let job = answer.job.unwrap_or_default();
    let line = match args.json {
        true => format!("{}\n", json!({ "cluster": cluster.name, "job": job })),
        false => format!("{job}\n"),
    };
    Sink::Output.show(&line).map_err(ClusterError::Output)?;
    Ok(0)
}

/// The attributes of SUBMIT_JOB ("PTP rm proxy").
fn attributes(
    args: &SubmitArgs,
    cluster: &Definition,
) -> Result<Vec<(String, String)>, ClusterError> {
    let mut attributes = Vec::new();
    let mut set = |id: &str, value: String| attributes.push((id.to_owned(), value));
    let mut words = args.program.iter().map(|word| {
        let text = word.to_str().map(str::to_owned);
        text.ok_or_else(|| ClusterError::NoText(word.clone()))
    });
    let program = words.next().transpose()?.unwrap_or_default();
    // A path that begins here is one of this folder, wherever the manager runs; a bare name is looked for on PATH there.
    let (path, name) = match program.rsplit_once('/') {
        Some((path, name)) => (path.to_owned(), name.to_owned()),
        None => (String::new(), program),
    };
    let here = match (&args.directory, &cluster.host) {
        (Some(given), Some(_)) => Some(given.clone()),
        (None, Some(_)) => None,
        (given, None) => {
            let here = std::env::current_dir().map_err(ClusterError::NoFolder)?;
            let here = here.join(given.as_deref().unwrap_or_default());
            let text = here.to_str().map(|it| it.trim_end_matches('/').to_owned());
            Some(text.ok_or_else(|| ClusterError::NoText(here.into_os_string()))?)
        }
    };
    set(id::EXEC_NAME, name);
    if !path.is_empty() {
        set(id::EXEC_PATH, path);
    }
    if let Some(here) = here {
        set(id::WORKING_DIR, here);
    }
    set(id::JOB_NUM_PROCS, args.count.to_string());
    for word in words {
        set(id::PROG_ARGS, word?);
    }
    if let Some(name) = &args.name {
        set(id::JOB_NAME, name.clone());
    }
    if let Some(queue) = &args.queue {
        set(id::QUEUE_ID, queue.clone());
    }
    if args.debug {
        set("debug", "true".to_owned());
    }
    for option in &args.option {
        set(id::SUBMIT_OPTIONS, option.clone());
    }
    for pair in environment(args, cluster)? {
        set("env", pair);
    }
    Ok(attributes)
}

/// The job's environment. It is this process's, as with sbatch, if the cluster is on this host, plus the
/// requested variables.
fn environment(args: &SubmitArgs, cluster: &Definition) -> Result<Vec<String>, ClusterError> {
    let mut pairs = Vec::new();
    let mut bytes = 0;
    if cluster.host.is_none() {
        for (name, value) in std::env::vars_os() {
            let (Ok(name), Ok(value)) = (name.into_string(), value.into_string()) else {
                continue;
            };
            bytes += name.len() + value.len();
            if is_name(&name) && bytes <= ENVIRONMENT_BYTES_MAX {
                pairs.push(format!("{name}={value}"));
            }
        }
    }
    for pair in &args.env {
        let (name, _) = pair
            .split_once('=')
            .filter(|(name, _)| is_name(name))
            .ok_or_else(|| ClusterError::NoVariable(pair.clone()))?;
        let before = format!("{name}=");
        pairs.retain(|known| !known.starts_with(&before));
        pairs.push(pair.clone());
    }
    Ok(pairs)
}

/// True for a valid name of a shell variable.
fn is_name(name: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && name.bytes().all(is_word) && !name.as_bytes()[0].is_ascii_digit()
}
