//! The agent's logic between its client and its manager: no I/O, and no waiting.
//!
//! The manager is queried again after a pause. The pause doubles while nothing changes, and is at least twenty
//! times as long as the query took, so that a manager that is slow or has nothing new is queried seldom. The pause
//! begins at two seconds after a change, and is once a tenth of a second after a command of the client. LOOK queries
//! the manager at once; all that come while a query runs share the next one.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use sdm_runtime::attribute as id;
use sdm_runtime::states::Machine;
use sdm_runtime::wire::IdForm;
use sdm_runtime::wire::agent::{Agent, Phase, SendError};
use sdm_runtime::wire::command::{self, Command};
use sdm_runtime::wire::definition::Definition;
use sdm_runtime::wire::event::{Event, Failure};
use sdm_runtime::wire::frame::FrameError;
use sdm_text::printable;

use crate::error::ManagerError;
use crate::ledger::{Ledger, Notice};
use crate::manager::{JobChange, Submission};
use crate::notice_events::events;
use crate::worker::{Reply, Request};

/// The shortest pause between two queries of the manager, unless a client's command requests an earlier query.
const PAUSE_MIN: Duration = Duration::from_secs(2);
/// The pause after the query that follows a client's command, so that a later effect of the command is reported soon.
const PAUSE_SOON: Duration = Duration::from_millis(100);
/// The longest pause between two queries of the manager.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Size of the unread output from which the client's commands are not read, in bytes. With less output the commands are
/// answered, even if the client reads nothing.
const HEARD_BYTES_MAX: usize = 8 << 20;
/// The pause after a successful query is at least this many times as long as the query took.
const PAUSE_OF_LOOK: u32 = 20;

/// A client's command that was passed to the manager.
struct PendingCommand {
    /// The client's transaction.
    transaction: u32,
    /// Id of the submission; `None` for another command.
    submission: Option<String>,
}

/// An event for the client.
enum UntoldEvent {
    Of(Event),
    /// The NEW event of elements that were hidden by filters.
    Again(Event),
}

/// The agent of one client.
pub struct Service {
    wire: Agent,
    ledger: Option<Ledger>,
    /// Events that are still to be sent to the client.
    untold: VecDeque<UntoldEvent>,
    requests: VecDeque<Request>,
    asked: BTreeMap<u64, PendingCommand>,
    last_number: u64,
    /// Transactions of LOOK that the next query of the manager answers.
    wanted: Vec<u32>,
    /// Transactions of LOOK that the running query answers.
    awaited: Vec<u32>,
    /// Transactions of LOOK that are answered after the events of their query, with its error.
    looked: Vec<(u32, Option<Failure>)>,
    /// Start of the running query of the manager; `None` if none runs.
    looking: Option<Instant>,
    next_look: Option<Instant>,
    pause: Duration,
    /// Error of the last query; `None` if it succeeded.
    trouble: Option<String>,
}

impl Default for Service {
    fn default() -> Self {
        Self::new(IdForm::default())
    }
}

impl Service {
    /// A service before the client's first command. `ids` is the form of the elements' ids.
    #[must_use]
    pub fn new(ids: IdForm) -> Self {
        let definition = |it: &id::Announced| Definition {
            id: it.0.to_owned(),
            kind: it.1.to_owned(),
            name: it.2.to_owned(),
            description: it.3.to_owned(),
            display: true,
            default: it.4.to_owned(),
            extra: Vec::new(),
        };
        let definitions: Vec<_> = id::ANNOUNCED.iter().map(definition).collect();
        Self {
            wire: Agent::new(vec![
                Event::AttrDef(definitions.clone()),
                // Filters can hide each of these attributes, or elements with a value of it.
                Event::FilterDef(definitions),
            ])
            .with_ids(ids),
            ledger: None,
            untold: VecDeque::new(),
            requests: VecDeque::new(),
            asked: BTreeMap::new(),
            last_number: 0,
            wanted: Vec::new(),
            awaited: Vec::new(),
            looked: Vec::new(),
            looking: None,
            next_look: None,
            pause: PAUSE_MIN,
            trouble: None,
        }
    }

    /// Handles bytes of the client.
    ///
    /// # Errors
    /// The bytes do not form messages: the session is over.
    pub fn receive(&mut self, now: Instant, bytes: &[u8]) -> Result<(), FrameError> {
        self.wire.receive(bytes);
        self.go_on(now)
    }

    /// Removes and returns the bytes to be sent to the client.
    ///
    /// # Errors
    /// Bytes received before are not a message: the session is over.
    pub fn take_output(&mut self, now: Instant) -> Result<Vec<u8>, FrameError> {
        let output = self.wire.take_output();
        // The output buffer has room again.
        self.go_on(now)?;
        Ok(output)
    }

    /// Removes and returns the next request to the manager; `None` if there is none.
    pub fn poll_request(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }

    /// Time at which [`Service::handle_timeout`] must be called; `None` while no query is to be made.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        // Without a reader, results would be out of date when they are sent: the query waits until they can be sent.
        let may_look = self.looking.is_none() && self.has_told();
        self.next_look
            .filter(|_| may_look && self.wire.phase() == Phase::Normal)
    }

    /// True if all changes so far are encoded as events, and the owner has taken their bytes.
    fn has_told(&self) -> bool {
        let has_more = self.ledger.as_ref().is_some_and(Ledger::has_more);
        self.wire.output_bytes() == 0 && self.untold.is_empty() && !has_more
    }

    /// True if the client's bytes may be read; false while too much output waits for the client.
    #[must_use]
    pub fn is_hearing(&self) -> bool {
        self.wire.output_bytes() < HEARD_BYTES_MAX
    }

    /// Number of bytes to be sent to the client that [`Service::take_output`] has not returned yet.
    #[must_use]
    pub fn output_bytes(&self) -> usize {
        self.wire.output_bytes()
    }

    /// Queries the manager if the time of [`Service::poll_timeout`] has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.poll_timeout().is_some_and(|at| at <= now) {
            self.looking = Some(now);
            self.awaited = std::mem::take(&mut self.wanted);
            self.next_look = None;
            self.requests.push_back(Request::Look);
        }
    }

    /// True once the session has ended; output may still wait to be sent.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.wire.phase() == Phase::Ended
    }

    /// Handles a reply of the manager.
    ///
    /// # Errors
    /// Bytes that the client sent before are not a message: the session is over.
    pub fn handle_reply(&mut self, now: Instant, reply: Reply) -> Result<(), FrameError> {
        match reply {
            Reply::Looked(found) => {
                let took = self
                    .looking
                    .take()
                    .map_or(Duration::ZERO, |since| now - since);
                let is_answered = found.is_ok();
                let refused = found.as_ref().err().map(failure);
                let answered = self.awaited.drain(..);
                self.looked
                    .extend(answered.map(|tid| (tid, refused.clone())));
                let is_unsettled = found.as_ref().is_ok_and(|it| it.is_unsettled);
                let notices = match (found, &mut self.ledger) {
                    (Ok(snapshot), Some(ledger)) => {
                        self.trouble = None;
                        ledger.update(*snapshot)
                    }
                    (Err(why), Some(ledger)) => {
                        let notices = ledger.machine_is(Machine::Alert);
                        self.complain(&why);
                        notices
                    }
                    (_, None) => Vec::new(),
                };
                let is_quiet = notices.is_empty() && !is_unsettled;
                self.pause = match is_quiet || self.pause < PAUSE_MIN {
                    true => (self.pause * 2).min(PAUSE_MAX),
                    false => PAUSE_MIN,
                };
                // A failing manager may take long to fail, but that is no load on it.
                if is_answered {
                    self.pause = self.pause.max(took * PAUSE_OF_LOOK);
                }
                self.next_look = match self.wanted.is_empty() {
                    true => Some(now + self.pause),
                    false => Some(now),
                };
                self.note(notices);
            }
            Reply::Submitted(number, result) => {
                let asked = self.asked.remove(&number);
                if let (Ok(job), Some(ledger), Some(submission)) = (
                    &result,
                    &mut self.ledger,
                    asked.as_ref().and_then(|it| it.submission.clone()),
                ) {
                    ledger.submitted(job.clone(), submission);
                }
                self.answer(now, asked, result.map(drop));
            }
            Reply::Done(number, result) => {
                let asked = self.asked.remove(&number);
                self.answer(now, asked, result);
            }
        }
        self.go_on(now)
    }

    /// Reports a failed query of the manager to the client; the same error is reported once.
    fn complain(&mut self, why: &ManagerError) {
        let text = why.to_string();
        if self.trouble.as_ref() != Some(&text) {
            let code = "0".to_owned();
            let failure = Failure {
                code,
                text: text.clone(),
            };
            let event = Event::Message("WARNING".to_owned(), failure);
            self.untold.push_back(UntoldEvent::Of(event));
            self.trouble = Some(text);
        }
    }

    fn answer(
        &mut self,
        now: Instant,
        asked: Option<PendingCommand>,
        result: Result<(), ManagerError>,
    ) {
        let Some(asked) = asked else { return };
        let result = result.map_err(|why| failure(&why));
        self.wire.complete(asked.transaction, result);
        // The effect of the command should be seen soon.
        self.pause = PAUSE_SOON / 2;
        if self.looking.is_none() {
            self.next_look = Some(now);
        }
    }

    /// Handles the client's commands, and encodes events as long as the output has room.
    fn go_on(&mut self, now: Instant) -> Result<(), FrameError> {
        while let Some((transaction, command)) = self.wire.poll()? {
            if let Err(why) = self.command(now, transaction, command) {
                self.wire.complete(transaction, Err(failure(&why)));
            }
        }
        if self.wire.phase() == Phase::Normal && self.ledger.is_none() {
            self.ledger = Some(Ledger::new(self.wire.base()));
            self.next_look = Some(now);
        }
        self.tell();
        self.tell_again();
        // The next part of the last snapshot, once the client has received the previous one.
        if self.wire.output_bytes() == 0
            && self.untold.is_empty()
            && let Some(ledger) = &mut self.ledger
        {
            let more = ledger.more();
            self.note(more);
            self.tell();
            self.tell_again();
        }
        self.answer_looks();
        Ok(())
    }

    fn note(&mut self, notices: Vec<Notice>) {
        let form = self.wire.id_form();
        let events = notices.into_iter().flat_map(|notice| events(notice, form));
        self.untold.extend(events.map(UntoldEvent::Of));
    }

    /// Announces the reported elements that a filter has hidden and may hide no more.
    fn tell_again(&mut self) {
        let due = self.wire.take_due();
        if let Some(ledger) = self.ledger.as_ref().filter(|_| !due.is_empty()) {
            let form = self.wire.id_form();
            let notices = ledger.reported(&due).into_iter();
            let events = notices.flat_map(|notice| events(notice, form));
            self.untold.extend(events.map(UntoldEvent::Again));
            self.tell();
        }
    }

    /// Answers LOOK once the events of its query are encoded, or if events cannot be sent any more.
    fn answer_looks(&mut self) {
        let is_suspended = self.wire.phase() != Phase::Normal;
        let has_more = self.ledger.as_ref().is_some_and(Ledger::has_more);
        if is_suspended || (self.untold.is_empty() && !has_more) {
            for (transaction, refused) in self.looked.drain(..) {
                self.wire.complete(transaction, refused.map_or(Ok(()), Err));
            }
        }
    }

    fn tell(&mut self) {
        while let Some(event) = self.untold.pop_front() {
            let sent = match &event {
                UntoldEvent::Of(event) => self.wire.send(event.clone()),
                UntoldEvent::Again(event) => self.wire.send_again(event.clone()),
            };
            match (sent, &event) {
                (Ok(()), _) => {}
                (Err(SendError::NoMessage), UntoldEvent::Of(lost) | UntoldEvent::Again(lost)) => {
                    say_lost(lost);
                }
                (Err(SendError::Suspended | SendError::Full), _) => {
                    self.untold.push_front(event);
                    break;
                }
            }
        }
    }

    fn command(
        &mut self,
        now: Instant,
        transaction: u32,
        command: Command,
    ) -> Result<(), ManagerError> {
        self.last_number += 1;
        let number = self.last_number;
        let mut submission = None;
        let request = match command {
            Command::Look => {
                self.wanted.push(transaction);
                if self.looking.is_none() {
                    self.next_look = Some(now);
                }
                return Ok(());
            }
            Command::SubmitJob(attributes) => {
                let value = |id: &str| {
                    attributes
                        .iter()
                        .find(|it| it.0 == id)
                        .map(|it| it.1.clone())
                };
                let mut job = Submission::of(&attributes)?;
                if let Some(queue) = value(id::QUEUE_ID) {
                    job.queue = Some(self.queue(&queue)?);
                }
                submission = value(id::JOB_SUB_ID);
                Request::Submit(number, job)
            }
            Command::TerminateJob(job) => Request::Terminate(number, self.job(&job)?),
            Command::MoveJob { job, queue } => {
                let to = JobChange::Move(self.queue(&queue)?);
                Request::Change(number, self.job(&job)?, to)
            }
            Command::ChangeJob { job, attributes } => {
                let change = match attributes.iter().map(change).collect::<Option<Vec<_>>>() {
                    Some(mut changes) if changes.len() == 1 => changes.remove(0),
                    _ => {
                        return Err(ManagerError::job(
                            &job,
                            "cannot be changed: a command must have one attribute, jobHold or jobPriority",
                        ));
                    }
                };
                Request::Change(number, self.job(&job)?, change)
            }
            other => {
                return Err(ManagerError::program(
                    other.name(),
                    "this agent does not support the command",
                ));
            }
        };
        let asked = PendingCommand {
            transaction,
            submission,
        };
        self.asked.insert(number, asked);
        self.requests.push_back(request);
        Ok(())
    }

    fn job(&self, id: &str) -> Result<String, ManagerError> {
        let known = id.parse().ok().and_then(|id| self.ledger.as_ref()?.job(id));
        known
            .map(str::to_owned)
            .ok_or_else(|| ManagerError::job(id, "was not reported by this agent"))
    }

    fn queue(&self, id: &str) -> Result<String, ManagerError> {
        let known = id
            .parse()
            .ok()
            .and_then(|id| self.ledger.as_ref()?.queue(id));
        let unknown = || {
            ManagerError::program(
                id::QUEUE_ID,
                format!("this agent has not reported a queue {id}"),
            )
        };
        known.map(str::to_owned).ok_or_else(unknown)
    }
}

/// The change that an attribute of CHANGE_JOB requests; `None` for an attribute that is not supported.
fn change(attribute: &(String, String)) -> Option<JobChange> {
    Some(match command::JobChange::from_attribute(attribute)? {
        command::JobChange::Hold => JobChange::Hold,
        command::JobChange::Release => JobChange::Release,
        command::JobChange::Priority(number) => JobChange::Priority(number),
    })
}

fn failure(why: &ManagerError) -> Failure {
    Failure {
        code: "1".to_owned(),
        text: why.to_string(),
    }
}

/// Logs an event that is too long for the wire, on standard error for the agent's parent process.
fn say_lost(event: &Event) {
    let what: String = format!("{event:?}").chars().take(200).collect();
    let what = printable(what.as_bytes());
    eprintln!("sdm-agent: an event is too long to be sent: {what}");
}
