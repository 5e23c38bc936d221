//! State of programs that processes spawn (`MPI_Comm_spawn`), and the ends of programs that are still to be reported.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use sdm_core::CommandId;
use sdm_debug::command::StartSpec;
use sdm_debug::event::Stream;
use sdm_debug::{Backend, Command};
use sdm_idset::{IdSet, TaskId};

/// The first id of the commands that this server gives itself.
const FIRST_OWN: u64 = 1 << 62;

/// State of programs that processes spawn.
#[derive(Default)]
pub(crate) struct Spawning {
    /// Reserved task numbers that are unused.
    pub(crate) spare: IdSet,
    /// The start specification of this server's programs.
    pub(crate) like: StartSpec,
    /// Number of commands that this server has given itself.
    commands: u64,
    pub(crate) starting: Vec<Starting>,
    /// True if tools have subscribed to the output of programs.
    pub(crate) shows_output: bool,
    pub(crate) ends: ProgramEnds,
    /// Number of bytes of standard input that tools have sent to each task.
    pub(crate) read: BTreeMap<TaskId, u64>,
    /// Tasks whose events are dropped, because other programs of their spawn request could not be started.
    pub(crate) silenced: BTreeSet<TaskId>,
}

/// The ends of programs. A tool that reads output is notified of an end after that output.
#[derive(Default)]
pub(crate) struct ProgramEnds {
    /// Tasks whose standard output has ended.
    stdout: IdSet,
    /// Tasks whose standard error has ended.
    stderr: IdSet,
    /// Ends that are still to be reported, each with its tasks.
    untold: BTreeMap<ProgramEnd, IdSet>,
}

/// The end of a program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProgramEnd {
    /// Exit code, or 128 plus the number of the signal.
    pub(crate) status: i32,
    /// True if a signal has ended the program.
    pub(crate) by_signal: bool,
}

impl ProgramEnds {
    pub(crate) fn end_stream(&mut self, task: TaskId, stream: Stream) {
        let ended = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        ended.insert(task);
    }

    pub(crate) fn end(&mut self, task: TaskId, end: ProgramEnd) {
        self.untold.entry(end).or_default().insert(task);
    }

    /// Removes and returns the ends to report now. With `shows_output` these are the ends after which no output
    /// follows, otherwise all.
    pub(crate) fn take(&mut self, shows_output: bool) -> BTreeMap<ProgramEnd, IdSet> {
        if !shows_output {
            return std::mem::take(&mut self.untold);
        }
        let quiet = self.stdout.intersection(&self.stderr);
        let mut taken = BTreeMap::new();
        for (end, tasks) in &mut self.untold {
            let told = tasks.intersection(&quiet);
            if !told.is_empty() {
                tasks.subtract(&told);
                taken.insert(*end, told);
            }
        }
        taken
    }
}

/// A spawn request whose programs are being started.
pub(crate) struct Starting {
    pub(crate) number: u64,
    /// Tasks of the request that do not run yet.
    pub(crate) left: IdSet,
}

/// True for a command that this server gave itself.
pub(crate) fn is_own(id: CommandId) -> bool {
    id.0 >= FIRST_OWN
}

impl Spawning {
    /// The next id for a command that this server gives itself.
    pub(crate) fn next_command(&mut self) -> CommandId {
        self.commands += 1;
        CommandId(FIRST_OWN + self.commands)
    }

    /// Passes standard input to tasks. Empty input means end of file.
    pub(crate) fn feed(&mut self, backend: &mut dyn Backend, tasks: &IdSet, bytes: &[u8]) {
        for task in tasks {
            let id = self.next_command();
            let read = self.read.entry(task).or_default();
            let input = Command::Stdin {
                offset: *read,
                bytes: bytes.to_vec(),
                eof: bytes.is_empty(),
            };
            *read += bytes.len() as u64;
            backend.execute(Instant::now(), id, &IdSet::single(task), input);
        }
    }

    /// Records that a task runs, or will never run. Returns the numbers of the spawn requests that are complete with
    /// this task.
    pub(crate) fn has_come(&mut self, task: TaskId) -> Vec<u64> {
        for it in &mut self.starting {
            it.left.remove(task);
        }
        let whole = self.starting.extract_if(.., |it| it.left.is_empty());
        whole.map(|it| it.number).collect()
    }
}
