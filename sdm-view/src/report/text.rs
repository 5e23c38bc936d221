//! The report as one screen of text: the outcome, the first crash, the stacks.

use sdm_debug::event::Stream;

use sdm_text::{beginning, columns, counted};

use super::{Look, OutputClass, Report, state_of};
use crate::render::{Style, printable, stack_lines};

/// Width of the screen, in characters.
const WIDTH: usize = 100;
/// Maximum number of lines of each part.
const STATES_MAX: usize = 4;
const FRAMES_MAX: usize = 5;
const LOCALS_MAX: usize = 4;
const REASON_MAX: usize = 3;
const STACKS_MAX: usize = 12;
const MPI_ERRORS_MAX: usize = 5;
const OUTPUT_MAX: usize = 5;
const CUT_MAX: usize = 3;
/// The style of the text report. Its rows limit the lines of the stacks.
const SCREEN: Style = Style {
    colour: false,
    width: Some(WIDTH),
    rows: STACKS_MAX,
};

/// The report as text of at most 64 lines of at most 100 characters.
#[must_use]
pub fn text(report: &Report) -> String {
    let mut lines = vec![format!("sdm report: {}", report.outcome())];
    lines.push(run(report));
    states(report, &mut lines);
    first(report, &mut lines);
    mpi_errors(report, &mut lines);
    if let Some(found) = &report.diagnosis {
        let named = found.suspects.union(&found.held_up_by);
        let who = match named.is_empty() {
            true => String::new(),
            false => format!("{}: ", report.names.label(&named, WIDTH / 3)),
        };
        let step = found.step.word().to_lowercase();
        let reason = format!("why: {step}: {who}{}", found.conclusion);
        wrapped(&reason, 2, &mut lines);
    }
    stacks(report, &mut lines);
    output(report, &mut lines);
    let (shown, rest) = report.cut.split_at(report.cut.len().min(CUT_MAX));
    lines.extend(shown.iter().map(|text| format!("omitted: {text}")));
    if !rest.is_empty() {
        lines.push(format!("omitted: {}", counted(rest.len(), "more part")));
    }
    let mut text = String::new();
    for line in lines {
        text.push_str(&fitted(&line));
        text.push('\n');
    }
    text
}

fn run(report: &Report) -> String {
    let code = match &report.end {
        Some(end) => format!("exit code {}, ", end.code),
        None => String::new(),
    };
    let program = match report.program.is_empty() {
        true => String::new(),
        false => format!(" of {}", report.program.join(" ")),
    };
    format!(
        "  {code}{} tasks{program}, {:.1} s",
        report.tasks.len(),
        report.took.as_secs_f64()
    )
}

fn states(report: &Report, lines: &mut Vec<String>) {
    let (shown, rest) = report.states.split_at(report.states.len().min(STATES_MAX));
    for row in shown {
        let who = report.names.label(&row.tasks, WIDTH / 3);
        let (state, what) = state_of(row);
        let what = match what {
            None => state.to_owned(),
            Some(what) if row.place.is_some() => format!("{state} {}", what.line),
            Some(what) if what.line.starts_with(state) => what.line.clone(),
            Some(what) => format!("{state}: {}", what.line),
        };
        lines.push(format!("  {who}: {what}"));
    }
    if !rest.is_empty() {
        lines.push(format!("  and {}", counted(rest.len(), "more state")));
    }
}

fn first(report: &Report, lines: &mut Vec<String>) {
    if let Some(first) = &report.first {
        let who = report.names.label(&first.tasks, WIDTH / 3);
        let at = first.at.as_secs_f64();
        lines.push(format!("first: {who}, after {at:.1} s: {}", first.what));
        let source = first.below.first();
        lines.extend(source.map(|source| format!("    {}", source.replace('\t', "  "))));
    }
    if let Some(look) = report.crashed.first().or(report.outliers.first()) {
        frames(report, look, lines);
    }
}

fn mpi_errors(report: &Report, lines: &mut Vec<String>) {
    let all = &report.mpi_errors;
    if all.is_empty() {
        return;
    }
    lines.push(format!("errors in the use of MPI: {}", all.len()));
    // The last one is often what ended the run.
    let is_shown = |at: usize| at + 1 < MPI_ERRORS_MAX || at + 1 == all.len();
    for (at, error) in all.iter().enumerate() {
        if is_shown(at) {
            let who = report.names.label(&error.tasks, WIDTH / 3);
            wrapped(&format!("  {who}: {}", error.what), 4, lines);
        } else if at + 1 == MPI_ERRORS_MAX {
            lines.push(format!("  and {} more", all.len() - MPI_ERRORS_MAX));
        }
    }
}

/// Appends a text in lines of the width of the screen, at most [`REASON_MAX`] of them.
fn wrapped(text: &str, indent: usize, lines: &mut Vec<String>) {
    let text = SCREEN.wrap(&printable(text.as_bytes()), indent);
    let mut text = text.lines();
    lines.extend(text.by_ref().take(REASON_MAX).map(str::to_owned));
    if let (Some(_), Some(last)) = (text.next(), lines.last_mut()) {
        *last = format!("{}...", beginning(last, WIDTH - 3));
    }
}

fn frames(report: &Report, look: &Look, lines: &mut Vec<String>) {
    lines.push(format!(
        "stack of {}:",
        report.names.label(&sdm_idset::IdSet::single(look.task), 40)
    ));
    for (index, frame) in look.frames.iter().enumerate().take(FRAMES_MAX) {
        lines.push(format!("  #{:<2} {}", frame.level, frame.place));
        if index > 0 {
            continue;
        }
        let locals = frame.locals.as_deref().unwrap_or_default();
        for (name, value) in locals.iter().take(LOCALS_MAX) {
            lines.push(format!("        {name} = {value}"));
        }
        let left_out = locals.len().saturating_sub(LOCALS_MAX);
        if left_out > 0 {
            let more = counted(left_out, "more variable");
            lines.push(format!("        ({more} in the page and the JSON)"));
        }
    }
    if look.more || look.frames.len() > FRAMES_MAX {
        lines.push("  (more frames)".to_owned());
    }
}

fn stacks(report: &Report, lines: &mut Vec<String>) {
    let Some(merged) = &report.stacks else {
        return;
    };
    let tree = stack_lines(merged, &report.names, &SCREEN);
    lines.push("where the ranks were:".to_owned());
    lines.extend(tree.iter().map(|line| format!("  {line}")));
}

/// Appends the last output lines of the smallest class, because rare output is of interest.
fn output(report: &Report, lines: &mut Vec<String>) {
    let Some(class) = report.output.last() else {
        return;
    };
    let OutputClass { tasks, same, .. } = class;
    lines.push("printed last:".to_owned());
    let last = class.lines.len().saturating_sub(OUTPUT_MAX);
    for line in &class.lines[last..] {
        let who = if *same { tasks } else { &line.tasks };
        let who = report.names.text(who, 24);
        let err = match line.stream {
            Stream::Stdout => "",
            Stream::Stderr => " err",
        };
        lines.push(format!("  [{who}{err}] {}", printable(&line.bytes)));
    }
}

/// Escapes a line, and cuts it to the width of the screen.
fn fitted(line: &str) -> String {
    let line = printable(line.as_bytes()).replace('\t', " ");
    if columns(&line) <= WIDTH {
        return line;
    }
    format!("{}...", beginning(&line, WIDTH - 3))
}
