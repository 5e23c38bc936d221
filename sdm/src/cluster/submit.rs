//! The command `sdm submit`.

use std::path::Path;

use sdm_rm::{Definition, Question};
use sdm_runtime::attribute as id;
use sdm_system::{files, programs};
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
    let program = named_here(program, args, cluster);
    let script = batch_script(&program, args, cluster)?;
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
    if args.debug || args.debugger.is_some() {
        set(id::DEBUG, "true".to_owned());
    }
    if let Some(debugger) = &args.debugger {
        let (path, name) = debugger.rsplit_once('/').unwrap_or(("", debugger));
        if !path.is_empty() {
            set(id::DEBUG_EXEC_PATH, path.to_owned());
        }
        set(id::DEBUG_EXEC_NAME, name.to_owned());
    }
    for argument in &args.debugger_arg {
        set(id::DEBUG_ARGS, argument.clone());
    }
    if script.is_some() {
        set(id::BATCH_SCRIPT, "true".to_owned());
    }
    let script = script.unwrap_or_default().into_iter();
    let limits = limits(args, cluster)?.into_iter();
    for option in script.chain(limits).chain(args.option.iter().cloned()) {
        set(id::SUBMIT_OPTIONS, option);
    }
    for pair in environment(args, cluster)? {
        set(id::ENV, pair);
    }
    Ok(attributes)
}

/// Turns a program name without a directory into a path (`./NAME`) for a cluster on this host, if the job's directory
/// has this file and `PATH` has no such program. Other names are unchanged.
fn named_here(program: String, args: &SubmitArgs, cluster: &Definition) -> String {
    let folder = Path::new(args.directory.as_deref().unwrap_or("."));
    let is_here = cluster.host.is_none()
        && !program.contains('/')
        && folder.join(&program).is_file()
        && programs::named(&program).is_err();
    match is_here {
        true => format!("./{program}"),
        false => program,
    }
}

/// The options for the manager in the comments at the beginning of a batch script of Slurm or Grid Engine (`#SBATCH`,
/// `#$`). None without such options, for a cluster on another host, for a program named without `/`, and for a file
/// that cannot be read or is no script.
fn batch_script(
    program: &str,
    args: &SubmitArgs,
    cluster: &Definition,
) -> Result<Option<Vec<String>>, ClusterError> {
    let mark = match &*cluster.rm_type {
        "slurm" => "#SBATCH",
        "gridengine" => "#$",
        _ => return Ok(None),
    };
    let path = Path::new(args.directory.as_deref().unwrap_or(".")).join(program);
    if cluster.host.is_some() || !program.contains('/') {
        return Ok(None);
    }
    // A file that cannot be read has no options here. The resource manager reports the error when it starts the job.
    let text = match files::read_text(&path) {
        Ok(text) if text.starts_with("#!") => text,
        _ => return Ok(None),
    };
    let comments = text.lines().map(str::trim);
    let comments = comments.take_while(|line| line.is_empty() || line.starts_with('#'));
    let lines: Vec<&str> = comments
        .filter_map(|line| line.strip_prefix(mark))
        .collect();
    if lines.is_empty() {
        return Ok(None);
    }
    let mut options = Vec::new();
    for line in lines {
        let words = shell_words::split(line);
        let words = words.map_err(|_| ClusterError::NoDirective(format!("{mark}{line}")))?;
        options.extend(words.into_iter().take_while(|word| !word.starts_with('#')));
    }
    Ok(Some(options))
}

/// The limits that are asked for, in the words of the manager's own command.
fn limits(args: &SubmitArgs, cluster: &Definition) -> Result<Vec<String>, ClusterError> {
    let refused = |option: &'static str| {
        Err(ClusterError::NoLimit {
            option,
            cluster: cluster.name.clone(),
            rm_type: cluster.rm_type.clone(),
        })
    };
    let mut options = Vec::new();
    if let Some(time) = &args.time {
        match &*cluster.rm_type {
            "slurm" => options.push(format!("--time={time}")),
            "gridengine" => options.extend(["-l".to_owned(), format!("h_rt={time}")]),
            _ => return refused("--time"),
        }
    }
    if let Some(nodes) = args.nodes {
        match &*cluster.rm_type {
            "slurm" => options.push(format!("--nodes={nodes}")),
            _ => return refused("--nodes"),
        }
    }
    Ok(options)
}

/// The environment of the job: the requested variables and, if the cluster is on this host, the environment of this
/// process, as with sbatch.
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Verb};

    fn attributes_of(words: &[&str], rm_type: &str) -> Result<Vec<String>, ClusterError> {
        let cli = Cli::parse_from(["sdm", "submit"].iter().chain(words));
        let Verb::Submit(args) = cli.command else {
            panic!("{words:?}");
        };
        let cluster = Definition::new("here", rm_type);
        let attributes = attributes(&args, &cluster)?.into_iter();
        let shown = attributes.filter(|(id, _)| id != "env" && id != id::WORKING_DIR);
        Ok(shown.map(|(id, value)| format!("{id}={value}")).collect())
    }

    #[test]
    fn limits_become_options_of_the_submit_command() {
        let line = ["--time", "1:30:00", "--nodes", "2", "--", "/bin/true"];
        let of = |rm_type| attributes_of(&line, rm_type);
        let slurm = of("slurm").unwrap();
        assert!(
            slurm.contains(&"submitOptions=--time=1:30:00".to_owned()),
            "{slurm:?}"
        );
        assert!(
            slurm.contains(&"submitOptions=--nodes=2".to_owned()),
            "{slurm:?}"
        );
        let told = of("local").unwrap_err().to_string();
        assert_eq!(
            told,
            "--time: here is of type local, which does not support this limit; --option passes options to its own submit command"
        );
        let told = of("gridengine").unwrap_err().to_string();
        assert!(
            told.starts_with("--nodes: here is of type gridengine"),
            "{told}"
        );
    }

    #[test]
    fn sbatch_options_of_a_script_are_passed_only_to_slurm() {
        let folder = files::temporary_folder().join("sdm-submit-script");
        std::fs::create_dir_all(&folder).unwrap();
        let text = "#!/bin/sh\n#SBATCH --time=10 -p debug # why\n\n# of ours\n#SBATCH -J 'a b'\nsrun x\n#SBATCH -n 9\n";
        std::fs::write(folder.join("job.sh"), text).unwrap();
        let folder = folder.to_str().unwrap();
        let of = |rm_type| {
            let words = ["--directory", folder, "--option=-t1", "--", "job.sh", "a"];
            attributes_of(&words, rm_type).unwrap()
        };
        let common = [
            "execName=job.sh",
            "execPath=.",
            "jobNumProcs=1",
            "progArgs=a",
        ];
        let script = [
            "batchScript=true",
            "submitOptions=--time=10",
            "submitOptions=-p",
            "submitOptions=debug",
        ];
        let rest = ["submitOptions=-J", "submitOptions=a b", "submitOptions=-t1"];
        assert_eq!(of("slurm"), [&common[..], &script, &rest].concat());
        assert_eq!(of("local"), [&common[..], &["submitOptions=-t1"]].concat());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
