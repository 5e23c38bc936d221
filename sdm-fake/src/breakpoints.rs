//! The breakpoints of one task: insertion, changes, hits and listing.

use sdm_debug::command::{BreakSpec, PointSpec, StartPoint};
use sdm_debug::reply::{BreakpointPlace, BreakpointView, Reply};
use sdm_debug::{Command, Failure, FailureCode};
use sdm_idset::TaskId;

use super::points::Point;
use super::task::{Task, no_such};

/// Maximum number of breakpoints of one task.
const BREAKPOINTS_MAX: usize = 4096;

impl Task {
    /// Hits the enabled breakpoint with the lowest number, and returns that number; `None` if no breakpoint is enabled.
    /// A temporary breakpoint is deleted.
    pub(super) fn hit(&mut self) -> Option<u32> {
        let enabled = self.breakpoints.iter_mut().filter(|point| point.enabled);
        let point = enabled.min_by_key(|point| point.spec.number)?;
        point.hits += 1;
        let (number, temporary) = (point.spec.number, point.spec.temporary);
        if temporary {
            self.breakpoints.retain(|point| point.spec.number != number);
        }
        Some(number)
    }

    /// Inserts the breakpoints of a start request. Watchpoints and catchpoints are ignored, because a script has none.
    pub(super) fn insert_points(&mut self, id: TaskId, points: &[StartPoint]) {
        for point in points {
            if let PointSpec::Break(spec) = &point.spec
                && point.tasks.contains(id)
            {
                self.breakpoints.push(Point {
                    spec: spec.clone(),
                    enabled: point.enabled,
                    hits: 0,
                });
            }
        }
    }

    pub(super) fn change_breakpoint(&mut self, command: &Command) -> Result<Reply, Failure> {
        let at = |list: &[Point], number: u32| {
            let found = list.iter().position(|point| point.spec.number == number);
            found.ok_or_else(|| no_such(format!("No breakpoint number {number}.")))
        };
        match command {
            Command::BreakInsert(spec) => {
                if self.breakpoints.len() >= BREAKPOINTS_MAX {
                    let text = format!("more than {BREAKPOINTS_MAX} breakpoints");
                    return Err(Failure::new(FailureCode::Limit, text));
                }
                self.breakpoints.push(Point {
                    spec: spec.clone(),
                    enabled: true,
                    hits: 0,
                });
                Ok(Reply::Breakpoint(breakpoint_place(spec)))
            }
            Command::BreakDelete { number } => {
                let quiet = self.quiet.len();
                self.quiet.retain(|quiet| quiet.number != *number);
                if self.quiet.len() < quiet {
                    return Ok(Reply::Done);
                }
                let index = at(&self.breakpoints, *number)?;
                self.breakpoints.remove(index);
                Ok(Reply::Done)
            }
            Command::BreakEnable { number, enabled } => {
                let quiet = self.quiet.iter_mut().find(|quiet| quiet.number == *number);
                if let Some(quiet) = quiet {
                    quiet.enabled = *enabled;
                    return Ok(Reply::Done);
                }
                let index = at(&self.breakpoints, *number)?;
                self.breakpoints[index].enabled = *enabled;
                Ok(Reply::Done)
            }
            Command::BreakCondition { number, condition } => {
                let index = at(&self.breakpoints, *number)?;
                self.breakpoints[index].spec.condition.clone_from(condition);
                Ok(Reply::Done)
            }
            Command::BreakIgnore { number, count } => {
                let index = at(&self.breakpoints, *number)?;
                self.breakpoints[index].spec.ignore = *count;
                Ok(Reply::Done)
            }
            Command::BreakCommands { number, lines } => {
                let index = at(&self.breakpoints, *number)?;
                if has_open_block(lines) {
                    let text = "a block without `end`";
                    return Err(Failure::new(FailureCode::BadCommand, text));
                }
                self.breakpoints[index].spec.commands.clone_from(lines);
                Ok(Reply::Done)
            }
            _ => unreachable!("only the commands of breakpoints come here"),
        }
    }

    pub(super) fn breakpoint_views(&self) -> Vec<BreakpointView> {
        let own = self.breakpoints.iter().map(
            |Point {
                 spec,
                 enabled,
                 hits,
             }| BreakpointView {
                place: breakpoint_place(spec),
                kind: "breakpoint".to_owned(),
                what: spec.location.clone(),
                enabled: *enabled,
                temporary: spec.temporary,
                condition: spec.condition.clone(),
                ignore: spec.ignore,
                hits: *hits,
            },
        );
        let mut all: Vec<_> = own.chain(self.quiet_views()).collect();
        all.sort_by_key(|view| view.place.number);
        all
    }
}

/// True if an `if` or a `while` in a breakpoint's commands has no `end`.
fn has_open_block(lines: &[String]) -> bool {
    let words = lines
        .iter()
        .filter_map(|line| line.split([' ', '(']).find(|word| !word.is_empty()));
    let depth = words.fold(0_i64, |depth, word| match word {
        "if" | "while" => depth + 1,
        "end" => depth - 1,
        _ => depth,
    });
    depth != 0
}

fn breakpoint_place(spec: &BreakSpec) -> BreakpointPlace {
    let (file, line) = match spec.location.rsplit_once(':') {
        Some((file, line)) => (file, line.parse().unwrap_or(0)),
        None => ("", 0),
    };
    let function = match file {
        "" => spec.location.clone(),
        _ => String::new(),
    };
    BreakpointPlace {
        number: spec.number,
        pending: false,
        places: vec![(function, file.to_owned(), line)],
    }
}
