//! Lists that are shown once, or after each change.

use std::time::Duration;

use sdm_rm::{Answer, Look, Question};
use sdm_runtime::states::Manager;
use serde_json::Value;

use super::choose::{ANSWER_WAIT, ask, look};
use super::error::ClusterError;
use super::for_each::REFUSED;
use super::list::Which;
use super::table::Table;
use super::times;
use crate::cli::ListArgs;
use crate::sink::{Sink, complain};

/// Interval at which watched managers are queried, in milliseconds.
const WATCH_PERIOD_MS: u64 = 1000;
/// The control sequence that clears the screen and moves the cursor to the upper left.
pub(super) const CLEARED: &[u8] = b"\x1b[H\x1b[2J";

/// Prints a list of nodes, queues or jobs, once or after each change. Returns the exit code.
pub(super) fn shown(args: &ListArgs, which: Which) -> Result<u8, ClusterError> {
    let make = |answers: &[Answer]| match args.json {
        true => Shown::Json(which.json(answers)),
        false => Shown::Table(
            which.table(answers, times::now()),
            which.nothing().to_owned(),
        ),
    };
    list(args, &[Look::at(which.kinds())], make)
}

/// The output for the managers' answers.
pub(super) enum Shown {
    /// A table, and the text for an empty one.
    Table(Table, String),
    /// A document.
    Json(Value),
}

/// Shows the output that `make` creates from the managers' answers.
pub(super) fn list(
    args: &ListArgs,
    looks: &[Look],
    make: impl Fn(&[Answer]) -> Shown,
) -> Result<u8, ClusterError> {
    let named = args.of.manager.as_deref();
    let clears = args.watch && !args.json && Sink::Output.is_terminal();
    let mut last = None;
    loop {
        let answers = look(named, looks)?;
        let unknown = answers.iter().filter(|answer| is_unknown(answer)).count();
        // Without any answer no table is shown: an empty one would claim that nothing exists.
        let is_shown = unknown < answers.len() || args.json;
        let whole = |answers: &[Answer]| match is_shown {
            true => text(make(answers), answers),
            false => String::new(),
        };
        let ageless = whole(&without_age(&answers));
        if last.as_ref() != Some(&ageless) {
            if clears {
                Sink::Output.pass(CLEARED).map_err(ClusterError::Output)?;
            }
            let shown = whole(&answers);
            Sink::Output.show(&shown).map_err(ClusterError::Output)?;
            say_trouble(&answers);
            last = Some(ageless);
        }
        if !args.watch {
            return Ok(if unknown > 0 { REFUSED } else { 0 });
        }
        wait(&answers);
    }
}

fn text(shown: Shown, answers: &[Answer]) -> String {
    let table = match shown {
        Shown::Json(document) => return format!("{document}\n"),
        Shown::Table(table, nothing) if table.is_empty() => format!("{nothing}\n"),
        Shown::Table(table, _) => table.render(Sink::Output.size().map(|(columns, _)| columns)),
    };
    table + &age(answers)
}

/// The answers without their ages, so that a watched list is shown again only after another change.
fn without_age(answers: &[Answer]) -> Vec<Answer> {
    let mut answers = answers.to_vec();
    answers
        .iter_mut()
        .for_each(|answer| answer.manager.age_ms = None);
    answers
}

/// The line below a table with the age of each cluster's state; empty if none is known.
fn age(answers: &[Answer]) -> String {
    let of = |answer: &Answer| {
        let age = times::age(answer.manager.age_ms?);
        Some(match answers.len() {
            1 => age,
            _ => format!("{} {age}", answer.manager.name),
        })
    };
    let ages: Vec<String> = answers.iter().filter_map(of).collect();
    match ages.is_empty() {
        true => String::new(),
        false => format!("age: {}\n", ages.join(", ")),
    }
}

/// True if a manager's elements are unknown because of an error.
fn is_unknown(answer: &Answer) -> bool {
    answer.manager.state == Manager::Error && !answer.manager.stale
}

/// Reports managers with errors, with the reasons.
fn say_trouble(answers: &[Answer]) {
    for answer in answers.iter().filter(|answer| is_unknown(answer)) {
        let it = &answer.manager;
        let why = it.reason.as_deref().unwrap_or("the reason is unknown");
        let since = times::moment(it.since);
        complain(format_args!(
            "sdm: cluster {name}: ERROR since {since}: {why}; `sdm cluster start {name}` reconnects",
            name = it.name
        ));
    }
    say_stale(answers);
}

/// Reports clusters whose elements are out of date, with the reason.
fn say_stale(answers: &[Answer]) {
    for answer in answers.iter().filter(|answer| answer.manager.stale) {
        let it = &answer.manager;
        let why = it.reason.as_deref().unwrap_or("the reason is unknown");
        let state = it.state.word();
        let since = times::moment(it.since);
        complain(format_args!(
            "sdm: cluster {name}: data as of {since} ({state}: {why}); `sdm cluster start {name}` reconnects",
            name = it.name
        ));
    }
}

/// Waits for a second, because elapsed times grow. If there is a single manager, its next change ends the wait earlier.
fn wait(answers: &[Answer]) {
    let Some(first) = answers.first() else {
        return;
    };
    let question = Question::Changed {
        since: first.version,
        wait_ms: WATCH_PERIOD_MS,
    };
    // With several managers, or if this one is gone, the period is waited for instead.
    let asked = match answers.len() {
        1 => ask(&first.manager.name, &question, ANSWER_WAIT).is_ok(),
        _ => false,
    };
    if !asked {
        std::thread::sleep(Duration::from_millis(WATCH_PERIOD_MS));
    }
}
