//! The signal of a stop for which gdb has no name.

use sdm_system::signal_name;

use crate::gdb::Gdb;

/// The signal that a task has stopped for, if gdb's record does not name it; `None` if gdb does not know it either.
pub(crate) async fn current_signal(gdb: &Gdb) -> Option<String> {
    // Fortran names a member by `%`.
    let line = "-data-evaluate-expression --language c $_siginfo.si_signo";
    let results = gdb.mi(line).await.ok()?;
    let number: i32 = results.number("value")?;
    (number > 0).then(|| signal_name(number))
}
