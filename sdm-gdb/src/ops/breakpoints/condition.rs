//! Changes the condition of a breakpoint.

use sdm_debug::command::PointSpec;
use sdm_debug::{Failure, Reply};

use super::change::{delete, numbers};
use super::reinsert::insert_again;
use super::{hit, make};
use crate::gdb::Gdb;
use crate::ops::strides;

/// Sets the condition of a breakpoint; `None` removes it.
pub(crate) async fn condition(
    gdb: &Gdb,
    number: u32,
    condition: Option<String>,
) -> Result<Reply, Failure> {
    let asked = gdb.clone();
    gdb.finish(async move { change_condition(&asked, number, condition).await })
        .await
}

async fn change_condition(
    gdb: &Gdb,
    number: u32,
    condition: Option<String>,
) -> Result<Reply, Failure> {
    let is_watch = matches!(
        gdb.get().breakpoints.spec(number),
        Some(PointSpec::Watch(_))
    );
    for known in numbers(gdb, number)? {
        let condition = match gdb.get().origin.scope() {
            Some(scope) if !is_watch => Some(scope.restrict(condition.as_deref())),
            _ => condition.clone(),
        };
        // gdb takes an empty condition for none.
        make::set_condition(gdb, known, condition.as_deref().unwrap_or_default()).await?;
        if !is_watch && gdb.get().origin.scope().is_some() {
            hit::set_owner(gdb, known).await?;
        }
    }
    let again = {
        let mut state = gdb.edit();
        let is_alone = state.origin.scope().is_none();
        let point = state.breakpoints.find(number)?;
        let weaker = condition.as_deref().and_then(strides::guarded);
        let is_guarded = point.judged.is_guarded || weaker.is_some();
        let counts = (point.judged.hits, point.judged.ignore);
        point.kept.spec.set_condition(condition);
        let is_break = matches!(point.kept.spec, PointSpec::Break(_));
        (is_alone && is_guarded && is_break).then(|| (point.kept.clone(), counts))
    };
    // gdb has accepted the condition. Whether it or the driver counts the hits and deletes a temporary breakpoint is
    // decided at the insertion.
    if let Some((kept, (hits, ignore))) = again {
        delete(gdb, number).await?;
        insert_again(gdb, kept).await?;
        let mut state = gdb.edit();
        let judged = &mut state.breakpoints.find(number)?.judged;
        (judged.hits, judged.ignore) = (hits, ignore);
    }
    Ok(Reply::Done)
}
