//! Options of a manager's own command for a job's limits and files.

use std::path::Path;

use sdm_system::files::{self, Writing};

use super::attributes::{JobRequest, Limit};
use super::target::Target;
use crate::manager::Submission;

/// Adds the manager's options for a job's limits and files. Returns a message for each limit that the manager does
/// not support.
pub(super) fn add(target: &Target, request: &JobRequest, job: &mut Submission) -> Vec<String> {
    let mut unheard = Vec::new();
    let mut options = Vec::new();
    for (limit, value) in &request.limits {
        let words = match target {
            Target::Slurm => slurm_option(*limit, value),
            Target::GridEngine => gridengine_option(*limit, value),
            _ => Vec::new(),
        };
        if words.is_empty() {
            let name = limit.name();
            unheard.push(format!(
                "limit {name} {value}: ignored, because this resource manager has no such limit"
            ));
        }
        options.extend(words);
    }
    for (path, (long, short)) in [
        (&request.output, ("--output", "-o")),
        (&request.errors, ("--error", "-e")),
    ] {
        let path = path.as_deref().unwrap_or("/dev/null");
        match target {
            Target::Slurm => options.push(format!("{long}={path}")),
            Target::GridEngine => {
                // Grid Engine appends to an existing file, so the file is emptied. A file that only the job's host
                // has stays as it is.
                if Path::new(path).exists() {
                    let _ = files::open_to_write(path.as_ref(), Writing::Anew);
                }
                options.extend([short.to_owned(), path.to_owned()]);
            }
            _ => {}
        }
    }
    options.append(&mut job.options);
    job.options = options;
    unheard
}

/// The option of `sbatch` for a limit; empty if `sbatch` has no such limit.
fn slurm_option(limit: Limit, value: &str) -> Vec<String> {
    let option = match limit {
        Limit::Time => format!("--time={value}"),
        Limit::MemoryMin | Limit::MemoryMax => format!("--mem={value}M"),
        Limit::Hosts => format!("--nodes={value}"),
        Limit::Project => format!("--account={value}"),
        Limit::CpuTime => return Vec::new(),
    };
    vec![option]
}

/// The options of `qsub` for a limit, with times in seconds; empty if `qsub` has no such limit, or a time is not a
/// number.
fn gridengine_option(limit: Limit, value: &str) -> Vec<String> {
    let seconds = || value.parse::<u32>().map(|minutes| u64::from(minutes) * 60);
    let time = |name: &str| seconds().map(|seconds| ["-l".to_owned(), format!("{name}={seconds}")]);
    let words = match limit {
        Limit::Time | Limit::CpuTime => {
            let name = if limit == Limit::Time {
                "h_rt"
            } else {
                "h_cpu"
            };
            return time(name).map(Vec::from).unwrap_or_default();
        }
        Limit::MemoryMin => ["-l".to_owned(), format!("mem_free={value}M")],
        Limit::MemoryMax => ["-l".to_owned(), format!("h_vmem={value}M")],
        Limit::Project => ["-P".to_owned(), value.to_owned()],
        Limit::Hosts => return Vec::new(),
    };
    words.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_become_manager_options_or_are_reported_as_ignored() {
        let request = JobRequest {
            limits: vec![
                (Limit::Time, "90".to_owned()),
                (Limit::CpuTime, "2".to_owned()),
                (Limit::MemoryMax, "300".to_owned()),
                (Limit::Hosts, "2".to_owned()),
            ],
            output: Some("/no/such/folder/o".to_owned()),
            ..JobRequest::default()
        };
        let told = |target: &Target| {
            let mut job = Submission {
                options: vec!["own".to_owned()],
                ..Submission::default()
            };
            let unheard = add(target, &request, &mut job);
            (job.options.join(" "), unheard.len())
        };
        let slurm =
            "--time=90 --mem=300M --nodes=2 --output=/no/such/folder/o --error=/dev/null own";
        assert_eq!(told(&Target::Slurm), (slurm.to_owned(), 1));
        let gridengine =
            "-l h_rt=5400 -l h_cpu=120 -l h_vmem=300M -o /no/such/folder/o -e /dev/null own";
        assert_eq!(told(&Target::GridEngine), (gridengine.to_owned(), 1));
        assert_eq!(told(&Target::Local), ("own".to_owned(), 4));
    }
}
