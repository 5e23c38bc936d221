//! Collective operations of the same ranks that do not match.

use sdm_idset::{IdSet, TaskId};
use sdm_mpi::usage::{Flow, NEIGHBORS, flow, is_mutual, passes_on};
use sdm_mpi::{ArgumentRole, ROOT, constant, needs_all, started_collective, takes_parts};

use super::collective_groups::CollectiveGroup;
use super::collective_order::NAMED_MAX;
use super::operations::NONBLOCKING;
use super::verdict::{Verdict, in_number, ranks, waiting};
use super::{Cause, Step};

/// The verdict on operations of the same ranks that do not match: different operations, or equal ones with different
/// arguments. None if they match.
pub(super) fn mismatch(these: &[&CollectiveGroup]) -> Option<Verdict> {
    let verdict = |what: String, most: &CollectiveGroup, others: &IdSet, largest: u64| {
        // Of equally many on either side neither is the odd one.
        let few = largest < most.tasks.len();
        let between = match few {
            true => others.clone(),
            false => others.union(&most.tasks),
        };
        let odd = if few { others.clone() } else { IdSet::new() };
        let verdict = Verdict::new(Step::CannotGoOn, what);
        verdict.blaming(odd).between(between)
    };
    // A rank in the same operation with a different argument is the cause of later mismatches.
    let differ = |one: Option<i64>, two| one.zip(two).filter(|(one, two)| one != two);
    for (index, most) in these.iter().enumerate() {
        let found = |one: &CollectiveGroup| {
            let key = |one: &CollectiveGroup| (one.context, one.communicator.is_none());
            let roots = differ(most.root, one.root).map(|two| (Cause::Root, two));
            let found = roots.or_else(|| Some((Cause::Count, differ(most.count, one.count)?)));
            let found = found.or_else(|| Some((Cause::Tag, differ(most.tag, one.tag)?)));
            found.filter(|_| one.name == most.name && key(one) == key(most))
        };
        let same = these[index + 1..].iter();
        let same: Vec<_> = same.filter(|one| found(one).is_some()).collect();
        let Some((cause, (one, two))) = same.first().and_then(|one| found(one)) else {
            continue;
        };
        let text = format!(
            "the ranks are in {call}, but with different {argument}s: {one} and {two}",
            call = most.call,
            argument = cause.name()
        );
        let others = IdSet::union_all(same.iter().map(|one| &one.tasks));
        // Ranks with several other arguments can be in several later calls.
        let verdict = verdict(text, most, &others, others.len()).of(cause);
        let sides = std::iter::once(*most).chain(same.iter().map(|one| **one));
        return Some(by_roots(verdict, &sides.collect::<Vec<_>>(), these));
    }
    let most = these.first()?;
    let others: Vec<_> = these.iter().filter(|one| one.name != most.name).collect();
    let other = others.first()?;
    // The standard forbids to match a nonblocking operation with the blocking one.
    let name = blocking_name(most);
    let is_mixed = others.iter().all(|one| blocking_name(one) == name);
    let note = match is_mixed {
        true => "; a nonblocking operation does not match a blocking one",
        false => "",
    };
    let text = format!(
        "the ranks are in different collective operations: {one} and {two}{note}",
        one = most.operation(),
        two = other.operation()
    );
    let odd = IdSet::union_all(others.iter().map(|one| &one.tasks));
    // All in an operation that ranks leave one by one wait for a rank that omitted it: the only one that is not there,
    // whose own operation needs all of them.
    let is_only_one = odd.len() == 1 && others.iter().all(|one| needs_all(&one.name));
    // A nonblocking one can differ in its root.
    let is_told = most.name != NONBLOCKING || most.is_owed;
    if is_only_one && is_told && !needs_all(&most.name) {
        return Some(verdict(text, most, &odd, other.tasks.len()));
    }
    let is_told = others.iter().all(|one| is_root_elsewhere(one, &most.tasks));
    let is_told = is_told || is_mixed || is_root_elsewhere(most, &odd);
    // A single rank can name a root that has made the call with another one.
    let is_unsent =
        || behind_its_root(these).is_none() && these.iter().any(|one| is_unsent(one, these));
    let is_told = is_told || these.iter().any(|one| lacks_root(one, these)) || is_unsent();
    if !is_told && !these.iter().all(|one| one.is_owed) {
        return Some(undecided(these, most, &odd, text));
    }
    Some(verdict(text, most, &odd, other.tasks.len()))
}

/// The verdict on operations with different arguments, by their roots. A rank whose root is past the operation is to blame,
/// unless it may have the data of that root. If it certainly has, the other ranks are to blame, otherwise no rank is known
/// to be.
fn by_roots(verdict: Verdict, sides: &[&CollectiveGroup], these: &[&CollectiveGroup]) -> Verdict {
    let strays = sides.iter().filter(|one| is_root_past(one, these));
    let strays = IdSet::union_all(strays.map(|one| &one.tasks));
    let is_told = !strays.is_empty() && strays.len() < verdict.between.len();
    let verdict = match is_told && verdict.suspects.is_empty() {
        true => verdict.blaming(strays),
        false => verdict,
    };
    let is_served = |one: &CollectiveGroup| has_no_root_there(one, these) && hands_on(one);
    let (served, others): (Vec<&CollectiveGroup>, Vec<_>) =
        sides.iter().partition(|one| is_served(one));
    let named = match verdict.suspects.is_empty() {
        true => &verdict.between,
        false => &verdict.suspects,
    };
    let mut ranks = served.iter().map(|one| &one.tasks);
    if verdict.cause != Cause::Root || ranks.all(|ranks| ranks.is_disjoint(named)) {
        return verdict;
    }
    let odd = match served.iter().all(|one| one.tasks == one.served) {
        true => IdSet::union_all(others.iter().map(|one| &one.tasks)),
        false => IdSet::new(),
    };
    verdict.blaming(odd.clone()).between(odd)
}

/// The verdict on ranks in an operation that no rank leaves early, while more ranks are in another such operation. None
/// if there are none. Ranks in an operation that ranks leave one by one do not count, as they may be there
/// legitimately.
fn outnumbered(these: &[&CollectiveGroup]) -> Option<Verdict> {
    let mut of_all = these.iter().filter(|one| one.is_owed);
    let most = of_all.next()?;
    let others: Vec<_> = of_all.filter(|one| one.name != most.name).collect();
    let odd = IdSet::union_all(others.iter().map(|one| &one.tasks));
    let text = format!(
        "the ranks are in different collective operations: {one} and {two}",
        one = most.operation(),
        two = others.first()?.operation()
    );
    let verdict = Verdict::new(Step::CannotGoOn, text).blaming(odd.clone());
    (odd.len() < most.tasks.len()).then_some(verdict)
}

/// The verdict if some ranks are in an operation that ranks leave one by one. These ranks may be right to be there:
/// then they wait for a rank that has skipped the operation and is with the other ranks.
fn undecided(
    these: &[&CollectiveGroup],
    most: &CollectiveGroup,
    odd: &IdSet,
    mut text: String,
) -> Verdict {
    let verdict = outnumbered(these).or_else(|| part_missing(these));
    if let Some(verdict) = verdict.or_else(|| behind_its_root(these)) {
        return verdict;
    }
    if odd.len() < most.tasks.len() && odd.len() <= NAMED_MAX {
        let odd_ranks = ranks(odd);
        text += &format!(" (at fault: {odd_ranks}, or a rank that skipped that call)");
    }
    let verdict = Verdict::new(Step::CannotGoOn, text);
    // Of several ranks that are past it all but one can have made their part. A rank of a neighbourhood operation has left
    // it if none of its neighbours is missing.
    let is_told = odd.len() == 1 && !these.iter().any(|one| is_of_neighbors(one));
    let is_told = is_told && most.tasks.len() == 1;
    match is_told {
        true => verdict.between(odd.union(&most.tasks)),
        false => verdict,
    }
}

/// The verdict on ranks that are in another operation while their data is missing in this one. Ranks whose data has
/// arrived are in another operation too. None if that is not so.
///
/// Operations with a root in which ranks pass on the data of others are left out: the rank whose data is missing can
/// have passed it on to another root.
fn part_missing(these: &[&CollectiveGroup]) -> Option<Verdict> {
    let is_of_parts = |one: &&&CollectiveGroup| {
        takes_parts(&format!("MPI_{}", one.name)) && !passes_on(&one.name)
    };
    let mut there = these.iter().filter(is_of_parts);
    let one = there.next().filter(|_| there.next().is_none())?;
    let lacking = one.awaited.as_ref()?.difference(&one.tasks);
    let mut others = these.iter().filter(|other| other.name != one.name);
    let past = IdSet::union_all(others.clone().map(|other| &other.tasks));
    let other = others.find(|other| !lacking.is_empty() && lacking.is_subset(&other.tasks))?;
    if past.len() <= lacking.len() {
        return None;
    }
    let (they_wait, missing) = (waiting(&one.tasks), ranks(&lacking));
    let text = format!(
        "{they_wait} in {call} for the data of {missing}, which {are} in {past_call}; the data of other ranks has arrived",
        call = one.call,
        are = in_number("[is|are]", lacking.len()),
        past_call = other.operation()
    );
    let verdict = |fault: String| Verdict::new(Step::CannotGoOn, format!("{text}: {fault}"));
    Some(match is_mutual(&one.name) {
        // Past it, they have sent to those others.
        true => verdict(format!(
            "the counts of {missing} and of {waiting_ranks} differ",
            waiting_ranks = ranks(&one.tasks)
        ))
        .of(Cause::Count)
        .between(one.tasks.union(&lacking)),
        false => verdict(format!("{missing} skipped that call")).blaming(lacking),
    })
}

/// The verdict on a single rank that waits for the data of a root that is past the operation, as other ranks are. None
/// of these waits for the root. So they have received their data from another root, or have not made the call.
fn behind_its_root(these: &[&CollectiveGroup]) -> Option<Verdict> {
    let mut waiting = these.iter().filter(|one| one.awaited.is_some());
    let one = waiting.next().filter(|_| waiting.next().is_none())?;
    let root = TaskId(u32::try_from(one.root?).ok()?);
    let others = these.iter().filter(|other| other.name != one.name);
    let past = IdSet::union_all(others.clone().map(|other| &other.tasks));
    let mut there = others.filter(|other| other.tasks.contains(root));
    let there = there.next()?.operation();
    // Another rank that hands the data on could have omitted the call.
    let is_by_root = one.awaited.as_ref() == Some(&IdSet::single(root));
    if one.tasks.len() != 1 || past.len() < 2 || !is_by_root {
        return None;
    }
    let rank = &one.tasks;
    let text = format!(
        "rank {rank} waits in {call} for root {root}, which is in {there}, and other ranks are past that call too: \
         rank {rank} names another root than they do, or made a call that they skipped",
        call = one.call
    );
    let verdict = Verdict::new(Step::CannotGoOn, text).of(Cause::Root);
    Some(verdict.blaming(rank.clone()))
}

/// The verdict on a rank and the root whose data it waits for, if the root waits for that rank in another operation of
/// the same ranks. The other ranks can be anywhere. None if there are no such ranks.
pub(super) fn root_waits_back(there: &[&CollectiveGroup], all: &IdSet) -> Option<Verdict> {
    there.iter().find_map(|one| {
        let root = IdSet::single(TaskId(u32::try_from(one.root?).ok()?));
        let ranks = one.ranks(all)?;
        let mut others = there.iter();
        let other = others.find(|other| {
            let is_of_both = other.ranks(all) == Some(ranks) && other.context == one.context;
            needs_all(&other.name) && is_of_both && root.is_subset(&other.tasks)
        })?;
        let rank = &one.tasks;
        let is_it = one.awaited.as_ref() == Some(&root) && rank.len() == 1;
        let text = format!(
            "rank {rank} waits in {call} for root {root}, which waits for rank {rank} in {root_call}: they name different \
             roots, or one of them skipped a call",
            call = one.call,
            root_call = other.operation()
        );
        let verdict = Verdict::new(Step::CannotGoOn, text).of(Cause::Root);
        is_it.then(|| verdict.between(rank.union(&root)))
    })
}

/// The verdict on ranks of an intercommunicator that name a root of the other group, while another rank of that group
/// is the root. None if there are none.
pub(super) fn root_of_other_group(there: &[&CollectiveGroup]) -> Option<Verdict> {
    let is_root = |one: &CollectiveGroup| {
        let number = one.root.and_then(|root| constant(ArgumentRole::Root, root));
        number == Some(ROOT)
    };
    there.iter().find_map(|one| {
        let named = TaskId(u32::try_from(one.root?).ok()?);
        let is_of_both = |other: &&CollectiveGroup| {
            let key = |one: &CollectiveGroup| (one.name.clone(), one.members.clone(), one.context);
            is_root(other) && one.members.is_some() && key(other) == key(one)
        };
        let root = &there.iter().copied().find(is_of_both)?.tasks;
        let text = format!(
            "{they_wait} in {call} for root {named} of the other group, but in that group rank {root} is the root ({ROOT})",
            they_wait = waiting(&one.tasks),
            call = one.call
        );
        let verdict = Verdict::new(Step::CannotGoOn, text).of(Cause::Root);
        (!root.contains(named)).then(|| verdict.between(one.tasks.union(root)))
    })
}

/// The verdict on a rank that gathers, and lacks the data of all other ranks. Several of these are in operations that no
/// rank leaves early, and none of them sends it data. None if there is no such rank.
pub(super) fn gathers_alone(there: &[&CollectiveGroup], all: &IdSet) -> Option<Verdict> {
    there.iter().find_map(|one| {
        let ranks = one.ranks(all)?;
        let is_alone = |(rank, lacking): &&(IdSet, IdSet)| {
            rank.len() == 1 && *lacking == ranks.difference(rank)
        };
        let (rank, _) = one.lacking.iter().find(is_alone)?;
        // Each other rank of the operation waits for data itself.
        let others = IdSet::union_all(one.lacking.iter().map(|(who, _)| who));
        let alike = there.iter().filter(|other| {
            other.is_owed && other.ranks(all) == Some(ranks) && other.context == one.context
        });
        let past = alike.max_by_key(|other| other.tasks.len())?;
        let text = format!(
            "rank {rank} waits in {call} for the data of all other ranks, of which {past_ranks} are in {past_call}: rank \
             {rank} names another root than they do, or made a call that they skipped",
            call = one.call,
            past_ranks = past.tasks,
            past_call = past.operation()
        );
        let gathers = flow(&blocking_name(one)) == Some(Flow::ToRoot);
        let is_it = gathers && past.tasks.len() > 1 && one.tasks.is_subset(&others);
        let names_another = |other: &&CollectiveGroup| {
            let roots = other.root.zip(one.root);
            let is_other = roots.is_some_and(|(others, own)| others != own);
            other.name == one.name && other.context == one.context && is_other
        };
        let cause = match one.tasks.len() == 1 && !there.iter().any(names_another) {
            true => Cause::CallOrdering,
            false => Cause::Root,
        };
        let verdict = Verdict::new(Step::CannotGoOn, text).of(cause);
        is_it.then(|| verdict.blaming(rank.clone()))
    })
}

/// True if the root of this operation is certainly not past it, and is in `elsewhere`.
///
/// A root that gathers can leave only with the data of all ranks. If all other ranks wait for the data of a root that
/// sends, the root has sent none.
fn is_root_elsewhere(one: &CollectiveGroup, elsewhere: &IdSet) -> bool {
    let Some(root) = one.root.and_then(|root| u32::try_from(root).ok()) else {
        return false;
    };
    let is_there = elsewhere.contains(TaskId(root)) && !one.tasks.contains(TaskId(root));
    match flow(&one.name) {
        Some(Flow::ToRoot) => is_there,
        Some(Flow::FromRoot) => is_there && elsewhere.len() == 1,
        None => false,
    }
}

/// True if several ranks lack the own data of their root, and all others are in operations that no rank leaves early. So
/// the root has sent none, and no rank is past this operation.
fn lacks_root(one: &CollectiveGroup, these: &[&CollectiveGroup]) -> bool {
    let root = one.root.and_then(|root| u32::try_from(root).ok());
    let lacking = one.awaited.as_ref();
    let lacking = lacking.map(|ranks| ranks.difference(&one.tasks));
    let is_by_root =
        lacking.is_some_and(|lacking| Some(lacking) == root.map(TaskId).map(IdSet::single));
    let mut others = these.iter().filter(|other| other.name != one.name);
    let sends = flow(&one.name) == Some(Flow::FromRoot);
    sends && is_by_root && one.tasks.len() > 1 && others.all(|other| other.is_owed)
}

/// True if all ranks of an operation lack data of their root, and none of its data has arrived at a rank outside. There the
/// root and all others are in operations that no rank leaves early. So none of these has made the call: a root that is past
/// it has sent its data to a rank that has passed it on or would still have it.
fn is_unsent(one: &CollectiveGroup, these: &[&CollectiveGroup]) -> bool {
    let root = one.root.and_then(|root| u32::try_from(root).ok());
    let is_outside = root.is_some_and(|root| !one.tasks.contains(TaskId(root)));
    let sends = flow(&one.name) == Some(Flow::FromRoot) && is_outside;
    let mut lacking = one.awaited_tags.iter();
    let Some((_, tags)) = lacking.next().filter(|(_, tags)| sends && tags.len() == 1) else {
        return false;
    };
    let lacks = one.awaited_tags.iter().filter(|(_, own)| own == tags);
    let all_lack = IdSet::union_all(lacks.map(|(who, _)| who)) == one.tasks;
    let key = |one: &CollectiveGroup| (one.context, one.communicator.is_none());
    let mut others = these.iter().filter(|other| other.tasks != one.tasks);
    all_lack
        && others.all(|other| {
            let arrived = other.arrived_tags.iter();
            let quiet = arrived.filter(|(_, come)| come.is_disjoint(tags));
            let is_quiet = IdSet::union_all(quiet.map(|(who, _)| who)) == other.tasks;
            other.is_owed && key(other) == key(one) && is_quiet
        })
}

/// The name of an operation. For a nonblocking operation it is that of the blocking one.
fn blocking_name(one: &CollectiveGroup) -> String {
    let started = one.starter().and_then(started_collective);
    started.unwrap_or_else(|| one.name.clone())
}

/// True for an operation among neighbors, also for a nonblocking one.
fn is_of_neighbors(one: &CollectiveGroup) -> bool {
    blocking_name(one).starts_with(NEIGHBORS)
}

/// True if the named root has left the operation. To leave, it must have sent data to these ranks or received theirs.
fn is_root_past(one: &CollectiveGroup, these: &[&CollectiveGroup]) -> bool {
    has_no_root_there(one, these) && !hands_on(one)
}

/// True if the named root is in no operation of this name.
fn has_no_root_there(one: &CollectiveGroup, these: &[&CollectiveGroup]) -> bool {
    let root = one.root.and_then(|root| u32::try_from(root).ok());
    root.is_some_and(|root| {
        let mut same = these.iter().filter(|other| other.name == one.name);
        !same.any(|other| other.tasks.contains(TaskId(root)))
    })
}

/// True if these ranks may have the data of their root already. A rank that hands the data on can wait for the rank that
/// is to take it.
fn hands_on(one: &CollectiveGroup) -> bool {
    let root = one.root.and_then(|root| u32::try_from(root).ok());
    let root = root.map(|root| IdSet::single(TaskId(root)));
    flow(&one.name) == Some(Flow::FromRoot) && one.awaited != root
}
