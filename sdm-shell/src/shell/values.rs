//! `outliers`, `stats`, `compare`: the values that an expression has in all tasks.
use sdm_debug::rules::{Bins, Extreme, NumberArray, RULE_STATS, Stats, rule};
use sdm_debug::{Command, Reply, wire};
use sdm_idset::IdSet;
use sdm_view::item::{Gathered, Item};

use super::model::open_commands::OpenCommand;
use super::said::Said;
use super::slices::Slices;
use super::{SessionHandle, Verdict, ask, export};
use crate::commands::ValuesCommand;

/// Who has which value.
type Values = Vec<(IdSet, String)>;

/// How many bins a histogram has.
const BINS: u16 = 12;
/// The most bytes of merged statistics.
const STATS_BYTES_MAX: usize = 64 << 20;

/// `outliers`, `stats`, `compare`, `plot`, `export`.
pub(super) async fn about_values(
    session: &SessionHandle,
    said: &Said<'_>,
    command: ValuesCommand,
) -> Verdict {
    match command {
        ValuesCommand::Outliers(expression) => outliers(session, said, expression).await,
        ValuesCommand::Stats(expression) => stats(session, said, expression).await,
        ValuesCommand::Compare(expression) => compare(session, said, expression).await,
        ValuesCommand::Plot(expression) => export::plot(session, said, &expression).await,
        ValuesCommand::Export { expression, file } => {
            export::export(session, said, (&expression, &file)).await
        }
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
    ask::show_rest(session, rest);
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
    ask::show_rest(session, rest);
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
    let slices = match Slices::of(&expression) {
        Ok(slices) => slices,
        Err(error) => return session.complain(error.to_string(), ""),
    };
    let questions = match slices.any {
        true => slices.commands(),
        false => vec![Command::Evaluate {
            expression: expression.clone(),
        }],
    };
    let asked = stats_of(session, said, &said.to, &questions, None).await;
    let Some((verdict, mut found, mut rest)) = asked else {
        return Verdict::Failed;
    };
    if let Some(bins) = bins(&found.stats) {
        let again = stats_of(session, said, &found.tasks, &questions, Some(bins)).await;
        if let Some((Verdict::Done, again, _)) = again {
            found = again;
        }
    }
    let StatsOf { tasks, stats } = found;
    if !stats.is_empty() {
        session.show(&Item::Stats {
            expression: expression.clone(),
            tasks,
            stats: Box::new(stats),
        });
    }
    let ok = std::mem::take(&mut rest.ok).into_iter();
    let (arrays, ok): (Vec<_>, Vec<_>) = ok.partition(|(_, reply)| is_array(reply));
    rest.ok = ok;
    ask::show_rest(session, rest);
    match arrays.first() {
        Some(array) => complain_of_array(session, said, array, &expression).await,
        None => verdict,
    }
}

/// True for the value of an array, which is no number.
fn is_array(reply: &Reply) -> bool {
    match reply {
        Reply::Value(value) => {
            let is_cut = value.cut.is_some() || value.text.contains("...");
            let begins = value.text.starts_with(['{', '(']) && !value.text.contains(" = ");
            begins && (is_cut || NumberArray::parse(&value.text).is_some())
        }
        _ => false,
    }
}

/// `stats` is of numbers: says how those of an array are meant, which these answered.
async fn complain_of_array(
    session: &SessionHandle,
    said: &Said<'_>,
    (tasks, array): &(IdSet, Reply),
    expression: &str,
) -> Verdict {
    let is_fortran = matches!(array, Reply::Value(value) if value.text.starts_with('('));
    let slice = match is_fortran {
        true => format!("{expression}(FIRST:LAST)"),
        false => match last_index(session, said, tasks, expression).await {
            Some(last) => format!("{expression}[0:{last}]"),
            None => format!("{expression}[FIRST:LAST]"),
        },
    };
    let hint = format!("`stats {slice}` is over its elements and ranks");
    session.complain(format!("stats: `{expression}` is an array"), &hint)
}

/// The last index of an array of C or C++, as one of these tasks has it.
async fn last_index(
    session: &SessionHandle,
    said: &Said<'_>,
    tasks: &IdSet,
    expression: &str,
) -> Option<u64> {
    let length = Command::Evaluate {
        expression: format!("sizeof({expression})/sizeof(({expression})[0])"),
    };
    let one = tasks.first().map(IdSet::single)?;
    let answers = session.answers(said.line, &one, &length).await;
    answers.iter().find_map(|(_, reply)| match reply {
        Reply::Value(value) => value.text.parse::<u64>().ok()?.checked_sub(1),
        _ => None,
    })
}

/// Statistics, and of whom.
#[derive(Default)]
struct StatsOf {
    tasks: IdSet,
    stats: Stats,
}

/// The statistics of what is answered to some questions, and what was answered otherwise to the last of them.
async fn stats_of(
    session: &SessionHandle,
    said: &Said<'_>,
    to: &IdSet,
    questions: &[Command],
    bins: Option<Bins>,
) -> Option<(Verdict, StatsOf, Gathered)> {
    let params = bins.map(|bins| bins.encode()).unwrap_or_default();
    let rule = rule(RULE_STATS, &params)?;
    let mut acc = rule.start();
    let mut all = IdSet::new();
    let (mut verdict, mut rest) = (Verdict::Done, Gathered::default());
    for question in questions {
        let by_rule = (RULE_STATS, params.clone());
        let (one, open) = session.ask_merged(said.line, to, question, by_rule).await;
        let OpenCommand { mut gathered, .. } = open?;
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
        (verdict, rest) = (one, gathered);
        if verdict != Verdict::Done || session.is_over() {
            break;
        }
    }
    let bytes = rule.finish(acc, STATS_BYTES_MAX);
    let stats = Stats::decode(&all, &bytes).unwrap_or_default();
    Some((verdict, StatsOf { tasks: all, stats }, rest))
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
