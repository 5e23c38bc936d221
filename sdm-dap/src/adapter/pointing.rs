//! Breakpoints.

use sdm_debug::reply::BreakpointPlace;
use sdm_debug::{Command, Reply};
use sdm_idset::IdSet;
use serde_json::{Value, json};

use super::Adapter;
use super::jobs::Purpose;
use super::requests::Handled;
use crate::answers::Answers;
use crate::arguments::{PointArgument, SetPointsArguments};
use crate::error::RequestError;
use crate::message::Request;
use crate::points::{self, FUNCTIONS};

impl Adapter {
    pub(super) fn set_breakpoints(&mut self, request: &Request) -> Handled {
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
        let first = self.line_base();
        let located = breakpoints.into_iter().map(|asked| {
            let line = asked.line - first + 1;
            (points::file_line(&path, line), asked)
        });
        let located = located.collect();
        self.set_points(request, format!("file {path}"), located);
        Ok(None)
    }

    pub(super) fn set_function_breakpoints(&mut self, request: &Request) -> Handled {
        let arguments: SetPointsArguments = request.read()?;
        let breakpoints = arguments.breakpoints.into_iter();
        let located = breakpoints.map(|asked| (asked.name.clone(), asked));
        let located = located.collect();
        self.set_points(request, FUNCTIONS.to_owned(), located);
        Ok(None)
    }

    fn set_points(
        &mut self,
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
        let plan = self.points.plan(&group, wanted);
        let mut numbers = self
            .points
            .group(&group)
            .iter()
            .map(|point| point.spec.number);
        let asked = refused.into_iter().map(|refused| match refused {
            Some(why) => Err(why),
            None => numbers.next().ok_or(RequestError::Busy(points::POINTS_MAX)),
        });
        let asked = asked.collect();
        let live = self.tasks.live();
        let mut changes = Vec::new();
        for number in plan.deleted {
            changes.push((live.clone(), Command::BreakDelete { number }));
        }
        for (number, condition) in plan.conditions {
            changes.push((live.clone(), Command::BreakCondition { number, condition }));
        }
        self.begin_job(Purpose::Nothing, changes);
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
        self.begin_job(purpose, inserts);
    }

    pub(super) fn finish_points(
        &mut self,
        request: &Request,
        group: &str,
        (inserted, asked): (&[u32], &[Result<u32, RequestError>]),
        answers: &[Answers],
    ) {
        for (number, answers) in inserted.iter().zip(answers) {
            let Some(point) = self.points.find(*number) else {
                continue;
            };
            point.complaint = answers.complaint();
            for (tasks, reply) in answers.replies() {
                if let Reply::Breakpoint(place) = reply {
                    point.placed(tasks, place);
                }
            }
        }
        let all = self.tasks.live();
        let line_base = self.line_base();
        let known = self.points.group(group);
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
        self.write(request.response(json!({"breakpoints": shown})));
    }

    /// A breakpoint that waited has found its place.
    pub(super) fn placed(&mut self, tasks: &IdSet, place: &BreakpointPlace) {
        let all = self.tasks.live();
        let line_base = self.line_base();
        let Some(point) = self.points.find(place.number) else {
            return;
        };
        point.placed(tasks, place);
        let shown = point.shown(&all, line_base);
        self.event(
            "breakpoint",
            json!({"reason": "changed", "breakpoint": shown}),
        );
    }
}
