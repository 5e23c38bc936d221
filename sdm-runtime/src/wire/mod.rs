//! Both ends of the resource-manager proxy protocol ("PTP rm proxy"), without I/O.
//!
//! The bytes form [messages](frame): [commands](command) to the agent and [events](event) to the client. An
//! [`agent::Agent`] and a [`client::Client`] are the two ends of a session.
//!
//! The document requires US-ASCII. Here lengths count bytes, and UTF-8 passes unchanged. Invalid UTF-8 is read as
//! U+FFFD, so that one process with an odd name does not end a session.

pub mod agent;
pub mod client;
pub mod command;
pub mod definition;
mod element_ids;
pub mod event;
mod filter;
pub mod frame;
#[doc(hidden)]
pub mod fuzz;
pub mod groups;
mod ptp_states;

pub use element_ids::IdForm;

/// One attribute: the id of its definition and its value as text ("Attribute Value": `key=value`).
pub type Attribute = (String, String);

/// One of the two protocols that call themselves version 2.0; INIT's arguments distinguish them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The document's dialect: INIT has bare arguments, and there are MOVE_JOB, CHANGE_JOB, LIST_FILTERS and LOOK,
    /// which SDM adds.
    Document,
    /// The dialect of PTP's client and agents: arguments are `key=value`, and the commands from number 7 on, except
    /// SET_FILTERS, differ from the document's.
    Ptp,
}

/// Fault of a well-framed message that is neither a command nor an event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// No command or event of the dialect has this id.
    #[error("this protocol has no {kind} with the id {id:#06x}", id = .0, kind = .1)]
    Unknown(u16, &'static str),
    /// An argument is missing.
    #[error("{message}: {argument} is missing", message = .0, argument = .1)]
    Missing(&'static str, &'static str),
    /// The message has too many arguments.
    #[error(
        "{message} has too many arguments: {excess} more than allowed",
        message = .0,
        excess = .1
    )]
    TooMany(&'static str, usize),
    /// An argument is invalid: the kind that was expected, and the beginning of its text.
    #[error("`{text}` is not a valid {what}", what = .0, text = .1)]
    Bad(&'static str, String),
    /// The dialect has no such command or event.
    #[error("this protocol has no {0}")]
    NotInDialect(&'static str),
    /// A set of ids is malformed.
    #[error(transparent)]
    Range(#[from] crate::ids::RangeError),
}

fn bad(what: &'static str, text: &str) -> MessageError {
    MessageError::Bad(what, text.chars().take(40).collect())
}

fn pair(mut text: String) -> Result<Attribute, MessageError> {
    let Some(at) = text.find('=') else {
        return Err(bad("attribute", &text));
    };
    let value = text[at + 1..].to_owned();
    text.truncate(at);
    Ok((text, value))
}

fn text((key, value): &Attribute) -> String {
    format!("{key}={value}")
}
