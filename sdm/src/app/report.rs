//! Facts about the run as a whole, for a report.

use sdm_text::printable_name;
use std::ffi::OsStr;

use sdm_session::SessionConfig;
use sdm_shell::ReportFiles;
use sdm_view::report::{Fact, Report};

use super::local::ThisMachine;
use super::machine::of_machine;
use super::opener::Refused;
use crate::sink::complain;

/// Facts about the machine, the program and its launcher. The launcher's version is queried only if a
/// report is certain to be written.
pub(super) fn facts(program: &OsStr, session: &SessionConfig, sure: bool) -> Vec<Fact> {
    let mut facts = of_machine();
    let found = sdm_launch::find_program(program);
    if let Some(path) = &found {
        facts.push(Fact::new("program", printable_name(path)));
    }
    if let Some(id) = found.and_then(|path| sdm_launch::build_id(&path)) {
        facts.push(Fact::new("build-id", id));
    }
    let launcher = &session.launcher;
    let known = if sure {
        sdm_launch::find(launcher).ok()
    } else {
        None
    };
    let said = known.map_or_else(|| launcher.clone(), |launcher| launcher.describe());
    facts.push(Fact::new("launcher", said));
    facts
}

/// Writes the report of a session that could not be opened.
pub(super) fn of_no_session(files: &ReportFiles, facts: Vec<Fact>, (code, why): &Refused) {
    let report = Report::of_no_session(facts, *code, why.clone());
    if let Err(why) = files.write(&report, &mut ThisMachine(None)) {
        complain(format_args!("sdm: no report: {why}"));
    }
}
