//! Waits for the other side of an epoch between groups of ranks of an RMA window.
//!
//! An origin waits until its targets have posted an exposure epoch, and a target until its origins have completed their
//! access epochs. The open epochs of each process are read from its MPI library's memory.

use sdm_debug::probe::{ArgumentRole as R, CallArgument, TaskWaits};
use sdm_debug::rules::Probes;
use sdm_idset::{IdSet, TaskId};
use sdm_mpi::waits_for_origins;

use super::graph::SetNeed;
use super::members::Members;
use super::verdict::{Verdict, ranks};
use super::wait_for::{Class, Needs, argument, known};
use super::{Cause, Step};

/// Ranks that wait for the other side of an epoch.
#[derive(Debug)]
pub(super) struct EpochWait {
    who: IdSet,
    /// The window, by its context id.
    window: String,
    /// The function in which the ranks wait.
    call: String,
    /// True for targets, which wait for the completion of access epochs.
    is_target: bool,
    /// The ranks of the other side that may be awaited.
    awaited: IdSet,
    /// Ranks of `awaited` that have an access epoch to these targets open. Empty for origins.
    open: IdSet,
}

impl Needs {
    /// Adds the waits of ranks for the other side of an epoch. A rank waits for any other rank if the epoch's group is
    /// unknown.
    pub(super) fn epoch(&mut self, probes: &Probes, class: &Class<'_>, members: &Members<'_>) {
        let is_target = waits_for_origins(class.call);
        let (own, others) = match is_target {
            true => (R::Exposure, R::Access),
            false => (R::Access, R::Exposure),
        };
        let mut unknown = IdSet::new();
        for task in class.tasks.iter() {
            let window = known(probes, class, R::Context, task).map(|it| it.to_string());
            let mine = class.known.into_iter().flat_map(|call| &call.arguments);
            let mine = mine.filter(|it| it.role == own);
            let mut mine =
                mine.filter(|it| window.as_ref().is_none_or(|own| it.expression == *own));
            let group = mine.next().filter(|_| mine.next().is_none());
            let group = group.and_then(of_window);
            // An origin has its group in the call before the library has it.
            let begun = argument(class, R::Communicator).and_then(CallArgument::members);
            let begun = window.as_deref().zip(begun).filter(|_| !is_target);
            let Some((window, partners)) = group.or(begun) else {
                unknown.insert(task);
                continue;
            };
            let matching = with_epoch(probes, others, window, task);
            let matching = matching.intersection(&partners);
            let awaited = match is_target {
                true => partners,
                // The others have posted theirs.
                false => partners.difference(&matching),
            };
            if awaited.is_empty() {
                self.matched.insert(task);
                continue;
            }
            let who = IdSet::single(task);
            self.graph.sets.push(SetNeed {
                who: who.clone(),
                peers: awaited.clone(),
                all: false,
                guessed: false,
            });
            self.epochs.push(EpochWait {
                who,
                window: window.to_owned(),
                call: class.call.to_owned(),
                is_target,
                awaited,
                open: if is_target { matching } else { IdSet::new() },
            });
        }
        self.any_other(&unknown, members);
    }
}

/// The window of an epoch, by its context id, and the ranks of the epoch's group. None if the group is unknown.
fn of_window(argument: &CallArgument) -> Option<(&str, IdSet)> {
    Some((&argument.expression, argument.members()?))
}

/// The ranks with an open epoch of this kind in which the rank `with` takes part.
fn with_epoch(probes: &Probes, role: R, window: &str, with: TaskId) -> IdSet {
    let is_it = |it: &CallArgument| {
        let group = of_window(it).filter(|(of, _)| it.role == role && *of == window);
        group.is_some_and(|(_, group)| group.contains(with))
    };
    let has_it = |waits: &TaskWaits| {
        let mut arguments = waits.call.iter().flat_map(|call| &call.arguments);
        arguments.any(is_it)
    };
    let found = probes.waits.iter().filter(|(_, waits)| has_it(waits));
    IdSet::union_all(found.map(|(tasks, _)| tasks))
}

/// The verdict on an origin and a target for which it waits, but which has posted its epoch for other ranks. None if
/// there are none.
fn crossed_epochs(needs: &Needs, blocked: &IdSet) -> Option<Verdict> {
    let waits = needs.epochs.iter();
    let waits: Vec<_> = waits.filter(|wait| wait.who.is_subset(blocked)).collect();
    waits.iter().filter(|one| !one.is_target).find_map(|one| {
        let mut targets = waits.iter().filter(|other| other.is_target);
        let other = targets.find(|other| {
            let is_missed = other.awaited.is_disjoint(&one.who);
            other.window == one.window && other.who.is_subset(&one.awaited) && is_missed
        })?;
        let text = format!(
            "rank {origin} waits in {call} for the epoch of rank {target}, which waits in {target_call} and has opened it for \
             {named} only: the group of one of these two ranks is wrong",
            origin = one.who,
            call = one.call,
            target = other.who,
            target_call = other.call,
            named = ranks(&other.awaited)
        );
        let verdict = Verdict::new(Step::CannotGoOn, text).of(Cause::Rma);
        Some(verdict.between(one.who.union(&other.who)))
    })
}

/// The verdict on ranks that wait for an epoch of ranks which are past it, or which have an epoch with other ranks.
/// None if there are none.
pub(super) fn unfinished_epochs(needs: &Needs, blocked: &IdSet) -> Option<Verdict> {
    crossed_epochs(needs, blocked).or_else(|| past_epochs(needs, blocked))
}

/// The verdict on ranks that wait for an epoch of ranks which are past it. None if there are none.
fn past_epochs(needs: &Needs, blocked: &IdSet) -> Option<Verdict> {
    let elsewhere = IdSet::union_all(needs.gatherings.iter().map(|one| &one.tasks));
    let waits = needs.epochs.iter();
    let mut waits = waits.filter(|wait| wait.who.is_subset(blocked));
    waits.find_map(|wait| {
        let open = wait.open.intersection(&elsewhere);
        let late = match open.is_empty() {
            true => wait.awaited.intersection(&elsewhere),
            false => open.clone(),
        };
        let mut groups = needs.gatherings.iter();
        let other = groups.find(|one| !late.is_empty() && late.is_subset(&one.tasks))?;
        let EpochWait {
            who,
            call,
            is_target,
            ..
        } = wait;
        let named = match late.len() {
            1 => format!("rank {late}, which waits"),
            _ if *is_target && open.is_empty() => format!("one of the ranks {late}, which wait"),
            _ => format!("ranks {late}, which wait"),
        };
        let (event, fault) = match (is_target, open.is_empty()) {
            (false, _) => ("post an exposure epoch", "MPI_Win_post is left out"),
            (true, true) => ("start and complete an access epoch", "MPI_Win_start and MPI_Win_complete are left out"),
            (true, false) => ("complete its access epoch", "MPI_Win_complete is left out"),
        };
        let text = format!(
            "rank {who} waits in {call} for {named} in {other_call}, to {event}: {fault} there, or the group of rank {who} \
             is wrong",
            other_call = other.call
        );
        let is_told = late.len() == 1 || !*is_target || !open.is_empty();
        let between = match is_told {
            true => late.union(who),
            false => IdSet::new(),
        };
        let verdict = Verdict::new(Step::CannotGoOn, text).of(Cause::Rma);
        Some(verdict.between(between))
    })
}
