//! The interface of an agent to a resource manager: queries, submissions, and changes of jobs.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;

use sdm_runtime::attribute as id;
use sdm_runtime::states::Machine;
use sdm_system::files;
use serde::{Deserialize, Serialize};

use crate::error::{ManagerError, SubmissionError};
use crate::snapshot::{Attributes, Job, Snapshot};

/// A resource manager, reached by its own programs. A call blocks, and may take seconds.
pub trait Manager: Send {
    /// Queries all elements of the manager.
    ///
    /// # Errors
    /// The query fails, with the message of the manager or the system.
    fn look(&mut self) -> Result<Snapshot, ManagerError>;

    /// Submits a job and returns its number.
    ///
    /// # Errors
    /// The manager refuses the job, with its message.
    fn submit(&mut self, job: &Submission) -> Result<String, ManagerError>;

    /// Ends a job, in whatever state it is.
    ///
    /// # Errors
    /// The manager refuses to end the job, with its message.
    fn terminate(&mut self, job: &str) -> Result<(), ManagerError>;

    /// Changes a job.
    ///
    /// # Errors
    /// The manager refuses the change, with its message, or does not support it.
    fn change(&mut self, job: &str, change: &JobChange) -> Result<(), ManagerError>;

    /// The present state of some of its jobs, by number; jobs that it has forgotten are absent.
    ///
    /// # Errors
    /// The query fails, with the message of the manager or the system.
    fn look_at(&mut self, jobs: &[String]) -> Result<BTreeMap<String, Job>, ManagerError> {
        let mut all = self.look()?.jobs;
        all.retain(|number, _| jobs.contains(number));
        Ok(all)
    }

    /// Copies the output of a job that has ended, or its errors, into a file.
    ///
    /// # Errors
    /// The job has no such output, or the output cannot be read or written.
    fn copy_output(&mut self, job: &Job, errors: bool, to: &mut File) -> Result<(), ManagerError> {
        let id = if errors {
            id::ERROR_PATH
        } else {
            id::OUTPUT_PATH
        };
        let path = job.attributes.get(id).map_or("", String::as_str);
        let copied = files::open(path.as_ref()).and_then(|mut from| io::copy(&mut from, to));
        copied.map(drop).map_err(ManagerError::system(path))
    }

    /// Copies an executable of this host to the host of its jobs, into a folder there or the default one. Returns
    /// its path there.
    ///
    /// # Errors
    /// The executable cannot be copied.
    fn stage(&mut self, program: &str, _folder: &str) -> Result<String, ManagerError> {
        Ok(program.to_owned())
    }

    /// Removes an executable that [`Manager::stage`] has copied.
    ///
    /// # Errors
    /// The executable cannot be removed.
    fn unstage(&mut self, _program: &str) -> Result<(), ManagerError> {
        Ok(())
    }

    /// Deletes the manager's record of an ended job, if the manager keeps one.
    ///
    /// # Errors
    /// The record cannot be removed.
    fn forget(&mut self, _job: &str) -> Result<(), ManagerError> {
        Ok(())
    }
}

/// A change of a submitted job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobChange {
    /// Holds the job: it is not started until it is released.
    Hold,
    /// Releases a held job.
    Release,
    /// Sets the job's priority; jobs of a higher number come first.
    Priority(i64),
    /// Moves the job to another queue.
    Move(String),
}

/// A job to be started ("PTP rm proxy, SUBMIT_JOB").
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    /// Requested name of the job; the program's name is used if it is empty.
    pub name: String,
    /// Requested queue; `None` for the manager's default.
    pub queue: Option<String>,
    /// Number of processes: 1 or more.
    pub processes: u32,
    /// The program, a path or a name.
    pub program: String,
    /// The program's arguments.
    pub arguments: Vec<String>,
    /// Additional environment variables, as `NAME=value`.
    pub environment: Vec<String>,
    /// Working directory of the program; the agent's own is used if it is empty.
    pub directory: String,
    /// Further options for the manager's own command, one word each.
    pub options: Vec<String>,
    /// True if the program is a batch script, which starts its processes itself.
    pub batch: bool,
    /// True if the launcher of the MPI that the program is linked with is to start its processes. Only the manager of
    /// hosts that are reached by ssh uses this: other managers have a launcher, or have none.
    #[serde(default)]
    pub is_mpi: bool,
    /// True if the job is to start held by a debugger.
    pub debug: bool,
    /// The debugger that starts the program, with its own arguments. If the list is empty and `debug` is set, SDM is
    /// used.
    pub debugger: Vec<String>,
}

impl Submission {
    /// The words of the job's command line: a debugger, the program and its arguments.
    pub(crate) fn words(&self) -> impl Iterator<Item = &String> {
        let words = self.debugger.iter().chain([&self.program]);
        words.chain(&self.arguments)
    }

    /// A job from the attributes of a SUBMIT_JOB command.
    ///
    /// # Errors
    /// An attribute is missing or unusable.
    pub fn of(attributes: &[(String, String)]) -> Result<Self, SubmissionError> {
        let mut job = Self {
            processes: 1,
            ..Self::default()
        };
        let mut path = "";
        let (mut debugger, mut debugger_name, mut debug_words) = ("", "", Vec::new());
        for (id, value) in attributes {
            if value.contains('\0') {
                return Err(SubmissionError::ZeroByte(id.clone()));
            }
            match id.as_str() {
                id::NAME | id::JOB_NAME => value.clone_into(&mut job.name),
                id::EXEC_NAME => value.clone_into(&mut job.program),
                id::EXEC_PATH => path = value,
                id::PROG_ARGS => job.arguments.push(value.clone()),
                id::ENV => job.environment.push(value.clone()),
                id::WORKING_DIR => value.clone_into(&mut job.directory),
                id::BATCH_SCRIPT => job.batch = value == "true",
                id::DEBUG => job.debug = value == "true",
                id::DEBUG_EXEC_PATH => debugger = value,
                id::DEBUG_EXEC_NAME => debugger_name = value,
                id::DEBUG_ARGS => debug_words.push(value.clone()),
                id::SUBMIT_OPTIONS => job.options.push(value.clone()),
                id::JOB_NUM_PROCS => {
                    let count = value.parse().ok().filter(|&count| count > 0);
                    job.processes = count.ok_or_else(|| SubmissionError::NoCount(value.clone()))?;
                }
                _ => {}
            }
        }
        if job.program.is_empty() {
            return Err(SubmissionError::NoProgram);
        }
        let wrong = job.environment.iter().find(|pair| !is_variable(pair));
        if let Some(wrong) = wrong {
            return Err(SubmissionError::NoVariable(wrong.clone()));
        }
        let debugger = [debugger.trim_end_matches('/'), debugger_name];
        let debugger = debugger.map(str::to_owned).into_iter();
        let debugger: Vec<String> = debugger.filter(|part| !part.is_empty()).collect();
        if job.debug && !debugger.is_empty() {
            job.debugger = [vec![debugger.join("/")], debug_words].concat();
        }
        if !path.is_empty() {
            job.program = format!("{}/{}", path.trim_end_matches('/'), job.program);
        }
        Ok(job)
    }
}

/// True for `NAME=value` with a name that a shell accepts.
fn is_variable(pair: &str) -> bool {
    let Some((name, _)) = pair.split_once('=') else {
        return false;
    };
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && name.bytes().all(is_word) && !name.as_bytes()[0].is_ascii_digit()
}

/// The attributes of a machine that has only a name and a state.
#[must_use]
pub fn machine(name: &str, state: Machine) -> Attributes {
    [(id::NAME, name), (id::MACHINE_STATE, state.word())]
        .map(|(id, value)| (id.to_owned(), value.to_owned()))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        let pair = |part: &str| {
            part.split_once('=')
                .map(|(id, value)| (id.to_owned(), value.to_owned()))
        };
        text.split(' ').filter_map(pair).collect()
    }

    #[test]
    fn submission_has_the_fields_of_the_command() {
        let job = Submission::of(&pairs(
            "jobSubId=J1 execPath=/opt/ execName=app progArgs=-a progArgs=2 env=A=b jobNumProcs=8 workingDir=/tmp",
        ));
        let expected = Submission {
            processes: 8,
            program: "/opt/app".to_owned(),
            arguments: vec!["-a".to_owned(), "2".to_owned()],
            environment: vec!["A=b".to_owned()],
            directory: "/tmp".to_owned(),
            ..Submission::default()
        };
        assert_eq!(job, Ok(expected));
    }

    #[test]
    fn invalid_submission_names_the_attribute() {
        for (said, word) in [
            ("jobSubId=J1", "execName"),
            ("execName=a jobNumProcs=0", "jobNumProcs"),
            ("execName=a env=1A=b", "env"),
            ("execName=a env=A", "env"),
        ] {
            let refused = Submission::of(&pairs(said)).unwrap_err().to_string();
            assert!(refused.contains(word), "{said}: {refused}");
        }
    }
}
