//! Events of the agent for the client. The stored copy of the document ends before its description of events, so ids
//! and arguments are those of PTP.

use super::definition::{self, Definition};
use super::frame::Message;
use serde::{Deserialize, Serialize};

use super::groups::{self, Group, next};
use super::{Dialect, MessageError, pair};
use crate::attribute;
use crate::ids::Ids;

/// FILTER_DEF's id, which no source gives: the first that PTP leaves free.
const FILTER_DEF: u16 = 254;
/// The lowest id of events that a program defines itself ([`Event::Own`]): both dialects have lower ones only.
pub const OWN_MIN: u16 = 0x100;

/// A kind of element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A job of a queue.
    Job,
    /// A machine of the resource manager.
    Machine,
    /// A node of a machine.
    Node,
    /// A process of a job.
    Process,
    /// A queue of the resource manager.
    Queue,
    /// The resource manager. Change events have this kind, and queries never do.
    #[serde(skip)]
    ResourceManager,
}

const KINDS: [Kind; 6] = [
    Kind::Job,
    Kind::Machine,
    Kind::Node,
    Kind::Process,
    Kind::Queue,
    Kind::ResourceManager,
];

/// The code and the text of an error, or of a message to the user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// The code: the attribute `errorCode` or `messageCode`.
    pub code: String,
    /// The text: the attribute `errorMsg` or `messageText`.
    pub text: String,
}

/// An event that the agent sends to the client. The number at the beginning of each description is its id on the wire.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// 0: the command is done.
    Ok,
    /// 1: a text for the user, with its level: FATAL, ERROR, WARNING, INFO.
    Message(String, Failure),
    /// 5: the command failed.
    Error(Failure),
    /// 6: the agent ends.
    Shutdown,
    /// 211: the job of this `jobSubId` was not submitted.
    SubmitJobError(String, Failure),
    /// 212: the job was not ended.
    TerminateJobError(String, Failure),
    /// 220 to 224: elements below a parent.
    New(Kind, String, Vec<Group>),
    /// 230 to 235: attributes have changed. The parent is the job for processes, and empty for other kinds.
    Change(Kind, String, Vec<Group>),
    /// 240: all elements are removed.
    RemoveAll,
    /// 241 to 245: elements are removed. The parent is the job for processes, and empty for other kinds.
    Remove(Kind, String, Ids),
    /// 251: attribute definitions.
    AttrDef(Vec<Definition>),
    /// 254: the current filters as definitions; only in the document's dialect.
    FilterDef(Vec<Definition>),
    /// [`OWN_MIN`] and above: an event that the programs at both ends define.
    Own {
        /// The event's id on the wire.
        id: u16,
        /// The arguments, unchanged.
        args: Vec<String>,
    },
}

fn number(base: u16, kind: Kind) -> u16 {
    base + KINDS
        .iter()
        .zip(0..)
        .find(|(each, _)| **each == kind)
        .map_or(0, |(_, at)| at)
}

impl Event {
    /// The event as a message.
    ///
    /// # Errors
    /// The dialect has no such event.
    pub fn encode(&self, dialect: Dialect, tid: u32) -> Result<Message, MessageError> {
        let mut args = Vec::new();
        let failed = |key: &str, value: &str, failure: &Failure| {
            let (code, text) = (&failure.code, &failure.text);
            vec![
                format!("{key}={value}"),
                format!("errorCode={code}"),
                format!("errorMsg={text}"),
            ]
        };
        let id = match self {
            Self::Ok => 0,
            Self::Message(level, Failure { code, text }) => {
                args.push(format!("messageLevel={level}"));
                args.push(format!("messageCode={code}"));
                args.push(format!("messageText={text}"));
                1
            }
            Self::Error(failure) => {
                args = failed("", "", failure).split_off(1);
                5
            }
            Self::Shutdown => 6,
            Self::SubmitJobError(id, failure) => {
                args = failed(attribute::JOB_SUB_ID, id, failure);
                211
            }
            Self::TerminateJobError(id, failure) => {
                args = failed(attribute::JOB_ID, id, failure);
                212
            }
            Self::New(Kind::ResourceManager, ..) | Self::Remove(Kind::ResourceManager, ..) => {
                return Err(MessageError::NotInDialect("event of a resource manager"));
            }
            Self::New(kind, parent, groups) => {
                args.push(parent.clone());
                groups::encode(groups, &mut args);
                number(220, *kind)
            }
            Self::Change(kind, parent, groups) => {
                args.extend((*kind == Kind::Process).then(|| parent.clone()));
                groups::encode(groups, &mut args);
                number(230, *kind)
            }
            Self::RemoveAll => 240,
            Self::Remove(kind, parent, ids) => {
                args.extend((*kind == Kind::Process).then(|| parent.clone()));
                args.push(ids.to_string());
                number(241, *kind)
            }
            Self::AttrDef(all) => {
                definition::encode(dialect, all, &mut args);
                251
            }
            Self::FilterDef(_) if dialect == Dialect::Ptp => {
                return Err(MessageError::NotInDialect("FILTER_DEF"));
            }
            Self::FilterDef(all) => {
                definition::encode(dialect, all, &mut args);
                FILTER_DEF
            }
            Self::Own { id, .. } if *id < OWN_MIN => {
                return Err(MessageError::Unknown(*id, "event of a program's own"));
            }
            Self::Own { id, args: own } => {
                args.clone_from(own);
                *id
            }
        };
        Ok(Message { id, tid, args })
    }

    /// Reads an event. PTP's C agents can put a count before `key=value`; it is skipped.
    ///
    /// # Errors
    /// The id is unknown, or arguments are missing, too many or broken.
    pub fn decode(dialect: Dialect, message: Message) -> Result<Self, MessageError> {
        let id = message.id;
        let mut args = message.args.into_iter();
        let kind = |base: u16| KINDS[usize::from(id - base)];
        let event = match id {
            0 => Self::Ok,
            1 => {
                let [level, code, text] =
                    find(args, ["messageLevel", "messageCode", "messageText"]);
                return Ok(Self::Message(level, Failure { code, text }));
            }
            5 => {
                let [code, text] = find(args, ["errorCode", "errorMsg"]);
                return Ok(Self::Error(Failure { code, text }));
            }
            6 => Self::Shutdown,
            211 => {
                let [id, code, text] = find(args, [attribute::JOB_SUB_ID, "errorCode", "errorMsg"]);
                return Ok(Self::SubmitJobError(id, Failure { code, text }));
            }
            212 => {
                let [id, code, text] = find(args, [attribute::JOB_ID, "errorCode", "errorMsg"]);
                return Ok(Self::TerminateJobError(id, Failure { code, text }));
            }
            220..=224 => Self::New(kind(220), next(&mut args)?, groups::decode(&mut args)?),
            230..=235 => {
                let parent = job(kind(230), &mut args)?;
                Self::Change(kind(230), parent, groups::decode(&mut args)?)
            }
            240 => Self::RemoveAll,
            241..=245 => {
                let parent = job(kind(241), &mut args)?;
                Self::Remove(kind(241), parent, next(&mut args)?.parse()?)
            }
            251 => Self::AttrDef(definition::decode(dialect, &mut args)?),
            FILTER_DEF if dialect == Dialect::Document => {
                Self::FilterDef(definition::decode(dialect, &mut args)?)
            }
            OWN_MIN.. => {
                let args = args.collect();
                return Ok(Self::Own { id, args });
            }
            _ => return Err(MessageError::Unknown(id, "event")),
        };
        match args.len() {
            0 => Ok(event),
            more => Err(MessageError::TooMany("an event", more)),
        }
    }
}

fn job(kind: Kind, args: &mut std::vec::IntoIter<String>) -> Result<String, MessageError> {
    if kind == Kind::Process {
        next(args)
    } else {
        Ok(String::new())
    }
}

fn find<const N: usize>(args: std::vec::IntoIter<String>, keys: [&str; N]) -> [String; N] {
    let mut found = [const { String::new() }; N];
    for (key, value) in args.filter_map(|arg| pair(arg).ok()) {
        if let Some(at) = keys.iter().position(|wanted| *wanted == key) {
            found[at] = value;
        }
    }
    found
}
