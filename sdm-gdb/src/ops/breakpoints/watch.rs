//! Watchpoints: the program stops when a value is written or read.

use std::borrow::Cow;

use sdm_debug::calls::is_harmless;
use sdm_debug::command::{PointSpec, WatchKind, WatchSpec};
use sdm_debug::{Failure, FailureCode, Reply};

use super::make::{enter, made_by, made_in, refusal, restrict};
use crate::gdb::Gdb;
use crate::ops::output::unchecked;
use crate::ops::{language, pointers};
use crate::state::breakpoints::watch_number;
use crate::text::console_line;
use sdm_mi::quote;

/// Sets a watchpoint.
pub(crate) async fn insert(gdb: &Gdb, spec: WatchSpec) -> Result<Reply, Failure> {
    if let Some(failure) = refusal(gdb, spec.number) {
        return Err(failure);
    }
    let plain = pointers::plain(gdb, &spec.expression).await;
    refuse_optimized_out(gdb, &plain).await?;
    let (option, word) = match spec.kind {
        WatchKind::Write => ("", "watch"),
        WatchKind::Read => ("-r ", "rwatch"),
        WatchKind::Access => ("-a ", "awatch"),
    };
    // gdb writes a location with a cast of C, which its parser of Fortran refuses: there the name is watched.
    let made = if spec.location && !language::is_fortran(gdb, "").await {
        // MI has no option for it.
        let kind = type_of(gdb, &plain).await;
        let expression = match pointers::in_rust(gdb, "", &plain).await {
            Some(indexed) => indexed.into(),
            None => pointers::watched(gdb, &plain, &kind).await?,
        };
        let line = format!("{word} -l {expression}");
        made_by(gdb, &line).await?
    } else {
        let expression = watched(gdb, &spec, &plain).await?;
        let expression = quote(expression.as_bytes());
        let line = format!("-break-watch {option}{expression}");
        made_in(gdb, line, watch_number).await?.0
    };
    if made.first().is_none() {
        let text = format!(
            "gdb did not report the number of the watchpoint {}",
            spec.expression
        );
        return Err(Failure::new(FailureCode::Gdb, text));
    }
    restrict(gdb, &made, spec.condition.as_deref(), spec.ignore).await?;
    Ok(enter(gdb, PointSpec::Watch(spec), made))
}

/// Fails if gdb has no value of an expression to compare later values with. gdb would make the watchpoint, and remove
/// it at the next stop.
async fn refuse_optimized_out(gdb: &Gdb, expression: &str) -> Result<(), Failure> {
    if !is_harmless(expression) {
        return Ok(());
    }
    match unchecked(gdb, "", expression).await {
        Ok(printed) if printed.trim() == "<optimized out>" => {
            let text = format!("`{expression}` is optimized out here, so it cannot be watched");
            let hint =
                "stop at a line where the variable has a value, and set the watchpoint there";
            Err(Failure::new(FailureCode::Gdb, text).with_hint(hint))
        }
        // gdb watches what cannot be read yet, as behind a null pointer.
        _ => Ok(()),
    }
}

/// The expression to give to gdb's `watch`. For a reference gdb would watch the reference itself, so the referenced
/// object is named instead. A component of a Fortran class that gdb does not know by its name is watched at its present
/// address, as is an element of a container of Rust.
async fn watched<'a>(
    gdb: &Gdb,
    spec: &WatchSpec,
    expression: &'a str,
) -> Result<Cow<'a, str>, Failure> {
    let kind = type_of(gdb, expression).await;
    let named = (spec.expression.as_str(), !kind.is_empty());
    if let Some(place) = pointers::place(gdb, named, spec.number).await {
        return Ok(place.into());
    }
    match kind.ends_with('&') || kind.contains("(&)") {
        true => Ok(format!("*&({expression})").into()),
        false => pointers::watched(gdb, expression, &kind).await,
    }
}

/// The type of an expression; empty if it has none.
async fn type_of(gdb: &Gdb, expression: &str) -> String {
    let asked = gdb.send(console_line(&format!("whatis {expression}")));
    let (result, printed) = asked.capture().printed().await;
    let kind = printed.trim_end().trim_start_matches("type = ");
    result.map_or_else(|_| String::new(), |_| kind.to_owned())
}
