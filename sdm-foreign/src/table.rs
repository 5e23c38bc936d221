//! Table of a job's processes: the pid, rank, state and program of each.

use serde::{Deserialize, Serialize};

/// Maximum total length of the command lines of a table, in bytes.
const LINES_BYTES_MAX: usize = 16 << 10;

/// Processes of a job and their programs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostTable {
    /// The programs, in any order.
    pub programs: Vec<HostCommand>,
    /// The processes.
    pub processes: Vec<HostProcess>,
}

/// A program and the command line of the processes that run it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostCommand {
    /// Path of the program.
    pub program: String,
    /// The command line, its words separated by blanks; empty if the lines of a table would be too long.
    pub line: String,
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
    /// Index of its program in the table; `None` if it is not known.
    pub program: Option<u16>,
    /// Main memory that the process has, in bytes; 0 if it is not known.
    pub resident_bytes: u64,
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
    pub fn add(&mut self, mut process: HostProcess, program: Option<HostCommand>) {
        process.program = program.and_then(|mut program| {
            let find = |program: &HostCommand| self.programs.iter().position(|it| it == program);
            let mut known = find(&program);
            let used: usize = self.programs.iter().map(|it| it.line.len()).sum();
            if known.is_none() && used + program.line.len() > LINES_BYTES_MAX {
                program.line.clear();
                known = find(&program);
            }
            let at = known.unwrap_or(self.programs.len());
            let number = u16::try_from(at).ok()?;
            if known.is_none() {
                self.programs.push(program);
            }
            Some(number)
        });
        self.processes.push(process);
    }

    /// A table of some of these processes.
    pub(crate) fn part(&self, processes: &[HostProcess]) -> Self {
        let mut part = Self::default();
        for process in processes {
            part.add(process.clone(), self.program_of(process).cloned());
        }
        part
    }

    /// Adds the entries of another table.
    pub fn join(&mut self, other: &Self) {
        for process in &other.processes {
            self.add(process.clone(), other.program_of(process).cloned());
        }
    }

    /// The program of a process of this table; `None` if it is not known.
    #[must_use]
    pub fn program_of(&self, process: &HostProcess) -> Option<&HostCommand> {
        self.programs.get(usize::from(process.program?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_of_a_table_are_bounded_and_shared() {
        let mut table = HostTable::default();
        let command = |line: String| HostCommand {
            program: "/bin/sh".to_owned(),
            line,
        };
        for rank in 0..1000 {
            let process = HostProcess {
                rank,
                pid: 1,
                state: HostState::Running,
                program: None,
                resident_bytes: 0,
            };
            table.add(process, Some(command(format!("sh {}", rank.min(500)))));
        }
        assert_eq!(table.programs.len(), 501);
        let mut joined = HostTable::default();
        joined.join(&table);
        assert_eq!(joined, table);
        let process = table.processes[0].clone();
        table.add(process, Some(command("x".repeat(LINES_BYTES_MAX))));
        let last = table.processes.last().expect("just added");
        assert_eq!(table.program_of(last), Some(&command(String::new())));
    }
}
