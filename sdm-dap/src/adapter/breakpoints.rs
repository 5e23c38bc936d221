//! Requests that set breakpoints, and events about their changes.

use std::collections::BTreeSet;

use sdm_debug::command::{CatchSpec, PointSpec};
use sdm_debug::reply::BreakpointPlace;
use sdm_debug::{Command, Reply};
use sdm_idset::IdSet;
use serde_json::{Value, json};

use crate::answers::Answers;
use crate::arguments::{DataInfoArguments, ExceptionArguments, PointArgument, SetPointsArguments};
use crate::breakpoint_spec;
use crate::client_breakpoints::{
    self, DATA, ENDING_FILTERS, EXCEPTION_FILTERS, EXCEPTIONS, FUNCTIONS, INSTRUCTIONS, Point,
};
use crate::connection::{Connection, Phase};
use crate::error::Handled;
use crate::error::RequestError;
use crate::jobs::{Purpose, Unanswered};
use crate::locations;
use crate::memory::{address, no_address};
use crate::message::Request;
use crate::references::{Node, ScopeKind};

/// Prefix of the name of a group of breakpoints in one source file.
const FILE: &str = "file ";
/// Maximum number of sources that a message names.
const ELSEWHERE_MAX: usize = 3;

pub(super) fn set_breakpoints(connection: &mut Connection, request: &Request) -> Handled {
    let arguments: SetPointsArguments = request.read()?;
    let path = arguments.source.path.or(arguments.source.name);
    let Some(path) = path.filter(|path| !path.is_empty()) else {
        return Err(RequestError::Arguments {
            command: request.command.clone(),
            why: "the source has no path".to_owned(),
        });
    };
    let mut breakpoints = arguments.breakpoints;
    if breakpoints.is_empty() {
        let lines = arguments.lines.into_iter();
        breakpoints = lines
            .map(|line| PointArgument {
                line,
                ..PointArgument::default()
            })
            .collect();
    }
    let first = connection.line_base();
    let located = breakpoints.into_iter().map(|asked| {
        let line = asked.line.saturating_sub(first).saturating_add(1);
        (breakpoint_spec::file_line(&path, line), asked)
    });
    let located = located.collect();
    set_points(connection, request, format!("{FILE}{path}"), located);
    Ok(None)
}

/// Handles any request that sets breakpoints.
pub(super) fn set_any(connection: &mut Connection, request: &Request) -> Handled {
    match request.command.as_str() {
        "setBreakpoints" => set_breakpoints(connection, request),
        "setFunctionBreakpoints" => set_function_breakpoints(connection, request),
        "setInstructionBreakpoints" => set_instruction_breakpoints(connection, request),
        "setDataBreakpoints" => set_data_breakpoints(connection, request),
        "setExceptionBreakpoints" => set_exception_breakpoints(connection, request),
        _ => Err(RequestError::Unknown(request.command.clone())),
    }
}

pub(super) fn set_function_breakpoints(connection: &mut Connection, request: &Request) -> Handled {
    let arguments: SetPointsArguments = request.read()?;
    let breakpoints = arguments.breakpoints.into_iter();
    let located = breakpoints.map(|asked| (asked.name.clone(), asked));
    let located = located.collect();
    set_points(connection, request, FUNCTIONS.to_owned(), located);
    Ok(None)
}

fn set_points(
    connection: &mut Connection,
    request: &Request,
    group: String,
    located: Vec<(String, PointArgument)>,
) {
    let wanted = located.into_iter().map(|(location, asked)| {
        let spec = breakpoint_spec::spec(location, &asked);
        spec.map_err(|why| RequestError::Tasks(why.to_string()))
    });
    set_wanted(connection, request, group, wanted.collect());
}

/// Replaces the breakpoints of a group by these, in the client's order. An error stands for a breakpoint that cannot
/// be set.
fn set_wanted(
    connection: &mut Connection,
    request: &Request,
    group: String,
    wanted: Vec<Result<PointSpec, RequestError>>,
) {
    let specs = wanted.iter().filter_map(|spec| spec.as_ref().ok());
    let mut plan = connection.points.plan(&group, specs.cloned().collect());
    let known = connection.points.group(&group).iter();
    let mut numbers = known.map(client_breakpoints::Point::number);
    let mut number = || {
        numbers
            .next()
            .ok_or(RequestError::Busy(client_breakpoints::POINTS_MAX))
    };
    let asked = wanted.into_iter().map(|spec| spec.and_then(|_| number()));
    let asked = asked.collect();
    // Programs that are being started get all breakpoints at once later.
    let live = match connection.phase {
        Phase::Beginning => IdSet::new(),
        _ => connection.tasks.live(),
    };
    let mut changes = Vec::new();
    for number in std::mem::take(&mut plan.deleted) {
        changes.push((live.clone(), Command::BreakDelete { number }));
    }
    connection.begin_job(Purpose::Nothing, changes);
    let (numbers, commands): (Vec<u32>, Vec<_>) = plan
        .commands()
        .map(|(number, command)| (number, (live.clone(), command)))
        .unzip();
    let purpose = Purpose::Points {
        request: request.clone(),
        group,
        numbers,
        asked,
    };
    connection.begin_job(purpose, commands);
}

pub(super) fn set_instruction_breakpoints(
    connection: &mut Connection,
    request: &Request,
) -> Handled {
    let arguments: SetPointsArguments = request.read()?;
    let wanted = arguments.breakpoints.iter().map(|asked| {
        let reference = &asked.instruction_reference;
        let address = address(reference).ok_or_else(|| no_address(reference))?;
        let address = address.wrapping_add_signed(asked.offset);
        let spec = breakpoint_spec::spec(format!("*{address:#x}"), asked);
        spec.map_err(|why| RequestError::Tasks(why.to_string()))
    });
    let wanted = wanted.collect();
    set_wanted(connection, request, INSTRUCTIONS.to_owned(), wanted);
    Ok(None)
}

/// Handles `dataBreakpointInfo`: tells whether an expression can be watched, and its id in `setDataBreakpoints`,
/// which names the frame and the expression.
pub(super) fn data_breakpoint_info(connection: &mut Connection, request: &Request) -> Handled {
    let arguments: DataInfoArguments = request.read()?;
    let name = arguments.name;
    let frame = match (arguments.variables_reference, arguments.frame_id) {
        (Some(id), _) if id > 0 => match connection.references.node(id) {
            Some(Node::Scope { frame, kind }) if *kind != ScopeKind::Registers => {
                let frame = frame.clone();
                Some(connection.references.add_frame(frame))
            }
            Some(_) => {
                let text = format!("{name}: give the full expression to watch a part of a value");
                return Ok(Some(json!({"dataId": null, "description": text})));
            }
            None => return Err(RequestError::Reference(id)),
        },
        (_, frame) => frame,
    };
    let id = match frame {
        Some(frame) => format!("{frame}:{name}"),
        None => format!(":{name}"),
    };
    Ok(Some(json!({
        "dataId": id,
        "description": name,
        "accessTypes": ["read", "write", "readWrite"],
        "canPersist": false,
    })))
}

pub(super) fn set_data_breakpoints(connection: &mut Connection, request: &Request) -> Handled {
    let arguments: SetPointsArguments = request.read()?;
    let mut selected = Vec::new();
    let wanted = arguments.breakpoints.iter().map(|asked| {
        let (frame, expression) = asked.data_id.split_once(':').unwrap_or_default();
        if expression.is_empty() {
            let id = &asked.data_id;
            let text = format!("`{id}` cannot be watched");
            return Err(RequestError::Tasks(text));
        }
        if let Some(frame) = frame
            .parse()
            .ok()
            .and_then(|id| connection.references.frame(id))
        {
            selected.extend(frame.select());
        }
        breakpoint_spec::watch(expression, asked)
            .map_err(|why| RequestError::Tasks(why.to_string()))
    });
    let wanted = wanted.collect();
    connection.begin_job(Purpose::Nothing, selected);
    set_wanted(connection, request, DATA.to_owned(), wanted);
    Ok(None)
}

pub(super) fn set_exception_breakpoints(connection: &mut Connection, request: &Request) -> Handled {
    let arguments: ExceptionArguments = request.read()?;
    let plain = arguments.filters.into_iter().map(|filter| (filter, None));
    let options = arguments.filter_options.into_iter();
    let options = options.map(|option| (option.filter_id, option.condition));
    let (ending, wanted): (Vec<_>, Vec<_>) = plain
        .chain(options)
        .partition(|(filter, _)| ENDING_FILTERS.iter().any(|(id, _, _)| id == filter));
    // The ends of programs stop them without a breakpoint. The client is not told of those that it has not selected.
    let passed = ENDING_FILTERS
        .iter()
        .filter(|(id, _, _)| ending.iter().all(|(filter, _)| filter != id));
    connection.points.passed = passed.map(|(_, _, what)| *what).collect();
    let wanted = wanted.into_iter().map(|(filter, condition)| {
        let known = EXCEPTION_FILTERS.iter().find(|(id, _, _)| *id == filter);
        let (_, _, event) =
            known.ok_or_else(|| RequestError::Tasks(format!("unknown filter `{filter}`")))?;
        Ok(PointSpec::Catch(CatchSpec {
            condition: condition.filter(|condition| !condition.trim().is_empty()),
            ..CatchSpec::new(0, event())
        }))
    });
    let wanted = wanted.collect();
    set_wanted(connection, request, EXCEPTIONS.to_owned(), wanted);
    Ok(None)
}

/// Stores the locations of breakpoints that were inserted or changed, or the reasons why there are none: `numbers` has
/// the number for each of the first answers. A breakpoint with a condition that no rank can take is removed: it would
/// stop by its earlier one.
pub(super) fn note_places(connection: &mut Connection, numbers: &[u32], answers: &[Answers]) {
    let mut refused = Vec::new();
    for (number, answers) in numbers.iter().zip(answers) {
        let Some(point) = connection.points.find(*number) else {
            continue;
        };
        point.complaint = answers.complaint();
        for (tasks, reply) in answers.replies() {
            if let Reply::Breakpoint(place) = reply {
                point.placed(tasks, place);
            }
        }
        if point.complaint.is_some() && !answers.is_done_by_any() {
            let bound = point.unbind();
            refused.push((bound, Command::BreakDelete { number: *number }));
        }
    }
    refused.retain(|(bound, _)| !bound.is_empty());
    connection.begin_job(Purpose::Nothing, refused);
}

/// Tells the client that a breakpoint was removed.
pub(super) fn tell_gone(connection: &mut Connection, number: u32) {
    let breakpoint = json!({"id": number, "verified": false});
    let body = json!({"reason": "removed", "breakpoint": breakpoint});
    connection.event("breakpoint", body);
}

pub(super) fn finish_points(
    connection: &mut Connection,
    request: &Request,
    group: &str,
    (numbers, asked): (&[u32], &[Result<u32, RequestError>]),
    answers: &[Answers],
) {
    note_places(connection, numbers, answers);
    if group == EXCEPTIONS {
        finish_exceptions(connection, request, asked);
        return;
    }
    let asked = (request.clone(), asked.to_vec());
    if let Some((request, asked)) = look_elsewhere(connection, group, Some(asked)) {
        answer_points(connection, &request, group, &asked);
    }
}

/// Has ranks search for the sources of breakpoints that have got no location at the start.
pub(super) fn look_for_lost(connection: &mut Connection) {
    for group in connection.points.group_names() {
        look_elsewhere(connection, &group, None);
    }
}

/// Has a rank search for sources with the file name of an unbound breakpoint. Returns the unanswered request if there
/// is no search: no breakpoint is unbound, no rank is stopped, or the group is not that of a file.
fn look_elsewhere(
    connection: &mut Connection,
    group: &str,
    unanswered: Option<Unanswered>,
) -> Option<Unanswered> {
    let is_lost = connection.points.group(group).iter().any(Point::is_lost);
    let rank = connection.tasks.standing().first();
    let name = group
        .strip_prefix(FILE)
        .and_then(|it| it.rsplit('/').next());
    let (Some(rank), Some(name), true) = (rank, name, is_lost) else {
        return unanswered;
    };
    let plain = |c: char| {
        if c.is_alphanumeric() || c == '_' {
            c
        } else {
            '.'
        }
    };
    let name: String = name.chars().map(plain).collect();
    let line = format!("-file-list-exec-source-files --basename -- {name}");
    let purpose = Purpose::Elsewhere {
        group: group.to_owned(),
        unanswered,
    };
    connection.begin_job(purpose, vec![(IdSet::single(rank), Command::Mi { line })]);
    None
}

/// Handles the answer to the search for sources with the file name of an unbound breakpoint.
pub(super) fn finish_elsewhere(
    connection: &mut Connection,
    group: &str,
    unanswered: Option<Unanswered>,
    answers: &[Answers],
) {
    let file = group.strip_prefix(FILE).unwrap_or(group);
    let name = file.rsplit('/').next().unwrap_or(file);
    let replies = answers.iter().flat_map(Answers::replies);
    let paths = replies.flat_map(|(_, reply)| match reply {
        Reply::Mi { result, .. } => locations::fields(result, "fullname").collect(),
        _ => Vec::new(),
    });
    let is_other = |path: &String| path.rsplit('/').next() == Some(name) && path != file;
    let paths: BTreeSet<String> = paths.filter(is_other).collect();
    if !paths.is_empty() {
        let paths: Vec<String> = paths.into_iter().take(ELSEWHERE_MAX).collect();
        let paths = paths.join(", ");
        let text = format!(
            "the program was compiled with {name} at {paths}: map that folder with `sourceFileMap`"
        );
        connection.points.set_elsewhere(group, &text);
    }
    match unanswered {
        Some((request, asked)) => answer_points(connection, &request, group, &asked),
        None => {
            let points = connection.points.group(group).iter();
            let lost: Vec<_> = points
                .filter(|it| it.is_lost())
                .map(Point::number)
                .collect();
            lost.into_iter()
                .for_each(|number| report_change(connection, number));
        }
    }
}

/// Answers with the locations of a group's breakpoints.
fn answer_points(
    connection: &mut Connection,
    request: &Request,
    group: &str,
    asked: &[Result<u32, RequestError>],
) {
    let all = match connection.phase {
        Phase::Beginning => IdSet::new(),
        _ => connection.tasks.live(),
    };
    let line_base = connection.line_base();
    let known = connection.points.group(group);
    let shown = asked.iter().map(|asked| match asked {
        Ok(number) => {
            let point = known.iter().find(|point| point.number() == *number);
            point.map_or_else(
                || json!({"verified": false, "message": "the breakpoint was replaced meanwhile"}),
                |point| point.shown(&all, line_base),
            )
        }
        Err(why) => json!({"verified": false, "message": why.to_string()}),
    });
    let shown: Vec<Value> = shown.collect();
    connection.write(request.response(json!({"breakpoints": shown})));
}

/// Answers `setExceptionBreakpoints`. Some filters are no breakpoints, so the response lists none, and errors are shown
/// as messages.
fn finish_exceptions(
    connection: &mut Connection,
    request: &Request,
    asked: &[Result<u32, RequestError>],
) {
    let wrong = asked.iter().filter_map(|asked| match asked {
        Ok(number) => {
            let mut points = connection.points.group(EXCEPTIONS).iter();
            let point = points.find(|point| point.number() == *number);
            point.and_then(|point| point.complaint.clone())
        }
        Err(why) => Some(why.to_string()),
    });
    let wrong: Vec<String> = wrong.collect();
    for why in wrong {
        connection.say("important", &format!("sdm: {why}\n"));
    }
    connection.write(request.response(Value::Null));
}

/// Reports a breakpoint set by a console line to editors that list breakpoints.
pub(super) fn finish_console_point(
    connection: &mut Connection,
    command: &Command,
    answers: &[Answers],
) {
    let number = match command {
        Command::BreakInsert(spec) => spec.number,
        Command::WatchInsert(spec) => spec.number,
        Command::CatchInsert(spec) => spec.number,
        _ => return,
    };
    let all = connection.tasks.live();
    let line_base = connection.line_base();
    let Some(point) = connection.points.find(number) else {
        return;
    };
    for (tasks, reply) in answers.iter().flat_map(Answers::replies) {
        if let Reply::Breakpoint(place) = reply {
            point.placed(tasks, place);
        }
    }
    if answers.iter().all(|answers| !answers.is_done_by_any()) {
        connection.points.remove(number, &all);
        return;
    }
    let body = json!({"reason": "new", "breakpoint": point.shown(&all, line_base)});
    connection.event("breakpoint", body);
}

/// Records that a pending breakpoint has been given a location.
pub(super) fn placed(connection: &mut Connection, tasks: &IdSet, place: &BreakpointPlace) {
    if let Some(point) = connection.points.find(place.number) {
        point.placed(tasks, place);
        report_change(connection, place.number);
    }
}

/// Tells the client the location of a breakpoint, or the reason why it has none.
pub(super) fn report_change(connection: &mut Connection, number: u32) {
    let all = connection.tasks.live();
    let line_base = connection.line_base();
    if let Some(point) = connection.points.find(number) {
        let shown = point.shown(&all, line_base);
        let body = json!({"reason": "changed", "breakpoint": shown});
        connection.event("breakpoint", body);
    }
}
