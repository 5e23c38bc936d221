//! Who is past what others still wait in.

use sdm_idset::{IdSet, TaskId};
use sdm_mpi::needs_all;

use super::Step;
use super::needs::{Gathering, Needs};
use super::verdict::Verdict;

/// The most ranks that are named one by one.
pub(super) const NAMED_MAX: u64 = 4;

/// The operations of the same ranks of which some prove that others are in the wrong one, for each set of ranks, that of the biggest first. Ranks
/// leave a reduction before the others of them are done, and are in the next operation by right: that they are in different ones proves something
/// only where everybody is in one, so that nobody is left for whom those who are behind could wait.
pub(super) fn proving<'a>(there: &[&'a Gathering], all: &IdSet) -> Vec<Vec<&'a Gathering>> {
    let mut by_ranks: Vec<(&IdSet, Vec<&Gathering>)> = Vec::new();
    for one in there {
        let ranks = match &one.communicator {
            None => Some(all),
            // Who belongs to it is not known of each.
            Some(_) => one.members.as_ref(),
        };
        // Between two groups the roots differ by right: that of one's own group is none.
        let is_between = one.root.is_some_and(|root| root < 0);
        let Some(ranks) = ranks.filter(|_| !is_between) else {
            continue;
        };
        match by_ranks.iter_mut().find(|(known, _)| *known == ranks) {
            Some((_, list)) => list.push(one),
            None => by_ranks.push((ranks, vec![one])),
        }
    }
    let proving = |(ranks, list): (&IdSet, Vec<&'a Gathering>)| {
        let covered = IdSet::union_all(list.iter().map(|one| &one.tasks));
        let is_everybody = ranks.is_subset(&covered);
        let proving = list.into_iter();
        let proving = proving.filter(|one| is_everybody || needs_all(&one.name));
        proving.collect()
    };
    by_ranks.into_iter().map(proving).collect()
}

/// True where ranks may be in this operation by right while others are elsewhere.
pub(super) fn may_be_right(one: &Gathering) -> bool {
    one.communicator.is_some() || !needs_all(&one.name)
}

/// Who waits for messages of ranks that are at the end of their program and send none any more.
pub(super) fn left_behind(needs: &Needs, blocked: &IdSet) -> Option<Verdict> {
    let at_end = needs.gatherings.iter().filter(|one| one.name == "finalize");
    let at_end = IdSet::union_all(at_end.map(|one| &one.tasks));
    let is_at_end = |rank: &u32| at_end.contains(TaskId(*rank));
    let (mut behind, mut partners) = (IdSet::new(), IdSet::new());
    let graph = &needs.graph;
    let ones = graph.ones.iter().map(|(who, one)| (*who, vec![*one]));
    let either = graph.either.iter().map(|(who, two)| (*who, two.to_vec()));
    for (who, wanted) in ones.chain(either) {
        if blocked.contains(TaskId(who)) && wanted.iter().all(is_at_end) {
            behind.insert(TaskId(who));
            partners.extend(wanted.into_iter().map(TaskId));
        }
    }
    if behind.is_empty() {
        return None;
    }
    // For whom several wait is the one that has left something out.
    let (blamed, who) = match (behind.len() > 1, partners.len()) {
        (true, 1) => (partners.clone(), "others"),
        _ => (behind, "they"),
    };
    let partners = match partners.len() {
        1 => format!("rank {partners}, which is in MPI_Finalize and sends and receives"),
        count if count <= NAMED_MAX => {
            format!("ranks {partners}, which are in MPI_Finalize and send and receive")
        }
        _ => "ranks that are in MPI_Finalize and send and receive".to_owned(),
    };
    let text = format!("the message that {who} wait for is one of {partners} nothing more");
    Some(Verdict::new(Step::CannotGoOn, text).blaming(blamed))
}
