//! The choice of a rank's program among the traced processes: a wrapper can have started it.

use sdm_system::rank_program::choose;

use super::{ProgramNews, Tracer};

impl Tracer {
    /// Determines again which process is the program.
    pub(super) fn choose(&mut self) {
        if let Some((pid, others)) = choose(&self.processes.candidates()) {
            let others = if self.processes.has_mpi(pid) {
                others
            } else {
                Vec::new()
            };
            self.take_for_program(pid, others);
        }
    }

    /// Takes a process for the program.
    pub(super) fn take_for_program(&mut self, pid: i32, others: Vec<i32>) {
        if self.program != pid {
            self.program = pid;
            self.news.push(ProgramNews::Is { pid, others });
        }
    }

    /// True if a process's crash is a crash of the rank's program: the process has MPI, or is the chosen program.
    pub(super) fn is_meant(&self, pid: i32) -> bool {
        self.processes.has_mpi(pid)
            || choose(&self.processes.candidates()).is_some_and(|(chosen, _)| chosen == pid)
    }
}
