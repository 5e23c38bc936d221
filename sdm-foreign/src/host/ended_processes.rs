//! Processes that ended before they connected to the library: other ranks would wait for them in MPI for ever.

use sdm_foreign::FromHost;
use sdm_idset::{IdSet, TaskId};

use super::Host;

/// Exit status of a job that is ended here, where none of its processes gave a status other than 0.
const FAILED: i32 = 1;

impl Host {
    /// Ends each job of which a process of this node has ended without connecting to the library, while others wait.
    /// `mpirun` does the same.
    pub(super) fn end_jobs_of_absent(&mut self) {
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
            let text = "it has ended without MPI_Init, which other ranks have called".to_owned();
            self.tell_all(&FromHost::Aborted { rank, status, text });
        }
    }
}
