//! Insertion, change and listing of breakpoints, watchpoints and catchpoints.

mod catch;
mod change;
mod condition;
mod given;
mod hit;
mod insert;
mod list;
mod make;
mod reinsert;
mod watch;

pub(crate) use catch::{hit as caught, insert as insert_catch};
pub(crate) use change::{commands, delete, enable, ignore, pass_by};
pub(crate) use condition::condition;
pub(crate) use hit::{delete_ended, wanting};
pub(crate) use insert::insert;
pub(crate) use list::list;
pub(crate) use make::made_by;
pub(crate) use reinsert::insert_kept;
pub(crate) use watch::insert as insert_watch;
