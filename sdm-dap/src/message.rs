//! Requests, responses and events as JSON.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::error::RequestError;

/// Maximum length of a client's text that is quoted in an answer, in characters.
const ECHO_CHARS_MAX: usize = 200;

/// A request from the client.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Request {
    /// The client's sequence number of the request.
    pub(crate) seq: i64,
    /// Name of the request.
    pub(crate) command: String,
    /// The arguments of the request; null if absent.
    pub(crate) arguments: Value,
}

/// A message of a client in JSON form.
#[derive(Deserialize)]
struct RawMessage {
    #[serde(default)]
    seq: i64,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    command: String,
    #[serde(default)]
    arguments: Value,
}

/// A message of a client.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ClientMessage {
    Request(Request),
    /// A response to a request of the adapter, or an event.
    Other,
    /// No message, with the reason.
    Nothing(String),
}

/// Parses the body of a message.
pub(crate) fn read(body: &[u8]) -> ClientMessage {
    match serde_json::from_slice::<RawMessage>(body) {
        Ok(raw) if raw.kind == "request" => ClientMessage::Request(Request {
            seq: raw.seq,
            command: raw.command.chars().take(ECHO_CHARS_MAX).collect(),
            arguments: raw.arguments,
        }),
        Ok(_) => ClientMessage::Other,
        Err(error) => ClientMessage::Nothing(error.to_string()),
    }
}

impl Request {
    /// The arguments of the request, converted to the expected type.
    pub(crate) fn read<T: DeserializeOwned + Default>(&self) -> Result<T, RequestError> {
        if self.arguments.is_null() {
            return Ok(T::default());
        }
        T::deserialize(&self.arguments).map_err(|error| RequestError::Arguments {
            command: self.command.clone(),
            why: error.to_string().chars().take(ECHO_CHARS_MAX).collect(),
        })
    }

    /// The successful response to the request.
    pub(crate) fn response(&self, body: Value) -> Value {
        let mut response = json!({
            "type": "response",
            "request_seq": self.seq,
            "success": true,
            "command": self.command,
        });
        if !body.is_null() {
            response["body"] = body;
        }
        response
    }

    /// The response that refuses the request.
    pub(crate) fn refusal(&self, why: &RequestError) -> Value {
        let message = match why {
            RequestError::Cancelled => "cancelled".to_owned(),
            why => sdm_text::without_numbers(&why.to_string()).into_owned(),
        };
        // Text in braces would be taken for a variable of the format.
        let format = message.replace('{', "(").replace('}', ")");
        json!({
            "type": "response",
            "request_seq": self.seq,
            "success": false,
            "command": self.command,
            "message": message,
            "body": {"error": {
                "id": why.id(),
                "format": format,
                "showUser": why.is_for_the_user(),
            }},
        })
    }
}

/// The DAP event of this name.
pub(crate) fn event(name: &str, body: Value) -> Value {
    let mut event = json!({"type": "event", "event": name});
    if !body.is_null() {
        event["body"] = body;
    }
    event
}
