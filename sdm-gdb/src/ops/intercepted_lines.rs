//! Lines for gdb's command line that the driver carries out in its own way: gdb alone would follow links, or change
//! signals that the driver uses.

use sdm_debug::Failure;

use super::{signals, written_files};
use crate::gdb::Gdb;

/// The output of a line that the driver carries out itself; `None` for another line.
pub(super) async fn own_way(gdb: &Gdb, line: &str) -> Option<Result<String, Failure>> {
    let pid = gdb.get().pid();
    if let Some(written) = written_files::own_way(gdb, line, pid).await {
        return Some(written);
    }
    signals::handle_line(gdb, line).await
}
