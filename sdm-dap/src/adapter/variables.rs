//! The requests `scopes`, `variables` and `evaluate`.

use std::collections::BTreeMap;
use std::sync::Arc;

use sdm_debug::reply::VarObject;
use sdm_debug::{Command, Reply};
use sdm_idset::IdSet;
use sdm_view::render::value_text;
use serde_json::{Value, json};

use super::{prompt, restart, run_control};
use crate::answers::Answers;
use crate::arguments::{EvaluateArguments, FrameArguments, VariablesArguments};
use crate::connection::{Connection, Phase, Role};
use crate::error::{Handled, RequestError, early};
use crate::jobs::Purpose;
use crate::member_expressions::{ParentValue, WholeKind};
use crate::memory;
use crate::message::Request;
use crate::references::{FrameHandle, Node, ScopeKind};
use crate::repl::{self, LineCommand, LineRequest};
use crate::values::{OneValue, Variables, has_parts, set_name};

/// Number of parts requested at once unless the client says otherwise.
const PARTS_MAX: u32 = 1000;

pub(super) fn scopes(connection: &mut Connection, request: &Request) -> Handled {
    let arguments: FrameArguments = request.read()?;
    let id = arguments.frame_id;
    let frame = connection
        .references
        .frame(id)
        .ok_or(RequestError::Frame(id))?;
    let frame = frame.clone();
    let mut scope = |name: &str, hint: &str, kind, expensive: bool| {
        let frame = frame.clone();
        let reference = connection.references.add(Node::Scope { frame, kind });
        json!({
            "name": name,
            "presentationHint": hint,
            "variablesReference": reference,
            "expensive": expensive,
        })
    };
    let scopes = [
        scope("Arguments", "arguments", ScopeKind::Arguments, false),
        scope("Locals", "locals", ScopeKind::Locals, false),
        scope("Registers", "registers", ScopeKind::Registers, true),
    ];
    Ok(Some(json!({"scopes": scopes})))
}

pub(super) fn variables(connection: &mut Connection, request: &Request) -> Handled {
    let arguments: VariablesArguments = request.read()?;
    let id = arguments.variables_reference;
    let node = connection
        .references
        .node(id)
        .ok_or(RequestError::Reference(id))?;
    match node.clone() {
        Node::Values(values) => {
            let rows = values.into_iter().map(|(tasks, text, node)| {
                let below = node.map_or(0, |node| connection.references.add(node.among(&tasks)));
                json!({"name": set_name(&tasks), "value": text, "variablesReference": below})
            });
            let rows: Vec<Value> = rows.collect();
            return Ok(Some(json!({"variables": rows})));
        }
        Node::Scope { frame, kind } => {
            let command = match kind {
                ScopeKind::Arguments => Command::Arguments,
                ScopeKind::Locals => Command::Locals,
                ScopeKind::Registers => Command::Registers {
                    names: Vec::new(),
                    format: sdm_debug::command::ValueFormat::Natural,
                },
            };
            let mut commands = frame.select();
            commands.push((frame.tasks.clone(), command));
            let request = request.clone();
            let scope = (frame, kind);
            connection.begin_job(Purpose::Scope { request, scope }, commands);
        }
        Node::Part {
            tasks,
            object,
            from,
            whole,
        } => {
            ask_parts(
                connection,
                request,
                Vec::new(),
                (tasks, object, from),
                whole,
            )?;
        }
        node @ Node::Expression { .. } => open_expression(connection, request, (id, node))?,
    }
    Ok(None)
}

/// Requests the parts of an expression's value, by a variable object for it.
fn open_expression(
    connection: &mut Connection,
    request: &Request,
    (id, node): (i64, Node),
) -> Result<(), RequestError> {
    let Node::Expression {
        frame,
        tasks,
        expression,
        object,
        kind,
    } = node
    else {
        return Err(RequestError::Reference(id));
    };
    let whole = ParentValue {
        expression: Some(expression.clone()),
        kind,
    };
    let mut commands = Vec::new();
    let known = object.is_some();
    let name = object.or_else(|| connection.references.name_object(id));
    let Some(name) = name else {
        return Err(RequestError::Reference(id));
    };
    if !known {
        commands = frame
            .as_deref()
            .map(FrameHandle::select)
            .unwrap_or_default();
        let create = Command::VarCreate {
            name: name.clone(),
            expression,
        };
        commands.push((tasks.clone(), create));
    }
    ask_parts(connection, request, commands, (tasks, name, 0), whole)
}

/// Requests parts of a variable object from a first index on, after other commands.
fn ask_parts(
    connection: &mut Connection,
    request: &Request,
    mut commands: Vec<(IdSet, Command)>,
    (tasks, object, from): (IdSet, String, u32),
    whole: ParentValue,
) -> Result<(), RequestError> {
    let arguments: VariablesArguments = request.read()?;
    let number = |number: Option<i64>| number.and_then(|number| u32::try_from(number).ok());
    let count = number(arguments.count).filter(|count| *count > 0);
    let from = from.saturating_add(number(arguments.start).unwrap_or(0));
    let name = object.clone();
    let count = count.unwrap_or(PARTS_MAX).min(PARTS_MAX);
    commands.push((tasks, Command::VarChildren { name, from, count }));
    let purpose = Purpose::Parts {
        request: request.clone(),
        object,
        from,
        whole,
    };
    connection.begin_job(purpose, commands);
    Ok(())
}

pub(super) fn finish_scope(
    connection: &mut Connection,
    request: &Request,
    (frame, kind): &(Arc<FrameHandle>, ScopeKind),
    answers: &[Answers],
) {
    let Some(last) = answers.last() else {
        connection.write(request.response(json!({"variables": []})));
        return;
    };
    if let Some(why) = last.complaint().filter(|_| !last.is_done_by_any()) {
        connection.write(request.refusal(&RequestError::Tasks(why)));
        return;
    }
    let mut variables = Variables::default();
    for (tasks, reply) in last.replies() {
        let Reply::Variables(found) = reply else {
            continue;
        };
        // Number of variables of each name so far.
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        for variable in found {
            let name = &variable.name;
            let place = places.entry(name).or_default();
            let text = value_text(&variable.value);
            let expression = kind.expression(name);
            // An address in a register has no type, so no parts.
            let opens =
                has_parts(&text) && (*kind != ScopeKind::Registers || text.starts_with('{'));
            let node = opens.then(|| Node::Expression {
                frame: Some(frame.clone()),
                tasks: tasks.clone(),
                expression: expression.clone(),
                object: None,
                kind: WholeKind::of_text(&text),
            });
            let value = OneValue {
                tasks: tasks.clone(),
                text,
                node,
            };
            let added = variables.add(name, *place, value);
            added.evaluate_name = Some(expression);
            *place += 1;
        }
    }
    add_others(&mut variables, last);
    show_variables(connection, request, variables);
}

fn show_variables(connection: &mut Connection, request: &Request, variables: Variables) {
    let rows = variables.into_sorted();
    let rows = rows.iter();
    let rows: Vec<Value> = rows
        .map(|row| row.shown(&mut connection.references))
        .collect();
    connection.write(request.response(json!({"variables": rows})));
}

pub(super) fn finish_parts(
    connection: &mut Connection,
    request: &Request,
    (object, from): (&str, u32),
    whole: &ParentValue,
    answers: &[Answers],
) {
    let Some(last) = answers.last() else {
        connection.write(request.response(json!({"variables": []})));
        return;
    };
    if !last.is_done_by_any() {
        // The reason why the object could not be made is more useful than that it is missing.
        let complaints = answers.iter().rev().skip(1).find_map(Answers::complaint);
        let why = complaints.or_else(|| last.complaint()).unwrap_or_default();
        connection.write(request.refusal(&RequestError::Tasks(why)));
        return;
    }
    let asked = request.read::<VariablesArguments>();
    let is_piece = asked.is_ok_and(|asked| asked.count.is_some_and(|count| count > 0));
    let mut variables = Variables::default();
    for (tasks, reply) in last.replies() {
        let Reply::VarChildren { children, more } = reply else {
            continue;
        };
        for (number, child) in (from..).zip(children) {
            let name = add_part(&mut variables, tasks, (child, number), whole);
            connection.references.note_part(object, &name, &child.name);
        }
        // A client that requests a range knows the number of parts. Other clients find the rest below a row of its
        // own.
        if *more && !is_piece {
            let from = from.saturating_add(u32::try_from(children.len()).unwrap_or(u32::MAX));
            let value = OneValue {
                tasks: tasks.clone(),
                text: "more elements; expand to see them".to_owned(),
                node: Some(Node::Part {
                    tasks: tasks.clone(),
                    object: object.to_owned(),
                    from,
                    whole: whole.clone(),
                }),
            };
            variables.add(&format!("[{from}...]"), 0, value);
        }
    }
    add_others(&mut variables, last);
    show_variables(connection, request, variables);
}

pub(super) fn evaluate(connection: &mut Connection, request: &Request) -> Handled {
    let arguments: EvaluateArguments = request.read()?;
    let expression = arguments.expression.trim().to_owned();
    let frame = match arguments.frame_id {
        None => None,
        Some(id) => {
            let frame = connection.references.frame(id);
            Some(frame.cloned().ok_or(RequestError::Frame(id))?)
        }
    };
    let standing = connection.tasks.standing();
    let mut tasks = match &frame {
        Some(frame) => frame.tasks.intersection(&standing),
        None => connection.focused(),
    };
    let mut command = Command::Evaluate {
        expression: expression.clone(),
    };
    if arguments.context.as_deref() == Some("repl") {
        if prompt::wants(connection, &expression) {
            return prompt::submit(connection, request, &expression, false);
        }
        match repl::read(&expression, &connection.tasks)? {
            Some(LineCommand { tasks: whom, wish }) => {
                prompt::open(connection);
                tasks = whom.clone().unwrap_or(tasks);
                match wish {
                    LineRequest::Ask(asked) => command = *asked,
                    LineRequest::Shell(runs) => {
                        return prompt::submit(connection, request, &expression, runs);
                    }
                    wish => return carry_out(connection, request, &wish, whom),
                }
            }
            None if expression.is_empty() => return Ok(Some(said(""))),
            None => {}
        }
    }
    let expression = repl::expression(&command).map_or(expression, str::to_owned);
    if tasks.is_empty() {
        return Err(RequestError::Runs("the selected rank".to_owned()));
    }
    let mut commands = frame
        .as_deref()
        .map(FrameHandle::select)
        .unwrap_or_default();
    for (whom, _) in &mut commands {
        whom.intersect_with(&tasks);
    }
    commands.push((tasks, command));
    let purpose = Purpose::Evaluate {
        request: request.clone(),
        expression,
        frame,
    };
    connection.begin_job(purpose, commands);
    Ok(None)
}

/// Carries out a line that is neither a question nor for the shell; `whom` has the tasks that it names, if any.
pub(super) fn carry_out(
    connection: &mut Connection,
    request: &Request,
    wish: &LineRequest,
    whom: Option<IdSet>,
) -> Handled {
    match wish {
        LineRequest::Interrupt => {
            let all = connection.tasks.all().clone();
            let running = connection.tasks.running();
            let tasks = whom.unwrap_or(all).intersection(&running);
            run_control::interrupt(connection, tasks);
        }
        LineRequest::Restart(to_main) => {
            if connection.company.role != Role::Owner || connection.phase != Phase::Live {
                return Err(early(
                    &request.command,
                    "the session has no program that can be restarted",
                ));
            }
            // The restart stops at `main`, or only at breakpoints.
            connection.manner.stop_at_entry = *to_main;
            connection.write(request.response(said("")));
            restart::begin_again(connection);
            return Ok(None);
        }
        LineRequest::Ask(_) | LineRequest::Shell(_) => {}
    }
    Ok(Some(said("")))
}

pub(super) fn finish_evaluate(
    connection: &mut Connection,
    request: &Request,
    expression: &str,
    frame: Option<&Arc<FrameHandle>>,
    answers: &[Answers],
) {
    let Some(last) = answers.last() else {
        connection.write(request.response(said("")));
        return;
    };
    if let Some(console) = &connection.prompt.console {
        console.shell.note_answer(&last.all);
    }
    let values = last.replies().filter_map(|(tasks, reply)| match reply {
        Reply::Value(value) => Some((tasks, value_text(value))),
        _ => None,
    });
    let mut variables = Variables::default();
    for (tasks, text) in values {
        let node = has_parts(&text).then(|| Node::Expression {
            frame: frame.cloned(),
            tasks: tasks.clone(),
            expression: expression.to_owned(),
            object: None,
            kind: WholeKind::of_text(&text),
        });
        let tasks = tasks.clone();
        variables.add(expression, 0, OneValue { tasks, text, node });
    }
    if variables.is_empty() {
        match last.complaint().filter(|_| !last.is_done_by_any()) {
            Some(why) => connection.write(request.refusal(&RequestError::Tasks(why))),
            None => {
                let text = repl::text(last);
                let body = json!({"result": text, "variablesReference": 0});
                connection.write(request.response(body));
            }
        }
        return;
    }
    add_failures(&mut variables, expression, last);
    let variables = variables.into_sorted();
    let (text, below) = variables[0].told(&mut connection.references);
    let mut body = json!({"result": text, "variablesReference": below});
    if let Some(address) = memory::pointer(&text) {
        body["memoryReference"] = json!(address);
    }
    connection.write(request.response(body));
}

/// The response to a console line without a value.
fn said(text: &str) -> Value {
    json!({"result": text, "variablesReference": 0})
}

/// Adds a part of a value for some tasks, with its number among the parts; returns its name.
fn add_part(
    variables: &mut Variables,
    tasks: &IdSet,
    (child, number): (&VarObject, u32),
    whole: &ParentValue,
) -> String {
    let text = value_text(&child.value);
    let expression = whole.part(child, number);
    // gdb does not count the parts that a pretty-printer makes until they are requested.
    let has_below = child.children > 0 || child.more || (child.pretty && has_parts(&text));
    let node = has_below.then(|| Node::Part {
        tasks: tasks.clone(),
        object: child.name.clone(),
        from: 0,
        whole: ParentValue {
            expression: expression.clone(),
            kind: WholeKind::of(child, &text),
        },
    });
    let value = OneValue {
        tasks: tasks.clone(),
        text,
        node,
    };
    // Indices in Fortran can be negative.
    let index = child.expression.trim_start_matches('-');
    let is_index = index.starts_with(|c: char| c.is_ascii_digit());
    let name = match is_index {
        true => format!("[{}]", child.expression),
        false => child.expression.clone(),
    };
    let added = variables.add(&name, 0, value);
    added.type_name.clone_from(&child.type_name);
    added.evaluate_name = expression;
    // If an editor knows the number of elements of an array, it fetches them in pieces.
    added.indexed = (child.type_name.ends_with(']') && !child.more).then_some(child.children);
    name
}

/// Adds the tasks whose answers were too many to keep apart, and the reasons of missing answers.
fn add_others(variables: &mut Variables, answers: &Answers) {
    let others = &answers.all.others;
    if !others.is_empty() {
        let value = OneValue {
            tasks: others.clone(),
            text: "too many different values to show".to_owned(),
            node: None,
        };
        variables.add(&set_name(others), 0, value);
    }
    if let Some(why) = answers.complaint() {
        let value = OneValue {
            tasks: IdSet::new(),
            text: why,
            node: None,
        };
        variables.add("not all", 0, value);
    }
}

/// Adds the tasks that cannot evaluate the expression, with the failure as value.
fn add_failures(variables: &mut Variables, name: &str, answers: &Answers) {
    for (tasks, failure) in &answers.all.failed {
        let value = OneValue {
            tasks: tasks.clone(),
            text: format!("<{failure}>"),
            node: None,
        };
        variables.add(name, 0, value);
    }
}
