//! Check whether all processes of a job have been stopped at the start of their program.

use std::path::Path;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use sdm_system::proc::{self, State};

use super::pmix::{self, PmixError};
use super::processes::Processes;
use super::{JobError, ranks};

/// Pause before a PMIx server that does not know all processes yet is queried again.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// Location of the stopped ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoppedAt {
    /// Some ranks do not exist yet, or are not stopped.
    NotYet,
    /// All ranks are stopped on this host.
    Here,
    /// All ranks are stopped, some of them on other hosts.
    ElsewhereToo,
}

/// The answer of a PMIx server.
type Answer = Result<Vec<pmix::Namespace>, PmixError>;

/// Watches for the ranks of a job whose launcher stops them on their exec.
pub struct HeldRanks {
    starter: i32,
    /// Receives the answer of the PMIx server while a query is under way; `None` otherwise.
    asked: Option<Receiver<Answer>>,
    ask_next: Option<Instant>,
    unasked: Option<PmixError>,
}

impl HeldRanks {
    /// The ranks of the job of the launcher process `starter`.
    #[must_use]
    pub fn of(starter: i32) -> Self {
        Self {
            starter,
            asked: None,
            ask_next: None,
            unasked: None,
        }
    }

    /// Checks whether all ranks exist and are stopped. Ranks on this host are inspected. For ranks on other hosts the
    /// launcher's PMIx server is queried, which has their pids once its daemons hold them. The answer may take long,
    /// and is not waited for.
    ///
    /// # Errors
    /// Two processes of one rank, or `/proc` cannot be read.
    pub fn look(&mut self) -> Result<StoppedAt, JobError> {
        let processes = Processes::read(Path::new("/proc"));
        let processes = processes.map_err(|source| JobError::Proc { source })?;
        let found = ranks::below(&processes, self.starter)?;
        if !found.pids.iter().all(|(_, pid)| is_stopped(*pid)) {
            return Ok(StoppedAt::NotYet);
        }
        let count = found.pids.len();
        let size = found.size.map(|size| size as usize);
        if count > 0 && size.is_none_or(|size| size <= count) {
            return Ok(StoppedAt::Here);
        }
        let server = processes.get(self.starter);
        let Some(server) = server.filter(|process| pmix::is_server(process)) else {
            return Ok(StoppedAt::NotYet);
        };
        Ok(match self.answer_of(server.pid) {
            Some(Ok(jobs)) if is_whole(&jobs, size) => StoppedAt::ElsewhereToo,
            Some(Err(why)) => {
                self.unasked = Some(why);
                StoppedAt::NotYet
            }
            Some(Ok(_)) | None => StoppedAt::NotYet,
        })
    }

    /// The answer of the PMIx server, once; `None` until it has arrived. Starts a query if none is under way and the
    /// pause is over.
    fn answer_of(&mut self, server: i32) -> Option<Answer> {
        let Some(asked) = &self.asked else {
            if self.ask_next.is_none_or(|next| next <= Instant::now()) {
                let (tell, asked) = channel();
                // The receiver may be gone by then.
                std::thread::spawn(move || tell.send(pmix::ask(server)));
                self.asked = Some(asked);
            }
            return None;
        };
        let answer = match asked.try_recv() {
            Err(TryRecvError::Empty) => return None,
            answer => answer.ok(),
        };
        self.asked = None;
        self.ask_next = Some(Instant::now() + ASK_AGAIN);
        answer
    }

    /// Error of the last failed query to the launcher's PMIx server about ranks on other hosts; `None` if none failed.
    #[must_use]
    pub fn unasked(&self) -> Option<&PmixError> {
        self.unasked.as_ref()
    }
}

/// True if the PMIx server has exactly one job, with a process for each of its ranks.
fn is_whole(jobs: &[pmix::Namespace], size: Option<usize>) -> bool {
    let [job] = jobs else { return false };
    let count = job.processes.len();
    count > 0
        && size.is_none_or(|size| size <= count)
        && job.processes.iter().all(|process| process.pid > 0)
}

fn is_stopped(pid: i32) -> bool {
    proc::of(pid).state().is_some_and(State::is_stopped)
}

#[cfg(test)]
mod tests {
    use super::super::JobProcess;
    use super::*;

    #[test]
    fn job_is_complete_with_a_process_per_rank() {
        let job = |pids: &[i32]| pmix::Namespace {
            name: "p@1".to_owned(),
            processes: (0..)
                .zip(pids)
                .map(|(rank, pid)| JobProcess {
                    rank,
                    host: "h".to_owned(),
                    program: String::new(),
                    pid: *pid,
                })
                .collect(),
        };
        for (jobs, size, expect) in [
            (vec![job(&[7, 8])], Some(2), true),
            (vec![job(&[7, 8])], None, true),
            (vec![job(&[7])], Some(2), false),
            (vec![job(&[7, 0])], Some(2), false),
            (vec![job(&[])], None, false),
            (vec![], None, false),
            (vec![job(&[7]), job(&[8])], None, false),
        ] {
            assert_eq!(is_whole(&jobs, size), expect, "{jobs:?} {size:?}");
        }
    }
}
