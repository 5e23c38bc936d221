//! The language in which gdb evaluates expressions.

use crate::gdb::Gdb;

/// True if gdb's current language is Fortran: in another one `lbound` may be a function of the program.
pub(super) async fn is_fortran(gdb: &Gdb, place: &str) -> bool {
    let known = gdb.get().commands.is_fortran.filter(|_| place.is_empty());
    if let Some(known) = known {
        return known;
    }
    let line = format!("-interpreter-exec {place}console \"show language\"");
    let (result, printed) = gdb.send(line).capture().printed().await;
    let is_fortran = result.is_ok() && printed.contains("fortran\"");
    // While the program runs, its next stop may be in another language.
    let is_lasting = result.is_ok() && place.is_empty() && gdb.get().activity.is_stopped();
    gdb.edit().commands.is_fortran = is_lasting.then_some(is_fortran);
    is_fortran
}
