//! Commands that are not fully answered yet, in groups of one purpose. The purpose selects the handler of the answers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use sdm_core::CommandId;
use sdm_debug::Command;
use sdm_debug::reply::Stop;
use sdm_debug::rules::rule_of;
use sdm_idset::IdSet;
use sdm_session::{Class, SendOptions};

use crate::action::{Action, Ticket};
use crate::answers::Answers;
use crate::console::ConsoleCommand;
use crate::error::RequestError;
use crate::member_expressions::ParentValue;
use crate::message::Request;
use crate::references::{FrameHandle, ScopeKind};
use crate::values::Variables;

/// Time that a question to tasks may take.
const QUERY_WAIT: Duration = Duration::from_secs(60);
/// Maximum number of open jobs.
pub(crate) const JOBS_MAX: usize = 4096;

/// A request that sets breakpoints and has no answer yet. The second part has, for each breakpoint in the client's order,
/// its number or the reason why there is none.
pub(crate) type Unanswered = (Request, Vec<Result<u32, RequestError>>);

/// The purpose for which commands were sent.
#[derive(Clone, Debug)]
pub(crate) enum Purpose {
    /// Start the programs, or attach to them.
    Begin,
    /// Resume tasks; `before` are their stops before that.
    Run {
        said: &'static str,
        before: Vec<(Stop, IdSet)>,
    },
    /// Reads the stacks of stopped tasks.
    Stacks,
    /// Stop tasks.
    Interrupt,
    /// Kill tasks.
    Kill,
    /// Detach from tasks.
    Detach,
    /// Set the breakpoints of a group. `numbers` has the number of the breakpoint that each command changes or inserts.
    Points {
        request: Request,
        group: String,
        numbers: Vec<u32>,
        /// The client's breakpoints in its order: the number of each, or the reason why there is none.
        asked: Vec<Result<u32, RequestError>>,
    },
    /// Search for sources for unbound breakpoints: for a request, or after the start.
    Elsewhere {
        group: String,
        unanswered: Option<Unanswered>,
    },
    /// List the variables of a scope.
    Scope {
        request: Request,
        scope: (Arc<FrameHandle>, ScopeKind),
    },
    /// Find the types of listed variables: the last commands ask for those of these names.
    Types {
        request: Request,
        listed: Box<(Variables, Vec<String>)>,
    },
    /// List the parts of a value.
    Parts {
        request: Request,
        object: String,
        /// Index of the first part.
        from: u32,
        /// The value whose parts are listed.
        whole: ParentValue,
    },
    /// Evaluate an expression.
    Evaluate {
        request: Request,
        expression: String,
        frame: Option<Arc<FrameHandle>>,
    },
    /// List the call stack of a thread.
    Frames { request: Request, listing: Listing },
    /// Set the breakpoints of a restarted job; with the numbers that each command inserts.
    Reinsert(Vec<u32>),
    /// Resume tasks at another location, where a temporary breakpoint of this number stops them.
    Goto {
        before: Vec<(Stop, IdSet)>,
        number: u32,
    },
    /// Another client resumes tasks; their stops before that.
    Foreign(Vec<(Stop, IdSet)>),
    /// Execute a command of a console line.
    Console(Box<ConsoleCommand>),
    /// A question with one answer.
    Ask {
        request: Request,
        question: Question,
    },
    /// Nothing: the answers are not needed.
    Nothing,
}

/// The requested frames of a call stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listing {
    /// The client's id of the thread.
    pub(crate) id: i64,
    /// gdb's number of the thread, if the process has several. `None` otherwise.
    pub(crate) thread: Option<u32>,
    /// True if it is not the stopped thread, so that its stack must be requested.
    pub(crate) other: bool,
    /// gdb's level of the first frame.
    pub(crate) base: u32,
    pub(crate) from: usize,
    pub(crate) count: usize,
}

/// A question, with the data to answer the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// The assignment of a value; the last command reads it back.
    Assigned,
    /// Read `count` bytes of memory from `start` on.
    Memory { start: u64, count: u64 },
    /// Write `count` bytes of memory.
    Written { count: usize },
    /// Disassemble `count` instructions, from `offset` instructions after an address on.
    Instructions {
        address: u64,
        offset: i64,
        count: usize,
    },
    /// List the loaded libraries.
    Modules,
    /// List the sources of the programs.
    Sources,
    /// Find out whether a location has code.
    Target(String),
    /// Completions for `length` characters from `start` on; the first `head` bytes of gdb's completions are left out.
    Words {
        start: usize,
        length: usize,
        head: usize,
    },
}

impl Purpose {
    /// True if the command resumes tasks, and its answers report the end of that run.
    pub(crate) fn moves(&self) -> bool {
        match self {
            Self::Run { .. } | Self::Goto { .. } | Self::Begin | Self::Foreign(_) => true,
            Self::Console(said) => said.command.is_run_control(),
            _ => false,
        }
    }

    /// The request that is answered when the purpose is fulfilled; `None` if there is none.
    pub(crate) fn request(&self) -> Option<&Request> {
        match self {
            Self::Points { request, .. }
            | Self::Elsewhere {
                unanswered: Some((request, _)),
                ..
            }
            | Self::Scope { request, .. }
            | Self::Types { request, .. }
            | Self::Parts { request, .. }
            | Self::Evaluate { request, .. }
            | Self::Frames { request, .. }
            | Self::Ask { request, .. } => Some(request),
            _ => None,
        }
    }
}

/// A group of commands that were sent for one purpose.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) purpose: Purpose,
    /// The answers to each command, in the order of sending.
    pub(crate) answers: Vec<Answers>,
    open: usize,
    /// The tasks of the last command.
    to: IdSet,
}

/// All jobs.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    last_job: u64,
    last_ticket: u64,
    jobs: BTreeMap<u64, Job>,
    /// The job of a ticket, and the index of the ticket's command in the job.
    tickets: BTreeMap<Ticket, (u64, usize)>,
    /// The ticket of each command, by the session's id.
    commands: BTreeMap<CommandId, Ticket>,
    /// Finished jobs, until their follow-up is done.
    finished: VecDeque<Job>,
}

impl Jobs {
    /// The purpose of a command; `None` if the command belongs to no open job.
    pub(crate) fn purpose(&self, id: CommandId) -> Option<&Purpose> {
        let ticket = self.commands.get(&id)?;
        let (job, _) = self.tickets.get(ticket)?;
        self.jobs.get(job).map(|job| &job.purpose)
    }

    /// Adds answers to a command.
    pub(crate) fn take(
        &mut self,
        id: CommandId,
        classes: Vec<Class>,
        missing: Vec<(IdSet, String)>,
        lost: &IdSet,
    ) {
        let Some(ticket) = self.commands.get(&id) else {
            return;
        };
        let Some((job, part)) = self.tickets.get(ticket) else {
            return;
        };
        if let Some(answers) = self
            .jobs
            .get_mut(job)
            .and_then(|job| job.answers.get_mut(*part))
        {
            for class in classes {
                answers.take(class);
            }
            answers.miss(missing, lost);
        }
    }

    /// Handles the end of a command; a job is finished with its last command.
    pub(crate) fn complete(&mut self, id: CommandId) {
        let ticket = self.commands.remove(&id);
        let number = ticket.and_then(|ticket| self.tickets.remove(&ticket));
        let Some((number, _)) = number else {
            return;
        };
        let Some(job) = self.jobs.get_mut(&number) else {
            return;
        };
        job.open = job.open.saturating_sub(1);
        if job.open == 0 {
            self.finished.extend(self.jobs.remove(&number));
        }
    }

    /// The next finished job; `None` if there is none.
    pub(crate) fn next_finished(&mut self) -> Option<Job> {
        self.finished.pop_front()
    }

    /// True if a finished job has not been handled yet.
    pub(crate) fn has_finished(&self) -> bool {
        !self.finished.is_empty()
    }

    /// Stores the session's id of the command with this ticket.
    pub(crate) fn sent(&mut self, ticket: Ticket, id: CommandId) {
        if self.tickets.contains_key(&ticket) {
            self.commands.insert(id, ticket);
        }
    }

    /// Begins a job; returns the actions that send its commands in order. Commands without tasks are left out; if
    /// none remains the job is finished at once.
    ///
    /// # Errors
    /// Returns the purpose if too many jobs are open and the commands do not resume tasks.
    pub(crate) fn begin(
        &mut self,
        purpose: Purpose,
        commands: Vec<(IdSet, Command)>,
    ) -> Result<Vec<Action>, Box<Purpose>> {
        let runs = purpose.moves();
        if self.jobs.len() >= JOBS_MAX && !runs {
            return Err(Box::new(purpose));
        }
        self.last_job += 1;
        let number = self.last_job;
        let mut job = Job {
            purpose,
            answers: Vec::new(),
            open: 0,
            to: IdSet::new(),
        };
        let mut actions = Vec::new();
        let commands = commands.into_iter().filter(|(to, _)| !to.is_empty());
        for (part, (to, command)) in commands.enumerate() {
            self.last_ticket += 1;
            let ticket = Ticket(self.last_ticket);
            self.tickets.insert(ticket, (number, part));
            job.answers.push(Answers::default());
            job.open += 1;
            job.to.clone_from(&to);
            let options = SendOptions {
                timeout: (!runs).then_some(QUERY_WAIT),
                rule: rule_of(&command),
                ..SendOptions::default()
            };
            actions.push(Action::Send {
                ticket,
                to,
                command: Box::new(command),
                options,
            });
        }
        match job.open {
            0 => self.finished.push_back(job),
            _ => {
                self.jobs.insert(number, job);
            }
        }
        Ok(actions)
    }

    /// Begins a job of one command, sent with the options of its console line.
    pub(crate) fn begin_one(
        &mut self,
        purpose: Purpose,
        (to, command): (IdSet, Command),
        options: SendOptions,
    ) -> Action {
        self.last_job += 1;
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        self.tickets.insert(ticket, (self.last_job, 0));
        let job = Job {
            purpose,
            answers: vec![Answers::default()],
            open: 1,
            to: to.clone(),
        };
        self.jobs.insert(self.last_job, job);
        Action::Send {
            ticket,
            to,
            command: Box::new(command),
            options,
        }
    }

    /// The tasks of the last command of the job to which a command belongs; empty if there is no such job.
    pub(crate) fn moved(&self, id: CommandId) -> IdSet {
        let ticket = self.commands.get(&id);
        let number = ticket.and_then(|ticket| self.tickets.get(ticket));
        let job = number.and_then(|(number, _)| self.jobs.get(number));
        job.map(|job| job.to.clone()).unwrap_or_default()
    }

    /// Adds a command that another client has sent.
    pub(crate) fn adopt(&mut self, id: CommandId, purpose: Purpose) {
        self.last_job += 1;
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        self.tickets.insert(ticket, (self.last_job, 0));
        self.commands.insert(id, ticket);
        let job = Job {
            purpose,
            answers: vec![Answers::default()],
            open: 1,
            to: IdSet::new(),
        };
        self.jobs.insert(self.last_job, job);
    }

    /// The open commands that resume tasks.
    pub(crate) fn moving(&self) -> Vec<CommandId> {
        let commands = self.commands.keys().copied();
        let moves = |id: &CommandId| self.purpose(*id).is_some_and(Purpose::moves);
        commands.filter(moves).collect()
    }

    /// True while stopped tasks are asked for their stacks.
    pub(crate) fn is_asking_for_stacks(&self) -> bool {
        let mut jobs = self.jobs.values();
        jobs.any(|job| matches!(job.purpose, Purpose::Stacks))
    }

    /// True while the programs run to `main`, or are being attached to.
    pub(crate) fn is_beginning(&self) -> bool {
        let mut jobs = self.jobs.values();
        jobs.any(|job| matches!(job.purpose, Purpose::Begin))
    }

    /// Cancels a request of the client. Returns the request and its commands; `None` if it is not open. A request for a
    /// call stack is not cancelled, as it is nearly answered. VS Code cancels such requests when it repeats them, and
    /// would show the refusal in place of the stack.
    pub(crate) fn give_up(&mut self, seq: i64) -> Option<(Request, Vec<CommandId>)> {
        let is_it = |job: &Job| {
            let is_stack = matches!(job.purpose, Purpose::Frames { .. });
            let request = job.purpose.request();
            request.is_some_and(|request| request.seq == seq) && !is_stack
        };
        let (number, _) = self.jobs.iter().find(|(_, job)| is_it(job))?;
        let number = *number;
        let tickets = &self.tickets;
        let is_its = |ticket: &Ticket| tickets.get(ticket).is_some_and(|(job, _)| *job == number);
        let commands = self.commands.iter().filter(|(_, ticket)| is_its(ticket));
        let commands = commands.map(|(id, _)| *id).collect();
        let job = self.jobs.remove(&number)?;
        let request = job.purpose.request()?.clone();
        Some((request, commands))
    }

    /// Drops all jobs; returns the requests that will not be answered.
    pub(crate) fn clear(&mut self) -> Vec<Request> {
        let jobs = self.jobs.values().chain(&self.finished);
        let requests = jobs.filter_map(|job| job.purpose.request().cloned());
        let requests = requests.collect();
        self.jobs.clear();
        self.tickets.clear();
        self.commands.clear();
        self.finished.clear();
        requests
    }
}
