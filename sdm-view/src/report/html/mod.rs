//! The HTML page: one file, readable without scripts, that loads nothing.
//!
//! It is well-formed XML too. All text of the program or of gdb passes [`Escaped`]. The page's own content
//! security policy forbids scripts and external content.

mod parts;
mod picture;

use super::{Moment, Report};
use crate::item::MergedStacks;
use crate::render::{Style, stack_lines};

pub(super) use crate::markup::Escaped;
use crate::markup::put;

/// The content security policy: nothing is loaded; styles are inline.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
/// The style sheet of the page.
const STYLE: &str = include_str!("style.css");
/// Maximum number of lines of the stack tree.
const TREE_LINES_MAX: usize = 4000;
/// Maximum width of the label of a set, in characters.
const SET_WIDTH: usize = 60;

/// The report as an HTML page.
#[must_use]
pub fn html(report: &Report) -> String {
    let mut page = String::with_capacity(64 << 10);
    head(&mut page, report);
    parts::outcome(&mut page, report);
    parts::first(&mut page, report);
    parts::mpi_errors(&mut page, report);
    parts::diagnosis(&mut page, report);
    if let Some(merged) = &report.stacks {
        stacks(&mut page, report, merged);
    }
    parts::outliers(&mut page, report);
    parts::output(&mut page, report);
    timeline(&mut page, report);
    commands(&mut page, report);
    parts::run(&mut page, report);
    parts::left_out(&mut page, report);
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

fn head(page: &mut String, report: &Report) {
    let title = format!("sdm: {}", report.outcome());
    put!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n\
         <meta charset=\"utf-8\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"referrer\" content=\"no-referrer\"/>\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n",
        Escaped(POLICY),
        Escaped(&title),
    );
}

fn stacks(page: &mut String, report: &Report, merged: &MergedStacks) {
    page.push_str("<section id=\"stacks\">\n<h2>Where the ranks were</h2>\n");
    let noun = if merged.tasks.len() == 1 {
        "tasks"
    } else {
        "ranks"
    };
    put!(
        page,
        "<p class=\"note\">Outermost function on top; the width is the number of {noun} in it. Places with few {noun} \
         are marked.</p>\n",
    );
    picture::picture(page, merged, &report.names);
    parts::places(page, report, merged);
    let style = Style {
        colour: false,
        width: None,
        rows: TREE_LINES_MAX,
    };
    let lines = stack_lines(merged, &report.names, &style);
    page.push_str("<details><summary>As text</summary>\n<pre>");
    for line in lines {
        put!(page, "{}\n", Escaped(&line));
    }
    page.push_str("</pre></details>\n</section>\n");
}

fn timeline(page: &mut String, report: &Report) {
    if report.timeline.is_empty() {
        return;
    }
    put!(
        page,
        "<section id=\"timeline\">\n<h2>What happened</h2>\n<table class=\"timeline\">\n\
         <tr><th>time</th><th>ranks</th><th>event</th></tr>\n"
    );
    for moment in &report.timeline {
        row(page, report, moment);
    }
    page.push_str("</table>\n</section>\n");
}

fn row(page: &mut String, report: &Report, moment: &Moment) {
    let who = match moment.tasks.is_empty() {
        true => String::new(),
        false => report.names.label(&moment.tasks, SET_WIDTH),
    };
    let class = if moment.bad { " class=\"bad\"" } else { "" };
    put!(
        page,
        "<tr{class}><td class=\"num\">{:.3} s</td><td>{}</td><td>{}",
        moment.at.as_secs_f64(),
        Escaped(&who),
        Escaped(&moment.what),
    );
    for line in &moment.below {
        put!(page, "<br/><code>{}</code>", Escaped(line));
    }
    page.push_str("</td></tr>\n");
}

fn commands(page: &mut String, report: &Report) {
    if report.commands.is_empty() {
        return;
    }
    put!(
        page,
        "<section id=\"commands\">\n<h2>Output of commands</h2>\n<details><summary>{} \
         lines</summary>\n<pre>{}</pre></details>\n</section>\n",
        report.commands.lines().count(),
        Escaped(&report.commands),
    );
}
