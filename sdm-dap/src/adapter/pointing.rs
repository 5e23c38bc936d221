//! Breakpoints.

use sdm_debug::reply::BreakpointPlace;
use sdm_debug::{Command, Reply};
use sdm_idset::IdSet;
use serde_json::{Value, json};

use crate::answers::Answers;
use crate::arguments::{PointArgument, SetPointsArguments};
use crate::connection::Connection;
use crate::error::Handled;
use crate::error::RequestError;
use crate::jobs::Purpose;
use crate::message::Request;
use crate::points::{self, FUNCTIONS};

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
        let line = asked.line - first + 1;
        (points::file_line(&path, line), asked)
    });
    let located = located.collect();
    set_points(connection, request, format!("file {path}"), located);
    Ok(None)
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
    let mut wanted = Vec::new();
    let mut refused = Vec::new();
    for (location, asked) in located {
        match points::spec(location, &asked) {
            Ok(spec) => {
                wanted.push(spec);
                refused.push(None);
            }
            Err(why) => refused.push(Some(RequestError::Tasks(why.to_string()))),
        }
    }
    let plan = connection.points.plan(&group, wanted);
    let mut numbers = connection
        .points
        .group(&group)
        .iter()
        .map(|point| point.spec.number);
    let asked = refused.into_iter().map(|refused| match refused {
        Some(why) => Err(why),
        None => numbers.next().ok_or(RequestError::Busy(points::POINTS_MAX)),
    });
    let asked = asked.collect();
    let live = connection.tasks.live();
    let mut changes = Vec::new();
    for number in plan.deleted {
        changes.push((live.clone(), Command::BreakDelete { number }));
    }
    for (number, condition) in plan.conditions {
        changes.push((live.clone(), Command::BreakCondition { number, condition }));
    }
    connection.begin_job(Purpose::Nothing, changes);
    let inserted = plan.inserted.iter().map(|spec| spec.number).collect();
    let inserts = plan.inserted.into_iter();
    let inserts = inserts.map(|spec| (live.clone(), Command::BreakInsert(spec)));
    let inserts = inserts.collect();
    let purpose = Purpose::Points {
        request: request.clone(),
        group,
        inserted,
        asked,
    };
    connection.begin_job(purpose, inserts);
}

pub(super) fn finish_points(
    connection: &mut Connection,
    request: &Request,
    group: &str,
    (inserted, asked): (&[u32], &[Result<u32, RequestError>]),
    answers: &[Answers],
) {
    for (number, answers) in inserted.iter().zip(answers) {
        let Some(point) = connection.points.find(*number) else {
            continue;
        };
        point.complaint = answers.complaint();
        for (tasks, reply) in answers.replies() {
            if let Reply::Breakpoint(place) = reply {
                point.placed(tasks, place);
            }
        }
    }
    let all = connection.tasks.live();
    let line_base = connection.line_base();
    let known = connection.points.group(group);
    let shown = asked.iter().map(|asked| match asked {
        Ok(number) => {
            let point = known.iter().find(|point| point.spec.number == *number);
            point.map_or_else(
                || json!({"verified": false, "message": "it was replaced meanwhile"}),
                |point| point.shown(&all, line_base),
            )
        }
        Err(why) => json!({"verified": false, "message": why.to_string()}),
    });
    let shown: Vec<Value> = shown.collect();
    connection.write(request.response(json!({"breakpoints": shown})));
}

/// A breakpoint that waited has found its place.
pub(super) fn placed(connection: &mut Connection, tasks: &IdSet, place: &BreakpointPlace) {
    let all = connection.tasks.live();
    let line_base = connection.line_base();
    let Some(point) = connection.points.find(place.number) else {
        return;
    };
    point.placed(tasks, place);
    let shown = point.shown(&all, line_base);
    connection.event(
        "breakpoint",
        json!({"reason": "changed", "breakpoint": shown}),
    );
}
