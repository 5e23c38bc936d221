//! Changes the condition of a breakpoint.

use sdm_debug::command::PointSpec;
use sdm_debug::{Failure, Reply};

use super::change::{delete, numbers};
use super::reinsert::insert_again;
use super::{hit, make};
use crate::gdb::Gdb;
use crate::ops::pointers;

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
    let mut is_weaker = false;
    for known in numbers(gdb, number)? {
        let own = match gdb.get().origin.scope() {
            Some(scope) if !is_watch => Some(scope.restrict(condition.as_deref())),
            _ => None,
        };
        match (own, condition.as_deref()) {
            (Some(own), _) => make::set_condition(gdb, known, &own).await?,
            (None, Some(condition)) if is_watch => {
                make::set_conditional(gdb, known, condition).await?;
            }
            (None, Some(condition)) => {
                make::set_condition(gdb, known, condition).await?;
                is_weaker |= in_fortran(gdb, known, condition).await;
            }
            // gdb takes an empty condition for none.
            (None, None) => make::set_condition(gdb, known, "").await?,
        }
        if !is_watch && gdb.get().origin.scope().is_some() {
            hit::set_owner(gdb, known).await?;
        }
    }
    let again = {
        let mut state = gdb.edit();
        let is_alone = state.origin.scope().is_none();
        let point = state.breakpoints.find(number)?;
        let is_guarded = point.judged.is_guarded || is_weaker;
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

/// Gives gdb the condition for a place in Fortran; in another language gdb refuses it, and keeps the one that it has.
/// True if it is weaker, so that the driver has to evaluate the user's.
async fn in_fortran(gdb: &Gdb, known: u32, condition: &str) -> bool {
    let weaker = match pointers::weaker(gdb, condition).await {
        Some(weaker) => weaker,
        None if !pointers::has_names(condition) => return false,
        None => match pointers::condition(gdb, condition).await {
            Some(valued) => {
                let _ = make::set_condition(gdb, known, &valued).await;
                return false;
            }
            None => pointers::ANY.to_owned(),
        },
    };
    make::set_condition(gdb, known, &weaker).await.is_ok()
}
