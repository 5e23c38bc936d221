//! Requests that need a single answer: changed values, memory, instructions, modules, completions, exceptions.

use sdm_debug::reply::{CatchHit, MEMORY_BYTES_MAX, StopReason, call_of};
use sdm_debug::{Command, Reply};
use sdm_idset::IdSet;
use sdm_shell::commands::{CompletionKind, completions};
use sdm_view::render::{stopped as stop_text, value_text};
use serde_json::{Value, json};

use super::goto;
use crate::answers::Answers;
use crate::arguments::{
    AssignArguments, CompletionsArguments, FrameArguments, MemoryArguments, ThreadArguments,
};
use crate::connection::Connection;
use crate::error::{Handled, RequestError};
use crate::jobs::Question;
use crate::memory;
use crate::message::Request;
use crate::references::{FrameHandle, Node};

/// Maximum number of completions of one word.
const WORDS_MAX: usize = 500;

/// Assigns to an expression in a frame, and requests the resulting value.
fn assign(
    connection: &mut Connection,
    request: &Request,
    frame: Option<&FrameHandle>,
    tasks: &IdSet,
    (left, right): (&str, &str),
) {
    let mut commands = frame.map(FrameHandle::select).unwrap_or_default();
    let expression = format!("{left} = {right}");
    commands.push((tasks.clone(), Command::SetVariable { expression }));
    let expression = left.to_owned();
    commands.push((tasks.clone(), Command::Evaluate { expression }));
    connection.ask(request, Question::Assigned, commands);
}

pub(super) fn set_variable(connection: &mut Connection, request: &Request) -> Handled {
    let arguments: AssignArguments = request.read()?;
    let id = arguments.variables_reference;
    let node = connection.references.node(id);
    let node = node.cloned().ok_or(RequestError::Reference(id))?;
    let (name, value) = (arguments.name, arguments.value);
    match node {
        Node::Scope { frame, kind } => {
            let tasks = frame.tasks.clone();
            let pair = (&*kind.expression(&name), &*value);
            assign(connection, request, Some(&frame), &tasks, pair);
        }
        Node::Values(values) => {
            let named = |tasks: &IdSet| crate::values::set_name(tasks) == name;
            let found = values.into_iter().find(|(tasks, _, _)| named(tasks));
            match found {
                Some((tasks, _, Some(node))) => match *node {
                    Node::Expression {
                        frame, expression, ..
                    } => {
                        let pair = (expression.as_str(), value.as_str());
                        assign(connection, request, frame.as_deref(), &tasks, pair);
                    }
                    Node::Part { object, .. } => {
                        let command = Command::VarAssign {
                            name: object,
                            value,
                        };
                        connection.ask(request, Question::Assigned, vec![(tasks, command)]);
                    }
                    _ => return Err(cannot_assign(&name)),
                },
                _ => return Err(cannot_assign(&name)),
            }
        }
        Node::Part { tasks, object, .. } => {
            let object = connection.references.part(&object, &name);
            let object = object.ok_or_else(|| cannot_assign(&name))?;
            let command = Command::VarAssign {
                name: object,
                value,
            };
            connection.ask(request, Question::Assigned, vec![(tasks, command)]);
        }
        Node::Expression { tasks, object, .. } => {
            let object = object.and_then(|object| connection.references.part(&object, &name));
            let object = object.ok_or_else(|| cannot_assign(&name))?;
            let command = Command::VarAssign {
                name: object,
                value,
            };
            connection.ask(request, Question::Assigned, vec![(tasks, command)]);
        }
    }
    Ok(None)
}

fn cannot_assign(name: &str) -> RequestError {
    RequestError::Tasks(format!(
        "{name} cannot be set here; use `set var` in the debug console"
    ))
}

pub(super) fn set_expression(connection: &mut Connection, request: &Request) -> Handled {
    let arguments: AssignArguments = request.read()?;
    let pair = (arguments.expression.as_str(), arguments.value.as_str());
    match arguments.frame_id {
        Some(id) => {
            let frame = connection.references.frame(id);
            let frame = frame.cloned().ok_or(RequestError::Frame(id))?;
            let tasks = frame.tasks.clone();
            assign(connection, request, Some(&frame), &tasks, pair);
        }
        None => {
            let tasks = connection.focused();
            assign(connection, request, None, &tasks, pair);
        }
    }
    Ok(None)
}

fn start(arguments: &MemoryArguments) -> Result<u64, RequestError> {
    let reference = &arguments.memory_reference;
    let address = memory::address(reference).ok_or_else(|| memory::no_address(reference))?;
    Ok(address.wrapping_add_signed(arguments.offset))
}

pub(super) fn read_memory(connection: &mut Connection, request: &Request) -> Handled {
    let arguments: MemoryArguments = request.read()?;
    let start = start(&arguments)?;
    let length = u32::try_from(arguments.count).unwrap_or(0);
    let length = length.min(MEMORY_BYTES_MAX);
    let count = u64::try_from(arguments.count).unwrap_or(0);
    if length == 0 {
        return Ok(Some(memory::read(start, count, &[])));
    }
    let command = Command::MemoryRead {
        address: format!("{start:#x}"),
        length,
    };
    let commands = vec![(connection.one()?, command)];
    connection.ask(request, Question::Memory { start, count }, commands);
    Ok(None)
}

pub(super) fn write_memory(connection: &mut Connection, request: &Request) -> Handled {
    let arguments: MemoryArguments = request.read()?;
    let bytes = memory::decode(&arguments.data)?;
    if bytes.len() > MEMORY_BYTES_MAX as usize {
        let text = format!("at most {MEMORY_BYTES_MAX} bytes can be written at once");
        return Err(RequestError::Tasks(text));
    }
    let count = bytes.len();
    let command = Command::MemoryWrite {
        address: format!("{:#x}", start(&arguments)?),
        bytes,
    };
    let commands = vec![(connection.one()?, command)];
    connection.ask(request, Question::Written { count }, commands);
    Ok(None)
}

pub(super) fn disassemble(connection: &mut Connection, request: &Request) -> Handled {
    let arguments: MemoryArguments = request.read()?;
    let address = start(&arguments)?;
    let count = usize::try_from(arguments.instruction_count).unwrap_or(0);
    let command = Command::Disassemble {
        address: Some(format!("{address:#x}")),
    };
    let question = Question::Instructions {
        address,
        offset: arguments.instruction_offset,
        count: count.min(memory::INSTRUCTIONS_MAX),
    };
    let commands = vec![(connection.one()?, command)];
    connection.ask(request, question, commands);
    Ok(None)
}

pub(super) fn modules(connection: &mut Connection, request: &Request) -> Handled {
    let tasks = connection.focused();
    if tasks.is_empty() {
        return Ok(Some(json!({"modules": [], "totalModules": 0})));
    }
    let commands = vec![(tasks, Command::Libraries)];
    connection.ask(request, Question::Modules, commands);
    Ok(None)
}

/// Completions of the last word typed into the debug console.
pub(super) fn completions_of(connection: &mut Connection, request: &Request) -> Handled {
    let arguments: CompletionsArguments = request.read()?;
    let base = i64::from(connection.client.columns_start_at1);
    let typed = usize::try_from(arguments.column.saturating_sub(base)).unwrap_or(0);
    let typed: String = arguments.text.chars().take(typed).collect();
    let question = |at: usize, head: usize| Question::Words {
        start: typed.get(..at).map_or(0, |before| before.chars().count()),
        length: typed
            .get(at..)
            .map_or(0, |argument| argument.chars().count()),
        head,
    };
    match completions(&typed, &[]) {
        CompletionKind::Words(at, words) if !words.is_empty() => Ok(Some(targets(
            &question(at, 0),
            words.iter().map(String::as_str),
        ))),
        CompletionKind::Words(..) | CompletionKind::File(_) => {
            // The text may be an expression: its last word is completed.
            let is_name = |c: char| c.is_alphanumeric() || "_.>-".contains(c);
            let at = typed.trim_end_matches(is_name).len();
            let line = format!("print {}", &typed[at..]);
            let question = question(at, "print ".len());
            ask_for_words(connection, request, question, &line)
        }
        CompletionKind::Program(at, line) => {
            let argument = typed.len().saturating_sub(at);
            let head = line.len() - argument.min(line.len());
            let question = question(at, head);
            ask_for_words(connection, request, question, &line)
        }
    }
}

fn ask_for_words(
    connection: &mut Connection,
    request: &Request,
    question: Question,
    line: &str,
) -> Handled {
    let Ok(one) = connection.one() else {
        return Ok(Some(json!({"targets": []})));
    };
    let command = Command::Console {
        line: format!("complete {line}"),
    };
    connection.ask(request, question, vec![(one, command)]);
    Ok(None)
}

fn targets<'a>(question: &Question, words: impl Iterator<Item = &'a str>) -> Value {
    let Question::Words { start, length, .. } = question else {
        return json!({"targets": []});
    };
    let targets = words
        .take(WORDS_MAX)
        .map(|word| json!({"label": word, "text": word, "start": start, "length": length}));
    json!({"targets": targets.collect::<Vec<_>>()})
}

/// Refuses `source`, since the client reads source files itself.
pub(super) fn source(_connection: &mut Connection, _request: &Request) -> Handled {
    let text = "the file exists on the hosts of the job, but not on the host of the editor";
    Err(RequestError::Tasks(text.to_owned()))
}

/// Handles `exceptionInfo`: the signal, finding or event at which a thread has stopped.
pub(super) fn exception_info(connection: &mut Connection, request: &Request) -> Handled {
    let arguments: ThreadArguments = request.read()?;
    let id = arguments.thread_id;
    let row = connection.row(id)?;
    let standing = row.group.standing.as_ref();
    let standing = standing.ok_or_else(|| RequestError::Runs(format!("thread {id}")))?;
    let name = match &standing.stop.reason {
        StopReason::Signal { name, .. } => name,
        StopReason::Internal { what } => call_of(what),
        StopReason::Finding(finding) => &finding.kind,
        StopReason::Core { signal, .. } => signal,
        StopReason::Catch { hit, .. } => match hit {
            CatchHit::Signal { name } => name,
            CatchHit::Exception { stage } => stage,
            CatchHit::Fork => "fork",
            CatchHit::Vfork => "vfork",
            CatchHit::Exec { .. } => "exec",
            _ => "catchpoint",
        },
        _ => "stop",
    };
    Ok(Some(json!({
        "exceptionId": name,
        "description": stop_text(&standing.stop),
        "breakMode": "always",
    })))
}

/// Handles `sdm/ranks`: the tasks of a frame, of each thread and of each state, for editors that display them.
pub(super) fn ranks(connection: &mut Connection, request: &Request) -> Handled {
    let arguments: FrameArguments = request.read()?;
    let rows = connection.rows.iter().map(|row| {
        json!({
            "threadId": row.id,
            "ranks": row.group.tasks.to_string(),
            "count": row.group.tasks.len(),
            "name": row.group.name(connection.rows.is_by_rank()),
            "running": row.group.tasks.is_subset(&connection.tasks.running()),
        })
    });
    let frame = connection.references.frame(arguments.frame_id);
    let frame = frame.map(|frame| frame.tasks.to_string());
    Ok(Some(json!({
        "all": connection.tasks.all().to_string(),
        "running": connection.tasks.running().to_string(),
        "stopped": connection.tasks.standing().to_string(),
        "frame": frame,
        "threads": rows.collect::<Vec<_>>(),
    })))
}

/// Answers the request after all its commands.
pub(super) fn finish_ask(
    connection: &mut Connection,
    request: &Request,
    question: &Question,
    answers: &[Answers],
) {
    let body = answer(connection, question, answers);
    match body {
        Some(body) => connection.write(request.response(body)),
        None => {
            let why = answers.iter().find_map(Answers::complaint);
            let why = why.unwrap_or_else(|| "no answer".to_owned());
            connection.write(request.refusal(&RequestError::Tasks(why)));
        }
    }
}

fn answer(connection: &mut Connection, question: &Question, answers: &[Answers]) -> Option<Value> {
    let last = answers.last()?;
    let mut replies = last.replies();
    match question {
        Question::Assigned => {
            // If the assignment failed, the value could still be read, so its own answer counts.
            let assigned = answers
                .iter()
                .rev()
                .nth(1)
                .is_none_or(Answers::is_done_by_any);
            let values = replies.filter_map(|(tasks, reply)| match reply {
                Reply::Value(value) => Some((tasks, value_text(value))),
                _ => None,
            });
            let values: Vec<_> = values.collect();
            if connection.client.supports_invalidated_event {
                connection.event("invalidated", json!({"areas": ["variables"]}));
            }
            match values.as_slice() {
                _ if !assigned => None,
                [] => None,
                [(_, value)] => Some(json!({"value": value, "variablesReference": 0})),
                several => {
                    let named = several.iter().map(|(tasks, value)| {
                        format!("{value} {}", crate::values::set_name(tasks))
                    });
                    let text = named.collect::<Vec<_>>().join(", ");
                    Some(json!({"value": text, "variablesReference": 0}))
                }
            }
        }
        Question::Memory { start, count } => replies.find_map(|(_, reply)| match reply {
            Reply::Memory(blocks) => Some(memory::read(*start, *count, blocks)),
            _ => None,
        }),
        Question::Written { count } => last
            .is_done_by_any()
            .then(|| json!({"bytesWritten": count})),
        Question::Instructions {
            address,
            offset,
            count,
        } => replies.find_map(|(_, reply)| match reply {
            Reply::Instructions(known) => {
                Some(memory::instructions(known, *address, *offset, *count))
            }
            _ => None,
        }),
        Question::Modules => Some(modules_of(last)),
        Question::Sources => last.is_done_by_any().then(|| goto::sources(last)),
        Question::Target(location) => Some(goto::targets(connection, location, last)),
        Question::Words { head, .. } => {
            let text = replies.find_map(|(_, reply)| match reply {
                Reply::Text(text) => Some(text.as_str()),
                _ => None,
            });
            let words = text.unwrap_or_default().lines();
            let words = words.filter_map(|line| line.get(*head..));
            Some(targets(question, words))
        }
    }
}

fn modules_of(answers: &Answers) -> Value {
    let mut modules: Vec<Value> = Vec::new();
    for (_, reply) in answers.replies() {
        let Reply::Libraries(libraries) = reply else {
            continue;
        };
        for library in libraries {
            let name = library.path.rsplit('/').next().unwrap_or_default();
            let symbols = match library.symbols {
                true => "Symbols loaded",
                false => "Symbols not found",
            };
            let module = json!({
                "id": library.path,
                "name": name,
                "path": library.path,
                "symbolStatus": symbols,
            });
            if !modules.contains(&module) {
                modules.push(module);
            }
        }
    }
    let total = modules.len();
    json!({"modules": modules, "totalModules": total})
}
