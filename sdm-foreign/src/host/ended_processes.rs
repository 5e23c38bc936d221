//! Ends the job of a process that has ended before it connected to libpmix, or before it finalized it. Other ranks
//! would wait for that process in MPI for ever.

use nix::libc::SIGTERM;
use sdm_foreign::FromHost;
use sdm_idset::{IdSet, TaskId};

use super::request::Request;
use super::{Host, SUCCESS, Serving};

/// Exit status of a job that is ended here, where none of its processes gave a status other than 0.
const FAILED: i32 = 1;

/// The processes that a failed process takes with it.
enum Scope {
    /// All of the session.
    Session,
    /// The tasks of a job that a tool has started. No other process waits for them.
    Job(IdSet),
    /// None: a debugger's daemon is no part of the job that it debugs.
    Nobody,
}

impl Host {
    /// Follows a process from its connection to its end.
    pub(super) fn follow(&mut self, request: Request) {
        match request {
            Request::Come { process, done } => {
                let task = self.task_of(&process);
                self.connected.insert(task);
                self.steering.begin(task);
                done.answer(SUCCESS);
                self.end_jobs_of_absent();
            }
            Request::Finalized { process, done } => {
                let task = self.task_of(&process);
                self.steering.finalize(task);
                done.answer(SUCCESS);
            }
            Request::Abort {
                process,
                status,
                text,
                done,
            } => {
                let rank = self.task_of(&process);
                self.tell_all(&FromHost::Aborted { rank, status, text });
                done.answer(SUCCESS);
            }
            _ => {}
        }
    }

    /// Handles the end of processes of this node, all with this status.
    pub(super) fn hear_of_end(&mut self, tasks: &IdSet, status: i32, ends_job: bool) {
        // The library passes a finalization on before the process can end.
        while self.requests.is_ready() {
            let Ok(request) = self.requests.take() else {
                break;
            };
            self.answer(request);
        }
        self.have_ended(tasks, status);
        self.end_jobs_of_absent();
        if ends_job {
            self.end_jobs_of_leavers(tasks, status);
        }
    }

    /// Ends each job of which a process of this node has ended without connecting to libpmix, while others wait.
    /// `mpirun` does the same.
    fn end_jobs_of_absent(&mut self) {
        let Some(serving) = &self.serving else {
            return;
        };
        // This runs for each rank that connects, of which a node may have thousands.
        if !self.steering.has_anybody_ended() {
            return;
        }
        let came: IdSet = self.connected.iter().map(|rank| TaskId(*rank)).collect();
        let own = serving.own_tasks();
        let mut given_up = Vec::new();
        for name in serving.namespaces() {
            let all = serving.tasks_of_job(&name).unwrap_or_default();
            let here = all.intersection(&own);
            let (ended, known) = self.steering.ended_of(&name, &here);
            let someone_waits = !here.intersection(&came).difference(&ended).is_empty();
            let absent = ended.difference(&came).first();
            if let (Some(TaskId(rank)), true) = (absent, someone_waits)
                && self.steering.give_up(&name)
            {
                given_up.push((rank, if known == 0 { FAILED } else { known }));
            }
        }
        for (rank, status) in given_up {
            let text =
                "the rank has ended without MPI_Init, which other ranks have called".to_owned();
            self.tell_all(&FromHost::Aborted { rank, status, text });
        }
    }

    /// Ends each job of which one of these ended processes had connected to libpmix and has not finalized it, while
    /// others of the job run. `mpirun` does the same.
    fn end_jobs_of_leavers(&mut self, tasks: &IdSet, status: i32) {
        let Some(serving) = &self.serving else {
            return;
        };
        let left = tasks
            .iter()
            .filter(|task| self.connected.contains(&task.0) && !self.steering.has_finalized(*task));
        let left: IdSet = left.collect();
        let mut given_up = Vec::new();
        for name in serving.namespaces() {
            let all = serving.tasks_of_job(&name).unwrap_or_default();
            let Some(TaskId(rank)) = left.intersection(&all).first() else {
                continue;
            };
            let (ended, _) = self.steering.ended_of(&name, &all);
            if ended != all && self.steering.give_up(&name) {
                given_up.push((rank, serving.scope_of(&name)));
            }
        }
        let status = if status == 0 { FAILED } else { status };
        for (rank, scope) in given_up {
            match scope {
                Scope::Session => {
                    let text = "the rank has ended without MPI_Finalize".to_owned();
                    self.tell_all(&FromHost::Aborted { rank, status, text });
                }
                Scope::Job(tasks) => self.signal_all(&tasks, SIGTERM),
                Scope::Nobody => {}
            }
        }
    }
}

impl Serving {
    /// The processes that end with a failed process of this job.
    fn scope_of(&self, namespace: &str) -> Scope {
        let mut offspring = self.offspring.iter();
        match offspring.find(|it| it.namespace == namespace) {
            Some(job) if job.target.is_some() => Scope::Nobody,
            Some(job) if job.parent.is_none() => Scope::Job(job.tasks()),
            _ => Scope::Session,
        }
    }
}
