//! Breakpoints, watchpoints and catchpoints: inserted, changed, listed.

mod catch;
mod change;
mod hit;
mod insert;
mod list;
mod make;
mod reinsert;
mod watch;

pub(in crate::driver) use catch::{hit as caught, insert as insert_catch};
pub(in crate::driver) use change::{commands, condition, delete, enable, ignore, pass_by};
pub(in crate::driver) use hit::stopping_at;
pub(in crate::driver) use insert::insert;
pub(in crate::driver) use list::list;
pub(in crate::driver) use make::made_by;
pub(in crate::driver) use reinsert::insert_kept;
pub(in crate::driver) use watch::insert as insert_watch;
