//! The user's name for a job, and its parsing.

use std::fmt;
use std::str::FromStr;

use super::JobError;

/// Maximum number of pids that a target can list.
const PIDS_MAX: usize = 1 << 20;

/// The user's name for a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A launcher's pid (`mpirun`, `mpiexec`, `srun`, ...), or processes by their pids; not empty.
    Pids(Vec<i32>),
    /// A single number: a pid on this machine or a Slurm job; an error if a process and a job have this number.
    Number(i32),
    /// A job or step of Slurm.
    Slurm {
        /// The job's number.
        job: u32,
        /// The element of a job array; `None` for another job.
        element: Option<u32>,
        /// The component of a heterogeneous job; `None` for another job. Never together with an element.
        component: Option<u32>,
        /// The step's number; `None` for the only step of the job.
        step: Option<u32>,
    },
    /// A job of a PMIx server on this machine, by the name of its namespace.
    Namespace(String),
    /// The processes of this user with this program name; for the name of a launcher, the launcher's job. If there are
    /// none: those of one program (an interpreter) that have the name as a word of their command line.
    Name(String),
}

impl FromStr for Target {
    type Err = JobError;

    /// Parses a target: `4711` is a pid or a Slurm job, `4711,4712` are pids. `slurm:12`, `slurm:12_3`, `slurm:12+1`
    /// and `slurm:12.0` are a Slurm job, array element, component and step. `pmix:NAMESPACE` is a job of a PMIx server.
    /// Any other text is a program name.
    fn from_str(text: &str) -> Result<Self, JobError> {
        let refuse = |what| JobError::Target {
            text: text.chars().take(80).collect(),
            what,
        };
        if let Some(id) = text.strip_prefix("slurm:") {
            let what = "expected slurm:JOB, slurm:JOB_ELEMENT or slurm:JOB+COMPONENT, optionally followed by .STEP, \
                        all numbers";
            return slurm(id).ok_or_else(|| refuse(what));
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
            return Err(refuse("the target is empty"));
        }
        if !looks_like_pids {
            return Ok(Self::Name(text.to_owned()));
        }
        let pid = |text: &str| text.parse().ok().filter(|pid| *pid > 0);
        let pids: Option<Vec<i32>> = text.split(',').map(pid).collect();
        let mut pids =
            pids.ok_or_else(|| refuse("expected pids (numbers from 1) separated by commas"))?;
        if pids.len() > PIDS_MAX {
            return Err(refuse("the target has more than 1048576 pids"));
        }
        pids.sort_unstable();
        pids.dedup();
        match (text.contains(','), &pids[..]) {
            (false, [number]) => Ok(Self::Number(*number)),
            _ => Ok(Self::Pids(pids)),
        }
    }
}

/// Parses the id of a Slurm job, array element, component or step: `12`, `12_3`, `12+1`, `12.0`, `12+1.0`. `None` if it
/// is malformed.
fn slurm(id: &str) -> Option<Target> {
    let (id, step) = match id.split_once('.') {
        Some((id, step)) => (id, Some(step.parse().ok()?)),
        None => (id, None),
    };
    let (job, element, component) = match (id.split_once('_'), id.split_once('+')) {
        (Some((job, element)), _) => (job, Some(element.parse().ok()?), None),
        (None, Some((job, part))) => (job, None, Some(part.parse().ok()?)),
        (None, None) => (id, None, None),
    };
    Some(Target::Slurm {
        job: job.parse().ok()?,
        element,
        component,
        step,
    })
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Namespace(name) => write!(f, "pmix:{name}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Slurm {
                job,
                element,
                component,
                step,
            } => {
                write!(f, "slurm:{job}")?;
                for (sign, part) in [('_', element), ('+', component), ('.', step)] {
                    if let Some(part) = part {
                        write!(f, "{sign}{part}")?;
                    }
                }
                Ok(())
            }
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
    fn attach_targets_are_parsed() {
        let check = |text: &str, expect: Target| {
            assert_eq!(text.parse::<Target>().unwrap(), expect, "{text}");
        };
        check("4711", Target::Number(4711));
        check("4711,4711", Target::Pids(vec![4711]));
        check("9,7,9", Target::Pids(vec![7, 9]));
        check("halo", Target::Name("halo".to_owned()));
        check("./halo 7", Target::Name("./halo 7".to_owned()));
        let part = |element, component, step| Target::Slurm {
            job: 12,
            element,
            component,
            step,
        };
        let slurm = |step| part(None, None, step);
        check("slurm:12_3", part(Some(3), None, None));
        check("slurm:12+1.0", part(None, Some(1), Some(0)));
        assert_eq!(part(Some(3), None, Some(2)).to_string(), "slurm:12_3.2");
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
            "slurm:1_",
            "slurm:1_2+3",
            "slurm:1.batch",
        ] {
            assert!(wrong.parse::<Target>().is_err(), "{wrong:?}");
        }
    }
}
