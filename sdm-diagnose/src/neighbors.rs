//! Collective operations among neighbors, and the neighbors whose data is missing.

use sdm_idset::IdSet;

use super::Step;
use super::graph::SetNeed;
use super::operations::{awaited_ranks, started_by, waits_for_neighbors};
use super::verdict::{Verdict, in_number, ranks, waiting};
use super::wait_for::{Class, Needs};

/// Ranks that wait for the data of some of their neighbors.
#[derive(Debug)]
pub(super) struct NeighborWait {
    pub(super) who: IdSet,
    /// The function in which the ranks wait.
    call: String,
    /// The neighbors whose data has not arrived.
    awaited: IdSet,
}

impl Needs {
    /// Adds the waits of ranks for the neighbors whose data has not arrived, if these neighbors are known.
    pub(super) fn neighbors(&mut self, class: &Class<'_>) {
        let known = class.known.filter(|call| waits_for_neighbors(call));
        let Some((call, awaited)) = known.and_then(|call| Some((call, awaited_ranks(call)?)))
        else {
            return;
        };
        let call = match started_by(Some(call))[..] {
            [started] => format!("{} for {started}", class.call),
            _ => class.call.to_owned(),
        };
        self.graph.sets.push(SetNeed {
            who: class.tasks.clone(),
            peers: awaited.clone(),
            all: true,
            guessed: false,
        });
        self.neighbors.push(NeighborWait {
            who: class.tasks.clone(),
            call,
            awaited,
        });
    }
}

/// The verdict on ranks that are past an operation in which their neighbors still wait for their data. None if there
/// are none.
pub(super) fn skipped_by_neighbors(needs: &Needs, blocked: &IdSet) -> Option<Verdict> {
    let waits = needs.neighbors.iter();
    let waits = waits.filter(|wait| wait.who.is_subset(blocked));
    let waits: Vec<&NeighborWait> = waits.collect();
    let first = waits.first()?;
    let there = IdSet::union_all(waits.iter().map(|wait| &wait.who));
    let absent = IdSet::union_all(waits.iter().map(|wait| &wait.awaited));
    let absent = absent.difference(&there);
    let mut elsewhere = needs.gatherings.iter();
    let other = elsewhere.find(|one| !absent.is_empty() && absent.is_subset(&one.tasks))?;
    let (call, past) = (&first.call, &other.call);
    let (who, missing) = (ranks(&there), ranks(&absent));
    let (they_wait, wait) = (waiting(&there), in_number("[waits|wait]", absent.len()));
    let verdict = |text| Verdict::new(Step::CannotGoOn, text);
    Some(match absent.len() < there.len() {
        true => {
            let text = format!(
                "{they_wait} in {call} for the data of {missing}, which skipped that call and {wait} in {past}"
            );
            verdict(text).blaming(absent)
        }
        false => {
            let text = format!(
                "{they_wait} in {call} for the data of {missing}, which {wait} in {past}: {missing} skipped that call, or \
                 {who} made it once too often"
            );
            verdict(text).between(absent.union(&there))
        }
    })
}
