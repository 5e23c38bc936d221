//! Commands under way, and what is done once they have been answered.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use sdm_core::CommandId;
use sdm_debug::Command;
use sdm_debug::reply::Stop;
use sdm_debug::rules::rule_of;
use sdm_idset::IdSet;
use sdm_session::{Class, SendOptions};

use crate::action::{Action, Ticket};
use crate::answers::Answers;
use crate::error::RequestError;
use crate::message::Request;
use crate::references::FrameHandle;

/// How long a question to tasks may take.
const QUERY_WAIT: Duration = Duration::from_secs(60);
/// The most jobs under way.
pub(crate) const JOBS_MAX: usize = 4096;

/// What commands were sent for.
#[derive(Clone, Debug)]
pub(crate) enum Purpose {
    /// The programs are started, or attached to.
    Begin,
    /// Tasks run; what they did before.
    Run {
        said: &'static str,
        before: Vec<(Stop, IdSet)>,
    },
    /// Where those stand that have stopped.
    Stacks,
    /// Tasks are stopped.
    Interrupt,
    /// Tasks are ended.
    Kill,
    /// Tasks are let go.
    Detach,
    /// Breakpoints of a group are set: the numbers of those that each command inserts.
    Points {
        request: Request,
        group: String,
        inserted: Vec<u32>,
        /// What the client asked for, in its order: the number, or why there is none.
        asked: Vec<Result<u32, RequestError>>,
    },
    /// A scope is looked at.
    Scope {
        request: Request,
        frame: FrameHandle,
    },
    /// The parts of a value are looked at.
    Parts { request: Request, object: String },
    /// An expression is evaluated.
    Evaluate {
        request: Request,
        expression: String,
        frame: Option<FrameHandle>,
    },
    /// A question with one answer.
    Ask {
        request: Request,
        question: Question,
    },
    /// Nobody waits for it.
    Nothing,
}

/// What is asked, and what is needed to answer the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// A value was changed; the last command reads it.
    Assigned,
    /// So many bytes of memory from there on.
    Memory { start: u64, count: u64 },
    /// So many bytes were written.
    Written { count: usize },
    /// So many instructions, from an address and so many instructions on.
    Instructions {
        address: u64,
        offset: i64,
        count: usize,
    },
    /// Which libraries are loaded.
    Modules,
    /// What can stand in the place of so many characters from there on; `head` bytes of gdb's words are not meant.
    Words {
        start: usize,
        length: usize,
        head: usize,
    },
}

impl Purpose {
    /// The request that is answered once it is served.
    pub(crate) fn request(&self) -> Option<&Request> {
        match self {
            Self::Points { request, .. }
            | Self::Scope { request, .. }
            | Self::Parts { request, .. }
            | Self::Evaluate { request, .. }
            | Self::Ask { request, .. } => Some(request),
            _ => None,
        }
    }
}

/// Commands that were sent for one purpose.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) purpose: Purpose,
    /// What has come of each, in the order in which they were sent.
    pub(crate) answers: Vec<Answers>,
    open: usize,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    last_job: u64,
    last_ticket: u64,
    jobs: BTreeMap<u64, Job>,
    /// The job of a ticket, and which of its commands it is.
    tickets: BTreeMap<Ticket, (u64, usize)>,
    /// What the session calls them.
    commands: BTreeMap<CommandId, Ticket>,
    /// Those that are over, until somebody does what is to be done then.
    finished: VecDeque<Job>,
}

impl Jobs {
    /// The purpose of a command.
    pub(crate) fn purpose(&self, id: CommandId) -> Option<&Purpose> {
        let ticket = self.commands.get(&id)?;
        let (job, _) = self.tickets.get(ticket)?;
        self.jobs.get(job).map(|job| &job.purpose)
    }

    /// Takes answers in.
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

    /// One command is over; where it was the last of its job, that is finished.
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

    /// The next job that is over.
    pub(crate) fn next_finished(&mut self) -> Option<Job> {
        self.finished.pop_front()
    }

    /// True where a job is over and nothing was done about that.
    pub(crate) fn has_finished(&self) -> bool {
        !self.finished.is_empty()
    }

    /// What the session has given a command for a number.
    pub(crate) fn sent(&mut self, ticket: Ticket, id: CommandId) {
        if self.tickets.contains_key(&ticket) {
            self.commands.insert(id, ticket);
        }
    }

    /// Commands for one purpose are sent, in this order: gives what does that. Those that are for nobody are left out;
    /// where nothing is left the job is finished.
    ///
    /// # Errors
    /// The purpose, where too much is under way.
    pub(crate) fn begin(
        &mut self,
        purpose: Purpose,
        commands: Vec<(IdSet, Command)>,
    ) -> Result<Vec<Action>, Box<Purpose>> {
        let runs = matches!(purpose, Purpose::Run { .. } | Purpose::Begin);
        if self.jobs.len() >= JOBS_MAX && !runs {
            return Err(Box::new(purpose));
        }
        self.last_job += 1;
        let number = self.last_job;
        let mut job = Job {
            purpose,
            answers: Vec::new(),
            open: 0,
        };
        let mut actions = Vec::new();
        let commands = commands.into_iter().filter(|(to, _)| !to.is_empty());
        for (part, (to, command)) in commands.enumerate() {
            self.last_ticket += 1;
            let ticket = Ticket(self.last_ticket);
            self.tickets.insert(ticket, (number, part));
            job.answers.push(Answers::default());
            job.open += 1;
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

    /// Who is asked where they stand now.
    pub(crate) fn is_asking_for_stacks(&self) -> bool {
        let mut jobs = self.jobs.values();
        jobs.any(|job| matches!(job.purpose, Purpose::Stacks))
    }

    /// Gives a request of the client's up: the request, and its commands.
    pub(crate) fn give_up(&mut self, seq: i64) -> Option<(Request, Vec<CommandId>)> {
        let is_it = |job: &Job| {
            let request = job.purpose.request();
            request.is_some_and(|request| request.seq == seq)
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

    /// Nothing is under way any more.
    pub(crate) fn clear(&mut self) {
        self.jobs.clear();
        self.tickets.clear();
        self.commands.clear();
        self.finished.clear();
    }
}
