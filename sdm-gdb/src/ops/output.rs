//! Output of gdb: the value of an expression in the format of gdb's command `output`, and the whole output of a line
//! for gdb's command line.

use sdm_debug::{Failure, FailureCode};

use crate::gdb::Gdb;
use crate::state::console_capture::CapturedOutput;
use sdm_mi::{Results, quote};

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

/// Carries out a line that cannot end the program, in a background task; returns its output.
pub(super) async fn of_line(gdb: &Gdb, line: String) -> Result<String, Failure> {
    let asked = gdb.clone();
    gdb.finish(async move {
        let (result, printed) = asked.send(line).capture_all().printed().await;
        text_of(result, printed.into_text())
    })
    .await
}

/// The output of a command line, or gdb's error with that output.
pub(super) fn text_of(
    result: Result<Results, Failure>,
    printed: String,
) -> Result<String, Failure> {
    match result {
        Ok(_) => Ok(printed),
        Err(failure) if failure.code == FailureCode::Gdb && !printed.is_empty() => {
            // The error text is the end of the output. The output before it is kept too.
            Err(Failure::new(FailureCode::Gdb, printed.trim_end()))
        }
        Err(failure) => Err(failure),
    }
}
