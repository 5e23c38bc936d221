//! Changes the condition of a breakpoint.

use sdm_debug::command::PointSpec;
use sdm_debug::{Failure, Reply};

use super::change::{delete, numbers};
use super::given::{GivenCondition, give};
use super::reinsert::insert_again;
use super::{hit, make};
use crate::gdb::Gdb;

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
    let is_pending = gdb.edit().breakpoints.find(number)?.pending;
    let mut given = GivenCondition::Whole;
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
                given = give(gdb, known, condition, is_pending).await?;
            }
            // gdb takes an empty condition for none.
            (None, None) => make::set_condition(gdb, known, "").await?,
        }
        if !is_watch && gdb.get().origin.scope().is_some() {
            hit::set_owner(gdb, known).await?;
        }
    }
    let (was, again) = {
        let mut state = gdb.edit();
        let point = state.breakpoints.find(number)?;
        let before = point
            .kept
            .spec
            .condition()
            .is_some()
            .then_some(point.judged.is_guarded);
        // gdb would delete it even if it cannot evaluate the condition.
        let ends = point.kept.spec.is_temporary() && before.is_none() && condition.is_some();
        point.kept.spec.set_condition(condition);
        given.note(&mut point.judged);
        (before, ends.then(|| point.kept.clone()))
    };
    match again {
        Some(kept) => {
            delete(gdb, number).await?;
            insert_again(gdb, kept).await?;
        }
        None => hit::move_ignore(gdb, number, was).await?,
    }
    Ok(Reply::Done)
}
