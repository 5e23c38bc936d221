//! Slurm jobs whose `srun` runs on another machine, such as the batch host. Slurm reports the steps and their nodes. A
//! script, started on each node by `srun --overlap`, reports the processes there and their ranks.

use std::time::Duration;

use sdm_system::run_bounded::{self, Bounds};
use sdm_system::{files, programs};
use sdm_text::{agree, printable};

use super::remote_ranks::{RemoteProcess, programs};
use super::{Job, JobError, JobProcess, PROCESSES_MAX};

/// The script that runs on each node.
const SCRIPT: &str = include_str!("slurm.sh");
/// Time limit for an answer of Slurm, and for its nodes to start a small program.
const WAIT: Duration = Duration::from_secs(60);
/// Time limit for Slurm to say whether a number that is a pid on this machine is also a job.
const GLANCE_WAIT: Duration = Duration::from_secs(1);
/// Maximum number of steps that an error message lists.
const LISTED_MAX: usize = 16;

/// A running step of a Slurm job.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    /// The job in Slurm's notation: `12`, `12_3`, `12+1`.
    job: String,
    number: u32,
    tasks: u32,
    nodes: String,
    uid: u32,
    program: String,
}

impl Step {
    /// Parses `12.0|4|n[1-4]|1000|halo`; `None` for a step without a program (`12.batch`).
    fn read(line: &str) -> Option<Self> {
        let mut words = line.splitn(5, '|');
        let (job, number) = words.next()?.rsplit_once('.')?;
        Some(Self {
            job: job.to_owned(),
            number: number.parse().ok()?,
            tasks: words.next()?.parse().ok()?,
            nodes: words.next()?.to_owned(),
            uid: words.next()?.parse().ok()?,
            program: words.next()?.to_owned(),
        })
    }

    /// The step in an error message: `slurm:12.0 (halo, 4 tasks)`.
    fn shown(&self) -> String {
        let (job, program) = (
            printable(self.job.as_bytes()),
            printable(self.program.as_bytes()),
        );
        format!(
            "slurm:{job}.{} ({program}, {} tasks)",
            self.number, self.tasks
        )
    }
}

/// Runs one of Slurm's programs and returns its output lines.
fn ask(program: &str, arguments: &[&str], wait: Duration) -> Result<Vec<String>, SlurmFailure> {
    let path = files::search(program).ok_or_else(|| SlurmFailure::NoProgram(program.to_owned()))?;
    let mut command = programs::at(path);
    command.args(arguments).env("LC_ALL", "C");
    for variable in ["SQUEUE_STATES", "SQUEUE_USERS", "SQUEUE_PARTITION"] {
        command.env_remove(variable);
    }
    let bounds = Bounds {
        wait,
        lines_max: PROCESSES_MAX as usize,
    };
    let said = run_bounded::run(&mut command, &[], bounds).map_err(|source| SlurmFailure::Run {
        program: program.to_owned(),
        source,
    })?;
    if said.status.success() {
        return Ok(said.lines);
    }
    let complaint = said.complaints.last();
    let what = complaint.map_or_else(|| said.status.to_string(), |it| printable(it.as_bytes()));
    Err(SlurmFailure::Said {
        program: program.to_owned(),
        what,
    })
}

/// Reason for which Slurm did not answer.
#[derive(Debug, thiserror::Error)]
enum SlurmFailure {
    #[error("{0} was not found on PATH")]
    NoProgram(String),
    #[error("{program}: {source}")]
    Run {
        program: String,
        source: std::io::Error,
    },
    #[error("{program}: {what}")]
    Said { program: String, what: String },
}

/// True if a number is a Slurm job that has not ended. With `glance`, false also if Slurm does not answer within a
/// second.
pub(super) fn knows(number: i32, glance: bool) -> bool {
    let wait = if glance { GLANCE_WAIT } else { WAIT };
    let id = number.to_string();
    ask("squeue", &["-h", "-j", &id, "-o", "%A"], wait).is_ok_and(|lines| !lines.is_empty())
}

/// The processes of a job's only step, or of the step `step`.
///
/// # Errors
/// This user has no such step, or several steps can be meant. Or Slurm does not report where the ranks of the step are.
pub(super) fn find(id: &str, step: Option<u32>, uid: u32) -> Result<Job, JobError> {
    let whole = step.map_or_else(|| id.to_owned(), |step| format!("{id}.{step}"));
    let none = |what: String| JobError::NoSrun {
        id: whole.clone(),
        what,
    };
    let unasked = |error: SlurmFailure| none(error.to_string());
    let known = ask("squeue", &["-h", "-j", id, "-o", "%t"], WAIT).map_err(unasked)?;
    let listed = ["-h", "--steps", "-j", id, "-o", "%i|%A|%N|%U|%j"];
    let lines = ask("squeue", &listed, WAIT).map_err(unasked)?;
    let mut steps: Vec<Step> = lines.iter().filter_map(|line| Step::read(line)).collect();
    steps.retain(|it| step.is_none_or(|step| it.number == step));
    let count = steps.len();
    steps.retain(|it| it.uid == uid);
    if steps.len() > 1 {
        let mut shown: Vec<String> = steps.iter().take(LISTED_MAX).map(Step::shown).collect();
        if steps.len() > LISTED_MAX {
            shown.push(format!("and {} more", steps.len() - LISTED_MAX));
        }
        return Err(JobError::Steps { id: whole, shown });
    }
    let Some(step) = steps.pop() else {
        let state = known.first().map_or("CD", |it| it.trim());
        return Err(none(match count {
            0 => format!(
                "the job has no running step (state {})",
                printable(state.as_bytes())
            ),
            _ => "the steps of the job belong to another user".to_owned(),
        }));
    };
    // An element of an array, and a component, has a number of its own.
    let number = ask("squeue", &["-h", "-j", &step.job, "-o", "%A"], WAIT).map_err(unasked)?;
    let number = number.first().and_then(|it| it.trim().parse::<u32>().ok());
    let number =
        number.ok_or_else(|| none("squeue does not report the id of the job".to_owned()))?;
    let nodes = ask("scontrol", &["show", "hostnames", &step.nodes], WAIT).map_err(unasked)?;
    let lines = ask_nodes(number, step.number, &nodes).map_err(unasked)?;
    let processes = read(&lines);
    let missing = usize::try_from(step.tasks).unwrap_or(usize::MAX);
    let missing = missing.saturating_sub(processes.len());
    if processes.is_empty() {
        return Err(none(
            "none of your processes on the job's nodes belongs to the job".to_owned(),
        ));
    }
    Ok(Job {
        source: format!(
            "processes of step {}.{}, as reported by its Slurm nodes",
            step.job, step.number
        ),
        processes,
        ranked: true,
        slurm: Some(format!("{number}.{}", step.number)),
        incomplete: (missing > 0).then(|| {
            format!(
                "{missing} of the {} tasks of the step {} not found on the step's nodes",
                step.tasks,
                agree(missing, "was", "were")
            )
        }),
        notes: Vec::new(),
    })
}

/// The answers of the nodes. On each node a one-task step, which overlaps the job's, runs the script.
fn ask_nodes(job: u32, step: u32, nodes: &[String]) -> Result<Vec<String>, SlurmFailure> {
    let (job, step) = (job.to_string(), step.to_string());
    let jobid = format!("--jobid={job}");
    let (count, total) = (
        format!("--nodes={}", nodes.len()),
        format!("--ntasks={}", nodes.len()),
    );
    let list = format!("--nodelist={}", nodes.join(","));
    let words = [
        "--overlap",
        "--mpi=none",
        "--input=none",
        &jobid,
        &count,
        &total,
        "--ntasks-per-node=1",
        &list,
        "/bin/sh",
        "-c",
        SCRIPT,
        "sh",
        &job,
        &step,
    ];
    ask("srun", &words, WAIT)
}

/// The ranks in the output of the nodes' scripts; other lines are ignored.
fn read(lines: &[String]) -> Vec<JobProcess> {
    let mut told = Vec::new();
    for line in lines {
        let words: Vec<&str> = line.splitn(7, '\t').collect();
        let [rank, pid, parent, node, mpi, ticks, program] = words[..] else {
            continue;
        };
        told.extend(RemoteProcess::read(
            [rank, pid, parent, mpi, ticks],
            (node, program),
        ));
    }
    programs(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_program_steps_of_slurm_are_read() {
        let step = Step::read("2_3.0|4|n[1-2]|1000|ha|lo").unwrap();
        assert_eq!((step.number, step.tasks, step.uid), (0, 4, 1000));
        assert_eq!(step.shown(), "slurm:2_3.0 (ha|lo, 4 tasks)");
        for other in [
            "2.batch|1|n1|0|batch",
            "2.extern|1|n1|0|x",
            "",
            "2.0",
            "x|1",
        ] {
            assert_eq!(Step::read(other), None, "{other}");
        }
    }

    #[test]
    fn program_process_of_each_rank_is_selected() {
        let lines = [
            "1\t20\t7\tn2\t1\t9\t./halo",
            "0\t10\t7\tn1\t0\t3\t/opt/wrap",
            "0\t11\t10\tn1\t1\t1\t/opt/halo",
            "0\t12\t11\tn1\t0\t99\thelper",
            // It has forked itself.
            "0\t13\t11\tn1\t1\t0\t/opt/halo",
            "x\t1\t1\tn1\t0\t0\tz",
            "2\t30\t30\tn1\t0\t0\tits own parent",
            "end\tn1",
        ];
        let found = read(&lines.map(str::to_owned));
        let found: Vec<_> = found
            .iter()
            .map(|it| (it.rank, it.pid, &*it.host, &*it.program))
            .collect();
        assert_eq!(found, [(0, 11, "n1", "halo"), (1, 20, "n2", "halo")]);
    }
}
