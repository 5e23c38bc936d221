//! Says in words which values of Fortran cannot be read: optional arguments that the caller has left out, for which gdb
//! reads at address 0, and arrays of texts whose length gdb does not know.

use sdm_debug::reply::Variable;
use sdm_debug::{Command, Failure, FailureCode, Reply};

use super::pointers::{base_names, expression_in, type_of};
use super::{language, output};
use crate::gdb::Gdb;

/// The value of an argument that is not present.
const NOT_PRESENT: &str = "<not present>";
/// The value of an array of texts of unknown length: `character(len=*) :: names(:)`.
const UNKNOWN_LENGTH: &str = "<gdb does not know the length of these texts>";
/// The value of an array of assumed size: `a(*)`.
const UNKNOWN_SIZE: &str = "<the size of this array is unknown: print a section, as in a(1:10)>";
/// gdb's word for an array of assumed size, and in gdb 13 for an array of texts of unknown length.
const NO_BOUNDS: &str = "failed to get range bounds";
/// The value of a null pointer to a text. gdb shows allocatable texts as pointers, too.
pub(super) const NO_TEXT: &str = "<not allocated or associated>";
/// A structure without components.
const EMPTY: &str = "(  )";
/// Addresses below this one are in no program.
const ADDRESS_MIN: u64 = 4096;

/// The value of a variable of Fortran in a list, in words where gdb has none.
pub(super) fn shown(text: &str) -> &str {
    match text {
        _ if text.starts_with("<error reading variable") && is_unset(text) => NOT_PRESENT,
        "<incomplete type>" => UNKNOWN_LENGTH,
        _ if text.contains(NO_BOUNDS) => UNKNOWN_SIZE,
        text => text,
    }
}

/// The answer to a command, in words where a value of Fortran cannot be read.
pub(super) async fn in_words(
    gdb: &Gdb,
    command: &Command,
    mut answer: Result<Reply, Failure>,
) -> Result<Reply, Failure> {
    let expression = expression_of(command);
    let is_doubtful = match &answer {
        Ok(Reply::Value(value)) => is_missing(&value.text),
        Ok(Reply::Variables(all)) => all
            .iter()
            .any(|it| is_missing(&it.value.text) || is_no_text(it, all)),
        Ok(Reply::VarObject(object)) => object.value.text.is_empty(),
        Ok(_) => false,
        Err(failure) => {
            let is_unset = is_unset(&failure.text) || failure.text.contains("out of bounds");
            is_unset && !expression.starts_with('*') && !base_names(expression).is_empty()
        }
    };
    if !is_doubtful || !language::is_fortran(gdb, "").await {
        return answer;
    }
    if let Ok(Reply::Variables(all)) = &mut answer {
        let are_arguments = matches!(command, Command::Arguments);
        let known = all.clone();
        for variable in all {
            if is_no_text(variable, &known) {
                NO_TEXT.clone_into(&mut variable.value.text);
            }
            let text = &mut variable.value.text;
            let in_words = match &**text {
                "''" if are_arguments && is_absent(gdb, &variable.name).await => NOT_PRESENT,
                text if is_of_texts(gdb, &variable.name, text).await => UNKNOWN_LENGTH,
                text => shown(text),
            };
            if in_words != NOT_PRESENT || are_arguments {
                *text = in_words.to_owned();
            }
        }
        return answer;
    }
    for name in base_names(expression) {
        if is_absent(gdb, name).await && is_argument(gdb, name).await {
            if let Ok(Reply::VarObject(object)) = &mut answer {
                NOT_PRESENT.clone_into(&mut object.value.text);
                return answer;
            }
            let text =
                format!("`{name}` is not present: the caller has left out this optional argument");
            return Err(Failure::new(FailureCode::Gdb, text));
        }
    }
    if let Ok(Reply::Value(value)) = &mut answer {
        value.text = match &*value.text {
            text if is_of_texts(gdb, expression, text).await => UNKNOWN_LENGTH,
            text => shown(text),
        }
        .to_owned();
    }
    answer
}

/// True for an array of texts of unknown length. gdb 18 gives it a type without a name and components.
async fn is_of_texts(gdb: &Gdb, expression: &str, text: &str) -> bool {
    if text != EMPTY && !text.contains(NO_BOUNDS) {
        return false;
    }
    let kind = type_of(gdb, "", expression).await;
    kind.is_some_and(|kind| kind == "Type" || kind.starts_with("character*(*)"))
}

/// True for an argument of the selected frame's function.
async fn is_argument(gdb: &Gdb, name: &str) -> bool {
    let listed = gdb.mi("-stack-list-variables --no-values").await;
    listed.is_ok_and(|listed| {
        let mut variables = listed.tuples("variables");
        variables.any(|it| it.text("name") == Some(name) && it.text("arg") == Some("1"))
    })
}

/// True for a value that gdb may have failed to read. An argument without a text appears as an empty one.
fn is_missing(text: &str) -> bool {
    [EMPTY, "''"].contains(&text) || shown(text) != text
}

/// True for a null pointer to a text of deferred length: the list has the text's length, too.
fn is_no_text(variable: &Variable, all: &[Variable]) -> bool {
    let is_length =
        |it: &Variable| it.name.strip_prefix(['_', '.']) == Some(variable.name.as_str());
    variable.value.text == "0x0" && all.iter().any(is_length)
}

fn expression_of(command: &Command) -> &str {
    match command {
        Command::Evaluate { expression }
        | Command::Print { expression, .. }
        | Command::SetVariable { expression }
        | Command::Call { expression }
        | Command::VarCreate { expression, .. } => expression,
        Command::WatchInsert(spec) => &spec.expression,
        Command::Console { line } => expression_in(line).map_or("", |from| &line[from..]),
        _ => "",
    }
}

/// True for an argument that is at address 0. gdb 13 dies of the address of texts of unknown length, so that it is asked
/// only for an empty text.
async fn is_absent(gdb: &Gdb, name: &str) -> bool {
    let is_text = match output::unchecked(gdb, "", name).await {
        Ok(printed) => &*printed == "''",
        Err(failure) => return is_unset(&failure.text),
    };
    if !is_text {
        return false;
    }
    let address = output::unchecked(gdb, "", &format!("&{name}")).await;
    address.is_ok_and(|printed| printed.trim_end().ends_with(" 0x0"))
}

/// True if gdb failed to read a value at address 0, or a part of it.
fn is_unset(text: &str) -> bool {
    let address = text.split("Cannot access memory at address 0x").nth(1);
    let digits = address.and_then(|it| it.split(|c: char| !c.is_ascii_hexdigit()).next());
    let address = digits.and_then(|it| u64::from_str_radix(it, 16).ok());
    text.contains("Location address is not set.") || address.is_some_and(|it| it < ADDRESS_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_fortran_value_is_shown_as_its_reason() {
        for (text, words) in [
            (
                "<error reading variable: Cannot access memory at address 0x0>",
                NOT_PRESENT,
            ),
            (
                "<error reading variable d (Cannot access memory at address 0x8)>",
                NOT_PRESENT,
            ),
            (
                "<error reading variable: Location address is not set.>",
                NOT_PRESENT,
            ),
            ("<incomplete type>", UNKNOWN_LENGTH),
            (
                "<error reading variable: failed to get range bounds>",
                UNKNOWN_SIZE,
            ),
        ] {
            assert_eq!(shown(text), words);
        }
        for text in [
            "<error reading variable: Cannot access memory at address 0x7ffe>",
            "'Cannot access memory at address 0x0'",
            "0x0",
        ] {
            assert_eq!(shown(text), text);
        }
    }
}
