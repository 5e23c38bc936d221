//! Commands under way, and what is done once they have been answered.

use std::collections::BTreeMap;

use sdm_core::CommandId;
use sdm_debug::Command;
use sdm_debug::reply::Stop;
use sdm_debug::rules::rule_of;
use sdm_idset::IdSet;
use sdm_session::{Class, SendOptions};

use super::{Adapter, query};
use crate::action::{Action, Ticket};
use crate::answers::Answers;
use crate::error::RequestError;
use crate::message::Request;
use crate::references::FrameHandle;

/// The most jobs under way.
const JOBS_MAX: usize = 4096;

/// What commands were sent for.
#[derive(Clone, Debug)]
pub(super) enum Purpose {
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
    Parts { request: Request },
    /// An expression is evaluated.
    Evaluate {
        request: Request,
        expression: String,
        frame: Option<FrameHandle>,
    },
    /// Nobody waits for it.
    Nothing,
}

/// Commands that were sent for one purpose.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) purpose: Purpose,
    /// What has come of each, in the order in which they were sent.
    pub(super) answers: Vec<Answers>,
    open: usize,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    last_job: u64,
    last_ticket: u64,
    jobs: BTreeMap<u64, Job>,
    /// The job of a ticket, and which of its commands it is.
    tickets: BTreeMap<Ticket, (u64, usize)>,
    /// What the session calls them.
    commands: BTreeMap<CommandId, Ticket>,
}

impl Jobs {
    /// The purpose of a command.
    pub(super) fn purpose(&self, id: CommandId) -> Option<&Purpose> {
        let ticket = self.commands.get(&id)?;
        let (job, _) = self.tickets.get(ticket)?;
        self.jobs.get(job).map(|job| &job.purpose)
    }

    /// Takes answers in.
    pub(super) fn take(
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

    /// One command is over; gives the job where it was the last.
    pub(super) fn complete(&mut self, id: CommandId) -> Option<Job> {
        let ticket = self.commands.remove(&id)?;
        let (number, _) = self.tickets.remove(&ticket)?;
        let job = self.jobs.get_mut(&number)?;
        job.open = job.open.saturating_sub(1);
        match job.open {
            0 => self.jobs.remove(&number),
            _ => None,
        }
    }

    /// Who is asked where they stand now.
    pub(super) fn is_asking_for_stacks(&self) -> bool {
        let mut jobs = self.jobs.values();
        jobs.any(|job| matches!(job.purpose, Purpose::Stacks))
    }

    /// Gives a request of the client's up: the request, and its commands.
    pub(super) fn give_up(&mut self, seq: i64) -> Option<(Request, Vec<CommandId>)> {
        let is_it = |job: &Job| match &job.purpose {
            Purpose::Scope { request, .. }
            | Purpose::Parts { request }
            | Purpose::Evaluate { request, .. } => request.seq == seq,
            _ => false,
        };
        let (number, _) = self.jobs.iter().find(|(_, job)| is_it(job))?;
        let number = *number;
        let job = self.jobs.remove(&number)?;
        let tickets = &self.tickets;
        let is_its = |ticket: &Ticket| tickets.get(ticket).is_some_and(|(job, _)| *job == number);
        let commands = self.commands.iter().filter(|(_, ticket)| is_its(ticket));
        let commands = commands.map(|(id, _)| *id).collect();
        match job.purpose {
            Purpose::Scope { request, .. }
            | Purpose::Parts { request }
            | Purpose::Evaluate { request, .. } => Some((request, commands)),
            _ => None,
        }
    }

    /// Nothing is under way any more.
    pub(super) fn clear(&mut self) {
        self.jobs.clear();
        self.tickets.clear();
        self.commands.clear();
    }
}

impl Adapter {
    /// What the session has given a command for a number.
    pub fn handle_sent(&mut self, ticket: Ticket, id: CommandId) {
        if self.jobs.tickets.contains_key(&ticket) {
            self.jobs.commands.insert(id, ticket);
        }
    }

    /// Sends commands for one purpose, in this order. Those that are for nobody are left out; where nothing is left the job
    /// is over at once.
    pub(super) fn begin_job(&mut self, purpose: Purpose, commands: Vec<(IdSet, Command)>) {
        let runs = matches!(purpose, Purpose::Run { .. } | Purpose::Begin);
        if self.jobs.jobs.len() >= JOBS_MAX && !runs {
            self.refuse_job(purpose);
            return;
        }
        self.jobs.last_job += 1;
        let number = self.jobs.last_job;
        let mut job = Job {
            purpose,
            answers: Vec::new(),
            open: 0,
        };
        let commands = commands.into_iter().filter(|(to, _)| !to.is_empty());
        for (part, (to, command)) in commands.enumerate() {
            self.jobs.last_ticket += 1;
            let ticket = Ticket(self.jobs.last_ticket);
            self.jobs.tickets.insert(ticket, (number, part));
            job.answers.push(Answers::default());
            job.open += 1;
            let options = match runs {
                true => SendOptions::default(),
                false => SendOptions {
                    rule: rule_of(&command),
                    ..query()
                },
            };
            self.act(Action::Send {
                ticket,
                to,
                command,
                options,
            });
        }
        match job.open {
            0 => self.finish_job(job),
            _ => {
                self.jobs.jobs.insert(number, job);
            }
        }
    }

    fn refuse_job(&mut self, purpose: Purpose) {
        match purpose {
            Purpose::Points { request, .. }
            | Purpose::Scope { request, .. }
            | Purpose::Parts { request }
            | Purpose::Evaluate { request, .. } => {
                self.write(request.refusal(&RequestError::Busy(JOBS_MAX)));
            }
            _ => {}
        }
    }

    /// All commands of a job are over.
    pub(super) fn finish_job(&mut self, job: Job) {
        let Job {
            purpose, answers, ..
        } = job;
        match purpose {
            Purpose::Begin => self.finish_begin(&answers),
            Purpose::Run { said, before } => self.finish_run(said, &before, &answers),
            Purpose::Stacks => self.finish_stacks(&answers),
            Purpose::Interrupt => self.finish_interrupt(&answers),
            Purpose::Kill => self.finish_kill(&answers),
            Purpose::Points {
                request,
                group,
                inserted,
                asked,
            } => self.finish_points(&request, &group, (&inserted, &asked), &answers),
            Purpose::Scope { request, frame } => self.finish_scope(&request, &frame, &answers),
            Purpose::Parts { request } => self.finish_parts(&request, &answers),
            Purpose::Evaluate {
                request,
                expression,
                frame,
            } => self.finish_evaluate(&request, &expression, frame.as_ref(), &answers),
            Purpose::Nothing => {}
        }
    }
}
