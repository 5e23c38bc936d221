//! What a session shows, before it becomes text or records.
//!
//! The [`crate::shell::Shell`] says [`Item`]s to a [`View`]: [`crate::render::TextView`] writes
//! them for a person, [`crate::json::JsonView`] for a program.

use std::time::Duration;

use sdm_debug::event::{Phase, Stream};
use sdm_debug::reply::{BreakpointPlace, Stop};
use sdm_debug::{Failure, Reply, TaskState};
use sdm_idset::IdSet;

/// Something to show.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// The session stands.
    Start {
        /// Its name.
        session: String,
        /// Its tasks.
        tasks: IdSet,
        /// The program and its arguments; empty where tasks were attached to.
        program: Vec<String>,
        /// Task and Unix pid, where tasks were attached to.
        pids: Vec<(u32, i32)>,
    },
    /// A command that a script is about to carry out.
    Echo {
        /// As it was written.
        line: String,
    },
    /// What came of a command.
    Answer(Gathered),
    /// What happened to tasks: they stopped, ended, and so on.
    Happened {
        /// To whom.
        tasks: IdSet,
        /// What.
        what: Happening,
    },
    /// A line that the program printed.
    Output {
        /// Who printed it.
        tasks: IdSet,
        /// Where.
        stream: Stream,
        /// What, without the line end.
        line: Vec<u8>,
        /// False where the line is not complete yet.
        complete: bool,
    },
    /// Who is in which state.
    Ranks(Vec<RankRow>),
    /// The breakpoints.
    Breakpoints(Vec<BreakRow>),
    /// Tasks whose server is gone.
    Lost {
        /// Which.
        tasks: IdSet,
        /// Why.
        why: String,
    },
    /// Tasks that have not been heard for a while.
    Silent {
        /// Which.
        tasks: IdSet,
        /// Why.
        why: String,
    },
    /// Tasks that can be reached again.
    Reachable {
        /// Which.
        tasks: IdSet,
    },
    /// A line that the launcher printed.
    LauncherLine(String),
    /// The launcher has ended by itself.
    LauncherEnded {
        /// How.
        status: String,
        /// What it said last.
        last_words: Vec<String>,
        /// Who was lost with it.
        lost: IdSet,
    },
    /// Something worth knowing, one line.
    Notice(String),
    /// What a command shows of itself (help, settings).
    Text(String),
    /// A command that cannot be carried out.
    Error(Problem),
    /// The session is over.
    End {
        /// The exit code of `sdm`.
        code: u8,
        /// Why, where it was not asked for.
        reason: Option<String>,
    },
}

/// Why a command could not be carried out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Problem {
    /// What is wrong.
    pub message: String,
    /// The line it is about.
    pub line: Option<String>,
    /// Where in the line, in bytes from 0.
    pub at: Option<usize>,
    /// What to do about it; empty where there is nothing to say.
    pub hint: String,
}

/// What came of a command over a set of tasks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gathered {
    /// The command as it was written.
    pub command: String,
    /// To whom it went.
    pub to: IdSet,
    /// The distinct answers.
    pub ok: Vec<(IdSet, Reply)>,
    /// Answers that a rule merged.
    pub merged: Vec<(IdSet, Vec<u8>)>,
    /// The distinct failures.
    pub failed: Vec<(IdSet, Failure)>,
    /// Those whose answers were too many to keep apart.
    pub others: IdSet,
    /// Who did not answer in time and why.
    pub missing: Vec<(IdSet, String)>,
    /// Whose server is gone.
    pub lost: IdSet,
    /// True where these came after the command was given up.
    pub late: bool,
}

/// What happened to a task.
#[derive(Clone, Debug, PartialEq)]
pub enum Happening {
    /// It stopped.
    Stopped(Stop),
    /// It ended by itself.
    Exited {
        /// Its exit code.
        code: i32,
        /// True where it had called `MPI_Init` and left without `MPI_Finalize`.
        before_finalize: bool,
    },
    /// A signal ended it.
    Signalled(String),
    /// It was left running.
    Detached,
    /// A signal went through to it; it runs on.
    SignalPassed(String),
    /// Its gdb is gone.
    GdbDied(String),
    /// A pending breakpoint found its place.
    BreakpointPlaced(BreakpointPlace),
    /// How far its start is.
    Progress(Phase),
    /// Something in words.
    Notice(String),
    /// The commands of a breakpoint printed something.
    Printed {
        /// The breakpoint's number.
        number: u32,
        /// What.
        text: String,
    },
}

/// One row of `ranks`.
#[derive(Clone, Debug, PartialEq)]
pub struct RankRow {
    /// Who.
    pub tasks: IdSet,
    /// In which state.
    pub state: TaskState,
    /// Where it stopped or how it ended.
    pub last: Option<Happening>,
    /// `silent` or `lost`, where it cannot be reached.
    pub health: Option<&'static str>,
}

/// One row of `info breakpoints`.
#[derive(Clone, Debug, PartialEq)]
pub struct BreakRow {
    /// Its number.
    pub number: u32,
    /// On whom.
    pub tasks: IdSet,
    /// Where, in the words it was asked for.
    pub location: String,
    /// Only where this holds.
    pub condition: Option<String>,
    /// Gone after the first stop.
    pub temporary: bool,
    /// On or off.
    pub enabled: bool,
    /// Waits for its place on these.
    pub pending: IdSet,
    /// Where it stands: function, file, line.
    pub places: Vec<(String, String, u32)>,
    /// How many stops of tasks there were.
    pub hits: u64,
}

/// Shows [`Item`]s.
pub trait View {
    /// Shows one item; `at` is the time since the session began.
    fn show(&mut self, at: Duration, item: &Item);

    /// Shows, changes or removes the line of what goes on; off a terminal nothing is shown.
    fn status(&mut self, line: Option<&str>);

    /// True once nobody reads what is shown.
    fn is_gone(&self) -> bool {
        false
    }
}

impl Gathered {
    /// All who did it.
    #[must_use]
    pub fn done(&self) -> IdSet {
        let ok = self.ok.iter().map(|(tasks, _)| tasks);
        let merged = self.merged.iter().map(|(tasks, _)| tasks);
        IdSet::union_all(ok.chain(merged).chain([&self.others]))
    }
}
