//! The value of an expression in the format of gdb's `output`.

use sdm_debug::Failure;

use crate::gdb::Gdb;
use crate::state::console_capture::CapturedOutput;
use sdm_mi::quote;

/// The value of an expression that SDM has made or checked. `place` holds MI's options for thread and frame; if empty
/// the selected ones are used.
pub(crate) async fn unchecked(
    gdb: &Gdb,
    place: &str,
    expression: &str,
) -> Result<CapturedOutput, Failure> {
    let command = quote(format!("output {expression}").as_bytes());
    let line = format!("-interpreter-exec {place}console {command}");
    let (result, printed) = gdb.send(line).capture().printed().await;
    result.map(|_| printed)
}
