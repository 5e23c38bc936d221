//! Evaluates expressions and lists variables: values as gdb prints them.

use sdm_debug::reply::MEMORY_BYTES_MAX;
use sdm_debug::{Failure, FailureCode, Reply};
use xxhash_rust::xxh3::xxh3_64;

use super::history;
use crate::driver::gdb::Gdb;
use crate::driver::text::{console_line, value, variable};
use crate::mi::{Results, quote};

/// The arguments of the selected frame, or its other variables.
pub(in crate::driver) async fn variables(gdb: &Gdb, arguments: bool) -> Result<Reply, Failure> {
    let results = gdb.mi("-stack-list-variables --all-values").await?;
    let is_argument = |variable: &&Results| variable.text("arg").is_some();
    let wanted = results
        .tuples("variables")
        .filter(|variable| is_argument(variable) == arguments);
    Ok(Reply::Variables(wanted.map(variable).collect()))
}

/// What gdb's `print` says of an expression, without its number in the value history.
pub(in crate::driver) async fn print(
    gdb: &Gdb,
    format: &str,
    expression: &str,
) -> Result<Reply, Failure> {
    if !format.is_empty() {
        let printed = print_as(gdb, &format!("print/{format}"), expression).await?;
        return Ok(Reply::Text(printed));
    }
    let (number, printed) = print_numbered(gdb, "print", expression).await?;
    let mut value = value(&printed);
    let is_array = printed.starts_with(['{', '"']);
    let left_out = printed.contains("...") || printed.contains("<unavailable>");
    if let Some(number) = number.filter(|_| is_array && left_out) {
        value.cut = content(gdb, number).await.or(value.cut);
    }
    Ok(Reply::Value(value))
}

/// Length and hash of what an array or structure in the value history holds, for one that gdb has
/// printed the beginning of: what differs behind that is not equal.
async fn content(gdb: &Gdb, number: u64) -> Option<(u64, u64)> {
    let size = format!("-data-evaluate-expression \"sizeof(${number})\"");
    let size: u64 = gdb.mi(size).await.ok()?.number("value")?;
    if size > u64::from(MEMORY_BYTES_MAX) {
        return None;
    }
    let line = format!("-data-read-memory-bytes \"&${number}\" {size}");
    let results = gdb.mi(line).await.ok()?;
    let blocks = results.tuples("memory");
    let bytes: String = blocks.filter_map(|block| block.text("contents")).collect();
    Some((size, xxh3_64(bytes.as_bytes())))
}

async fn print_as(gdb: &Gdb, word: &str, expression: &str) -> Result<String, Failure> {
    let (_, printed) = print_numbered(gdb, word, expression).await?;
    Ok(printed)
}

/// What is printed, and its number in gdb's value history.
async fn print_numbered(
    gdb: &Gdb,
    word: &str,
    expression: &str,
) -> Result<(Option<u64>, String), Failure> {
    let expression = history::own(gdb, expression)?;
    let line = console_line(&format!("{word} {expression}"));
    let (result, printed) = gdb.send(line).capture().printed().await;
    result?;
    if printed.is_cut() {
        let text = format!("a value of {} bytes is too long", printed.bytes());
        let hint = "`set print elements` bounds how much of an array is printed";
        return Err(Failure::new(FailureCode::Limit, text).with_hint(hint));
    }
    let text = printed.into_text();
    let shown = history::note(gdb, &text).trim_end_matches('\n').to_owned();
    Ok((history::number(&text), shown))
}

pub(in crate::driver) async fn evaluate(gdb: &Gdb, expression: &str) -> Result<Reply, Failure> {
    let expression = history::own(gdb, expression)?;
    let line = format!("-data-evaluate-expression {}", quote(expression.as_bytes()));
    let results = gdb.mi(line).await?;
    Ok(Reply::Value(value(
        results.text("value").unwrap_or_default(),
    )))
}

/// Evaluates a call for its effect; what returns nothing has no value.
pub(in crate::driver) async fn call(gdb: &Gdb, expression: &str) -> Result<Reply, Failure> {
    Ok(match print_as(gdb, "call", expression).await?.as_str() {
        "" => Reply::Done,
        printed => Reply::Value(value(printed)),
    })
}

pub(in crate::driver) async fn set_variable(gdb: &Gdb, expression: &str) -> Result<Reply, Failure> {
    let command = format!("set var {}", history::own(gdb, expression)?);
    gdb.mi(console_line(&command)).await?;
    Ok(Reply::Done)
}
