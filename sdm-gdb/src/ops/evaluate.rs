//! Evaluates expressions in an explicit frame, so that gdb's selection does not change.

use std::borrow::Cow;

use sdm_debug::calls::{array_names, is_array_type, is_harmless};
use sdm_debug::probe::ArgumentRole;
use sdm_debug::reply::Value;
use sdm_debug::{Failure, FailureCode};

use super::frames::GdbFrame;
use super::pointers;
use super::threads::ReadThread;
use super::values::evaluated;
use crate::gdb::Gdb;
use sdm_mi::quote;

/// Maximum number of arrays in one expression.
const ARRAYS_MAX: usize = 8;

/// The value of an expression in a frame; `None` if there is none, or if the evaluation could change the program.
pub(super) async fn evaluate(
    gdb: &Gdb,
    thread: &ReadThread,
    frame: &GdbFrame,
    expression: &str,
) -> Result<Option<Value>, Failure> {
    if !is_harmless(expression) && !is_of_arrays(gdb, thread, frame, expression).await? {
        return Ok(None);
    }
    unchecked(gdb, thread, frame, expression).await
}

/// Functions of Fortran that gdb computes itself.
const COMPUTED: [&str; 3] = ["abs", "mod", "modulo"];

/// True if each apparent call in a Fortran expression is an array element, or a function that gdb computes.
async fn is_of_arrays(
    gdb: &Gdb,
    thread: &ReadThread,
    frame: &GdbFrame,
    expression: &str,
) -> Result<bool, Failure> {
    let names = frame
        .is_fortran()
        .then(|| array_names(expression))
        .flatten();
    let Some(names) = names.filter(|names| names.len() <= ARRAYS_MAX) else {
        return Ok(false);
    };
    let is_computed = |name: &&str| COMPUTED.iter().any(|it| it.eq_ignore_ascii_case(name));
    for name in names.into_iter().filter(|name| !is_computed(name)) {
        let (id, level) = (thread.id, frame.level);
        let command = quote(format!("whatis {name}").as_bytes());
        let line = format!("-interpreter-exec --thread {id} --frame {level} console {command}");
        let (result, printed) = gdb.send(line).capture().printed().await;
        match result {
            Ok(_) if is_array_type(&printed) => {}
            Err(failure) if failure.code != FailureCode::Gdb => return Err(failure),
            Ok(_) | Err(_) => return Ok(false),
        }
    }
    Ok(true)
}

/// The value of an expression in a frame; `None` if it has none. Not checked: the caller knows that the expression has
/// no side effects.
pub(super) async fn unchecked(
    gdb: &Gdb,
    thread: &ReadThread,
    frame: &GdbFrame,
    expression: &str,
) -> Result<Option<Value>, Failure> {
    let (id, level) = (thread.id, frame.level);
    let place = format!("--thread {id} --frame {level} ");
    let expression = match frame.is_fortran() {
        true => pointers::valued(gdb, &place, expression).await?,
        false => Cow::Borrowed(expression),
    };
    match evaluated(gdb, &place, &expression).await {
        Ok(value) => Ok(Some(value).filter(is_known)),
        // A macro's name, or an optimised-out variable: the value is unknown.
        Err(failure) if failure.code == FailureCode::Gdb => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// The value of an argument as a number; of a communicator, file or window as gdb shows it. An enumeration constant
/// gives its number. `None` if there is no value.
pub(super) async fn number(
    gdb: &Gdb,
    thread: &ReadThread,
    frame: &GdbFrame,
    (expression, role): (&str, ArgumentRole),
) -> Result<Option<Value>, Failure> {
    let value = evaluate(gdb, thread, frame, expression).await?;
    let is_name = |value: &Value| value.text.starts_with(|c: char| c.is_alphabetic());
    let is_number = !matches!(
        role,
        ArgumentRole::Communicator | ArgumentRole::File | ArgumentRole::Window
    );
    if !is_number || !value.as_ref().is_some_and(is_name) {
        return Ok(value);
    }
    let number = unchecked(gdb, thread, frame, &format!("(int) ({expression})")).await?;
    Ok(number.or(value))
}

/// True if a value that gdb has printed is true in the language of the program.
///
/// # Errors
/// The value is an object, which is neither true nor false.
pub(super) fn truth(value: &str) -> Result<bool, Failure> {
    sdm_debug::truth(value).map_err(|why| Failure::new(FailureCode::Gdb, why.to_string()))
}

/// False for gdb's placeholder of a missing value, such as `<optimized out>`.
pub(super) fn is_known(value: &Value) -> bool {
    !value.text.starts_with('<')
}
