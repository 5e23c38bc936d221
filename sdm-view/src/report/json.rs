//! The contents of `report.json`. `docs/json.md` describes them.

use sdm_diagnose::Diagnosis;
use serde_json::{Value, json as object};

use super::{End, Look, Moment, MpiError, OutputClass, Report};
use crate::item::RankRow;
use crate::json::{output, rank_row, set, stacks};
use crate::render::stack_frame;

/// The version of the schema, which is raised when a field changes its meaning or is removed.
pub const VERSION: u32 = 1;

/// The report as JSON.
#[must_use]
pub fn json(report: &Report) -> String {
    let began = humantime::format_rfc3339_millis(report.began).to_string();
    let end = report.end.as_ref();
    let end = end.map(|End { code, reason }| object!({ "code": code, "reason": reason }));
    let facts = report.facts.iter();
    let facts = facts.map(|fact| object!({ "name": fact.name, "value": fact.value }));
    let lost = report.lost.iter();
    let lost = lost.map(|(tasks, why)| object!({ "tasks": set(tasks), "why": why }));
    let value = object!({
        "schema": "sdm-report",
        "v": VERSION,
        "session": report.session,
        "began": began,
        "took_ms": ms(report.took),
        "tasks": set(&report.tasks),
        "program": report.program,
        "end": end,
        "outcome": report.outcome(),
        "facts": facts.collect::<Vec<_>>(),
        "states": report.states.iter().map(state).collect::<Vec<_>>(),
        "first": report.first.as_ref().map(moment),
        "crashed": report.crashed.iter().map(look).collect::<Vec<_>>(),
        "diagnosis": report.diagnosis.as_ref().map(Diagnosis::to_json),
        "stacks": report.stacks.as_ref().map(stacks),
        "outliers": report.outliers.iter().map(look).collect::<Vec<_>>(),
        "output": report.output.iter().map(class).collect::<Vec<_>>(),
        "timeline": report.timeline.iter().map(moment).collect::<Vec<_>>(),
        "commands": report.commands,
        "mpi_errors": report.mpi_errors.iter().map(mpi_error).collect::<Vec<_>>(),
        "lost": lost.collect::<Vec<_>>(),
        "cut": report.cut,
    });
    format!("{value:#}\n")
}

fn state(row: &RankRow) -> Value {
    let mut fields = rank_row(row);
    fields["place"] = row.place.as_ref().map(stack_frame).into();
    fields
}

fn moment(moment: &Moment) -> Value {
    object!({
        "t_ms": ms(moment.at),
        "tasks": set(&moment.tasks),
        "what": moment.what,
        "below": moment.below,
        "bad": moment.bad,
    })
}

fn mpi_error(error: &MpiError) -> Value {
    object!({
        "tasks": set(&error.tasks),
        "count": error.tasks.len(),
        "what": error.what,
        "below": error.below,
    })
}

fn look(look: &Look) -> Value {
    let frames = look.frames.iter().map(|frame| {
        let locals = frame.locals.as_ref().map(|locals| {
            let locals = locals.iter();
            let locals = locals.map(|(name, value)| object!({ "name": name, "value": value }));
            locals.collect::<Vec<_>>()
        });
        object!({ "level": frame.level, "place": frame.place, "source": frame.source, "locals": locals })
    });
    object!({
        "task": look.task.0,
        "tasks": set(&look.tasks),
        "count": look.tasks.len(),
        "frames": frames.collect::<Vec<_>>(),
        "more": look.more,
    })
}

fn class(class: &OutputClass) -> Value {
    let lines = class.lines.iter();
    let lines = lines.map(|line| output(&line.tasks, line.stream, &line.bytes, line.complete));
    object!({
        "tasks": set(&class.tasks),
        "count": class.tasks.len(),
        "same": class.same,
        "lines": lines.collect::<Vec<_>>(),
        "head": class.head,
        "left_out": class.left_out,
    })
}

fn ms(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
