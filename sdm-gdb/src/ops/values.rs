//! Evaluates expressions and lists variables: values as gdb prints them.

use std::borrow::Cow;
use std::time::Duration;

use sdm_debug::quotes::{bare, is_left_out, referred};
use sdm_debug::reply::{
    ARRAY_BYTES_MAX, BY_TEXT, MEMORY_BYTES_MAX, PRINTED_PART, VALUE_BYTES_MAX, Value,
};
use sdm_debug::{Failure, FailureCode, Reply};
use xxhash_rust::xxh3::Xxh3Default;

use super::output::unchecked;
use super::{history, pointers, references, return_values, strides, variables};
use crate::gdb::Gdb;
use crate::state::console_capture::CapturedOutput;
use crate::text::{console_line, last_text, value, variable};
use sdm_mi::{Results, quote};

/// Maximum number of elements of each part of a listed variable that are compared between tasks. A C array without
/// pointers is compared by its whole memory.
const COMPARED_ELEMENTS: &str = "10000";
/// The same of a value that is printed or evaluated.
const UNLIMITED: &str = "unlimited";
/// Maximum number of characters of a listed string that are compared between tasks.
const COMPARED_CHARACTERS: &str = "200000";
/// Time that gdb has to print a variable for the comparison. When it is over, the variable is compared by its shown
/// text.
const BEGINNING_WAIT: Duration = Duration::from_secs(2);

/// The arguments of the selected frame, or its other variables.
pub(crate) async fn variables(gdb: &Gdb, arguments: bool) -> Result<Reply, Failure> {
    let mut variables = Vec::new();
    for results in variables::variables(gdb, arguments).await? {
        let mut variable = variable(&results);
        let text = referred(results.text("value").unwrap_or_default());
        if is_left_out(text) {
            let whole = beginning(gdb, &variable.name, text).await;
            let printed = |(_, hash)| (PRINTED_PART, hash);
            let known = whole.unwrap_or_else(|| variable.value.cut.map_or(BY_TEXT, printed));
            variable.value.cut = Some(known);
        }
        variables.push(variable);
    }
    // MI lists neither constants nor variables that the compiler has optimised out.
    let what = if arguments { "args" } else { "locals" };
    match variables::printed(gdb, variables::SCALARS, &format!("info {what}")).await {
        Ok(printed) => variables = variables::completed(variables, &printed, false),
        Err(failure) if variables::is_missing(&failure) => {
            variables.push(variables::missing(&failure))
        }
        Err(failure) => return Err(failure),
    }
    Ok(Reply::Variables(variables))
}

/// Output of gdb's `print` for an expression, as [`history::shown`] gives it.
pub(crate) async fn print(gdb: &Gdb, format: &str, expression: &str) -> Result<Reply, Failure> {
    if !format.is_empty() {
        let printed = print_as(gdb, &format!("print/{format}"), expression).await?;
        return Ok(Reply::Text(printed));
    }
    let (number, printed) = print_numbered(gdb, "print", expression).await?;
    let mut value = value(&printed);
    if let Some(number) = number.filter(|_| is_left_out(&printed)) {
        value.cut = Some(content(gdb, &format!("${number}"), &printed).await);
    }
    Ok(Reply::Value(value))
}

/// Length and hash of a whole value of which gdb printed only the beginning, so that values that differ later compare
/// as different. An unknown whole value is equal to no other, not even in another task.
async fn content(gdb: &Gdb, expression: &str, printed: &str) -> (u64, u64) {
    let unknown = || (0, gdb.get().pid().map_or(0, i64::from).cast_unsigned());
    match strides::is_harmless(gdb, expression).await {
        true => known_content(gdb, expression, printed).await,
        false => None,
    }
    .unwrap_or_else(unknown)
}

/// Length and hash of a whole value; `None` if they cannot be found. For an array without pointers its memory is
/// hashed, for any other value the full text that gdb prints.
async fn known_content(gdb: &Gdb, expression: &str, printed: &str) -> Option<(u64, u64)> {
    let wait = gdb.get().config.command_wait;
    if is_array(printed) {
        return in_memory(gdb, expression, wait).await;
    }
    as_printed(gdb, (expression, printed), UNLIMITED, wait).await
}

/// Length and hash of a longer part of a value than is shown, so that variables that differ only there compare as
/// different. A large object is not read to its end, which would cost too much. `None` if the part cannot be read.
async fn beginning(gdb: &Gdb, name: &str, shown: &str) -> Option<(u64, u64)> {
    let wait = gdb.get().config.command_wait.min(BEGINNING_WAIT);
    if is_array(shown) {
        return in_memory(gdb, name, wait).await;
    }
    let is_text = ["\"", "'", "0x"].iter().any(|it| shown.starts_with(it));
    let elements = if is_text {
        COMPARED_CHARACTERS
    } else {
        COMPARED_ELEMENTS
    };
    as_printed(gdb, (name, shown), elements, wait).await
}

/// Length and hash of a value as gdb prints it with at most `elements` elements of each part, to any depth. `None` if
/// gdb leaves a part out, or cannot print the value in time.
async fn as_printed(
    gdb: &Gdb,
    (expression, shown): (&str, &str),
    elements: &str,
    wait: Duration,
) -> Option<(u64, u64)> {
    // In the shown value references may be followed already.
    let may_refer = shown.contains(" = ") || shown.starts_with(['(', '\'']);
    let follow = match may_refer {
        true if references::can_follow(gdb).await => references::FOLLOWING,
        _ => "",
    };
    let valued = pointers::valued(gdb, "", expression).await.ok()?;
    let line = format!(
        "{follow}with max-value-size {VALUE_BYTES_MAX} -- with print max-depth unlimited -- \
         with print elements {elements} -- output {valued}"
    );
    let begin = gdb.get().now;
    let asked = gdb.send_within(console_line(&line), wait).capture();
    let (result, printed) = asked.printed().await;
    result.ok()?;
    // An interrupted pretty-printer ends its output without an error.
    let is_late = gdb.get().now >= begin + wait;
    // Behind the kept text of a bounded output a mark of gdb's may stand.
    let may_lack = printed.is_cut() && elements != UNLIMITED || is_left_out(bare(&printed));
    (!is_late && !may_lack).then(|| printed.length_and_hash())
}

/// True for a C array without pointers.
fn is_array(printed: &str) -> bool {
    printed.starts_with(['{', '"']) && !printed.contains(" = ") && !printed.contains("0x")
}

/// Length and hash of an array's memory; `None` if it is too long, or cannot be read in time.
async fn in_memory(gdb: &Gdb, expression: &str, wait: Duration) -> Option<(u64, u64)> {
    let end = gdb.get().now + wait;
    let size = format!("sizeof({expression})");
    let size: u64 = unchecked(gdb, "", &size).await.ok()?.parse().ok()?;
    let piece = u64::from(MEMORY_BYTES_MAX);
    if size > ARRAY_BYTES_MAX {
        return None;
    }
    let address = quote(format!("&({expression})").as_bytes());
    let mut hash = Xxh3Default::new();
    for from in (0..size).step_by(MEMORY_BYTES_MAX as usize) {
        if gdb.get().now >= end {
            return None;
        }
        let bytes = piece.min(size - from);
        let line = format!("-data-read-memory-bytes -o {from} {address} {bytes}");
        let results = gdb.mi(line).await.ok()?;
        let blocks = results.tuples("memory");
        for digits in blocks.filter_map(|block| block.text("contents")) {
            hash.update(digits.as_bytes());
        }
    }
    Some((size, hash.digest()))
}

async fn print_as(gdb: &Gdb, word: &str, expression: &str) -> Result<String, Failure> {
    let (_, printed) = print_numbered(gdb, word, expression).await?;
    Ok(printed)
}

/// The printed value, and its number in gdb's value history.
async fn print_numbered(
    gdb: &Gdb,
    word: &str,
    expression: &str,
) -> Result<(Option<u64>, String), Failure> {
    let expression = history::own(gdb, expression)?;
    return_values::refuse_call(gdb, "", &expression).await?;
    let valued = pointers::valued(gdb, "", &expression).await?;
    let line = console_line(&format!("{word} {valued}"));
    let (result, printed) = gdb.send(line).capture().printed().await;
    result?;
    history::note(gdb, &printed);
    let number = history::number(&printed);
    let format = word.find('/').map_or("", |at| &word[at..]);
    let printed = match number {
        Some(number) => {
            let again = format!("output{format} ${number}");
            references::followed(gdb, "", (&expression, &again), printed).await?
        }
        None => printed,
    };
    if printed.is_cut() {
        let text = format!("a value of {} bytes is too long", printed.bytes());
        let hint = "`set print elements` limits the number of array elements to print";
        return Err(Failure::new(FailureCode::Limit, text).with_hint(hint));
    }
    let text = printed.into_text();
    let shown = history::shown(&text).trim_end_matches('\n').to_owned();
    Ok((number, shown))
}

/// Answers with the value of an expression.
pub(crate) async fn evaluate(gdb: &Gdb, expression: &str) -> Result<Reply, Failure> {
    let expression = history::own(gdb, expression)?;
    let printed = said(gdb, "", &expression).await?;
    let mut value = plain(&printed);
    // The type of a function with variable arguments has dots.
    if is_left_out(bare(&printed)) {
        value.cut = Some(content(gdb, &expression, bare(&printed)).await);
    }
    Ok(Reply::Value(value))
}

/// The value of an expression, without the address of a reference and the type of a pointer.
pub(crate) async fn evaluated(gdb: &Gdb, place: &str, expression: &str) -> Result<Value, Failure> {
    Ok(plain(&said(gdb, place, expression).await?))
}

fn plain(printed: &CapturedOutput) -> Value {
    let mut value = value(bare(printed));
    if printed.is_cut() {
        value.cut = Some(printed.length_and_hash());
    }
    value
}

/// The value of an expression in the form of gdb's `print`, without a history number.
///
/// MI's own evaluation gives a reference's address in place of its value. `place` holds MI's options for thread and
/// frame; if empty the selected ones are used.
pub(crate) async fn said(
    gdb: &Gdb,
    place: &str,
    expression: &str,
) -> Result<CapturedOutput, Failure> {
    strides::refuse(gdb, place, expression).await?;
    return_values::refuse_call(gdb, place, expression).await?;
    // An expression for another frame has its values already (`evaluate.rs`).
    let valued = match place {
        "" => pointers::valued(gdb, "", expression).await?,
        _ => Cow::Borrowed(expression),
    };
    let printed = unchecked(gdb, place, &valued).await?;
    let again = format!("output {valued}");
    in_value(gdb, place, (expression, &again), printed).await
}

/// Puts referenced objects into a printed value, by evaluating `again`, unless the expression may have effects.
pub(super) async fn in_value(
    gdb: &Gdb,
    place: &str,
    (expression, again): (&str, &str),
    printed: CapturedOutput,
) -> Result<CapturedOutput, Failure> {
    if !references::are_within(&printed) || !strides::is_harmless(gdb, expression).await {
        return Ok(printed);
    }
    references::followed(gdb, place, (expression, again), printed).await
}

/// The return value in the record of a stop after `finish`; `None` for a function that returns nothing.
pub(super) async fn returned(gdb: &Gdb, record: &Results) -> Option<Value> {
    if last_text(record, "reason") == Some("location-reached") {
        return Some(value(&format!("<{}>", return_values::wrong().text)));
    }
    let printed = last_text(record, "return-value")?;
    let name = last_text(record, "gdb-result-var")?;
    history::note(gdb, name);
    if let Err(failure) = return_values::refuse(gdb, "", name).await {
        return Some(value(&format!("<{}>", failure.text)));
    }
    match references::are_within(printed) {
        true => evaluated(gdb, "", name).await.ok(),
        false => Some(value(bare(printed))),
    }
}

/// Evaluates a call for its effect. The reply has a value unless the function returns nothing.
pub(crate) async fn call(gdb: &Gdb, expression: &str) -> Result<Reply, Failure> {
    Ok(match print_as(gdb, "call", expression).await?.as_str() {
        "" => Reply::Done,
        printed => Reply::Value(value(printed)),
    })
}

pub(crate) async fn set_variable(gdb: &Gdb, expression: &str) -> Result<Reply, Failure> {
    let expression = history::own(gdb, expression)?;
    let command = format!("set var {}", pointers::valued(gdb, "", &expression).await?);
    gdb.mi(console_line(&command)).await?;
    Ok(Reply::Done)
}
