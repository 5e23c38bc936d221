//! The requests `scopes` and `variables`.

use std::collections::BTreeMap;
use std::sync::Arc;

use sdm_debug::reply::VarObject;
use sdm_debug::{Command, Reply};
use sdm_idset::IdSet;
use sdm_view::render::value_text;
use serde_json::{Value, json};

use crate::answers::Answers;
use crate::arguments::{FrameArguments, VariablesArguments};
use crate::connection::Connection;
use crate::error::{Handled, RequestError};
use crate::jobs::Purpose;
use crate::member_expressions::{ParentValue, WholeKind};
use crate::message::Request;
use crate::references::{FrameHandle, Node, ScopeKind};
use crate::values::{OneValue, REAL_TYPE, Variables, has_parts, set_name, type_name};

/// Maximum number of parts requested at once; also their number if the client gives none.
const PARTS_MAX: u32 = 1000;
/// Maximum number of variables of a scope whose types are requested: each is a question to gdb.
const TYPES_MAX: usize = 256;

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
        type_name,
    } = node
    else {
        return Err(RequestError::Reference(id));
    };
    let whole = ParentValue {
        expression: Some(expression.clone()),
        kind,
        type_name,
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
        commands.push((tasks.clone(), type_of(&expression)));
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
            // gdb lists the innermost block first. Its variable hides others of the name, which no expression reaches.
            let is_hidden = *place > 0;
            // An address in a register has no type, so no parts.
            let has_type = *kind != ScopeKind::Registers || text.starts_with('{');
            let opens = has_parts(&text) && has_type && !is_hidden;
            let node = opens.then(|| Node::Expression {
                frame: Some(frame.clone()),
                tasks: tasks.clone(),
                expression: expression.clone(),
                object: None,
                kind: WholeKind::of_text(&text),
                type_name: String::new(),
            });
            let value = OneValue {
                tasks: tasks.clone(),
                text,
                node,
            };
            let added = variables.add(name, *place, value);
            added.evaluate_name = Some(expression).filter(|_| !is_hidden);
            *place += 1;
        }
    }
    add_others(&mut variables, last);
    let names: Vec<String> = variables
        .named()
        .take(TYPES_MAX)
        .map(str::to_owned)
        .collect();
    let has_types = connection.client.supports_variable_type && *kind != ScopeKind::Registers;
    if !has_types || names.is_empty() {
        show_variables(connection, request, variables);
        return;
    }
    let mut commands = frame.select();
    commands.extend(
        names
            .iter()
            .map(|name| (frame.tasks.clone(), type_of(name))),
    );
    let purpose = Purpose::Types {
        request: request.clone(),
        listed: Box::new((variables, names)),
    };
    connection.begin_job(purpose, commands);
}

/// The command for the type of an expression.
pub(super) fn type_of(expression: &str) -> Command {
    Command::TypeOf {
        expression: expression.to_owned(),
        full: false,
    }
}

/// The type in the answers to [`type_of`]; `None` if tasks have different ones.
pub(super) fn one_type(answers: &Answers) -> Option<&str> {
    let mut types = answers.replies().filter_map(|(_, reply)| match reply {
        Reply::Text(text) => Some(type_name(text)),
        _ => None,
    });
    let first = types.next()?;
    types.all(|other| other == first).then_some(first)
}

/// True for gdb's text of a type where the object is of a class that is derived from it.
fn is_of_another_type(reply: &Reply) -> bool {
    matches!(reply, Reply::Text(text) if text.contains(REAL_TYPE))
}

pub(super) fn finish_types(
    connection: &mut Connection,
    request: &Request,
    (mut variables, names): (Variables, Vec<String>),
    answers: &[Answers],
) {
    for (name, answers) in names.iter().rev().zip(answers.iter().rev()) {
        if let Some(of) = one_type(answers) {
            variables.set_type(name, of);
        }
    }
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
    let asked = request.read::<VariablesArguments>().ok();
    let is_piece = asked.as_ref().and_then(|it| it.count) > Some(0);
    let made = answers.iter().flat_map(Answers::replies);
    let made = made.filter_map(|(_, reply)| match reply {
        Reply::VarObject(object) if !object.pretty => Some(object),
        _ => None,
    });
    let mut whole = whole.clone();
    if let (Some(object), Some(asked)) = (made.last(), asked) {
        let is_other = |it: &Answers| it.replies().any(|(_, reply)| is_of_another_type(reply));
        whole.kind = match WholeKind::of(object) {
            WholeKind::Reference if whole.is_variable() && !answers.iter().any(is_other) => {
                WholeKind::Plain
            }
            kind => kind,
        };
        whole.type_name.clone_from(&object.type_name);
        connection
            .references
            .note_type(asked.variables_reference, &whole);
    }
    let mut variables = Variables::default();
    for (tasks, reply) in last.replies() {
        let Reply::VarChildren { children, more } = reply else {
            continue;
        };
        let of = whole.with_parts(children);
        for (number, child) in (from..).zip(children) {
            let name = add_part(&mut variables, tasks, (child, number), &of);
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

/// Adds a part of a value for some tasks, with its number among the parts; returns its name.
fn add_part(
    variables: &mut Variables,
    tasks: &IdSet,
    (child, number): (&VarObject, u32),
    whole: &ParentValue,
) -> String {
    let text = value_text(&child.value);
    let part = whole.part(child, number);
    // In its place gdb shows the object behind a pointer of Rust.
    let expression = part
        .expression
        .clone()
        .filter(|_| part.kind != WholeKind::RustPointer);
    // gdb does not count the parts that a pretty-printer makes until they are requested.
    let has_below = child.children > 0 || child.more || (child.pretty && has_parts(&text));
    let is_null = text == "0x0";
    let node = (has_below && !is_null).then(|| Node::Part {
        tasks: tasks.clone(),
        object: child.name.clone(),
        from: 0,
        whole: part,
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
