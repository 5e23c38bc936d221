//! `outliers`, `stats`, `compare`: the values that an expression has in all tasks.
use sdm_debug::rules::{Bins, Extreme, RULE_STATS, Stats, rule};
use sdm_debug::{Command, Reply, wire};
use sdm_idset::IdSet;
use sdm_view::item::{Gathered, Item};

use super::model::open_commands::OpenCommand;
use super::said::Said;
use super::{SessionHandle, Verdict};
use crate::commands::ValuesCommand;

/// Who has which value.
type Values = Vec<(IdSet, String)>;

/// How many bins a histogram has.
const BINS: u16 = 12;
/// The most bytes of merged statistics.
const STATS_BYTES_MAX: usize = 64 << 20;

/// `outliers`, `stats`, `compare`.
pub(super) async fn about_values(
    session: &SessionHandle,
    said: &Said<'_>,
    command: ValuesCommand,
) -> Verdict {
    match command {
        ValuesCommand::Outliers(expression) => outliers(session, said, expression).await,
        ValuesCommand::Stats(expression) => stats(session, said, expression).await,
        ValuesCommand::Compare(expression) => compare(session, said, expression).await,
    }
}

/// `outliers EXPR`: the distinct values, biggest class first.
async fn outliers(session: &SessionHandle, said: &Said<'_>, expression: String) -> Verdict {
    let Some((verdict, values, rest)) = values_of(session, said, &expression).await else {
        return Verdict::Failed;
    };
    let classes = values.iter().map(|(tasks, _)| tasks.clone()).collect();
    session.edit(|model| model.sets.note_classes(classes));
    if !values.is_empty() {
        session.show(&Item::Values { expression, values });
    }
    show_rest(session, rest);
    verdict
}

/// `compare EXPR`: where the values differ from what most have.
async fn compare(session: &SessionHandle, said: &Said<'_>, expression: String) -> Verdict {
    let Some((verdict, values, rest)) = values_of(session, said, &expression).await else {
        return Verdict::Failed;
    };
    if let Some(found) = sdm_view::compare::compare(&expression, values) {
        let others = found.others.iter().map(|other| other.tasks.clone());
        let classes = std::iter::once(found.reference.clone()).chain(others);
        let classes = classes.collect();
        session.edit(|model| model.sets.note_classes(classes));
        session.show(&Item::Comparison(found));
    }
    show_rest(session, rest);
    verdict
}

/// The distinct values of an expression, and what else was answered.
async fn values_of(
    session: &SessionHandle,
    said: &Said<'_>,
    expression: &str,
) -> Option<(Verdict, Values, Gathered)> {
    let command = Command::Evaluate {
        expression: expression.to_owned(),
    };
    let (verdict, open) = session.ask_quietly(said.line, &said.to, &command).await;
    let mut rest = open?.gathered;
    let mut values = Vec::new();
    for (tasks, reply) in std::mem::take(&mut rest.ok) {
        match reply {
            Reply::Value(value) => values.push((tasks, sdm_view::render::value_text(&value))),
            other => rest.ok.push((tasks, other)),
        }
    }
    values.sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then(a.first().cmp(&b.first())));
    Some((verdict, values, rest))
}

/// `stats EXPR`: merged on their way up; the histogram takes a second question.
async fn stats(session: &SessionHandle, said: &Said<'_>, expression: String) -> Verdict {
    let asked = stats_of(session, said, &said.to, &expression, None).await;
    let Some((verdict, mut stats, rest)) = asked else {
        return Verdict::Failed;
    };
    if let Some(bins) = bins(&stats) {
        let failed = rest.failed.iter().map(|(tasks, _)| tasks);
        let numbers = said.to.difference(&IdSet::union_all(failed));
        let again = stats_of(session, said, &numbers, &expression, Some(bins)).await;
        if let Some((Verdict::Done, again, _)) = again {
            stats = again;
        }
    }
    if !stats.is_empty() {
        session.show(&Item::Stats {
            expression,
            stats: Box::new(stats),
        });
    }
    show_rest(session, rest);
    verdict
}

async fn stats_of(
    session: &SessionHandle,
    said: &Said<'_>,
    to: &IdSet,
    expression: &str,
    bins: Option<Bins>,
) -> Option<(Verdict, Stats, Gathered)> {
    let command = Command::Evaluate {
        expression: expression.to_owned(),
    };
    let params = bins.map(|bins| bins.encode()).unwrap_or_default();
    let by_rule = (RULE_STATS, params.clone());
    let (verdict, open) = session.ask_merged(said.line, to, &command, by_rule).await;
    let OpenCommand { mut gathered, .. } = open?;
    let rule = rule(RULE_STATS, &params)?;
    let mut acc = rule.start();
    let mut all = IdSet::new();
    for (tasks, bytes) in std::mem::take(&mut gathered.merged) {
        if rule.merge(&mut acc, &tasks, &bytes).is_ok() {
            all.union_with(&tasks);
        }
    }
    // What is no number stays an answer of its own.
    for (tasks, reply) in std::mem::take(&mut gathered.ok) {
        match rule.merge(&mut acc, &tasks, &wire::encode(&reply)) {
            Ok(()) => all.union_with(&tasks),
            Err(_) => gathered.ok.push((tasks, reply)),
        }
    }
    let bytes = rule.finish(acc, STATS_BYTES_MAX);
    let stats = Stats::decode(&all, &bytes).unwrap_or_default();
    Some((verdict, stats, gathered))
}

/// Shows who answered something else, or did not.
pub(super) fn show_rest(session: &SessionHandle, rest: Gathered) {
    let empty = rest.ok.is_empty()
        && rest.failed.is_empty()
        && rest.missing.is_empty()
        && rest.lost.is_empty()
        && rest.others.is_empty();
    if !empty {
        session.show_quietly(&Item::Answer(rest));
    }
}

/// Bins from the smallest to the largest number.
fn bins(stats: &Stats) -> Option<Bins> {
    let value = |extreme: &Option<Extreme>| extreme.as_ref().map(|e| e.value.to_f64());
    let bins = Bins {
        low: value(&stats.min)?,
        high: value(&stats.max)?,
        count: BINS,
    };
    Bins::decode(&bins.encode())
}
