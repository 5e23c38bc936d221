//! `outliers`, `stats`, `compare`: what a value is on all tasks.

use sdm_debug::rules::{Bins, Extreme, RULE_STATS, Stats, rule};
use sdm_debug::{Command, Reply, wire};
use sdm_idset::IdSet;
use sdm_session::Debug;
use sdm_view::compare::compare;
use sdm_view::item::{Gathered, Item};

use super::open::Open;
use super::run::Said;
use super::{Shell, Verdict};

/// Who has which value.
type Values = Vec<(IdSet, String)>;

/// How many bins a histogram has.
const BINS: u16 = 12;
/// The most bytes of merged statistics.
const STATS_BYTES_MAX: usize = 64 << 20;

impl<D: Debug> Shell<D> {
    /// `outliers EXPR`: the distinct values, biggest class first.
    pub(super) fn outliers(&mut self, said: &Said<'_>, expression: String) -> Verdict {
        let Some((verdict, values, rest)) = self.values_of(said, &expression) else {
            return Verdict::Failed;
        };
        self.note_classes(values.iter().map(|(tasks, _)| tasks.clone()).collect());
        if !values.is_empty() {
            self.show(&Item::Values { expression, values });
        }
        self.show_rest(rest);
        verdict
    }

    /// `compare EXPR`: where the values differ from what most have.
    pub(super) fn compare(&mut self, said: &Said<'_>, expression: String) -> Verdict {
        let Some((verdict, values, rest)) = self.values_of(said, &expression) else {
            return Verdict::Failed;
        };
        if let Some(found) = compare(&expression, values) {
            let others = found.others.iter().map(|other| other.tasks.clone());
            let classes = std::iter::once(found.reference.clone()).chain(others);
            self.note_classes(classes.collect());
            self.show(&Item::Comparison(found));
        }
        self.show_rest(rest);
        verdict
    }

    /// The distinct values of an expression, and what else was answered.
    fn values_of(
        &mut self,
        said: &Said<'_>,
        expression: &str,
    ) -> Option<(Verdict, Values, Gathered)> {
        let command = Command::Evaluate {
            expression: expression.to_owned(),
        };
        let (verdict, open) = self.ask_quietly(said.line, &said.to, &command);
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
    pub(super) fn stats(&mut self, said: &Said<'_>, expression: String) -> Verdict {
        let asked = self.stats_of(said, &said.to, &expression, None);
        let Some((verdict, mut stats, rest)) = asked else {
            return Verdict::Failed;
        };
        if let Some(bins) = bins(&stats) {
            let failed = rest.failed.iter().map(|(tasks, _)| tasks);
            let numbers = said.to.difference(&IdSet::union_all(failed));
            let again = self.stats_of(said, &numbers, &expression, Some(bins));
            if let Some((Verdict::Done, again, _)) = again {
                stats = again;
            }
        }
        if !stats.is_empty() {
            self.show(&Item::Stats {
                expression,
                stats: Box::new(stats),
            });
        }
        self.show_rest(rest);
        verdict
    }

    fn stats_of(
        &mut self,
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
        let (verdict, open) = self.ask_merged(said.line, to, &command, by_rule);
        let Open { mut gathered, .. } = open?;
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
    fn show_rest(&mut self, rest: Gathered) {
        let empty = rest.ok.is_empty()
            && rest.failed.is_empty()
            && rest.missing.is_empty()
            && rest.lost.is_empty()
            && rest.others.is_empty();
        if !empty {
            self.show_quietly(&Item::Answer(rest));
        }
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
