//! Changes to existing breakpoints: deletion, enabling, ignore count, commands.

use sdm_debug::command::PointSpec;
use sdm_debug::{Failure, FailureCode, Reply};

use super::hit;
use super::make::set_ignore;
use crate::gdb::Gdb;
use crate::guards::list;
use crate::ops::lines::check;
use crate::state::breakpoints::Owner;

/// Maximum number of command lines of one breakpoint.
const COMMANDS_MAX: usize = 256;

pub(super) fn numbers(gdb: &Gdb, number: u32) -> Result<Vec<u32>, Failure> {
    let mut state = gdb.edit();
    Ok(state.breakpoints.find(number)?.numbers.clone())
}

pub(crate) async fn delete(gdb: &Gdb, number: u32) -> Result<Reply, Failure> {
    let numbers = numbers(gdb, number)?;
    let asked = gdb.clone();
    gdb.finish(async move {
        asked
            .mi(format!("-break-delete {}", list(&numbers)))
            .await?;
        for known in numbers {
            asked.edit().breakpoints.deleted(known);
        }
        Ok(Reply::Done)
    })
    .await
}

pub(crate) async fn enable(gdb: &Gdb, number: u32, enabled: bool) -> Result<Reply, Failure> {
    let numbers = numbers(gdb, number)?;
    let name = if enabled { "enable" } else { "disable" };
    let asked = gdb.clone();
    gdb.finish(async move {
        asked
            .mi(format!("-break-{name} {}", list(&numbers)))
            .await?;
        if let Ok(point) = asked.edit().breakpoints.find(number) {
            point.kept.enabled = enabled;
        }
        Ok(Reply::Done)
    })
    .await
}

pub(crate) async fn ignore(gdb: &Gdb, number: u32, count: u32) -> Result<Reply, Failure> {
    if let Some(()) = hit::pass_by(gdb, number, count.into()) {
        return Ok(Reply::Done);
    }
    gdb.edit().breakpoints.find(number)?.judged.owed = 0;
    let numbers = numbers(gdb, number)?;
    let asked = gdb.clone();
    gdb.finish(async move {
        for known in numbers {
            set_ignore(&asked, known, count.into()).await?;
        }
        Ok(Reply::Done)
    })
    .await
}

/// Sets the commands of a breakpoint. The driver keeps them, not gdb: see `lines`.
pub(crate) fn commands(gdb: &Gdb, number: u32, lines: Vec<String>) -> Result<Reply, Failure> {
    if lines.len() > COMMANDS_MAX {
        let text = format!("a breakpoint can have at most {COMMANDS_MAX} command lines");
        return Err(Failure::new(FailureCode::Limit, text));
    }
    gdb.edit().breakpoints.find(number)?;
    check(&lines)?;
    let mut state = gdb.edit();
    match &mut state.breakpoints.find(number)?.kept.spec {
        PointSpec::Break(spec) => spec.commands = lines,
        PointSpec::Watch(_) | PointSpec::Catch(_) => {
            let text = format!("{number} is not a breakpoint: only breakpoints have commands");
            return Err(Failure::new(FailureCode::Unsupported, text));
        }
    }
    Ok(Reply::Done)
}

/// Sets the ignore count of each of the user's breakpoints at which the task is stopped.
pub(crate) async fn pass_by(gdb: &Gdb, count: u32) -> Result<(), Failure> {
    if count == 0 {
        return Ok(());
    }
    let mut met = gdb.get().breakpoints.met.clone();
    met.retain(|it| !it.is_passed);
    let mut is_at_one = false;
    for met in met {
        is_at_one |= match met.owner {
            Some(Owner::Internal(_)) => false,
            Some(Owner::User(own)) if hit::pass_by(gdb, own, count.into()).is_some() => true,
            // A temporary one is gone by now.
            _ => set_ignore(gdb, met.number, count.into()).await.is_ok(),
        };
    }
    if !is_at_one {
        let text = "the rank is not stopped at a breakpoint";
        return Err(Failure::new(FailureCode::NoSuchThing, text));
    }
    Ok(())
}
