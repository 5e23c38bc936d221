//! The agent's end of a session ("Protocol Phases"): commands of the client, their answers, and events.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;

use super::command::{self, Command};
use super::element_ids::{ElementIds, IdForm};
use super::event::{Event, Failure};
use super::filter::Filters;
use super::frame::{Decoder, FrameError, Message};
use super::ptp_states::in_ptp_words;
use super::{Dialect, MessageError};
use crate::attribute;

/// Maximum number of bytes waiting for a client that does not read.
pub const OUTPUT_BYTES_MAX: usize = 16 << 20;
/// Maximum number of commands that wait for their completion.
pub const OPEN_MAX: usize = 4096;

/// Phase of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Before INIT.
    Initialize,
    /// After INIT, before MODEL_DEF.
    Discovery,
    /// Events are sent: after START_EVENTS.
    Normal,
    /// No events are sent: before START_EVENTS and after STOP_EVENTS.
    Suspended,
    /// After QUIT.
    Ended,
}

/// Cause for which an event was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// No events are sent now; the owner keeps the changes, or sends the whole model later.
    #[error("the client has asked for no events at present")]
    Suspended,
    /// The client does not read; the owner merges changes and tries again once output was taken.
    #[error("the client does not read its connection: {OUTPUT_BYTES_MAX} bytes are waiting")]
    Full,
    /// The event is too long for a message, or does not exist in the dialect.
    #[error("the event is too long for a message, or this protocol has no such event")]
    NoMessage,
}

/// The subject of a command. It decides which event refuses the command: PTP's client takes ERROR for the session's
/// end.
#[derive(Debug)]
enum Subject {
    Submission(String),
    Termination(String),
    Other,
}

impl Subject {
    fn of(dialect: Dialect, message: &Message) -> Self {
        let value = |key: &str| {
            let mut args = message.args.iter().filter_map(|arg| arg.split_once('='));
            args.find(|(k, _)| *k == key)
                .map_or_else(String::new, |(_, value)| value.to_owned())
        };
        match (dialect, message.id) {
            (Dialect::Ptp, 5) => Self::Submission(value(attribute::JOB_SUB_ID)),
            (Dialect::Ptp, 6) => Self::Termination(value(attribute::JOB_ID)),
            _ => Self::Other,
        }
    }

    fn refused(self, failure: Failure) -> Event {
        match self {
            Self::Submission(id) => Event::SubmitJobError(id, failure),
            Self::Termination(id) => Event::TerminateJobError(id, failure),
            Self::Other => Event::Error(failure),
        }
    }
}

/// The agent's end of a session. It itself answers INIT, MODEL_DEF and QUIT, and the commands about events, filters and
/// attribute definitions.
#[derive(Debug)]
pub struct Agent {
    decoder: Decoder,
    output: Vec<u8>,
    definitions: Vec<Event>,
    dialect: Dialect,
    phase: Phase,
    ids: ElementIds,
    events_tid: u32,
    stop_tid: Option<u32>,
    is_paused: bool,
    filters: Filters,
    has_own_commands: bool,
    open: BTreeMap<u32, Subject>,
}

impl Agent {
    /// An agent that answers MODEL_DEF with these [`Event::AttrDef`] and [`Event::FilterDef`].
    #[must_use]
    pub fn new(definitions: Vec<Event>) -> Self {
        Self {
            decoder: Decoder::default(),
            output: Vec::new(),
            definitions,
            dialect: Dialect::Document,
            phase: Phase::Initialize,
            ids: ElementIds::default(),
            events_tid: 0,
            stop_tid: None,
            is_paused: false,
            filters: Filters::default(),
            has_own_commands: false,
            open: BTreeMap::new(),
        }
    }

    /// The same agent with commands of its program: [`poll`](Self::poll) returns [`Command::Own`] in place of refusing
    /// it.
    #[must_use]
    pub fn with_own_commands(mut self) -> Self {
        self.has_own_commands = true;
        self
    }

    /// The same agent with ids of this form.
    #[must_use]
    pub fn with_ids(mut self, form: IdForm) -> Self {
        self.ids = ElementIds::new(form);
        self
    }

    /// The form of the elements' ids.
    #[must_use]
    pub fn id_form(&self) -> IdForm {
        self.ids.form()
    }

    /// The session's phase.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The number of the manager's own element; those of its elements follow it.
    #[must_use]
    pub fn base(&self) -> u32 {
        self.ids.base()
    }

    /// Handles bytes of the client.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.decoder.push(bytes);
    }

    /// Takes the bytes to be written to the client.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Number of bytes that wait to be taken.
    #[must_use]
    pub fn output_bytes(&self) -> usize {
        self.output.len()
    }

    /// The next command for the owner, which answers with [`complete`](Self::complete). `None` if none has arrived
    /// whole, after QUIT, or while the output is full: nothing is read then.
    ///
    /// # Errors
    /// The bytes do not form messages; the session is to be closed.
    pub fn poll(&mut self) -> Result<Option<(u32, Command)>, FrameError> {
        while self.phase != Phase::Ended && self.output.len() < OUTPUT_BYTES_MAX {
            let Some(message) = self.decoder.poll()? else {
                break;
            };
            if let Some(request) = self.handle(message) {
                return Ok(Some(request));
            }
        }
        Ok(None)
    }

    /// Answers the command with this number, which [`poll`](Self::poll) has returned. A number that is not open is
    /// ignored.
    pub fn complete(&mut self, tid: u32, result: Result<(), Failure>) {
        if let Some(subject) = self.open.remove(&tid) {
            let refused = |failure| subject.refused(failure);
            self.tell(tid, &result.map_or_else(refused, |()| Event::Ok));
        }
    }

    /// Sends an event in answer to the open command `tid`, before [`complete`](Self::complete) ends it. It passes the
    /// filters, and is sent while events are suspended, too.
    ///
    /// # Errors
    /// No such command is open, or the event does not exist in the dialect or is too long.
    pub fn answer(&mut self, tid: u32, event: &Event) -> Result<(), SendError> {
        let message = event.encode(self.dialect, tid);
        let message = message.ok().filter(|_| self.open.contains_key(&tid));
        let message = message.ok_or(SendError::NoMessage)?;
        message
            .encode(&mut self.output)
            .map_err(|_| SendError::NoMessage)
    }

    /// Sends an event about elements with the agent's numbers, without the parts that filters remove.
    ///
    /// # Errors
    /// The event was not accepted.
    pub fn send(&mut self, event: Event) -> Result<(), SendError> {
        self.send_filtered(|filters| filters.apply(event).into_iter().collect())
    }

    /// Takes the elements that a filter has hidden and may hide no more. The owner gives [`send_again`](Self::send_again)
    /// what it has sent about them.
    pub fn take_due(&mut self) -> RoaringBitmap {
        self.filters.take_due()
    }

    /// Sends of a NEW event, with all attributes that the elements have now, what filters have kept from the client and
    /// do not hide any more.
    ///
    /// # Errors
    /// The event was not accepted.
    pub fn send_again(&mut self, event: Event) -> Result<(), SendError> {
        match event {
            Event::New(kind, parent, groups) => {
                self.send_filtered(|filters| filters.again(kind, parent, &groups))
            }
            other => self.send(other),
        }
    }

    fn send_filtered(
        &mut self,
        events: impl FnOnce(&mut Filters) -> Vec<Event>,
    ) -> Result<(), SendError> {
        if self.phase != Phase::Normal || self.is_paused {
            return Err(SendError::Suspended);
        }
        let missed = self.filters.missed();
        let events = events(&mut self.filters);
        let sent = self.write(events);
        if sent.is_err() {
            self.filters.restore(missed);
        }
        sent
    }

    fn write(&mut self, events: Vec<Event>) -> Result<(), SendError> {
        let events = events.into_iter().flat_map(|event| self.ids.write(event));
        let of_dialect = |event| match self.dialect {
            Dialect::Document => event,
            Dialect::Ptp => in_ptp_words(event),
        };
        let messages = events.map(|it| of_dialect(it).encode(self.dialect, self.events_tid));
        let messages: Result<Vec<Message>, _> = messages.collect();
        let messages = messages.map_err(|_| SendError::NoMessage)?;
        let bytes: usize = messages.iter().map(Message::wire_len).sum();
        if self.output.len() + bytes > OUTPUT_BYTES_MAX {
            return Err(if self.output.is_empty() {
                SendError::NoMessage
            } else {
                SendError::Full
            });
        }
        let mut messages = messages.iter();
        messages
            .try_for_each(|it| it.encode(&mut self.output))
            .map_err(|_| SendError::NoMessage)
    }

    fn tell(&mut self, tid: u32, event: &Event) {
        if let Ok(message) = event.encode(self.dialect, tid) {
            let _ = message.encode(&mut self.output);
        }
    }

    fn refuse(&mut self, tid: u32, subject: Subject, text: String) {
        let code = "1".to_owned();
        self.tell(tid, &subject.refused(Failure { code, text }));
    }

    fn handle(&mut self, message: Message) -> Option<(u32, Command)> {
        let tid = message.tid;
        if message.id == 1 && self.phase == Phase::Initialize {
            let begun = command::begin(message.args);
            let begun = begun.and_then(|(dialect, base)| self.ids.begin(base).map(|()| dialect));
            match begun {
                Ok(dialect) => {
                    self.dialect = dialect;
                    self.phase = Phase::Discovery;
                    self.tell(tid, &Event::Ok);
                }
                Err(error) => self.refuse(tid, Subject::Other, error.to_string()),
            }
            return None;
        }
        let subject = Subject::of(self.dialect, &message);
        let command = match Command::decode(self.dialect, message) {
            Ok(Command::Own { id, .. }) if !self.has_own_commands => {
                let error = MessageError::Unknown(id, "command");
                self.refuse(tid, subject, error.to_string());
                return None;
            }
            Ok(command) => command,
            Err(error) => {
                self.refuse(tid, subject, error.to_string());
                return None;
            }
        };
        if !is_legal(self.phase, &command) {
            let (name, phase) = (command.name(), self.phase);
            let text = format!("command {name} is not allowed in phase {phase:?}");
            self.refuse(tid, subject, text);
            return None;
        }
        self.obey(tid, subject, self.ids.read(command))
    }

    fn obey(&mut self, tid: u32, subject: Subject, command: Command) -> Option<(u32, Command)> {
        match command {
            Command::Quit => {
                if self.dialect == Dialect::Document {
                    let events = (self.phase == Phase::Normal).then_some(self.events_tid);
                    for open in events.into_iter().chain(self.stop_tid.take()) {
                        self.tell(open, &Event::Ok);
                    }
                }
                self.tell(tid, &Event::Shutdown);
                self.phase = Phase::Ended;
                return None;
            }
            Command::ModelDef => {
                for event in self.definitions.clone() {
                    self.tell(tid, &event);
                }
                self.phase = Phase::Suspended;
            }
            Command::StartEvents => {
                if let Some(stop) = self.stop_tid.take() {
                    self.tell(stop, &Event::Ok);
                }
                (self.events_tid, self.phase) = (tid, Phase::Normal);
                return None;
            }
            Command::StopEvents => {
                self.phase = Phase::Suspended;
                if self.dialect == Dialect::Document {
                    self.tell(self.events_tid, &Event::Ok);
                    self.stop_tid = Some(tid);
                    return None;
                }
                self.tell(tid, &Event::Ok);
                self.tell(self.events_tid, &Event::Ok);
                return None;
            }
            Command::SuspendEvents => self.is_paused = true,
            Command::ResumeEvents => self.is_paused = false,
            Command::ListFilters => self.tell(tid, &Event::FilterDef(self.filters.list())),
            Command::SetFilters(filters) => self.filters.set(filters),
            Command::ClearFilters(gone) => self.filters.clear(&gone),
            Command::FilterEvents(attributes) => {
                if let Err(error) = self.filters.silence(attributes) {
                    self.refuse(tid, subject, error.to_string());
                    return None;
                }
            }
            Command::QueryAttributes => self.define(tid, None)?,
            Command::GetAttributes(ids) => self.define(tid, Some(&ids))?,
            other => {
                if self.open.len() >= OPEN_MAX || self.open.contains_key(&tid) {
                    let text = format!(
                        "transaction {tid} cannot be opened: it is open already, or {OPEN_MAX} are"
                    );
                    self.refuse(tid, subject, text);
                    return None;
                }
                self.open.insert(tid, subject);
                return Some((tid, other));
            }
        }
        self.tell(tid, &Event::Ok);
        None
    }

    /// Sends the definitions of these attributes, or of all. Refuses the command and returns `None` if an
    /// attribute is unknown.
    fn define(&mut self, tid: u32, ids: Option<&[String]>) -> Option<()> {
        let known = self.definitions.iter().filter_map(|event| match event {
            Event::AttrDef(all) => Some(all),
            _ => None,
        });
        let mut known: Vec<_> = known.flatten().cloned().collect();
        if let Some(ids) = ids {
            let is_known = |id: &&String| known.iter().any(|it| it.id == **id);
            if let Some(unknown) = ids.iter().find(|id| !is_known(id)) {
                let text = MessageError::Bad("attribute", unknown.chars().take(40).collect());
                self.refuse(tid, Subject::Other, text.to_string());
                return None;
            }
            known.retain(|it| ids.contains(&it.id));
        }
        self.tell(tid, &Event::AttrDef(known));
        Some(())
    }
}

/// True if a phase allows a command. The stored document's lists are empty; these rules follow its text and PTP.
#[must_use]
pub fn is_legal(phase: Phase, command: &Command) -> bool {
    match (phase, command) {
        (Phase::Ended, _) => false,
        (_, Command::Quit) => true,
        (Phase::Initialize, command) => matches!(command, Command::Init { .. }),
        (Phase::Discovery, command) => *command == Command::ModelDef,
        (_, Command::Init { .. } | Command::ModelDef) => false,
        (phase, Command::StartEvents) => phase == Phase::Suspended,
        (phase, Command::StopEvents | Command::Look) => phase == Phase::Normal,
        _ => true,
    }
}
