//! Commands in order, each with parts of its answer. The program is tests/fixtures/tour.c.

mod looks;
mod points;
mod runs;

use sdm_debug::Command;
use sdm_debug::command::{
    BacktraceSpec, BreakSpec, CatchEvent, CatchSpec, FrameSelect, ProbeSpec, StepKind, ValueFormat,
    WatchKind, WatchSpec,
};

pub(crate) use looks::{memory, objects, source, stacks, values};
pub(crate) use points::{breakpoints, changed_breakpoints, watched};
pub(crate) use runs::{
    again, before_the_start, ends, odd_runs, of_a_core_file, runs, while_it_runs,
};

pub(crate) type Rows = Vec<(Command, &'static str)>;

pub(crate) fn set(expression: &str) -> Command {
    Command::SetVariable {
        expression: expression.to_owned(),
    }
}

fn evaluate(expression: &str) -> Command {
    Command::Evaluate {
        expression: expression.to_owned(),
    }
}

fn point(number: u32, location: &str) -> BreakSpec {
    BreakSpec {
        number,
        location: location.to_owned(),
        ..BreakSpec::default()
    }
}

fn insert(number: u32, location: &str) -> Command {
    Command::BreakInsert(point(number, location))
}

fn delete(number: u32) -> Command {
    Command::BreakDelete { number }
}

fn catch(number: u32, event: CatchEvent) -> Command {
    Command::CatchInsert(CatchSpec::new(number, event))
}

fn watch(number: u32, expression: &str, kind: WatchKind) -> Command {
    Command::WatchInsert(WatchSpec::new(number, expression, kind))
}

fn step(kind: StepKind, count: u32) -> Command {
    Command::Step { kind, count }
}

fn console(line: &str) -> Command {
    Command::Console {
        line: line.to_owned(),
    }
}

fn mi(line: &str) -> Command {
    Command::Mi {
        line: line.to_owned(),
    }
}

fn frame(level: u32) -> Command {
    Command::SelectFrame(FrameSelect::Level(level))
}
