//! JUnit XML for build servers: a case for the run, one for each class of ends, and one for each error in
//! the use of MPI.

use std::fmt::Write;

use super::Report;
use super::html::Escaped;
use crate::item::RankRow;
use crate::render::sentence;

/// Maximum number of classes of ends with a test case of their own.
const CASES_MAX: usize = 100;

/// The report as a test suite.
#[must_use]
pub fn junit(report: &Report) -> String {
    let program = report.program.first().map_or("attached", |path| {
        path.rsplit('/').next().unwrap_or(path.as_str())
    });
    let cases: Vec<_> = report.states.iter().take(CASES_MAX).collect();
    let bad = cases.iter().filter(|row| has_failed(row)).count();
    let wrong = report.mpi_errors.len();
    let failures = bad + wrong + usize::from(!report.is_good());
    let seconds = report.took.as_secs_f64();
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let mut line = |text: std::fmt::Arguments<'_>| {
        xml.write_fmt(text).expect("a string takes any text");
        xml.push('\n');
    };
    line(format_args!(
        "<testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\" time=\"{seconds:.3}\">",
        Escaped(program),
        cases.len() + wrong + 1,
    ));
    let of = format!("<testcase classname=\"{}\"", Escaped(program));
    let outcome = report.outcome();
    match report.is_good() {
        true => line(format_args!("{of} name=\"run\" time=\"{seconds:.3}\"/>")),
        false => line(format_args!(
            "{of} name=\"run\" time=\"{seconds:.3}\"><failure message=\"{}\">{}</failure></testcase>",
            Escaped(&outcome),
            Escaped(&super::text(report)),
        )),
    }
    for row in cases {
        let who = report.names.label(&row.tasks, 120);
        let what = said(row);
        if has_failed(row) {
            line(format_args!(
                "{of} name=\"{}\"><failure message=\"{}\"/></testcase>",
                Escaped(&who),
                Escaped(&what),
            ));
        } else {
            line(format_args!("{of} name=\"{}\"/>", Escaped(&who)));
        }
    }
    for error in &report.mpi_errors {
        let who = report.names.label(&error.tasks, 120);
        line(format_args!(
            "{of} name=\"{}\"><failure message=\"{}\"/></testcase>",
            Escaped(&error.what),
            Escaped(&who),
        ));
    }
    line(format_args!("</testsuite>"));
    xml
}

/// True for tasks that crashed, exited with a code other than 0, or were lost. A task that was only stopped
/// at the end has not failed.
fn has_failed(row: &RankRow) -> bool {
    row.health == Some("lost") || row.last.as_ref().is_some_and(|last| sentence(last).bad)
}

fn said(row: &RankRow) -> String {
    match (&row.last, row.health) {
        (_, Some("lost")) => "lost".to_owned(),
        (Some(last), _) => sentence(last).line,
        (None, _) => row.state.name().to_owned(),
    }
}
