//! The attributes that every resource manager has ("Pre-defined Attributes"), in the document's order.

use super::states::{self, States};
use super::value::{AttributeDefinition, AttributeType, Value};

/// How many there are.
pub(super) const COUNT: usize = 2 + 4 + 2 + 1 + 3 + 14 + 8;

/// Id, values, name and description.
const ALL: [Row; COUNT] = [
    ("id", Form::Text, "ID", "The element's id"),
    (
        "name",
        Form::Text,
        "Name",
        "The element's name, which others may have too",
    ),
    (
        "rmState",
        Form::Word(&states::MANAGER),
        "State",
        "State of the resource manager",
    ),
    (
        "rmDescription",
        Form::Text,
        "Description",
        "What the resource manager is",
    ),
    ("rmType", Form::Text, "Type", "The kind of resource manager"),
    (
        "rmID",
        Form::Text,
        "Resource manager",
        "What the resource manager is called for good",
    ),
    (
        "machineState",
        Form::Word(&states::MACHINE),
        "State",
        "State of the machine",
    ),
    (
        "numNodes",
        Form::Integer(0),
        "Nodes",
        "How many nodes the machine has",
    ),
    (
        "queueState",
        Form::Word(&states::QUEUE),
        "State",
        "State of the queue",
    ),
    (
        "nodeState",
        Form::Word(&states::NODE),
        "State",
        "State of the node",
    ),
    (
        "nodeExtraState",
        Form::Word(&states::NODE_EXTRA),
        "Use",
        "Who has the node, or what its processes do",
    ),
    (
        "nodeNumber",
        Form::Integer(0),
        "Number",
        "Zero-based index of the node",
    ),
    (
        "jobState",
        Form::Word(&states::JOB),
        "State",
        "State of the job",
    ),
    (
        "jobSubId",
        Form::Text,
        "Submission",
        "What the job was called when it was submitted",
    ),
    ("jobId", Form::Text, "Job", "ID of the job in commands"),
    ("queueId", Form::Text, "Queue", "ID of the job's queue"),
    (
        "jobNumProcs",
        Form::Integer(0),
        "Processes",
        "How many processes the job has",
    ),
    ("execName", Form::Text, "Program", "Name of the executable"),
    ("execPath", Form::Text, "Path", "Folder of the executable"),
    ("workingDir", Form::Text, "Directory", "Where the job runs"),
    (
        "progArgs",
        Form::Array,
        "Arguments",
        "The program's arguments",
    ),
    (
        "env",
        Form::Array,
        "Environment",
        "Variables of the environment",
    ),
    (
        "debugExecName",
        Form::Text,
        "Debugger",
        "Name of the debugger",
    ),
    (
        "debugExecPath",
        Form::Text,
        "Debugger's path",
        "Folder of the debugger",
    ),
    (
        "debugArgs",
        Form::Array,
        "Debugger's arguments",
        "The debugger's arguments",
    ),
    (
        "debug",
        Form::Boolean,
        "Debug",
        "Whether the job runs under a debugger",
    ),
    (
        "processState",
        Form::Word(&states::PROCESS),
        "State",
        "State of the process",
    ),
    (
        "processPID",
        Form::Integer(0),
        "PID",
        "The operating system's id of the process",
    ),
    (
        "processExitCode",
        Form::Integer(i64::MIN),
        "Exit code",
        "What the process ended with",
    ),
    (
        "processSignalName",
        Form::Text,
        "Signal",
        "The signal that ended the process",
    ),
    (
        "processIndex",
        Form::Integer(0),
        "Index",
        "Zero-based index of the process",
    ),
    (
        "processStdout",
        Form::Text,
        "Output",
        "What the process has printed",
    ),
    (
        "processStderr",
        Form::Text,
        "Errors",
        "What the process has printed as errors",
    ),
    (
        "processNodeId",
        Form::Text,
        "Node",
        "ID of the node that the process is on",
    ),
];

pub(super) fn definitions() -> Vec<AttributeDefinition> {
    ALL.into_iter().map(definition).collect()
}

enum Form {
    Array,
    Boolean,
    /// Its least value.
    Integer(i64),
    Text,
    Word(&'static States),
}

type Row = (&'static str, Form, &'static str, &'static str);

fn definition((id, kind, name, description): Row) -> AttributeDefinition {
    let mut default = None;
    let kind = match kind {
        Form::Array => AttributeType::Array,
        Form::Boolean => {
            default = Some(Value::Boolean(false));
            AttributeType::Boolean
        }
        Form::Integer(min) => AttributeType::Integer(min, i64::MAX),
        Form::Text => AttributeType::String,
        Form::Word(states) => {
            default = Some(Value::Enumerated(states.default.to_owned()));
            let words = states.words.iter().map(|word| (*word).to_owned());
            AttributeType::Enumerated(words.collect())
        }
    };
    AttributeDefinition {
        id: id.to_owned(),
        kind,
        name: name.to_owned(),
        description: description.to_owned(),
        default,
        // What a process has printed is shown where its output is, and the environment is long.
        display: !matches!(id, "processStdout" | "processStderr" | "env"),
    }
}
