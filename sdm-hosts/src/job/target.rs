//! What a person says of a job.

use std::fmt;
use std::str::FromStr;

use super::JobError;

/// The most pids that a target can list.
const PIDS_MAX: usize = 1 << 20;

/// Which job is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A starter's pid (`mpirun`, `mpiexec`, `srun`, ...), or processes by their pids; not empty.
    Pids(Vec<i32>),
    /// A Slurm job or step whose `srun` runs on this machine.
    Slurm {
        /// The job's number.
        job: u32,
        /// The step's number; the job's only one where absent.
        step: Option<u32>,
    },
    /// A job of a PMIx server on this machine, by the name of its namespace.
    Namespace(String),
    /// The processes of this user with this name, else those of one program that have it as a word of their
    /// command line (what an interpreter runs).
    Name(String),
}

impl FromStr for Target {
    type Err = JobError;

    /// `4711` and `4711,4712` are pids, `slurm:12` and `slurm:12.0` a job and a step of Slurm,
    /// `pmix:NAMESPACE` a job of PMIx's; anything else is a name.
    fn from_str(text: &str) -> Result<Self, JobError> {
        let refuse = |what| JobError::Target {
            text: text.chars().take(80).collect(),
            what,
        };
        if let Some(id) = text.strip_prefix("slurm:") {
            let (job, step) = match id.split_once('.') {
                Some((job, step)) => (job.parse().ok(), Some(step.parse().ok())),
                None => (id.parse().ok(), None),
            };
            return match (job, step) {
                (Some(job), None) => Ok(Self::Slurm { job, step: None }),
                (Some(job), Some(Some(step))) => Ok(Self::Slurm {
                    job,
                    step: Some(step),
                }),
                _ => Err(refuse("expected slurm:JOB or slurm:JOB.STEP, in numbers")),
            };
        }
        if let Some(namespace) = text.strip_prefix("pmix:") {
            return match namespace {
                "" => Err(refuse("expected pmix:NAMESPACE")),
                name => Ok(Self::Namespace(name.to_owned())),
            };
        }
        let looks_like_pids = text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b',');
        if text.is_empty() {
            return Err(refuse("it is empty"));
        }
        if !looks_like_pids {
            return Ok(Self::Name(text.to_owned()));
        }
        let pid = |text: &str| text.parse().ok().filter(|pid| *pid > 0);
        let pids: Option<Vec<i32>> = text.split(',').map(pid).collect();
        let mut pids =
            pids.ok_or_else(|| refuse("pids are numbers from 1, with commas in between"))?;
        if pids.len() > PIDS_MAX {
            return Err(refuse("too many pids"));
        }
        pids.sort_unstable();
        pids.dedup();
        Ok(Self::Pids(pids))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Namespace(name) => write!(f, "pmix:{name}"),
            Self::Slurm { job, step: None } => write!(f, "slurm:{job}"),
            Self::Slurm {
                job,
                step: Some(step),
            } => write!(f, "slurm:{job}.{step}"),
            Self::Pids(pids) => {
                for (index, pid) in pids.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma}{pid}")?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets() {
        let check = |text: &str, expect: Target| {
            assert_eq!(text.parse::<Target>().unwrap(), expect, "{text}");
        };
        check("4711", Target::Pids(vec![4711]));
        check("9,7,9", Target::Pids(vec![7, 9]));
        check("halo", Target::Name("halo".to_owned()));
        check("./halo 7", Target::Name("./halo 7".to_owned()));
        let slurm = |step| Target::Slurm { job: 12, step };
        check("pmix:a@1", Target::Namespace("a@1".to_owned()));
        check("slurm:12", slurm(None));
        check("slurm:12.0", slurm(Some(0)));
        assert_eq!(slurm(Some(3)).to_string(), "slurm:12.3");
        assert_eq!("9,7".parse::<Target>().unwrap().to_string(), "7,9");
        for wrong in [
            "",
            "0",
            "1,,2",
            ",",
            "99999999999",
            "1,0",
            "slurm:",
            "slurm:x",
            "slurm:1.",
        ] {
            assert!(wrong.parse::<Target>().is_err(), "{wrong:?}");
        }
    }
}
