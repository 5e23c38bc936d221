//! The sections of the report's HTML page.

use sdm_debug::event::Stream;
use sdm_text::counted;

use super::{Escaped, SET_WIDTH, put};
use crate::item::{MergedStacks, RankRow};
use crate::render::{printable, stack_frame};
use crate::report::places::places as places_of;
use crate::report::{Look, OutputClass, OutputLine, Report, state_of};

/// Maximum number of rows of the tables of folded states and of places, and of the list of findings.
const ROWS_MAX: usize = 60;
/// Maximum number of states that are shown expanded.
const STATES_MAX: usize = 8;
/// Maximum number of output lines that are shown expanded.
const OPEN_LINES_MAX: usize = 40;

/// Writes the outcome and the states of the tasks.
pub(super) fn outcome(page: &mut String, report: &Report) {
    let (class, word) = match &report.end {
        None => ("open", "Running"),
        Some(_) if report.is_good() => ("good", "Good"),
        Some(_) => ("bad", "Failed"),
    };
    put!(
        page,
        "<header class=\"{class}\">\n<p class=\"word\">{word}</p>\n<h1>{}</h1>\n<p>",
        Escaped(&report.outcome()),
    );
    if let Some(end) = &report.end {
        put!(page, "exit code {}, ", end.code);
    }
    put!(page, "{} tasks", report.tasks.len());
    if !report.program.is_empty() {
        put!(
            page,
            " of <code>{}</code>",
            Escaped(&report.program.join(" "))
        );
    }
    put!(
        page,
        ", {:.1} s</p>\n</header>\n",
        report.took.as_secs_f64()
    );
    if report.states.is_empty() {
        return;
    }
    // Further states are folded, so that the evidence below remains near the top.
    let (first, rest) = report.states.split_at(report.states.len().min(STATES_MAX));
    states(page, report, first);
    if !rest.is_empty() {
        put!(
            page,
            "<details><summary>{}</summary>\n",
            counted(rest.len(), "more state")
        );
        states(page, report, &rest[..rest.len().min(ROWS_MAX)]);
        more(page, rest.len(), "states");
        page.push_str("</details>\n");
    }
}

fn states(page: &mut String, report: &Report, rows: &[RankRow]) {
    page.push_str("<table class=\"states\">\n");
    for row in rows {
        let (state, said) = state_of(row);
        let bad = said.as_ref().is_some_and(|said| said.bad) || row.health.is_some();
        let what = said.map(|said| said.line).unwrap_or_default();
        put!(
            page,
            "<tr{}><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            if bad { " class=\"bad\"" } else { "" },
            Escaped(&report.names.label(&row.tasks, SET_WIDTH)),
            state,
            Escaped(&what),
        );
    }
    page.push_str("</table>\n");
}

/// Writes the first crash, and the stacks of the crashed tasks.
pub(super) fn first(page: &mut String, report: &Report) {
    if report.first.is_none() && report.crashed.is_empty() {
        return;
    }
    page.push_str("<section id=\"first\">\n<h2>What went wrong first</h2>\n");
    if let Some(first) = &report.first {
        put!(
            page,
            "<p><strong>{}</strong>, after {:.3} s: {}</p>\n",
            Escaped(&report.names.label(&first.tasks, SET_WIDTH)),
            first.at.as_secs_f64(),
            Escaped(&first.what),
        );
        for line in &first.below {
            put!(page, "<pre>{}</pre>\n", Escaped(line));
        }
    }
    for found in &report.crashed {
        look(page, report, found);
    }
    page.push_str("</section>\n");
}

/// Errors in the use of MPI.
pub(super) fn mpi_errors(page: &mut String, report: &Report) {
    if report.mpi_errors.is_empty() {
        return;
    }
    page.push_str("<section id=\"mpi\">\n<h2>Errors in the use of MPI</h2>\n<ul>\n");
    for error in &report.mpi_errors {
        put!(
            page,
            "<li><strong>{}</strong>: {}",
            Escaped(&report.names.label(&error.tasks, SET_WIDTH)),
            Escaped(&error.what),
        );
        for line in &error.below {
            put!(page, "<br/><code>{}</code>", Escaped(line));
        }
        page.push_str("</li>\n");
    }
    page.push_str("</ul>\n</section>\n");
}

/// Writes the diagnosis of a hang.
pub(super) fn diagnosis(page: &mut String, report: &Report) {
    let Some(found) = &report.diagnosis else {
        return;
    };
    page.push_str("<section id=\"diagnosis\">\n<h2>Why it is stuck</h2>\n<p>");
    put!(page, "{}: ", found.step.word());
    for (what, tasks) in [
        ("likely to blame", &found.suspects),
        ("held up by", &found.held_up_by),
    ] {
        if !tasks.is_empty() {
            let who = report.names.label(tasks, SET_WIDTH);
            put!(page, "{what}: <strong>{}</strong>: ", Escaped(&who));
        }
    }
    put!(page, "{}</p>\n<ul>\n", Escaped(&found.conclusion));
    for finding in found.findings.iter().take(ROWS_MAX) {
        put!(
            page,
            "<li>{}: {}",
            Escaped(&report.names.label(&finding.tasks, SET_WIDTH)),
            Escaped(&finding.what),
        );
        for line in &finding.evidence {
            put!(page, "<br/><code>{}</code>", Escaped(line));
        }
        page.push_str("</li>\n");
    }
    page.push_str("</ul>\n");
    if found.samples > 0 {
        put!(
            page,
            "<p class=\"note\">{} in {:.1} s; the ranks ran between the samples.</p>\n",
            counted(found.samples, "sample"),
            found.span.as_secs_f64(),
        );
    }
    page.push_str("</section>\n");
}

/// Writes the call stacks of all tasks as rows.
pub(super) fn places(page: &mut String, report: &Report, merged: &MergedStacks) {
    let found = places_of(&merged.tree);
    page.push_str(
        "<table class=\"places\">\n<tr><th>ranks</th><th>stack, innermost first</th></tr>\n",
    );
    for place in found.iter().take(ROWS_MAX) {
        let few = merged.few().is_some_and(|few| place.tasks.len() <= few);
        let frames = place.frames.iter().rev().map(|frame| stack_frame(frame));
        put!(
            page,
            "<tr{}><td>{}</td><td>{}</td></tr>\n",
            if few { " class=\"few\"" } else { "" },
            Escaped(&report.names.label(place.tasks, SET_WIDTH)),
            Escaped(&frames.collect::<Vec<_>>().join(" ← ")),
        );
    }
    page.push_str("</table>\n");
    more(page, found.len(), "places");
}

/// Writes the stacks of tasks with rare call stacks, with their variables.
pub(super) fn outliers(page: &mut String, report: &Report) {
    if report.outliers.is_empty() {
        return;
    }
    page.push_str("<section id=\"outliers\">\n<h2>Ranks in places with few ranks</h2>\n");
    for found in &report.outliers {
        look(page, report, found);
    }
    page.push_str("</section>\n");
}

/// Writes one stack with variables.
fn look(page: &mut String, report: &Report, look: &Look) {
    let one = sdm_idset::IdSet::single(look.task);
    put!(
        page,
        "<h3>{}",
        Escaped(&report.names.label(&one, SET_WIDTH))
    );
    if look.tasks.len() > 1 {
        let all = report.names.label(&look.tasks, SET_WIDTH);
        put!(page, " <small>one of {}</small>", Escaped(&all));
    }
    page.push_str("</h3>\n<ol class=\"frames\">\n");
    for frame in &look.frames {
        put!(
            page,
            "<li value=\"{}\">{}",
            frame.level,
            Escaped(&frame.place)
        );
        if !frame.source.is_empty() {
            put!(page, "<pre>{}</pre>", Escaped(&frame.source));
        }
        if let Some(locals) = frame.locals.as_ref().filter(|locals| !locals.is_empty()) {
            page.push_str("<table class=\"locals\">\n");
            for (name, value) in locals {
                put!(
                    page,
                    "<tr><td>{}</td><td>{}</td></tr>\n",
                    Escaped(name),
                    Escaped(value)
                );
            }
            page.push_str("</table>");
        }
        page.push_str("</li>\n");
    }
    page.push_str("</ol>\n");
    if look.more {
        page.push_str("<p class=\"note\">Further frames were not read.</p>\n");
    }
}

/// Writes the output of the program, class by class.
pub(super) fn output(page: &mut String, report: &Report) {
    if report.output.is_empty() {
        return;
    }
    page.push_str("<section id=\"output\">\n<h2>Output of the program</h2>\n");
    for class in &report.output {
        let open = class.lines.len() <= OPEN_LINES_MAX;
        put!(
            page,
            "<details{}><summary>{} <small>{}</small></summary>\n<pre>",
            if open { " open=\"open\"" } else { "" },
            Escaped(&report.names.label(&class.tasks, SET_WIDTH)),
            counted(class.lines.len(), "line"),
        );
        for (index, line) in class.lines.iter().enumerate() {
            if index == class.head && class.left_out > 0 {
                let lines = counted(class.left_out, "line");
                put!(page, "<em>... {lines} omitted ...</em>\n");
            }
            printed(page, report, class, line);
        }
        page.push_str("</pre></details>\n");
    }
    page.push_str("</section>\n");
}

fn printed(page: &mut String, report: &Report, class: &OutputClass, line: &OutputLine) {
    if !class.same {
        let who = report.names.text(&line.tasks, 24);
        put!(page, "<b>[{}]</b> ", Escaped(&who));
    }
    let text = printable(&line.bytes);
    match line.stream {
        Stream::Stdout => put!(page, "{}\n", Escaped(&text)),
        Stream::Stderr => put!(page, "<i>{}</i>\n", Escaped(&text)),
    }
}

/// Writes the command line, the machine and the versions.
pub(super) fn run(page: &mut String, report: &Report) {
    page.push_str("<section id=\"run\">\n<h2>The run</h2>\n<table class=\"facts\">\n");
    let mut row = |name: &str, value: &str| {
        let (name, value) = (Escaped(name), Escaped(value));
        put!(page, "<tr><th>{name}</th><td>{value}</td></tr>\n");
    };
    let began = humantime::format_rfc3339_seconds(report.began).to_string();
    row("began", &began);
    if !report.session.is_empty() {
        row("session", &report.session);
    }
    for fact in &report.facts {
        row(&fact.name, &fact.value);
    }
    page.push_str("</table>\n</section>\n");
}

/// Writes the omissions: tasks that were lost, data that was cut.
pub(super) fn left_out(page: &mut String, report: &Report) {
    if report.lost.is_empty() && report.cut.is_empty() {
        return;
    }
    page.push_str("<section id=\"left_out\">\n<h2>Not in this report</h2>\n<ul>\n");
    for (tasks, why) in &report.lost {
        let who = report.names.label(tasks, SET_WIDTH);
        put!(page, "<li>lost: {}: {}</li>\n", Escaped(&who), Escaped(why));
    }
    for text in &report.cut {
        put!(page, "<li>omitted: {}</li>\n", Escaped(text));
    }
    page.push_str("</ul>\n</section>\n");
}

/// Writes the number of rows of a table beyond those shown.
fn more(page: &mut String, count: usize, what: &str) {
    if count > ROWS_MAX {
        let rest = count - ROWS_MAX;
        put!(
            page,
            "<p class=\"note\">and {rest} more {what}; report.json has all.</p>\n"
        );
    }
}
