//! Ranks that are past a collective operation in which other ranks still wait.

use std::cmp::Ordering;

use sdm_idset::{IdSet, TaskId};
use sdm_mpi::{closes_file, ends_mpi, is_of_file, needs_all};

use super::Step;
use super::collective_groups::CollectiveGroup;
use super::operations::NONBLOCKING;
use super::verdict::{Verdict, in_number, ranks, waiting};
use super::wait_for::Needs;

/// Maximum number of ranks that are listed in a text.
pub(super) const NAMED_MAX: u64 = 4;

/// Selects, for each set of ranks, the operations that can prove a mismatch; the set of the largest operation is first.
///
/// A rank can leave a reduction before its other ranks are done, and is then in the next operation legitimately.
/// Different operations prove a mismatch only if every rank is in one. Otherwise a missing rank can be what the others
/// wait for.
pub(super) fn proving<'a>(
    there: &[&'a CollectiveGroup],
    all: &IdSet,
) -> Vec<Vec<&'a CollectiveGroup>> {
    let mut by_ranks: Vec<(&IdSet, Vec<&CollectiveGroup>)> = Vec::new();
    for one in there {
        // For some operations the ranks that belong to them are unknown.
        let ranks = one.ranks(all);
        // On an intercommunicator the roots differ legitimately: in the root's own group the argument is
        // negative.
        let is_between = one.root.is_some_and(|root| root < 0);
        let Some(ranks) = ranks.filter(|_| !is_between) else {
            continue;
        };
        match by_ranks.iter_mut().find(|(known, _)| *known == ranks) {
            Some((_, list)) => list.push(one),
            None => by_ranks.push((ranks, vec![one])),
        }
    }
    let proving = |(ranks, list): (&IdSet, Vec<&'a CollectiveGroup>)| {
        let covered = IdSet::union_all(list.iter().map(|one| &one.tasks));
        let is_everybody = ranks.is_subset(&covered);
        let proving = list.into_iter();
        let proving = proving.filter(|one| is_everybody || needs_all(&one.name));
        proving.collect()
    };
    by_ranks.into_iter().map(proving).collect()
}

/// True if ranks can be in this operation legitimately while other ranks are in another one.
pub(super) fn may_be_right(one: &CollectiveGroup) -> bool {
    one.communicator.is_some() || !needs_all(&one.name)
}

/// The verdict on ranks that wait for messages from ranks in `MPI_Finalize`, which send no more. None if there are
/// none.
pub(super) fn left_behind(needs: &Needs, blocked: &IdSet) -> Option<Verdict> {
    let at_end = needs.at_end();
    let is_at_end = |rank: &u32| at_end.contains(TaskId(*rank));
    let (mut behind, mut partners) = (IdSet::new(), IdSet::new());
    // Ranks that are the only ones that some rank waits for.
    let mut certain = IdSet::new();
    let graph = &needs.graph;
    let ones = graph.ones.iter().map(|(who, one)| (*who, vec![*one]));
    let either = graph.either.iter().map(|(who, two)| (*who, two.to_vec()));
    for (who, wanted) in ones.chain(either) {
        if blocked.contains(TaskId(who)) && wanted.iter().all(is_at_end) {
            behind.insert(TaskId(who));
            if let [one] = wanted[..] {
                certain.insert(TaskId(one));
            }
            partners.extend(wanted.into_iter().map(TaskId));
        }
    }
    let alternatives = needs.alternatives.iter();
    for (who, wanted) in alternatives.filter(|(_, wanted)| wanted.is_subset(&at_end)) {
        let who = who.intersection(blocked);
        if who.is_empty() {
            continue;
        }
        // None of these ranks has sent the message that is waited for.
        if wanted.len() <= NAMED_MAX {
            certain.union_with(wanted);
        }
        behind.union_with(&who);
        partners.union_with(wanted);
    }
    if behind.is_empty() {
        return None;
    }
    // A single rank that several wait for has omitted something; otherwise either side may be wrong.
    let is_of_one = behind.len() > 1 && partners.len() == 1;
    let they_wait = match (is_of_one, behind.len()) {
        (true, _) => "other ranks wait".to_owned(),
        (false, count) if count <= NAMED_MAX => waiting(&behind),
        _ => "some ranks wait".to_owned(),
    };
    let (in_finalize, skipped) = match partners.len() {
        1 => (
            format!("rank {partners}, which is in MPI_Finalize"),
            format!("rank {partners} skipped a call"),
        ),
        count if count <= NAMED_MAX => (
            format!("ranks {partners}, which are in MPI_Finalize"),
            format!("ranks {partners} skipped calls"),
        ),
        _ => (
            "ranks that are in MPI_Finalize".to_owned(),
            "those ranks skipped calls".to_owned(),
        ),
    };
    let doubt = match (is_of_one, behind.len()) {
        (true, _) => String::new(),
        _ if certain.is_empty() => String::new(),
        (false, 1) => format!(": {skipped}, or rank {behind} made one call too many"),
        (false, _) => format!(": {skipped}, or the waiting ranks made too many calls"),
    };
    let blamed = match is_of_one {
        true => partners,
        false => behind.union(&certain),
    };
    let text = format!("{they_wait} for a message to or from {in_finalize}{doubt}");
    Some(Verdict::new(Step::CannotGoOn, text).blaming(blamed))
}

/// The verdict on ranks in `MPI_Finalize` for which other ranks wait, in an operation of a communicator to which they
/// belong. None if there are none.
pub(super) fn absent(needs: &Needs, blocked: &IdSet, all: &IdSet) -> Option<Verdict> {
    let at_end = needs.at_end();
    let found = needs.gatherings.iter().filter_map(|one| {
        let is_told = one.is_owed || one.name == NONBLOCKING;
        let is_told = is_told && !ends_mpi(&one.name);
        let waits = !one.tasks.is_disjoint(blocked);
        let absent = one.ranks(all)?.intersection(&at_end);
        // Where most have left it out it is once too often here.
        let is_odd = !absent.is_empty() && absent.len() <= one.tasks.len();
        (is_told && waits && is_odd).then_some((one, absent))
    });
    let (one, absent) = found.max_by_key(|(one, _)| (one.is_owed, one.tasks.len()))?;
    let within = match &one.communicator {
        Some(name) if !name.is_empty() => format!(" in {name}"),
        _ => String::new(),
    };
    let call = &one.call;
    let call = match one.starter() {
        Some(function) => format!("{call} for {function}"),
        None if one.name == NONBLOCKING => {
            format!("{call} for a nonblocking collective operation")
        }
        None => call.clone(),
    };
    let who = match absent.len() {
        count if count <= NAMED_MAX => ranks(&absent),
        _ => "ranks".to_owned(),
    };
    let (is, them) = match absent.len() {
        1 => ("is", "it"),
        _ => ("are", "them"),
    };
    let in_finalize = format!("{who} {is} in MPI_Finalize");
    // A rank whose part others lack has left it out. Those of others who wait come once that has.
    let lacking = one
        .awaited
        .as_ref()
        .map(|ranks| ranks.difference(&one.tasks));
    let is_lacking = one.tasks.len() > 1 && lacking.as_ref() == Some(&absent);
    if !one.is_owed && !is_lacking {
        // Each of several operations can have been started in another order by ranks that wait.
        let is_of_several = one.started_by.len() > 1;
        let operation = match one.starter() {
            Some(_) => "a rank can leave that operation before all ranks have entered it",
            None if is_of_several => {
                "the waiting ranks have started several operations, perhaps in different orders"
            }
            None => {
                "a rank can leave some nonblocking operations before all ranks have entered them, and the request does \
                 not show its operation"
            }
        };
        let text = format!(
            "{they_wait} in {call}{within}, while {in_finalize}: {who} skipped that call, or the waiting ranks differ in \
             their arguments; {operation}",
            they_wait = waiting(&one.tasks)
        );
        let both = match is_of_several {
            true => IdSet::new(),
            false => absent.union(&one.tasks),
        };
        return Some(Verdict::new(Step::CannotGoOn, text).between(both));
    }
    let text = format!(
        "{in_finalize}, while other ranks wait for {them} in {call}{within}, which {who} skipped"
    );
    Some(Verdict::new(Step::CannotGoOn, text).blaming(absent))
}

/// The verdict on ranks that close a file, while the other ranks of its communicator are in another operation of the file.
/// No operation of the file follows the closing, so the fewer ones are to blame. None if there are none.
pub(super) fn past_its_file(there: &[&CollectiveGroup], all: &IdSet) -> Option<Verdict> {
    let is_close = |one: &&&CollectiveGroup| closes_file(&one.name) && one.context.is_some();
    there.iter().filter(is_close).find_map(|closing| {
        let others = there.iter().filter(|one| {
            let is_of_file = is_of_file(&one.call) && one.context == closing.context;
            is_of_file && one.name != closing.name
        });
        let first = others.clone().next()?;
        if others.clone().any(|one| one.name != first.name) {
            return None;
        }
        let call = &first.call;
        let using = IdSet::union_all(others.map(|one| &one.tasks));
        let is_everybody = *closing.ranks(all)? == closing.tasks.union(&using);
        let (closed, rest) = (ranks(&closing.tasks), ranks(&using));
        let text = format!(
            "{they_wait} in {call} for {closed}, which {wait} in {close} of the same file: {closed} skipped that call, or \
             {rest} made it once too often",
            they_wait = waiting(&using),
            wait = in_number("[waits|wait]", closing.tasks.len()),
            close = closing.call
        );
        let verdict = Verdict::new(Step::CannotGoOn, text);
        is_everybody.then(|| match closing.tasks.len().cmp(&using.len()) {
            Ordering::Less => verdict.blaming(closing.tasks.clone()),
            Ordering::Equal => verdict.between(closing.tasks.union(&using)),
            Ordering::Greater => verdict.blaming(using),
        })
    })
}
