//! The language in which gdb evaluates expressions.

use crate::gdb::Gdb;

/// MI option for an expression that SDM itself writes, whatever the language of the program is.
pub(super) const IN_C: &str = "--language c ";

/// True if gdb's current language is Fortran. In another language `lbound` may be a function of the program.
pub(super) async fn is_fortran(gdb: &Gdb, place: &str) -> bool {
    current(gdb, place).await == "fortran"
}

/// gdb's name of its current language; empty if gdb does not report it.
pub(super) async fn current(gdb: &Gdb, place: &str) -> String {
    let known = gdb.get().commands.language.clone();
    if let Some(known) = known.filter(|_| place.is_empty()) {
        return known;
    }
    let line = format!("-interpreter-exec {place}console \"show language\"");
    let (result, printed) = gdb.send(line).capture().printed().await;
    // `"auto; currently c++"`, or `"c++"`.
    let quoted = printed.split('"').nth(1).unwrap_or_default();
    let language = quoted.rsplit(' ').next().unwrap_or_default().to_owned();
    // While the program runs, its next stop may be in another language. In a gdb of several tasks another one may set it.
    let is_lasting = {
        let state = gdb.get();
        let is_own = state.activity.is_stopped() && state.origin.scope().is_none();
        result.is_ok() && place.is_empty() && is_own
    };
    gdb.edit().commands.language = is_lasting.then(|| language.clone());
    language
}
