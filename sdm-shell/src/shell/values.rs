//! `outliers`, `stats`, `compare`: the values that an expression has in all tasks.
use sdm_debug::reply::Value;
use sdm_debug::rules::{Bins, Merged, NumberArray, RULE_STATS, Stats, is_address};
use sdm_debug::{Command, FailureCode, Reply};
use sdm_idset::IdSet;
use sdm_view::item::{Gathered, Item};
use sdm_view::render::Names;

use super::invocation::Invocation;
use super::model::open_commands::OpenCommand;
use super::slices::{SliceError, Slices, is_cut};
use super::{SessionHandle, Verdict, ask, export};
use crate::commands::ValuesCommand;
use histogram::bins;
pub(super) use whole::number_of;
use whole::{Values, compared, differ_beyond_a_cut};

pub(super) mod advice;
pub(super) mod bounds;
mod fortran;
mod histogram;
mod unread;
mod whole;

/// Advice where a slice is not read in pieces.
pub(super) const BOUNDS_HINT: &str = "give a number for each bound, as in NAME[0:99] or NAME(1:99): the array is then read in pieces";
/// Maximum size of an array that is read as a whole, in bytes. gdb would print a larger one for longer than a command
/// may take.
const WHOLE_BYTES_MAX: u64 = 4 << 20;

/// Carries out `outliers`, `stats`, `compare`, `plot` and `export`.
pub(super) async fn about_values(
    session: &SessionHandle,
    said: &Invocation<'_>,
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

/// `outliers EXPR`: shows the distinct values, largest class first, and the differences of cut ones.
async fn outliers(session: &SessionHandle, said: &Invocation<'_>, expression: String) -> Verdict {
    let Some((verdict, values, rest)) = values_of(session, said, &expression).await else {
        return Verdict::Failed;
    };
    let classes = values.iter().map(|(tasks, _)| tasks.clone()).collect();
    session.edit(|model| model.sets.note_classes(classes));
    if !values.is_empty() {
        let shown = values.iter();
        let shown =
            shown.map(|(tasks, value)| (tasks.clone(), sdm_view::render::value_text(value)));
        session.show(&Item::Values {
            expression: expression.clone(),
            values: shown.collect(),
        });
    }
    if differ_beyond_a_cut(&values)
        && let Some(found) = compared(session, said, &expression, values).await
    {
        session.show(&Item::Comparison(found));
    }
    ask::show_rest(session, rest);
    verdict
}

/// `compare EXPR`: shows the differences from the most frequent value.
async fn compare(session: &SessionHandle, said: &Invocation<'_>, expression: String) -> Verdict {
    let Some((verdict, values, rest)) = values_of(session, said, &expression).await else {
        return Verdict::Failed;
    };
    if let Some(found) = compared(session, said, &expression, values).await {
        let others = found.others.iter().map(|other| other.tasks.clone());
        let classes = std::iter::once(found.reference.clone()).chain(others);
        let classes = classes.collect();
        session.edit(|model| model.sets.note_classes(classes));
        let note = match found.others.is_empty() && found.reference.len() > 1 {
            true => {
                let same = (&found.reference, found.value.as_str());
                advice::not_compared(session, said, &expression, same).await
            }
            false => None,
        };
        session.show(&Item::Comparison(found));
        if let Some(note) = note {
            session.say(&note);
        }
    }
    ask::show_rest(session, rest);
    verdict
}

/// The distinct values of an expression, most frequent first, and the other answers. A slice is evaluated in parts.
/// None after an error in a slice, which is reported, or without a result.
async fn values_of(
    session: &SessionHandle,
    said: &Invocation<'_>,
    expression: &str,
) -> Option<(Verdict, Values, Gathered)> {
    let slices = match Slices::of(expression) {
        Ok(slices) => slices,
        Err(error) => {
            session.complain(error.to_string(), "");
            return None;
        }
    };
    let mut verdict = Verdict::Done;
    let (to, rest) = bounds::existing(session, said, &slices, &mut verdict).await;
    if to.is_empty() && !rest.failed.is_empty() {
        ask::show_rest(session, rest);
        return None;
    }
    let mut parts = Parts {
        verdict,
        classes: Vec::new(),
        rest,
    };
    for expression in &slices.questions {
        let command = Command::Evaluate {
            expression: expression.clone(),
        };
        let (mut verdict, open) = session.ask_quietly(said.line, &to, &command).await;
        let mut gathered = open?.gathered;
        unread::refuse(&mut gathered, expression, &mut verdict);
        parts.take(verdict, gathered);
        if parts.classes.is_empty() || session.is_over() {
            break;
        }
    }
    let Parts {
        verdict,
        classes,
        rest,
    } = parts;
    let classes = classes.into_iter();
    // A Fortran expression has no slices in brackets.
    let brackets = if slices.ranges.is_empty() {
        ["(", ")"]
    } else {
        ["{", "}"]
    };
    let nested = |parts| nested(parts, &slices.outer, brackets);
    let values = classes.filter_map(|(tasks, parts)| Some((tasks, nested(parts)?)));
    let mut values: Values = values.collect();
    values.sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then(a.first().cmp(&b.first())));
    Some((verdict, values, rest))
}

/// Answers to the questions that a slice is expanded into: classes of tasks with equal answers so far.
struct Parts {
    verdict: Verdict,
    classes: Vec<(IdSet, Vec<Value>)>,
    /// Answers without a value: failures, missing and lost tasks.
    rest: Gathered,
}

impl Parts {
    fn take(&mut self, verdict: Verdict, mut rest: Gathered) {
        let is_first = self.rest.command.is_empty() && self.classes.is_empty();
        let mut answers = Vec::new();
        for (tasks, reply) in std::mem::take(&mut rest.ok) {
            match reply {
                Reply::Value(value) => answers.push((tasks, value)),
                other => rest.ok.push((tasks, other)),
            }
        }
        if is_first {
            let first = answers.into_iter();
            self.classes = first.map(|(tasks, value)| (tasks, vec![value])).collect();
        } else {
            let classes = std::mem::take(&mut self.classes);
            for (before, values) in classes {
                for (tasks, value) in &answers {
                    let both = before.intersection(tasks);
                    if !both.is_empty() {
                        let values = values.iter().chain([value]).cloned();
                        self.classes.push((both, values.collect()));
                    }
                }
            }
        }
        if self.verdict == Verdict::Done {
            self.verdict = verdict;
        }
        self.rest.absorb(rest);
    }
}

/// Combines the values of a slice's parts into one array with these outer dimensions. None without values.
fn nested(mut values: Vec<Value>, outer: &[usize], [open, close]: [&str; 2]) -> Option<Value> {
    for size in outer.iter().rev() {
        let rows = values.chunks((*size).max(1));
        let row = |row: &[Value]| Value {
            text: format!("{open}{}{close}", texts(row).join(", ")),
            cut: row.iter().find_map(|value| value.cut),
        };
        values = rows.map(row).collect();
    }
    values.pop()
}

fn texts(values: &[Value]) -> Vec<String> {
    values.iter().map(sdm_view::render::value_text).collect()
}

/// `stats EXPR`: statistics that are merged in the tree.
async fn stats(session: &SessionHandle, said: &Invocation<'_>, expression: String) -> Verdict {
    let slices = match Slices::of(&expression) {
        Ok(slices) => slices,
        Err(error) => return session.complain(error.to_string(), ""),
    };
    if let Some(verdict) = refused(session, said, &slices, &expression).await {
        return verdict;
    }
    let mut all = Verdict::Done;
    let (to, short) = bounds::existing(session, said, &slices, &mut all).await;
    if to.is_empty() && !short.failed.is_empty() {
        ask::show_rest(session, short);
        return Verdict::Failed;
    }
    let (questions, asked) = match asked(session, said, (&to, &slices), &expression).await {
        Ok(asked) => asked,
        Err(verdict) => return verdict,
    };
    let (verdict, mut found, mut rest) = asked;
    // The histogram takes a second evaluation, which must have no effect.
    if let Some(bins) = bins(&found.stats)
        && (slices.any || fortran::is_designator(session, said, &found.tasks, &expression).await)
    {
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
    if rest.ok.iter().any(|(_, reply)| is_cut_text(reply)) {
        let text = format!("stats: the output of gdb for `{expression}` is too long");
        return session.complain(text, BOUNDS_HINT);
    }
    let answer = rest.ok.first().cloned();
    let no_numbers = IdSet::union_all(rest.ok.iter().map(|(who, _)| who));
    rest.absorb(short);
    ask::show_rest(session, rest);
    if no_numbers.is_empty() {
        return if verdict == Verdict::Done {
            all
        } else {
            verdict
        };
    }
    let who = Names::ranks().label(&no_numbers, 60);
    let text = format!("stats: `{expression}` has no numeric value on {who}");
    let hint = advice::advice(session, said, &expression, answer.as_ref()).await;
    session.complain(text, &hint)
}

/// The statistics of an expression, with the questions that gave them: an array or a container is asked for all of its
/// elements. An error is reported.
async fn asked(
    session: &SessionHandle,
    said: &Invocation<'_>,
    (to, slices): (&IdSet, &Slices),
    expression: &str,
) -> Result<(Vec<Command>, (Verdict, StatsOf, Gathered)), Verdict> {
    if slices.any {
        let questions = questions(session, said, (to, slices)).await;
        let questions =
            questions.map_err(|error| session.complain(format!("stats: {error}"), ""))?;
        let asked = stats_of(session, said, to, &questions, None).await;
        return Ok((questions, asked.ok_or(Verdict::Failed)?));
    }
    let mut commands = vec![Command::Evaluate {
        expression: expression.to_owned(),
    }];
    let mut asked = stats_of(session, said, to, &commands, None).await;
    let is_more =
        |(_, _, rest): &(_, _, Gathered)| rest.ok.iter().any(|(_, reply)| may_be_numbers(reply));
    if asked.as_ref().is_some_and(is_more)
        && fortran::is_designator(session, said, to, expression).await
    {
        if let Some(verdict) = not_readable(session, said, slices, expression).await {
            return Err(verdict);
        }
        let all = questions(session, said, (to, slices)).await;
        commands = all.map_err(|error| session.complain(format!("stats: {error}"), ""))?;
        asked = stats_of(session, said, to, &commands, None).await;
    }
    Ok((commands, asked.ok_or(Verdict::Failed)?))
}

/// The commands for all numbers of an expression. gdb prints bytes as text and booleans as words unless a
/// signed or unsigned format is requested.
///
/// # Errors
/// [`SliceError::TooLarge`], [`SliceError::NoLength`].
pub(super) async fn questions(
    session: &SessionHandle,
    said: &Invocation<'_>,
    (to, slices): (&IdSet, &Slices),
) -> Result<Vec<Command>, SliceError> {
    let one = to.first().map(IdSet::single).unwrap_or_default();
    let Some(element) = slices.element() else {
        return slices.commands(whole_format(session, said, &one, slices).await?, None);
    };
    let bytes = number_of(session, said, &one, format!("sizeof({element})")).await;
    let format = match bytes {
        Some(1) => {
            let is_unsigned = format!("0 + ((__typeof__({element}))-1 > 0)");
            match number_of(session, said, &one, is_unsigned).await {
                Some(0) => "/d",
                Some(_) => "/u",
                None => "",
            }
        }
        _ => "",
    };
    slices.commands(format, bytes)
}

/// The format for a whole array. It is empty but for signed or unsigned bytes, as of `int8_t`; an array of `char` is a
/// text.
///
/// # Errors
/// [`SliceError::NoLength`].
async fn whole_format(
    session: &SessionHandle,
    said: &Invocation<'_>,
    one: &IdSet,
    slices: &Slices,
) -> Result<&'static str, SliceError> {
    let Some(expression) = slices.questions.first().filter(|_| !slices.any) else {
        return Ok("");
    };
    let line = format!("ptype {expression}");
    let kind = ask::printed(session, said.line, one, line).await;
    let kind = kind.unwrap_or_default();
    match kind.trim_end().strip_prefix("type = ") {
        // gdb prints the address of such an array in the form of a number.
        Some(kind) if has_no_length(kind) => Err(SliceError::NoLength(expression.clone())),
        Some(kind) if kind.starts_with("signed char [") => Ok("/d"),
        Some(kind) if kind.starts_with("unsigned char [") => Ok("/u"),
        _ => Ok(""),
    }
}

/// True for the type of an array without a length, as of a flexible array member: `double []`, `int [0][3]`.
fn has_no_length(kind: &str) -> bool {
    let bounds = kind.rfind(['*', ')', '}']).map_or(kind, |at| &kind[at..]);
    bounds.ends_with(']')
        && (bounds.contains("[]") || bounds.contains("[0]"))
        && !bounds.starts_with(')')
}

/// Reports a slice that gdb would read wrongly, and an array without a slice that is too large to be read as a whole,
/// by its size in the first task. None otherwise, also where gdb cannot tell the size.
pub(super) async fn not_readable(
    session: &SessionHandle,
    said: &Invocation<'_>,
    slices: &Slices,
    expression: &str,
) -> Option<Verdict> {
    if slices.any {
        return refused(session, said, slices, expression).await;
    }
    let one = said.to.first()?;
    let size = format!("sizeof({expression})");
    let bytes = number_of(session, said, &IdSet::single(one), size).await?;
    if bytes <= WHOLE_BYTES_MAX {
        return None;
    }
    let text =
        format!("`{expression}` has {bytes} bytes on each rank, too many to be read at once");
    let hint = format!("ask for a part: {expression}[0:9999], in Fortran {expression}(1:9999)");
    Some(session.complain(text, &hint))
}

/// Reports an array section of Fortran that gdb would read wrongly, by one evaluation that fails with the
/// reason. Returns None if gdb reads it correctly.
pub(super) async fn refused(
    session: &SessionHandle,
    said: &Invocation<'_>,
    slices: &Slices,
    expression: &str,
) -> Option<Verdict> {
    if !slices.any || slices.questions != [expression] {
        return None;
    }
    let command = Command::Evaluate {
        expression: expression.to_owned(),
    };
    let (_, open) = session.ask_quietly(said.line, &said.to, &command).await;
    let failed = open?.gathered.failed.into_iter();
    let mut refused = failed.filter(|(_, failure)| failure.code == FailureCode::Unsupported);
    let (_, failure) = refused.next()?;
    Some(session.complain(failure.text, &failure.hint))
}

/// True for an answer whose text is not complete.
pub(super) fn is_cut_text(reply: &Reply) -> bool {
    matches!(reply, Reply::Text(text) if is_cut(text))
}

/// True for a value that begins as an array or a container of numbers, as bytes in the form of a text, or as a number
/// in hexadecimal digits, which a pointer has too.
fn may_be_numbers(reply: &Reply) -> bool {
    let Reply::Value(value) = reply else {
        return false;
    };
    let text = &value.text;
    NumberArray::is_begun(text) || text.starts_with('"') || is_address(text)
}

/// Statistics with their tasks.
#[derive(Default)]
struct StatsOf {
    tasks: IdSet,
    stats: Stats,
}

/// The statistics of the answers to these questions, and the other answers to the last question. None if a question is
/// no longer in progress after the wait for it.
async fn stats_of(
    session: &SessionHandle,
    said: &Invocation<'_>,
    to: &IdSet,
    questions: &[Command],
    bins: Option<Bins>,
) -> Option<(Verdict, StatsOf, Gathered)> {
    let params = bins.map(|bins| bins.encode()).unwrap_or_default();
    let mut stats = Stats::over(bins);
    let mut all = IdSet::new();
    let (mut verdict, mut rest) = (Verdict::Done, Gathered::default());
    for question in questions {
        let by_rule = (RULE_STATS, params.clone());
        let (one, open) = session.ask_merged(said.line, to, question, by_rule).await;
        let OpenCommand { mut gathered, .. } = open?;
        for (tasks, merged) in std::mem::take(&mut gathered.merged) {
            if let Merged::Stats(part) = merged
                && stats.absorb(&part).is_ok()
            {
                all.union_with(&tasks);
            }
        }
        // A value that is not a number remains an answer of its own.
        for (tasks, reply) in std::mem::take(&mut gathered.ok) {
            let own = Stats::of(&tasks, &reply, bins);
            match own.and_then(|own| stats.absorb(&own)) {
                Ok(()) => all.union_with(&tasks),
                Err(_) => gathered.ok.push((tasks, reply)),
            }
        }
        (verdict, rest) = (one, gathered);
        if verdict != Verdict::Done || session.is_over() {
            break;
        }
    }
    Some((verdict, StatsOf { tasks: all, stats }, rest))
}
