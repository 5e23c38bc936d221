//! Gives gdb the condition of a breakpoint in a form that gdb evaluates correctly. Without such a form the driver
//! evaluates the condition.

use sdm_debug::Failure;

use super::make;
use crate::gdb::Gdb;
use crate::ops::pointers;
use crate::state::breakpoints::Judged;

/// The form in which gdb has received a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GivenCondition {
    /// gdb evaluates the condition.
    Whole,
    /// gdb has a condition that always holds, and the driver evaluates the user's condition.
    Weaker,
    /// gdb has a condition that always holds. Its form is chosen at the first hit: the location is not loaded yet, so
    /// the language of the condition is unknown.
    Later,
}

impl GivenCondition {
    pub(super) fn note(self, judged: &mut Judged) {
        judged.is_guarded = self != Self::Whole;
        judged.is_open = self == Self::Later;
    }
}

/// Gives gdb a condition in the form for Fortran or Rust, after gdb was given the user's own. At a place in another
/// language gdb refuses the new form, and keeps the old one.
pub(super) async fn give(
    gdb: &Gdb,
    known: u32,
    condition: &str,
    is_pending: bool,
) -> Result<GivenCondition, Failure> {
    if is_pending {
        // Once its place is loaded, gdb would disable it without a word if the condition names a member of a class.
        make::set_condition(gdb, known, pointers::ALWAYS).await?;
        return Ok(GivenCondition::Later);
    }
    if !pointers::is_rewritten(condition) {
        return Ok(GivenCondition::Whole);
    }
    if let Some(valued) = pointers::condition(gdb, condition).await {
        let _ = make::set_condition(gdb, known, &valued).await;
        return Ok(GivenCondition::Whole);
    }
    let weaker = make::set_condition(gdb, known, pointers::ANY).await;
    Ok(weaker.map_or(GivenCondition::Whole, |()| GivenCondition::Weaker))
}
