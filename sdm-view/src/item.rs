//! Items that a session shows, before they become text or records.
//!
//! A front-end passes [`Item`]s to a [`View`]: [`crate::render::TextView`] writes them for a person,
//! [`crate::json::JsonView`] for a program.

use std::time::Duration;

use sdm_debug::event::{Phase, Stream};
use sdm_debug::reply::{BreakpointPlace, StackFrame, Stop};
use sdm_debug::rules::{Merged, Parsed, Stacks, Stats, TotalUsage};
use sdm_debug::{Failure, Reply, TaskState};
use sdm_diagnose::Diagnosis;
use sdm_idset::IdSet;

use crate::compare::Comparison;
use crate::overview::Overview;
use crate::profile::Profile;
use crate::queues::QueueTable;
pub use crate::stacks::MergedStacks;

/// An item to show.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// The session has started.
    Start {
        /// The session's name, as in the logs.
        session: String,
        /// All tasks of the session.
        tasks: IdSet,
        /// The programs with their arguments, and the tasks that run each. Empty if tasks were attached
        /// to.
        programs: Vec<(IdSet, Vec<String>)>,
        /// The pid of each attached task.
        pids: Vec<(u32, i32)>,
    },
    /// A command that a script is about to carry out.
    Echo {
        /// The line, as written.
        line: String,
    },
    /// The answers to a command.
    Answer(Gathered),
    /// An item that is shown in full, however long it is, because the user requested that.
    Whole(Box<Item>),
    /// An event of tasks: a stop, an end, and so on.
    Happened {
        /// The tasks of the event.
        tasks: IdSet,
        /// The event, the same for all of them.
        what: Happening,
    },
    /// A line that the program printed.
    Output {
        /// The tasks that printed it.
        tasks: IdSet,
        /// The stream that it was printed on.
        stream: Stream,
        /// The bytes of the line, without its newline.
        line: Vec<u8>,
        /// False if the line is not complete yet.
        complete: bool,
    },
    /// The states of tasks.
    Ranks(Vec<RankRow>),
    /// The breakpoints, watchpoints and catchpoints, one row each.
    Breakpoints(Vec<BreakRow>),
    /// The named sets.
    Sets(Vec<SetRow>),
    /// The hosts, with the tasks on each.
    Nodes(Vec<NodeRow>),
    /// The tree of servers, parents before their children.
    Tree(Vec<TreeRow>),
    /// The links of the tree, unhealthy ones first.
    Links(Vec<LinkRow>),
    /// The distinct values of an expression, largest class first.
    Values {
        /// The expression.
        expression: String,
        /// Each distinct value as text, with the tasks that have it.
        values: Vec<(IdSet, String)>,
    },
    /// The values of an expression of `display`, largest class first.
    Display {
        /// The number of the display, from 1.
        number: u32,
        /// The display as it was entered: `step`, `/x step`.
        expression: String,
        /// Each distinct value as text, with the tasks that have it.
        values: Vec<(IdSet, String)>,
    },
    /// Lines of source, with the tasks stopped at each.
    Listing(Listing),
    /// The diagnosis of a hang.
    Diagnosis(Diagnosis),
    /// Statistics of a number over all tasks.
    Stats {
        /// The expression.
        expression: String,
        /// The tasks that answered with numbers.
        tasks: IdSet,
        /// The numbers, merged over all tasks.
        stats: Box<Stats>,
    },
    /// Numbers as a plot in characters.
    Plot(Plot),
    /// The differences between the values of tasks.
    Comparison(Comparison),
    /// Memory use of tasks.
    Usage {
        /// The tasks that answered.
        tasks: IdSet,
        /// Sum over all tasks, and the tasks that use the most.
        usage: TotalUsage,
    },
    /// The pending MPI messages.
    Queues(QueueTable),
    /// The call stacks that tasks had in many samples.
    Profile(Box<Profile>),
    /// Tasks whose server is lost.
    Lost {
        /// The tasks whose server is lost.
        tasks: IdSet,
        /// The reason, as one line for the user.
        why: String,
    },
    /// Tasks whose server is silent.
    Silent {
        /// The tasks whose server is silent.
        tasks: IdSet,
        /// The reason, as one line for the user.
        why: String,
    },
    /// Tasks that are reachable again.
    Reachable {
        /// The tasks that are reachable again.
        tasks: IdSet,
    },
    /// A line that the launcher printed.
    LauncherLine(String),
    /// The launcher has ended without a request.
    LauncherEnded {
        /// The exit status: `exited with code 1`, `killed by SIGKILL`.
        status: String,
        /// The last lines of the launcher's output.
        last_words: Vec<String>,
        /// The tasks that were lost when the launcher ended.
        lost: IdSet,
    },
    /// A notice of one line.
    Notice(String),
    /// Output of a command about SDM itself (help, settings).
    Text(String),
    /// A command that cannot be carried out.
    Error(Problem),
    /// The session is over.
    End {
        /// The exit code of `sdm`.
        code: u8,
        /// The reason, where the end was not requested.
        reason: Option<String>,
    },
}

/// The error of a command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Problem {
    /// The error message.
    pub message: String,
    /// The line with the error. None if the error belongs to no line.
    pub line: Option<String>,
    /// Position of the error in the line, in bytes from 0. None if no single position is at fault.
    pub at: Option<usize>,
    /// Advice on how to mend the error; empty if there is none.
    pub hint: String,
}

/// The answers to a command from a set of tasks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gathered {
    /// The command, as the user wrote it.
    pub command: String,
    /// The tasks that it was sent to.
    pub to: IdSet,
    /// The distinct answers, each with its tasks.
    pub ok: Vec<(IdSet, Reply)>,
    /// Answers that a rule merged.
    pub merged: Vec<(IdSet, Merged)>,
    /// The distinct failures, each with its tasks.
    pub failed: Vec<(IdSet, Failure)>,
    /// Tasks whose answers were too many to keep distinct.
    pub others: IdSet,
    /// Tasks that did not answer in time, each with the reason.
    pub missing: Vec<(IdSet, String)>,
    /// Tasks whose server is lost.
    pub lost: IdSet,
    /// A watchpoint or catchpoint that was created: `watchpoint 3: x`, `catchpoint 4 (fork)`. None for a breakpoint.
    pub made: Option<String>,
    /// True for answers that arrived after the command was given up.
    pub late: bool,
}

/// An event of a task.
#[derive(Clone, Debug, PartialEq)]
pub enum Happening {
    /// The task has stopped.
    Stopped(Stop),
    /// The task has exited.
    Exited {
        /// The exit code of the task.
        code: i32,
        /// True if the task called `MPI_Init`, and ended without `MPI_Finalize`.
        before_finalize: bool,
    },
    /// The task was killed by a signal.
    Signalled(String),
    /// The task was detached and runs.
    Detached,
    /// A signal was passed to the task, which runs on.
    SignalPassed(String),
    /// The task's gdb has died.
    GdbDied(String),
    /// A pending breakpoint was resolved.
    BreakpointPlaced(BreakpointPlace),
    /// The phase of the task's start.
    Progress(Phase),
    /// A notice as text.
    Notice(String),
    /// The output of a breakpoint's commands.
    Printed {
        /// The breakpoint's number.
        number: u32,
        /// The text that the commands have printed.
        text: String,
    },
}

/// One row of `ranks`.
#[derive(Clone, Debug, PartialEq)]
pub struct RankRow {
    /// The program, where the job has several; empty otherwise.
    pub program: String,
    /// The tasks of this row.
    pub tasks: IdSet,
    /// The state of these tasks.
    pub state: TaskState,
    /// The last stop, or the end. None if neither is known.
    pub last: Option<Happening>,
    /// `silent` or `lost` where the task cannot be reached, `not attached` where gdb is not attached yet. None
    /// otherwise.
    pub health: Option<&'static str>,
    /// In a report, the innermost frame of tasks that run without a gdb, at the last look. None otherwise.
    pub place: Option<StackFrame>,
}

/// One row of `info breakpoints`.
#[derive(Clone, Debug, PartialEq)]
pub struct BreakRow {
    /// The number in the session, from 1. gdb's own numbers can differ.
    pub number: u32,
    /// The tasks in which the breakpoint is set.
    pub tasks: IdSet,
    /// The location as it was entered.
    pub location: String,
    /// The condition; None if it has none.
    pub condition: Option<String>,
    /// True if it is deleted at the first stop.
    pub temporary: bool,
    /// True unless the breakpoint is disabled in all tasks.
    pub enabled: bool,
    /// The tasks on which its location is not resolved yet.
    pub pending: IdSet,
    /// The resolved locations: function, file, line.
    pub places: Vec<(String, String, u32)>,
    /// Numbers of stops at the breakpoint in ascending order, each with the tasks that have stopped so often. Tasks
    /// without a stop are not included.
    pub hits: Vec<(u64, IdSet)>,
    /// The gdb commands that run at each stop at the breakpoint, a line each.
    pub commands: Vec<String>,
}

/// Lines of source, with the tasks stopped at each.
#[derive(Clone, Debug, PartialEq)]
pub struct Listing {
    /// The tasks whose source is listed.
    pub tasks: IdSet,
    /// The file's path. Empty if unknown.
    pub file: String,
    /// Line number, text, and the tasks stopped there.
    pub lines: Vec<(u32, String, IdSet)>,
}

/// Numbers as a plot in characters.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// The expression.
    pub expression: String,
    /// True if a line is over the ranks of its set, ascending; false if it is over the elements of
    /// each rank.
    pub over_ranks: bool,
    /// Number of elements in a row, where all arrays have several dimensions and rows of the same length. None
    /// otherwise.
    pub row: Option<usize>,
    /// The bounds of an array of Fortran as it is declared, or of a part of it: `0:4,2:5`. None for any other.
    pub bounds: Option<String>,
    /// The numbers of each line, including infinite ones and NaN; largest sets first. Integers are exact.
    pub lines: Vec<(IdSet, Vec<Parsed>)>,
}

/// One row of `info sets`.
#[derive(Clone, Debug, PartialEq)]
pub struct SetRow {
    /// The name, without the `@`; empty if it has none.
    pub name: String,
    /// The tasks of this row.
    pub tasks: IdSet,
    /// A description of a predefined set; empty for sets of `defset`.
    pub what: String,
}

/// One row of `info nodes`.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeRow {
    /// The host. Empty if unknown.
    pub host: String,
    /// Number of servers on the host.
    pub servers: u64,
    /// The tasks of this row.
    pub tasks: IdSet,
    /// The number of tasks in each state: `7 stopped, 1 lost`.
    pub states: String,
}

/// One row of `info tree`.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeRow {
    /// The server. None for the master.
    pub server: Option<u32>,
    /// The host; empty if unknown.
    pub host: String,
    /// Distance from the master, in links; 0 for the master.
    pub depth: u32,
    /// The server's tasks.
    pub tasks: IdSet,
    /// The tasks of the server and of its descendants.
    pub reach: IdSet,
    /// Number of the server's children in the tree.
    pub children: u32,
}

/// One row of `info links`.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkRow {
    /// The parent's number. None for the master.
    pub parent: Option<u32>,
    /// The server number of the child.
    pub child: u32,
    /// The hosts of parent and child.
    pub hosts: (String, String),
    /// The tasks that are reached through the link.
    pub reach: IdSet,
    /// The reachability of the child's own tasks: `reachable`, `silent` or `lost`.
    pub health: &'static str,
}

/// An output for [`Item`]s: a terminal, a file of records, a report.
pub trait View {
    /// Shows one item. `at` is the time since the start of the session.
    fn show(&mut self, at: Duration, item: &Item);

    /// Shows, changes or removes the status line. Without a terminal nothing is shown.
    fn status(&mut self, line: Option<&str>);

    /// Prints program output that the launcher carries, unchanged.
    fn pass(&mut self, stderr: bool, bytes: &[u8]);

    /// True if the view wants items that differ only in addresses as one item, for a human reader.
    fn joins_alike(&self) -> bool {
        false
    }

    /// Marks the beginning or the end of a group of items, of which only part may be shown.
    fn group(&mut self, _begins: bool) {}

    /// Enables or disables paging of long output, which needs an interactive user.
    fn set_pagination(&mut self, _on: bool) {}

    /// True while the view shows the whole state of the session. It then gets an [`Overview`] after each change.
    fn wants_board(&self) -> bool {
        false
    }

    /// Shows the current state of the session.
    fn show_board(&mut self, _board: &Overview) {}

    /// Enters or leaves full-screen mode. Returns false if the terminal does not support it.
    fn set_full_screen(&mut self, _on: bool) -> bool {
        false
    }

    /// True once the output is not read any more.
    fn is_gone(&self) -> bool {
        false
    }
}

fn is_stacks(reply: &Reply) -> bool {
    matches!(reply, Reply::Stacks(_))
}

impl Gathered {
    /// The sets of tasks with distinct answers and failures, in display order. Empty for late answers;
    /// answers without a value are not included.
    #[must_use]
    pub fn classes(&self) -> Vec<IdSet> {
        if self.late {
            return Vec::new();
        }
        let said = |(_, reply): &&(IdSet, Reply)| *reply != Reply::Done && !is_stacks(reply);
        let alike = self.alike();
        let ok = alike.ok.iter().filter(said).map(|(tasks, _)| tasks.clone());
        let failed = alike.failed.iter().map(|(tasks, _)| tasks.clone());
        let stacks = self.stacks().map(|stacks| stacks.places());
        stacks
            .into_iter()
            .flatten()
            .chain(ok)
            .chain(failed)
            .collect()
    }

    /// All stacks among the answers as one tree, whether the tree of servers has merged them or not. None
    /// without stacks.
    #[must_use]
    pub fn stacks(&self) -> Option<MergedStacks> {
        let (mut tasks, mut all) = (IdSet::new(), Stacks::default());
        let merged = self.merged.iter().filter_map(|(of, merged)| match merged {
            Merged::Stacks(stacks) => Some((of, stacks.clone())),
            _ => None,
        });
        let own = self.ok.iter().filter_map(|(of, reply)| match reply {
            Reply::Stacks(own) => Some((of, Stacks::of(of, own).ok()?)),
            _ => None,
        });
        for (of, stacks) in merged.chain(own) {
            tasks.union_with(of);
            all.absorb(stacks);
        }
        let tree = all.tree();
        (!tasks.is_empty()).then_some(MergedStacks { tasks, tree })
    }

    /// Takes the answers that a rule has merged, with those not merged yet, as one. None if there are none.
    pub fn take_merged(&mut self) -> Option<(IdSet, Merged)> {
        let mut parts = std::mem::take(&mut self.merged);
        for (tasks, reply) in std::mem::take(&mut self.ok) {
            match Merged::of(&tasks, &reply) {
                Some(own) => parts.push((tasks, own)),
                None => self.ok.push((tasks, reply)),
            }
        }
        // A command has one rule.
        let mut parts = parts.into_iter();
        let (mut tasks, mut whole) = parts.next()?;
        for (of, part) in parts {
            if whole.absorb(part).is_ok() {
                tasks.union_with(&of);
            }
        }
        Some((tasks, whole))
    }

    /// The tasks that carried out the command.
    #[must_use]
    pub fn done(&self) -> IdSet {
        let ok = self.ok.iter().map(|(tasks, _)| tasks);
        let merged = self.merged.iter().map(|(tasks, _)| tasks);
        IdSet::union_all(ok.chain(merged).chain([&self.others]))
    }
}
