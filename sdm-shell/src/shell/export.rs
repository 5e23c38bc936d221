//! `export` and `plot`: the numeric values of an expression in all tasks.
use std::collections::BTreeMap;

use sdm_debug::rules::NumberArray;
use sdm_debug::{Command, Reply};
use sdm_idset::{IdSet, TaskId};
use sdm_text::printable;
use sdm_view::item::{Gathered, Item, Plot};
use sdm_view::render::Names;

use super::invocation::Invocation;
use super::slices::Slices;
use super::{SessionHandle, Verdict, ask, values};
use crate::export_files::{Exported, NumberKind};

/// Number of tasks that are asked at a time: more distinct answers would not fit into one message.
const TASKS_AT_ONCE: usize = 64;
/// Maximum number of values of all tasks together.
const NUMBERS_MAX: usize = 1 << 24;

/// The numbers of tasks, each with the shape of its array.
type Arrays = BTreeMap<TaskId, NumberArray>;

/// Carries out `export EXPR FILE`.
pub(super) async fn export(
    session: &SessionHandle,
    said: &Invocation<'_>,
    (expression, file): (&str, &str),
) -> Verdict {
    let (verdict, arrays) = match numbers_of(session, said, ("export", expression)).await {
        Ok(found) => found,
        Err(verdict) => return verdict,
    };
    let first = arrays.values().next();
    let shape = first.map(|array| array.shape.clone()).unwrap_or_default();
    if arrays.values().any(|array| array.shape != shape) {
        let text = format!("export: `{expression}` differs in length between ranks");
        return session.complain(
            text,
            "export a slice of equal length: export NAME[0:63] FILE",
        );
    }
    let exported = Exported {
        kind: kind_of(session, said, &arrays, expression).await,
        ranks: arrays.keys().map(|task| task.0).collect(),
        shape,
        values: arrays
            .values()
            .flat_map(|array| &array.elements)
            .copied()
            .collect(),
    };
    let contents = match file.ends_with(".npy") {
        true => exported.npy(),
        false => exported.csv().into_bytes(),
    };
    let name = printable(file.as_bytes());
    if let Err(error) = session.machine(|machine| machine.write_file(file.as_ref(), &contents)) {
        return session.complain(format!("export: cannot write {name}: {error}"), "");
    }
    let who = Names::ranks().label(&arrays.keys().copied().collect(), 60);
    let kind = if exported.is_whole() {
        "integers"
    } else {
        "floating-point numbers"
    };
    let sizes = [exported.ranks.len()].into_iter().chain(exported.shape);
    let sizes: Vec<_> = sizes.map(|size| size.to_string()).collect();
    session.say(&format!(
        "{name} is written: {who}, {} {kind}",
        sizes.join(" x ")
    ));
    verdict
}

/// Carries out `plot EXPR`.
pub(super) async fn plot(
    session: &SessionHandle,
    said: &Invocation<'_>,
    expression: &str,
) -> Verdict {
    let (verdict, arrays) = match numbers_of(session, said, ("plot", expression)).await {
        Ok(found) => found,
        Err(verdict) => return verdict,
    };
    let over_ranks = arrays.values().all(|array| array.shape.is_empty());
    let row = row_of(&arrays);
    let bounds = match over_ranks {
        true => None,
        false => fortran_bounds(session, said, &arrays, expression).await,
    };
    let lines = match over_ranks {
        true => {
            let tasks = arrays.keys().copied().collect();
            let elements = arrays.into_values().flat_map(|array| array.elements);
            vec![(tasks, elements.collect())]
        }
        false => {
            let mut classes: Vec<(IdSet, NumberArray)> = Vec::new();
            for (task, array) in arrays {
                sdm_view::coalesce::join(&mut classes, &IdSet::single(task), array);
            }
            classes.sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then(a.first().cmp(&b.first())));
            classes
                .into_iter()
                .map(|(tasks, array)| (tasks, array.elements))
                .collect()
        }
    };
    session.show(&Item::Plot(Plot {
        expression: expression.to_owned(),
        over_ranks,
        row,
        bounds,
        lines,
    }));
    verdict
}

/// Number of elements in a row, if all arrays have several dimensions and rows of the same length. None otherwise.
fn row_of(arrays: &Arrays) -> Option<usize> {
    let mut rows = arrays.values().map(|array| match &array.shape[..] {
        [_, .., row] => Some(*row),
        _ => None,
    });
    let first = rows.next()??;
    rows.all(|row| row == Some(first)).then_some(first)
}

/// The bounds of an array of Fortran, as the type of the expression has them. None for any other array, and if they
/// differ between tasks.
async fn fortran_bounds(
    session: &SessionHandle,
    said: &Invocation<'_>,
    arrays: &Arrays,
    expression: &str,
) -> Option<String> {
    // gdb does not know the slices of C.
    if expression.contains('[') {
        return None;
    }
    let all: IdSet = arrays.keys().copied().collect();
    let line = format!("whatis {expression}");
    let asked = Command::Console { line };
    let answers = session.answers(said.line, &all, &asked).await;
    let [(tasks, Reply::Text(printed))] = &answers[..] else {
        return None;
    };
    if *tasks != all {
        return None;
    }
    let (_, bounds) = printed.trim_end().strip_suffix(')')?.rsplit_once(" (")?;
    let dimension = |it: &str| match it.split_once(':') {
        Some((low, high)) => {
            low.parse::<i64>().ok()?;
            high.parse::<i64>().ok()?;
            Some(it.to_owned())
        }
        None => it.parse::<i64>().ok().map(|high| format!("1:{high}")),
    };
    let all: Option<Vec<_>> = bounds.split(',').map(|it| dimension(it.trim())).collect();
    all.map(|all| all.join(","))
}

/// The type of the numbers of an expression, by the name of its type: `double [3]`, `std::vector<float, ...>`.
async fn kind_of(
    session: &SessionHandle,
    said: &Invocation<'_>,
    arrays: &Arrays,
    expression: &str,
) -> NumberKind {
    let Some(one) = arrays.keys().next().map(|task| IdSet::single(*task)) else {
        return NumberKind::Other;
    };
    let slices = Slices::of(expression).ok();
    let element = slices.as_ref().and_then(Slices::element);
    let line = format!("ptype {}", element.as_deref().unwrap_or(expression));
    let printed = ask::printed(session, said.line, &one, line).await;
    let printed = printed.unwrap_or_default();
    // The members of a container follow in further lines.
    let name = printed.lines().next().unwrap_or_default();
    let words = || name.split([' ', '<', '>', ',', '[', ']']);
    if words().any(|word| SINGLE.contains(&word)) {
        return NumberKind::Single;
    }
    match words().any(|word| FLOATS.contains(&word) || word.starts_with("real(kind=")) {
        true => NumberKind::Float,
        false => NumberKind::Other,
    }
}

/// Names of the types of four bytes in C, Fortran and Rust.
const SINGLE: [&str; 5] = ["float", "_Float32", "real(kind=4)", "real*4", "f32"];
/// Names of other floating-point types, apart from Fortran's `real(kind=8)`.
const FLOATS: [&str; 9] = [
    "double",
    "_Float16",
    "_Float32x",
    "_Float64",
    "_Float128",
    "__float128",
    "real*8",
    "real*16",
    "f64",
];

/// The numbers of the tasks. Tasks with non-numeric answers are reported and left out. That no task has numbers is an
/// error of the command, which is reported.
async fn numbers_of(
    session: &SessionHandle,
    said: &Invocation<'_>,
    (command, expression): (&str, &str),
) -> Result<(Verdict, Arrays), Verdict> {
    let (verdict, arrays, rest) = answers_of(session, said, expression).await?;
    let answer = rest.ok.first().cloned();
    ask::show_rest(session, rest);
    if arrays.is_empty() {
        let text = format!("{command}: `{expression}` has no numeric value");
        let hint = values::advice::advice(session, said, expression, answer.as_ref()).await;
        return Err(session.complain(text, &hint));
    }
    Ok((verdict, arrays))
}

/// Asks each task for all elements of the expression. The answers without numbers stand apart.
async fn answers_of(
    session: &SessionHandle,
    said: &Invocation<'_>,
    expression: &str,
) -> Result<(Verdict, Arrays, Gathered), Verdict> {
    let slices = match Slices::of(expression) {
        Ok(slices) => slices,
        Err(error) => return Err(session.complain(error.to_string(), "")),
    };
    if let Some(verdict) = values::not_readable(session, said, &slices, expression).await {
        return Err(verdict);
    }
    let mut verdict = Verdict::Done;
    let (to, short) = values::bounds::existing(session, said, &slices, &mut verdict).await;
    let questions = values::questions(session, said, (&to, &slices)).await;
    let questions = questions.map_err(|error| session.complain(error.to_string(), ""))?;
    let mut arrays = Arrays::new();
    let mut rest = Gathered {
        command: said.line.to_owned(),
        to: said.to.clone(),
        ..short
    };
    let ranks: Vec<TaskId> = to.iter().collect();
    let mut numbers = 0_usize;
    for tasks in ranks.chunks(TASKS_AT_ONCE) {
        let tasks: IdSet = tasks.iter().copied().collect();
        let mut found: BTreeMap<TaskId, Vec<NumberArray>> = BTreeMap::new();
        for command in &questions {
            let (one, open) = session.ask_quietly(said.line, &tasks, command).await;
            let Some(open) = open else {
                return Err(one);
            };
            if one != Verdict::Done {
                verdict = one;
            }
            let mut gathered = open.gathered;
            for (tasks, reply) in std::mem::take(&mut gathered.ok) {
                let array = match &reply {
                    Reply::Text(text) => NumberArray::parse(text),
                    _ => None,
                };
                if values::is_cut_text(&reply) {
                    let text = format!("the output of gdb for `{expression}` is too long");
                    return Err(session.complain(text, values::BOUNDS_HINT));
                }
                let Some(array) = array else {
                    sdm_view::coalesce::join(&mut rest.ok, &tasks, reply);
                    continue;
                };
                let size = usize::try_from(tasks.len()).unwrap_or(usize::MAX);
                numbers = numbers.saturating_add(array.elements.len().saturating_mul(size));
                if numbers > NUMBERS_MAX {
                    let text = format!("`{expression}`: more than {NUMBERS_MAX} numbers in total");
                    return Err(
                        session.complain(text, "select fewer ranks: [0-63] before the command")
                    );
                }
                for task in &tasks {
                    found.entry(task).or_default().push(array.clone());
                }
            }
            rest.absorb(gathered);
            if verdict == Verdict::GivenUp || session.is_over() {
                return Err(verdict);
            }
        }
        let whole = found
            .into_iter()
            .filter_map(|(task, parts)| Some((task, joined(parts, &slices, questions.len())?)));
        arrays.extend(whole);
    }
    Ok((verdict, arrays, rest))
}

/// Combines the answers to all commands of an expression into one array: those to a question are pieces of one part.
/// None if one is missing, or if their shapes do not fit.
fn joined(pieces: Vec<NumberArray>, slices: &Slices, asked: usize) -> Option<NumberArray> {
    if pieces.len() != asked {
        return None;
    }
    let rows = pieces.chunks(asked / slices.questions.len().max(1));
    let mut shape: Option<Vec<usize>> = None;
    for row in rows {
        let mut of_row = row.first()?.shape.clone();
        for piece in &row[1..] {
            if piece.shape.get(1..) != of_row.get(1..) {
                return None;
            }
            *of_row.first_mut()? += piece.shape.first()?;
        }
        if shape.get_or_insert_with(|| of_row.clone()) != &of_row {
            return None;
        }
    }
    let shape = slices.outer.iter().copied().chain(shape?).collect();
    let elements = pieces
        .into_iter()
        .flat_map(|piece| piece.elements)
        .collect();
    Some(NumberArray { shape, elements })
}
