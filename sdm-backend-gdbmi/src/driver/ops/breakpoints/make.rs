//! Having gdb make a breakpoint, in a way that leaves none behind that nobody owns.

use sdm_debug::{Failure, FailureCode};

use crate::driver::gdb::Gdb;
use crate::driver::guards::Made;
use crate::driver::text::console_line;
use crate::mi::Results;

/// Why nothing can be inserted under this number.
pub(super) fn refusal(gdb: &Gdb, number: u32) -> Option<Failure> {
    let state = gdb.get();
    if state.origin.takes_no_breakpoint() {
        let text = "attached to read only: no breakpoint is inserted";
        return Some(Failure::new(FailureCode::Unsupported, text));
    }
    state.breakpoints.refusal(number)
}

/// Has an MI command make a breakpoint; `number` finds gdb's number of it in the answer.
pub(super) async fn made_in(
    gdb: &Gdb,
    line: String,
    number: fn(&Results) -> Option<u32>,
) -> Result<(Made, Results), Failure> {
    let maker = gdb.clone();
    gdb.finish(async move {
        let results = maker.mi(line).await?;
        Ok((Made::new(&maker, number(&results)), results))
    })
    .await
}

/// Has a line for gdb's command line make breakpoints. MI does not answer such a line with their numbers, gdb notifies
/// of them.
pub(in crate::driver) async fn made_by(gdb: &Gdb, line: &str) -> Result<Made, Failure> {
    let (maker, line) = (gdb.clone(), line.to_owned());
    gdb.finish(async move {
        maker.edit().breakpoints.made = Some(Vec::new());
        let result = maker.mi(console_line(&line)).await;
        let numbers = maker.edit().breakpoints.made.take();
        let made = Made::new(&maker, numbers.unwrap_or_default());
        result?;
        if made.first().is_none() {
            let text = format!("gdb did not say what `{line}` has made");
            return Err(Failure::new(FailureCode::Gdb, text));
        }
        Ok(made)
    })
    .await
}
