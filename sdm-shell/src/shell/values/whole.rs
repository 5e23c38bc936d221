//! Compares full values. gdb cuts long values at the same length in all classes, which can hide a difference.

use sdm_debug::calls::is_harmless;
use sdm_debug::reply::{VALUE_BYTES_MAX, Value};
use sdm_debug::{Command, Reply};
use sdm_idset::IdSet;
use sdm_view::compare::{self, Comparison};

use super::fortran;
use crate::shell::invocation::Invocation;
use crate::shell::slices::Slices;
use crate::shell::{SessionHandle, ask};

/// Values, each with the tasks that have it.
pub(super) type Values = Vec<(IdSet, Value)>;

/// Maximum number of classes of which a truncated value is evaluated again in full.
const WHOLES_MAX: usize = 64;
/// True if there are several values, and some are cut.
pub(super) fn differ_beyond_a_cut(values: &Values) -> bool {
    values.len() > 1 && values.iter().any(|(_, value)| value.cut.is_some())
}

/// The differences of the full values from the most frequent one. None without values.
pub(super) async fn compared(
    session: &SessionHandle,
    said: &Invocation<'_>,
    expression: &str,
    values: Values,
) -> Option<Comparison> {
    let values = whole_values(session, said, expression, values).await;
    let mut found = compare::compare(expression, values)?;
    if compare::is_fortran(&found.value) {
        for other in &mut found.others {
            other.path = fortran::path(session, said, expression, other).await;
        }
    }
    Some(found)
}

/// The values to compare. If some are truncated, one task of each class evaluates the full value, in at most
/// [`WHOLES_MAX`] classes. An expression whose second evaluation could have effects is not evaluated again.
async fn whole_values(
    session: &SessionHandle,
    said: &Invocation<'_>,
    expression: &str,
    values: Values,
) -> Vec<(IdSet, String)> {
    let is_cut = differ_beyond_a_cut(&values);
    let slices = Slices::of(expression).ok();
    // The full value needs a second evaluation of the expression.
    let may_ask = is_harmless(expression) || slices.as_ref().is_some_and(|slices| slices.any);
    let question = slices.filter(|slices| is_cut && may_ask && slices.questions.len() == 1);
    let mut wholes = Vec::new();
    for (at, (tasks, value)) in values.into_iter().enumerate() {
        let one = tasks.first().map(IdSet::single).filter(|_| at < WHOLES_MAX);
        let mut text = sdm_view::render::value_text(&value);
        if let (Some(slices), Some(one)) = (&question, one)
            && let Some(whole) = whole_value(session, said, &one, slices).await
        {
            text = whole;
        }
        wholes.push((tasks, text));
    }
    wholes
}

/// The full value of an expression in one task; of a slice from its pieces. None if gdb cannot give it.
async fn whole_value(
    session: &SessionHandle,
    said: &Invocation<'_>,
    one: &IdSet,
    slices: &Slices,
) -> Option<String> {
    let bytes = match slices.element() {
        Some(element) => number_of(session, said, one, format!("sizeof({element})")).await,
        None => None,
    };
    let pieces = slices.pieces(&slices.questions[0], bytes).ok()?;
    let mut texts = Vec::new();
    for piece in pieces {
        let line = format!(
            "with max-value-size {VALUE_BYTES_MAX} -- with print elements unlimited -- output {piece}"
        );
        texts.push(ask::printed(session, said.line, one, line).await?);
    }
    if texts.len() == 1 {
        return texts.pop();
    }
    let is_fortran = texts.first()?.starts_with('(');
    let (open, between, close) = if is_fortran {
        ("(", " ", ")")
    } else {
        ("{", ", ", "}")
    };
    let inner = |text: &String| {
        Some(
            text.trim()
                .strip_prefix(open)?
                .strip_suffix(close)?
                .to_owned(),
        )
    };
    let inner: Option<Vec<String>> = texts.iter().map(inner).collect();
    let inner = inner?;
    let between = if inner.first()?.starts_with(open) {
        between
    } else {
        ", "
    };
    Some(format!("{open}{}{close}", inner.join(between)))
}

/// The value of an expression in a task, as an integer that is not negative. None if gdb gives no such integer.
pub(in crate::shell) async fn number_of(
    session: &SessionHandle,
    said: &Invocation<'_>,
    task: &IdSet,
    expression: String,
) -> Option<u64> {
    let command = Command::Evaluate { expression };
    let answers = session.answers(said.line, task, &command).await;
    answers.iter().find_map(|(_, reply)| match reply {
        Reply::Value(value) => value.text.parse().ok(),
        _ => None,
    })
}
