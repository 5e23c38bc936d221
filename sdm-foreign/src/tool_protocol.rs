//! Protocol between a client and its tool process (`sdm-pmix tool`), in the frames of [`wire`](crate::wire).
//!
//! The client begins with [`ToTool::Hello`]. The tool answers with [`FromTool::Hello`] once it is connected, or with
//! [`FromTool::Failed`]; [`FromTool::Starting`] may come before. From then on each [`ToolRequest`] has a number, and its
//! answer comes in parts. Nested PMIx values are sent as a flat list of [`Line`]s with their depth, so that no reader
//! recurses.

use serde::{Deserialize, Serialize};

use crate::wire::fuzz;

/// The version of these messages: both sides must have the same.
pub const TOOL_VERSION: u16 = 2;
/// The deepest a line can be.
pub const DEPTH_MAX: u8 = 12;
/// Maximum length of a value's text, in bytes. A longer text is truncated.
pub const TEXT_BYTES_MAX: usize = 256 << 10;
/// Maximum number of bytes of input that one message carries.
pub const INPUT_BYTES_MAX: usize = 64 << 10;

/// A message to a tool process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToTool {
    /// The first message.
    Hello {
        /// The version of the messages: [`TOOL_VERSION`].
        version: u16,
    },
    /// A request.
    ToolRequest {
        /// Number of the request, which the answer repeats.
        number: u32,
        /// The request itself.
        ask: ToolRequest,
    },
}

/// Processes of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobPart {
    /// The job's namespace.
    pub namespace: String,
    /// The rank, or one of the standard's special ones: [`RANK_ALL`](crate::names::RANK_ALL).
    pub rank: u32,
}

/// A request to a tool: one call of PMIx.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToolRequest {
    /// `PMIx_Query_info` for one key: one that a server does not know makes a query of several fail.
    Query {
        /// The key to query.
        key: String,
        /// Qualifiers of the query.
        attributes: Vec<Attribute>,
    },
    /// `PMIx_Get`.
    Get {
        /// The processes whose value is read.
        of: JobPart,
        /// Key of the value.
        key: String,
    },
    /// `PMIx_Log_nb`.
    Log {
        /// The key of the channel: `pmix.log.stderr`, say.
        channel: String,
        /// The text to log.
        text: String,
        /// True if it is an error that the server has no such channel.
        is_required: bool,
    },
    /// `PMIx_Register_event_handler`: from the answer on, [`FromTool::Event`] comes.
    Events {
        /// Codes of the events.
        codes: Vec<i32>,
    },
    /// `PMIx_Spawn`; the answer is a line with the namespace.
    Spawn {
        /// Number of processes to start.
        count: u32,
        /// The program and its arguments.
        words: Vec<String>,
        /// Working directory of the program.
        folder: String,
        /// Environment variables of the program, each `NAME=VALUE`.
        environment: Vec<String>,
        /// Further attributes of the job.
        attributes: Vec<Attribute>,
    },
    /// `PMIx_IOF_pull`: from the answer on, [`FromTool::Output`] comes.
    Pull {
        /// The processes whose output is read.
        of: JobPart,
    },
    /// `PMIx_IOF_push`.
    Push {
        /// The processes that receive the input.
        to: JobPart,
        /// The bytes, [`INPUT_BYTES_MAX`] at most; none where the input ends.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// `PMIx_Job_control`.
    Control {
        /// The processes to control.
        of: JobPart,
        /// The action, as attributes.
        attributes: Vec<Attribute>,
    },
}

/// A named attribute of a call: a directive or a qualifier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attribute {
    /// Key of the attribute.
    pub key: String,
    /// Value of the attribute.
    pub value: AttributeValue,
    /// True if a server that does not know the attribute must fail the call; otherwise it ignores the attribute.
    pub is_required: bool,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum AttributeValue {
    /// A yes or no.
    Flag(bool),
    /// A C `int`.
    Number(i32),
    /// 32 bits without a sign.
    Unsigned(u32),
    /// A rank.
    Rank(u32),
    /// A text.
    Text(String),
}

/// A message from a tool process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FromTool {
    /// The answer to [`ToTool::Hello`]: the tool is connected. Only [`Starting`](Self::Starting) can come before.
    Hello {
        /// The version of the messages: [`TOOL_VERSION`].
        version: u16,
        /// Name and version of the loaded library.
        library: String,
    },
    /// The server has no job yet, and would end if the tool left: the tool waits for that job, also after the end
    /// of its parent, and [`Hello`](Self::Hello) follows.
    Starting,
    /// The tool failed; the last message.
    Failed {
        /// The reason, on one line.
        text: String,
    },
    /// A part of an answer.
    Part {
        /// Number of the request that is answered.
        number: u32,
        /// The lines of this part.
        lines: Vec<Line>,
    },
    /// An answer is over.
    Done {
        /// Number of the request that is answered.
        number: u32,
        /// The call's status; 0 for success.
        status: i32,
    },
    /// An event has occurred.
    Event {
        /// Code of the event: a PMIx status.
        status: i32,
        /// The process that reported the event.
        source: JobPart,
        /// The event's attributes.
        lines: Vec<Line>,
    },
    /// A process has written output.
    Output {
        /// The process that has written the output.
        of: JobPart,
        /// The stream: one of PMIx's channel bits.
        channel: u16,
        /// The output, never empty. The end of a stream is not reported.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
}

/// A value, or the head of a nested one, whose parts are the deeper lines that follow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Nesting depth of the value, at most [`DEPTH_MAX`].
    pub depth: u8,
    /// Key of the value; empty for an element of an array.
    pub key: String,
    /// The value.
    pub value: Datum,
}

/// A value of PMIx.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Datum {
    /// No value.
    Nothing,
    /// A yes or no.
    Flag(bool),
    /// A number.
    Signed(i64),
    /// A number without a sign.
    Unsigned(u64),
    /// A number with a fraction.
    Real(f64),
    /// A text.
    Text(String),
    /// The length of a byte string; its contents are not passed on.
    Bytes(u64),
    /// Seconds and microseconds.
    Time(i64, i64),
    /// A rank, which may be a special one.
    Rank(u32),
    /// A status.
    Status(i32),
    /// The name of a constant of the PMIx standard: a state, a scope or the like.
    Word(String),
    /// A process.
    Process(JobPart),
    /// An entry of a process table.
    ProcessInfo {
        /// The process of the entry.
        of: JobPart,
        /// Host of the process.
        host: String,
        /// Program of the process.
        program: String,
        /// Pid of the process on its host.
        pid: i32,
        /// Exit code of the process, where it has ended.
        exit_code: i32,
        /// State of the process, as PMIx numbers it.
        state: u8,
    },
    /// Head of an array of this many elements. The elements follow, one level deeper.
    Array(u64),
    /// A value of this PMIx type, which is not decoded.
    Opaque(u16),
}

/// Feeds arbitrary bytes to the readers of both sides.
pub fn fuzz_tool(bytes: &[u8]) {
    fuzz::<ToTool>(bytes);
    fuzz::<FromTool>(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Frames, frame};

    #[test]
    fn encoded_messages_decode_unchanged() {
        let of = JobPart {
            namespace: "a@1".to_owned(),
            rank: 1,
        };
        let lines = vec![
            Line {
                depth: 0,
                key: "pmix.qry.ptable".to_owned(),
                value: Datum::Array(1),
            },
            Line {
                depth: 1,
                key: String::new(),
                value: Datum::ProcessInfo {
                    of: of.clone(),
                    host: "h".to_owned(),
                    program: "/bin/sh".to_owned(),
                    pid: 7,
                    exit_code: 0,
                    state: 5,
                },
            },
        ];
        let all = [
            FromTool::Part { number: 1, lines },
            FromTool::Done {
                number: 1,
                status: -47,
            },
            FromTool::Output {
                of,
                channel: 2,
                bytes: b"a\n".to_vec(),
            },
        ];
        let mut frames = Frames::default();
        for message in &all {
            let bytes = frame(message).unwrap();
            fuzz_tool(&bytes);
            frames.push(&bytes);
        }
        for message in all {
            assert_eq!(frames.take(), Ok(Some(message)));
        }
    }
}
