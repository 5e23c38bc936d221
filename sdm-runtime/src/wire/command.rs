//! Commands of the client to the agent ("Commands"), in both dialects.

use super::frame::Message;
use super::{Attribute, Dialect, MessageError, bad, pair, text};
use crate::attribute;

/// The wire version that both dialects write.
pub const VERSION: &str = "2.0";
/// The lowest id of commands that a program defines itself ([`Command::Own`]): both dialects have lower ones only.
pub const OWN_MIN: u16 = 100;

/// A command of a client to an agent. The number at the beginning of each description is its id on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// 0: end the agent.
    Quit,
    /// 1: begin the session; the dialect follows from the arguments' form.
    Init {
        /// The wire's version.
        version: String,
        /// The base id: the agent chooses its elements' ids above it, so that they differ from those of other agents.
        base_id: String,
    },
    /// 2: send the attribute definitions.
    ModelDef,
    /// 3: send events from now on.
    StartEvents,
    /// 4: send no more events.
    StopEvents,
    /// 5: submit a job; one attribute is `jobSubId`. `progArgs` and `env` are repeated, once for each element.
    SubmitJob(Vec<Attribute>),
    /// 6: end a job.
    TerminateJob(String),
    /// 7 of the document: move a job to a queue.
    MoveJob {
        /// The job's element id.
        job: String,
        /// The queue's element id.
        queue: String,
    },
    /// 8 of the document: change attributes of a job, such as those of [`JobChange`].
    ChangeJob {
        /// The job's element id.
        job: String,
        /// The attributes to change, with their new values.
        attributes: Vec<Attribute>,
    },
    /// 9 of the document: list the filters.
    ListFilters,
    /// 14 of the document's dialect, an addition of SDM's: read the manager's state now. It is answered after the
    /// events that it causes. Agents that know it announce [`attribute::LOOK`].
    Look,
    /// 10: replace the filters; each is `key=value` or a name.
    SetFilters(Vec<String>),
    /// 7 of PTP: send no events of an element (`id=`, `filterChildren=`), or none of some of its attributes.
    FilterEvents(Vec<Attribute>),
    /// 8 of PTP: suspend events.
    SuspendEvents,
    /// 9 of PTP: resume events.
    ResumeEvents,
    /// 11 of PTP: remove these filters; an empty list removes all.
    ClearFilters(Vec<String>),
    /// 12 of PTP: send the definitions of these attributes.
    GetAttributes(Vec<String>),
    /// 13 of PTP: send the definitions of all attributes.
    QueryAttributes,
    /// [`OWN_MIN`] and above: a command that the programs at both ends define. An agent takes it if
    /// [`Agent::with_own_commands`](super::agent::Agent::with_own_commands) says so.
    Own {
        /// The command's id on the wire.
        id: u16,
        /// The arguments, unchanged.
        args: Vec<String>,
    },
}

/// Change of a job by CHANGE_JOB. The document leaves the attributes to the agent; these are SDM's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobChange {
    /// `jobHold=true`.
    Hold,
    /// `jobHold=false`.
    Release,
    /// `jobPriority=N`.
    Priority(i64),
}

impl JobChange {
    /// The change as an attribute.
    #[must_use]
    pub fn attribute(self) -> Attribute {
        match self {
            Self::Hold => ("jobHold".into(), "true".into()),
            Self::Release => ("jobHold".into(), "false".into()),
            Self::Priority(priority) => ("jobPriority".into(), priority.to_string()),
        }
    }

    /// The change that an attribute of CHANGE_JOB requests; `None` for another attribute or an invalid value.
    #[must_use]
    pub fn from_attribute((key, value): &Attribute) -> Option<Self> {
        match (key.as_str(), value.as_str()) {
            ("jobHold", "true") => Some(Self::Hold),
            ("jobHold", "false") => Some(Self::Release),
            ("jobPriority", priority) => priority.parse().ok().map(Self::Priority),
            _ => None,
        }
    }
}

impl Command {
    /// The command's name in the documents.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Quit => "QUIT",
            Self::Init { .. } => "INIT",
            Self::ModelDef => "MODEL_DEF",
            Self::StartEvents => "START_EVENTS",
            Self::StopEvents => "STOP_EVENTS",
            Self::SubmitJob(_) => "SUBMIT_JOB",
            Self::TerminateJob(_) => "TERMINATE_JOB",
            Self::MoveJob { .. } => "MOVE_JOB",
            Self::ChangeJob { .. } => "CHANGE_JOB",
            Self::ListFilters => "LIST_FILTERS",
            Self::Look => "LOOK",
            Self::SetFilters(_) => "SET_FILTERS",
            Self::FilterEvents(_) => "FILTER_EVENTS",
            Self::SuspendEvents => "SUSPEND_EVENTS",
            Self::ResumeEvents => "RESUME_EVENTS",
            Self::ClearFilters(_) => "CLEAR_FILTERS",
            Self::GetAttributes(_) => "GET_ATTRIBUTES",
            Self::QueryAttributes => "QUERY_ATTRIBUTES",
            Self::Own { .. } => "of a program",
        }
    }

    /// The command as a message.
    ///
    /// # Errors
    /// The dialect has no such command.
    pub fn encode(&self, dialect: Dialect, tid: u32) -> Result<Message, MessageError> {
        let job = |id: &str| format!("jobId={id}");
        let texts = |attributes: &[Attribute]| attributes.iter().map(text).collect();
        let (only, id, args): (_, u16, Vec<String>) = match self {
            Self::Quit => (None, 0, vec![]),
            Self::Init { version, base_id } => match dialect {
                Dialect::Document => (None, 1, vec![version.clone(), base_id.clone()]),
                Dialect::Ptp => {
                    let args = vec![format!("version={version}"), format!("baseId={base_id}")];
                    (None, 1, args)
                }
            },
            Self::ModelDef => (None, 2, vec![]),
            Self::StartEvents => (None, 3, vec![]),
            Self::StopEvents => (None, 4, vec![]),
            Self::SubmitJob(attributes) => (None, 5, texts(attributes)),
            Self::TerminateJob(id) => (None, 6, vec![job(id)]),
            Self::MoveJob { job: id, queue } => {
                let args = vec![job(id), format!("queueId={queue}")];
                (Some(Dialect::Document), 7, args)
            }
            Self::ChangeJob {
                job: id,
                attributes,
            } => {
                let mut args = vec![job(id)];
                args.extend(attributes.iter().map(text));
                (Some(Dialect::Document), 8, args)
            }
            Self::ListFilters => (Some(Dialect::Document), 9, vec![]),
            Self::Look => (Some(Dialect::Document), 14, vec![]),
            Self::SetFilters(filters) => (None, 10, filters.clone()),
            Self::FilterEvents(attributes) => (Some(Dialect::Ptp), 7, texts(attributes)),
            Self::SuspendEvents => (Some(Dialect::Ptp), 8, vec![]),
            Self::ResumeEvents => (Some(Dialect::Ptp), 9, vec![]),
            Self::ClearFilters(filters) => (Some(Dialect::Ptp), 11, filters.clone()),
            Self::GetAttributes(keys) => (Some(Dialect::Ptp), 12, keys.clone()),
            Self::QueryAttributes => (Some(Dialect::Ptp), 13, vec![]),
            Self::Own { id, .. } if *id < OWN_MIN => {
                return Err(MessageError::Unknown(*id, "command of a program's own"));
            }
            Self::Own { id, args } => (None, *id, args.clone()),
        };
        match only.is_none_or(|only| only == dialect) {
            true => Ok(Message { id, tid, args }),
            false => Err(MessageError::NotInDialect(self.name())),
        }
    }

    /// Reads a command; INIT is read in either dialect.
    ///
    /// # Errors
    /// The id is unknown, or arguments are missing, too many or broken.
    pub fn decode(dialect: Dialect, message: Message) -> Result<Self, MessageError> {
        use Dialect::{Document, Ptp};
        let args = message.args;
        let none = |command: Self| match args.len() {
            0 => Ok(command),
            count => Err(MessageError::TooMany(command.name(), count)),
        };
        match (message.id, dialect) {
            (0, _) => none(Self::Quit),
            (1, _) => init(args).map(|(_, command)| command),
            (2, _) => none(Self::ModelDef),
            (3, _) => none(Self::StartEvents),
            (4, _) => none(Self::StopEvents),
            (5, _) => {
                let attributes = pairs(args)?;
                match attributes
                    .iter()
                    .any(|(key, _)| key == attribute::JOB_SUB_ID)
                {
                    true => Ok(Self::SubmitJob(attributes)),
                    false => Err(MessageError::Missing("SUBMIT_JOB", attribute::JOB_SUB_ID)),
                }
            }
            (6, _) => {
                let [job] = keyed("TERMINATE_JOB", args, [attribute::JOB_ID])?;
                Ok(Self::TerminateJob(job))
            }
            (7, Document) => {
                let [job, queue] =
                    keyed("MOVE_JOB", args, [attribute::JOB_ID, attribute::QUEUE_ID])?;
                Ok(Self::MoveJob { job, queue })
            }
            (8, Document) => {
                let mut attributes = pairs(args)?;
                let at = attributes
                    .iter()
                    .position(|(key, _)| key == attribute::JOB_ID);
                let at = at.ok_or(MessageError::Missing("CHANGE_JOB", attribute::JOB_ID))?;
                let (_, job) = attributes.remove(at);
                Ok(Self::ChangeJob { job, attributes })
            }
            (9, Document) => none(Self::ListFilters),
            (14, Document) => none(Self::Look),
            (10, _) => Ok(Self::SetFilters(args)),
            (7, Ptp) => pairs(args).map(Self::FilterEvents),
            (8, Ptp) => none(Self::SuspendEvents),
            (9, Ptp) => none(Self::ResumeEvents),
            (11, Ptp) => Ok(Self::ClearFilters(args)),
            (12, Ptp) => Ok(Self::GetAttributes(args)),
            (13, Ptp) => none(Self::QueryAttributes),
            (id @ OWN_MIN.., _) => Ok(Self::Own { id, args }),
            (id, _) => Err(MessageError::Unknown(id, "command")),
        }
    }
}

/// The dialect and the base id from the arguments of an INIT, whose version must be the agent's.
pub(super) fn begin(args: Vec<String>) -> Result<(Dialect, String), MessageError> {
    let (dialect, Command::Init { version, base_id }) = init(args)? else {
        return Err(MessageError::Missing("INIT", "an argument"));
    };
    if version != VERSION {
        return Err(bad("version of this protocol (expected 2.0)", &version));
    }
    Ok((dialect, base_id))
}

/// The dialect of INIT's arguments, and the command INIT.
pub(super) fn init(args: Vec<String>) -> Result<(Dialect, Command), MessageError> {
    let is_keyed = args
        .iter()
        .any(|arg| arg.starts_with("version=") || arg.starts_with("baseId="));
    if is_keyed {
        let [version, base_id] = keyed("INIT", args, ["version", "baseId"])?;
        return Ok((Dialect::Ptp, Command::Init { version, base_id }));
    }
    match <[String; 2]>::try_from(args) {
        Ok([version, base_id]) => Ok((Dialect::Document, Command::Init { version, base_id })),
        Err(args) if args.len() < 2 => Err(MessageError::Missing("INIT", "an argument")),
        Err(args) => Err(MessageError::TooMany("INIT", args.len() - 2)),
    }
}

fn pairs(args: Vec<String>) -> Result<Vec<Attribute>, MessageError> {
    args.into_iter().map(pair).collect()
}

fn keyed<const N: usize>(
    name: &'static str,
    args: Vec<String>,
    keys: [&'static str; N],
) -> Result<[String; N], MessageError> {
    if args.len() > N {
        return Err(MessageError::TooMany(name, args.len() - N));
    }
    let mut found = [const { None }; N];
    for (key, value) in pairs(args)? {
        let at = keys.iter().position(|wanted| *wanted == key);
        found[at.ok_or_else(|| bad("argument", &key))?] = Some(value);
    }
    if let Some(at) = found.iter().position(Option::is_none) {
        return Err(MessageError::Missing(name, keys[at]));
    }
    Ok(found.map(Option::unwrap_or_default))
}
