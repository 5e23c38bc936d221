//! Table of a job's processes.

use serde::{Deserialize, Serialize};

/// Processes of a job and their programs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostTable {
    /// The programs, in any order.
    pub programs: Vec<String>,
    /// The processes.
    pub processes: Vec<HostProcess>,
}

/// A process of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostProcess {
    /// Task number of the process; for a process of the first job this is its rank.
    pub rank: u32,
    /// Pid of the process; 0 while it has not been started.
    pub pid: i32,
    /// State of the process.
    pub state: HostState,
    /// Index of its program in the table; `None` where it is not known.
    pub program: Option<u16>,
}

/// State of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostState {
    /// The process has not been started.
    Absent,
    /// The process is being started.
    Starting,
    /// The process exists, running or stopped.
    Running,
    /// The process has ended with this code.
    Exited(i32),
    /// A signal has ended it.
    Signalled,
}

impl HostTable {
    /// Adds a process; `program` is the program that it runs, if known.
    pub fn add(&mut self, mut process: HostProcess, program: Option<String>) {
        process.program = program.and_then(|program| {
            let known = self.programs.iter().position(|it| *it == program);
            let at = known.unwrap_or(self.programs.len());
            let number = u16::try_from(at).ok()?;
            if known.is_none() {
                self.programs.push(program);
            }
            Some(number)
        });
        self.processes.push(process);
    }

    /// Adds the entries of another table.
    pub fn join(&mut self, other: &Self) {
        for process in &other.processes {
            self.add(
                process.clone(),
                other.program_of(process).map(str::to_owned),
            );
        }
    }

    /// The program of a process of this table; `None` if it is not known.
    #[must_use]
    pub fn program_of(&self, process: &HostProcess) -> Option<&str> {
        let at = usize::from(process.program?);
        self.programs.get(at).map(String::as_str)
    }
}
