//! State machine of a manager, from its agent's start to its end; no I/O ("PTP runtime platform, Resource Manager":
//! STOPPED, STARTING, STARTED, STOPPING, ERROR).

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use sdm_runtime::JOB_NUMBERS;
use sdm_runtime::attribute as id;
use sdm_runtime::states::{Machine, Manager};
use sdm_runtime::wire::Dialect;
use sdm_runtime::wire::client::{Client, Report};
use sdm_runtime::wire::command::{Command, JobChange};
use sdm_runtime::wire::event::{Event, Failure, Kind};
use sdm_runtime::wire::groups::Group;

use crate::agent_error::{AgentFailure, CommandError};
use crate::answer::Question;
pub use crate::open_command::Ticket;
use crate::open_command::{AcceptedSubmission, Purpose, is_needed};
use crate::queries::Queries;
use crate::store::Store;

/// Time for which an agent may be silent before it is probed.
const SILENCE: Duration = Duration::from_secs(20);

/// Outcome of a command: the number of the submitted job, `None` for another command, or the reason of a refusal.
pub type Outcome = Result<Option<String>, CommandError>;

/// The controller of one manager: its state, its agent's session and its elements.
pub struct Controller {
    /// The id of the manager's own element; the ids of the agent's elements follow.
    base: u32,
    state: Manager,
    trouble: Option<AgentFailure>,
    /// The manager's last error or message; `None` after its machine has become UP, until the next one.
    complaint: Option<String>,
    client: Option<Client>,
    store: Option<Store>,
    version: u64,
    patience: Duration,
    /// Time of the agent's last message; `None` before the first.
    heard: Option<Instant>,
    owes: BTreeMap<u32, (Instant, &'static str)>,
    /// The command whose completion shows that the agent has reported all elements known when it was sent; `None`
    /// before it is sent.
    first_look: Option<u32>,
    queries: Queries,
    purposes: BTreeMap<u32, Purpose>,
    taken: BTreeMap<String, AcceptedSubmission>,
    last_ticket: Ticket,
    outcomes: VecDeque<(Ticket, Outcome)>,
}

impl Controller {
    /// A STOPPED controller of a manager with this base id. `patience` is the time limit for an answer of the agent.
    #[must_use]
    pub fn new(base: u32, patience: Duration) -> Self {
        Self {
            base,
            state: Manager::Stopped,
            trouble: None,
            complaint: None,
            client: None,
            store: None,
            version: 1,
            patience,
            heard: None,
            owes: BTreeMap::new(),
            first_look: None,
            queries: Queries::default(),
            purposes: BTreeMap::new(),
            taken: BTreeMap::new(),
            last_ticket: 0,
            outcomes: VecDeque::new(),
        }
    }

    /// State of the manager.
    #[must_use]
    pub fn state(&self) -> Manager {
        self.state
    }

    /// Reason of the manager's state, or its last error; `None` if there is neither.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        let trouble = self.trouble.as_ref().map(ToString::to_string);
        trouble.or_else(|| self.complaint.clone())
    }

    /// True if the elements may be out of date, as the manager is in ERROR.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.state == Manager::Error && self.store.as_ref().is_some_and(|it| !it.is_empty())
    }

    /// The manager's elements; `None` before there is an agent.
    #[must_use]
    pub fn store(&self) -> Option<&Store> {
        self.store.as_ref()
    }

    /// The queries that callers cause, and the age of the elements.
    #[must_use]
    pub fn queries(&self) -> &Queries {
        &self.queries
    }

    /// Has the agent query the manager if the elements are older than `age_max`. Returns true while such a query runs,
    /// whoever has caused it.
    pub fn refresh(&mut self, now: Instant, age_max: Duration) -> bool {
        if self.state == Manager::Started
            && self.queries.is_due(now, age_max)
            && let Some(client) = &mut self.client
            && let Ok(tid) = client.send(Command::Look)
        {
            self.queries.begin(now, tid);
        }
        self.queries.is_running()
    }

    /// A number that grows with each change of the elements or of the state.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Records that the manager's agent was started.
    pub fn agent_started(&mut self, now: Instant) {
        match Store::new(self.base, "") {
            Ok(store) => self.store = Some(store),
            Err(error) => return self.fail(AgentFailure::Model(error)),
        }
        match Client::new(Dialect::Document, &self.base.to_string()) {
            Ok(client) => {
                self.owes = client
                    .open()
                    .map(|(tid, it)| (tid, (now, it.name())))
                    .collect();
                self.client = Some(client);
                self.queries = Queries::default();
                self.complaint = None;
                self.heard = Some(now);
                self.enter(Manager::Starting);
            }
            Err(error) => self.fail(AgentFailure::Nonsense(error)),
        }
    }

    /// Records that the manager's agent could not be started.
    pub fn no_agent(&mut self, why: String) {
        self.fail(AgentFailure::NoAgent(why));
    }

    /// Records that the manager's agent has ended. `how` is its exit status and its last line of error output.
    pub fn agent_ended(&mut self, how: String) {
        match self.state {
            Manager::Stopping => self.enter(Manager::Stopped),
            Manager::Error => {}
            _ => self.fail(AgentFailure::Ended(how)),
        }
    }

    /// Ends the session with the agent.
    pub fn stop(&mut self, now: Instant) {
        self.queries.give_up();
        match &mut self.client {
            Some(client) => {
                if let Ok(tid) = client.send(Command::Quit) {
                    self.owes.insert(tid, (now, "QUIT"));
                }
                self.enter(Manager::Stopping);
            }
            None => self.enter(Manager::Stopped),
        }
    }

    /// Handles bytes of the agent.
    pub fn receive(&mut self, now: Instant, bytes: &[u8]) {
        self.heard = Some(now);
        if let Some(client) = &mut self.client {
            client.receive(bytes);
        }
        loop {
            let Some(client) = &mut self.client else {
                return;
            };
            match client.poll() {
                Ok(None) => break,
                Ok(Some(report)) => self.handle(now, report),
                Err(error) => self.fail(AgentFailure::Nonsense(error)),
            }
        }
        self.note_debts(now);
    }

    /// Removes and returns the bytes to be sent to the agent.
    pub fn take_output(&mut self) -> Vec<u8> {
        let client = self.client.as_mut();
        client.map(Client::take_output).unwrap_or_default()
    }

    /// Starts a command. [`Controller::poll_outcome`] later returns its outcome with the returned ticket.
    pub fn command(&mut self, now: Instant, question: &Question) -> Ticket {
        self.last_ticket += 1;
        let ticket = self.last_ticket;
        if let Err(error) = self.try_command(now, ticket, question) {
            self.outcomes.push_back((ticket, Err(error)));
        }
        ticket
    }

    /// Returns the next outcome of a command; `None` if no command has completed.
    pub fn poll_outcome(&mut self) -> Option<(Ticket, Outcome)> {
        self.outcomes.pop_front()
    }

    /// Time at which [`Controller::handle_timeout`] must be called; `None` while no agent runs, or nothing is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.client.as_ref()?;
        let owed = self.owes.values().map(|(since, _)| *since + self.patience);
        let silent = self.heard.filter(|_| self.may_be_asked());
        let silent = silent.map(|heard| heard + SILENCE.min(self.patience));
        let taken = self.taken.values().map(|it| it.until);
        owed.chain(silent).chain(taken).min()
    }

    /// Carries out what is due at the time of [`Controller::poll_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        let late = |taken: &AcceptedSubmission| taken.until <= now;
        self.taken.retain(|_, taken| {
            if late(taken) {
                let outcome = (taken.ticket, Err(CommandError::Unnumbered));
                self.outcomes.push_back(outcome);
            }
            !late(taken)
        });
        let owed = self.owes.values();
        let overdue = owed.filter(|(since, _)| *since + self.patience <= now);
        if let Some((_, what)) = overdue.min_by_key(|(since, _)| *since).copied() {
            return self.fail(AgentFailure::Stalled(what, self.patience.as_secs()));
        }
        let silent = self
            .heard
            .is_some_and(|heard| heard + SILENCE.min(self.patience) <= now);
        if silent && self.may_be_asked() {
            self.ask_whether_there(now);
        }
    }

    fn may_be_asked(&self) -> bool {
        self.state == Manager::Started && self.owes.is_empty()
    }

    /// Sends LIST_FILTERS, to find out whether the agent still answers. The command changes nothing, and is answered
    /// after all earlier commands. Returns the number of its transaction; `None` if it cannot be sent.
    fn ask_whether_there(&mut self, now: Instant) -> Option<u32> {
        let tid = self.client.as_mut()?.send(Command::ListFilters).ok()?;
        self.owes.insert(tid, (now, "LIST_FILTERS"));
        Some(tid)
    }

    /// Records the time from which answers are due to the commands that the client sends by itself. START_EVENTS is
    /// answered only when its events end. So it is due only until the first event.
    fn note_debts(&mut self, now: Instant) {
        let Some(client) = &self.client else {
            return;
        };
        for (tid, command) in client.open() {
            // A manager may take long to answer, which its agent does not.
            if *command == Command::Look {
                continue;
            }
            if *command != Command::StartEvents {
                self.owes.entry(tid).or_insert((now, command.name()));
            } else if self.state == Manager::Starting && self.first_look.is_none() {
                // The agent's first event is that of the machine.
                self.owes.entry(tid).or_insert((now, "START_EVENTS"));
            }
        }
    }

    fn handle(&mut self, now: Instant, report: Report) {
        match report {
            Report::Event(tid, event) => self.handle_event(now, tid, event),
            Report::Done(tid, command, result) => self.handle_done(now, tid, &command, result),
            Report::Shutdown if self.state == Manager::Stopping => {}
            Report::Shutdown => self.fail(AgentFailure::Ended("the agent has ended".to_owned())),
        }
    }

    fn handle_event(&mut self, now: Instant, tid: u32, event: Event) {
        match &event {
            Event::Message(_, failure) => {
                self.complaint = Some(failure.text.clone());
                self.version += 1;
            }
            // The machine is up again, so the last error is over.
            Event::Change(Kind::Machine, _, groups) if groups.iter().any(says_up) => {
                self.complaint = None;
                self.version += 1;
            }
            Event::SubmitJobError(submission, failure) => {
                if let Some(taken) = self.taken.remove(submission) {
                    self.refuse(taken.ticket, failure);
                }
            }
            Event::AttrDef(definitions) => self.queries.learn(definitions),
            Event::New(Kind::Machine, ..) if self.first_look.is_none() => {
                self.owes.remove(&tid);
                self.first_look = self.ask_whether_there(now);
            }
            _ => {}
        }
        let is_new_job = matches!(event, Event::New(Kind::Job, ..));
        if let Some(store) = &mut self.store {
            self.version += u64::from(store.apply(&event));
            // Only the last error is shown.
            while let Some(error) = store.poll_error() {
                self.complaint = Some(format!("the agent sent an invalid message: {error}"));
            }
        }
        if is_new_job {
            self.find_submitted();
        }
    }

    /// Reports the job numbers of submissions whose jobs have appeared.
    fn find_submitted(&mut self) {
        let store = self.store.as_ref();
        let number = |submission: &str| {
            let job = store?.find(Kind::Job, &[id::JOB_SUB_ID], submission)?;
            let mut numbers = JOB_NUMBERS.iter();
            let number = numbers.find_map(|id| store?.value(Kind::Job, &job, id));
            Some(number.unwrap_or(job))
        };
        let mut found = Vec::new();
        self.taken.retain(|submission, taken| {
            let number = number(submission);
            if let Some(number) = &number {
                found.push((taken.ticket, Ok(Some(number.clone()))));
            }
            number.is_none()
        });
        self.outcomes.extend(found);
    }

    fn handle_done(
        &mut self,
        now: Instant,
        tid: u32,
        command: &Command,
        result: Result<(), Failure>,
    ) {
        self.owes.remove(&tid);
        match command {
            // The agent's first query follows.
            Command::ModelDef => self.queries.begin_first(now),
            Command::Look => self.queries.end(now, tid, result.is_ok()),
            _ => {}
        }
        if self.first_look == Some(tid) && self.state == Manager::Starting {
            self.enter(Manager::Started);
        }
        match (self.purposes.remove(&tid), result) {
            (Some(Purpose::Asked(ticket)), Ok(())) => self.outcomes.push_back((ticket, Ok(None))),
            (Some(Purpose::Submission(ticket, submission)), Ok(())) => {
                let until = now + self.patience;
                self.taken
                    .insert(submission, AcceptedSubmission { ticket, until });
                self.find_submitted();
            }
            (Some(Purpose::Asked(ticket) | Purpose::Submission(ticket, _)), Err(failure)) => {
                self.refuse(ticket, &failure)
            }
            (None, Err(failure)) if is_needed(command) => {
                self.fail(AgentFailure::Refused(command.name(), failure.text));
            }
            (None, _) => {}
        }
    }

    fn refuse(&mut self, ticket: Ticket, failure: &Failure) {
        let error = CommandError::Refused(failure.text.clone());
        self.outcomes.push_back((ticket, Err(error)));
    }

    fn try_command(
        &mut self,
        now: Instant,
        ticket: Ticket,
        question: &Question,
    ) -> Result<(), CommandError> {
        if self.state != Manager::Started {
            let why = self.reason().unwrap_or_else(|| "try again".to_owned());
            return Err(CommandError::NotStarted(why));
        }
        let mut purpose = Purpose::Asked(ticket);
        let command = match question {
            Question::Submit { attributes } => {
                let submission = format!("JOB_{ticket}");
                let attributes = self.submission(&submission, attributes)?;
                purpose = Purpose::Submission(ticket, submission);
                Command::SubmitJob(attributes)
            }
            Question::Cancel { job } => Command::TerminateJob(self.job(job)?),
            Question::Hold { job } => self.change(job, JobChange::Hold)?,
            Question::Release { job } => self.change(job, JobChange::Release)?,
            Question::Priority { job, value } => self.change(job, JobChange::Priority(*value))?,
            Question::Move { job, queue } => Command::MoveJob {
                job: self.job(job)?,
                queue: self.queue(queue)?,
            },
            // Nothing that an agent has to do.
            _ => {
                self.outcomes.push_back((ticket, Ok(None)));
                return Ok(());
            }
        };
        let name = command.name();
        let Some(client) = &mut self.client else {
            return Err(CommandError::NotStarted(String::new()));
        };
        let tid = client.send(command)?;
        self.owes.insert(tid, (now, name));
        self.purposes.insert(tid, purpose);
        Ok(())
    }

    /// The attributes of SUBMIT_JOB: the queue by its id, and the submission's own id.
    fn submission(
        &self,
        submission: &str,
        attributes: &[(String, String)],
    ) -> Result<Vec<(String, String)>, CommandError> {
        let mut all = vec![(id::JOB_SUB_ID.to_owned(), submission.to_owned())];
        for (id, value) in attributes {
            match id.as_str() {
                id::JOB_SUB_ID => {}
                id::QUEUE_ID => all.push((id.clone(), self.queue(value)?)),
                _ => all.push((id.clone(), value.clone())),
            }
        }
        Ok(all)
    }

    fn change(&self, job: &str, change: JobChange) -> Result<Command, CommandError> {
        Ok(Command::ChangeJob {
            job: self.job(job)?,
            attributes: vec![change.attribute()],
        })
    }

    fn job(&self, named: &str) -> Result<String, CommandError> {
        let store = self.store.as_ref();
        let found = store.and_then(|it| it.find(Kind::Job, &JOB_NUMBERS, named));
        found.ok_or_else(|| CommandError::NoJob(named.to_owned()))
    }

    fn queue(&self, named: &str) -> Result<String, CommandError> {
        let store = self.store.as_ref();
        let found = store.and_then(|it| it.find(Kind::Queue, &[id::NAME], named));
        found.ok_or_else(|| CommandError::NoQueue(named.to_owned()))
    }

    fn enter(&mut self, state: Manager) {
        self.state = state;
        self.version += 1;
    }

    /// Enters ERROR: the agent's output is ignored from now on, known elements stay, and waiting callers get the error.
    fn fail(&mut self, trouble: AgentFailure) {
        let said = trouble.to_string();
        let purposes = std::mem::take(&mut self.purposes).into_values();
        let asked = purposes.map(|purpose| match purpose {
            Purpose::Asked(ticket) | Purpose::Submission(ticket, _) => ticket,
        });
        let taken = std::mem::take(&mut self.taken).into_values();
        for ticket in asked.chain(taken.map(|taken| taken.ticket)) {
            let lost = CommandError::Lost(said.clone());
            self.outcomes.push_back((ticket, Err(lost)));
        }
        self.client = None;
        self.queries.give_up();
        self.owes.clear();
        self.trouble = Some(trouble);
        self.enter(Manager::Error);
    }
}

/// True if the group sets the state of a machine to UP.
fn says_up(group: &Group) -> bool {
    let mut pairs = group.attributes.iter();
    pairs.any(|(id, value)| id == id::MACHINE_STATE && value == Machine::Up.word())
}

#[cfg(test)]
mod tests;
