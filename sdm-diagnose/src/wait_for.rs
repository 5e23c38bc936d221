//! Builds the wait-for graph from the calls that tasks are in.

use std::collections::BTreeMap;

use sdm_debug::probe::{ArgumentRole, Call, CallArgument, TaskWaits, WaitFor};
use sdm_debug::rules::Probes;
use sdm_idset::{IdSet, TaskId};
use sdm_mpi::{
    connects_programs, ends_mpi, is_between_groups, is_of_all, is_outside, locks_window,
    starts_mpi, takes_requests,
};

use super::collective_groups::CollectiveGroup;
use super::epochs::EpochWait;
use super::graph::{SetNeed, WaitGraph};
use super::members::Members;
use super::messages::Stray;
use super::motion::SamePlace;
use super::neighbors::NeighborWait;
use super::operations::{
    alternatives, is_nobody, is_of_collective, is_with_other_jobs, names_ranks_of_the_job,
};
use super::wait::{WaitKind, kind};

/// The waits of all ranks that stayed in a call.
#[derive(Debug, Default)]
pub(super) struct Needs {
    pub(super) graph: WaitGraph,
    pub(super) gatherings: Vec<CollectiveGroup>,
    /// Ranks whose send and receive match, or whose targets have all opened their epochs, so that their calls should
    /// complete.
    pub(super) matched: IdSet,
    /// Sends and receives whose tags differ: sender, receiver, the tag sent, the tag expected.
    pub(super) mismatched: Vec<(u32, u32, i64, i64)>,
    /// As `mismatched`, for messages that have arrived from senders which themselves wait. Those senders can send more
    /// messages later.
    pub(super) early: Vec<(u32, u32, i64, i64)>,
    /// Sends whose receiver waits for the same message from another rank: sender, receiver, and that other rank.
    pub(super) strays: Vec<[u32; 3]>,
    /// Messages that have arrived and that their receivers do not wait for.
    pub(super) come: Vec<Stray>,
    /// Ranks that send and receive in different communicators: one sends to another, which receives in a different
    /// communicator.
    pub(super) apart: IdSet,
    /// Ranks in an MPI call that can depend on more than this job's ranks: on other programs, or a disk. Also ranks
    /// that wait in MPI if task numbers are not ranks. Each counts as waiting for any other rank.
    pub(super) outside: IdSet,
    /// Ranks in a collective operation in which no rank is missing, so that it should complete.
    pub(super) complete: IdSet,
    /// Ranks that wait for messages.
    pub(super) messages: IdSet,
    /// Ranks in a call that sends and receives, whose receive is no longer pending. Its data can still be on its way.
    pub(super) received: IdSet,
    /// Ranks that wait for a message to or from a rank that is unknown.
    pub(super) with_unknown: IdSet,
    /// Ranks that wait for any one of several messages, with the senders of these messages.
    pub(super) alternatives: Vec<(IdSet, IdSet)>,
    /// Ranks that wait outside of MPI for processes of this job, by a file lock or a pipe.
    pub(super) resources: IdSet,
    /// Ranks that wait for a lock, of an RMA window or outside of MPI, with the ranks that hold it.
    pub(super) locks: Vec<(IdSet, IdSet)>,
    /// Waits for the other side of an epoch of an RMA window, if the epoch's group is known.
    pub(super) epochs: Vec<EpochWait>,
    /// Waits in collective operations among neighbors, where it is known which neighbors are awaited.
    pub(super) neighbors: Vec<NeighborWait>,
    /// Ranks in `MPI_Init` that other ranks have left. These need nobody to leave it too.
    pub(super) starting: IdSet,
}

/// The properties of a class of equal calls that matter for a wait.
pub(super) struct Class<'a> {
    pub(super) tasks: IdSet,
    pub(super) kind: WaitKind,
    pub(super) call: &'a str,
    pub(super) known: Option<&'a Call>,
}

impl Class<'_> {
    /// The same class, restricted to some of its tasks.
    fn only(&self, tasks: IdSet) -> Self {
        Self { tasks, ..*self }
    }
}

impl Needs {
    pub(super) fn of(probes: &Probes, still: &[SamePlace], members: &Members<'_>) -> Self {
        let mut needs = Self::default();
        needs.graph.live = members.live.clone();
        needs.graph.never = members.never.clone();
        let classes = classes(probes, still);
        let polling = polling(probes);
        needs.starting = starting(&classes);
        needs.received = received(&classes);
        for class in &classes {
            match class.kind {
                _ if class.tasks.is_subset(&needs.starting) => {}
                WaitKind::Message | WaitKind::Collective if members.unranked => {
                    needs.outside(&class.tasks, members);
                }
                WaitKind::Message | WaitKind::Collective | WaitKind::Mpi
                    if is_with_other_jobs(class.known) =>
                {
                    needs.outside(&class.tasks, members);
                }
                WaitKind::Message if is_of_collective(class.known) => {
                    needs.neighbors(class);
                    needs.gather(probes, class);
                }
                WaitKind::Message => needs.message(probes, class, members),
                WaitKind::Mpi | WaitKind::Collective if is_outside(class.call) => {
                    // In a collective file operation, ranks that poll wait for the other ranks, and not for
                    // a file.
                    let there = match class.call {
                        call if connects_programs(call) => class.tasks.clone(),
                        call if is_of_all(call) => class.tasks.intersection(&polling),
                        _ => IdSet::new(),
                    };
                    needs.outside(&class.tasks.difference(&there), members);
                    if !there.is_empty() {
                        needs.gather(probes, &class.only(there));
                    }
                }
                WaitKind::Collective => {
                    needs.neighbors(class);
                    needs.gather(probes, class);
                }
                WaitKind::Mpi if is_between_groups(class.call) => {
                    needs.epoch(probes, class, members);
                }
                WaitKind::Mpi if locks_window(class.call) => {
                    needs.window_lock(probes, class, members);
                }
                WaitKind::Mpi => needs.any_other(&class.tasks, members),
                _ => {}
            }
        }
        needs.collectives(members);
        needs.match_messages(probes, &classes);
        needs.graph.live.union_with(&needs.complete);
        needs.graph.live.union_with(&needs.starting);
        needs
    }

    /// The ranks in `MPI_Finalize`.
    pub(super) fn at_end(&self) -> IdSet {
        let at_end = self.gatherings.iter();
        let at_end = at_end.filter(|one| ends_mpi(&one.name));
        IdSet::union_all(at_end.map(|one| &one.tasks))
    }

    /// Adds waits of ranks with several threads in MPI. Any of these threads can let the rank go on, so that the
    /// awaited rank is unknown.
    pub(super) fn by_other_threads(&mut self, who: &IdSet, members: &Members<'_>) {
        self.any_other(who, members);
    }

    /// Adds waits of ranks that can depend on more than the ranks of the job.
    pub(super) fn outside(&mut self, who: &IdSet, members: &Members<'_>) {
        self.outside.union_with(who);
        self.any_other(who, members);
    }

    pub(super) fn any_other(&mut self, who: &IdSet, members: &Members<'_>) {
        if who.is_empty() {
            return;
        }
        self.graph.sets.push(SetNeed {
            who: who.clone(),
            peers: members.others(members.all, who),
            all: false,
            guessed: true,
        });
    }

    fn message(&mut self, probes: &Probes, class: &Class<'_>, members: &Members<'_>) {
        use ArgumentRole as R;
        self.messages.union_with(&class.tasks);
        let Some(call) = class.known.filter(|call| names_ranks_of_the_job(call)) else {
            self.with_unknown.union_with(&class.tasks);
            return self.any_other(&class.tasks, members);
        };
        if let Some(peers) = alternatives(call) {
            let who = class.tasks.clone();
            self.graph.by_request.union_with(&who);
            self.alternatives.push((who.clone(), peers.clone()));
            self.graph.sets.push(SetNeed {
                peers: peers.intersection(members.all),
                who,
                all: false,
                guessed: false,
            });
            return;
        }
        let of = |role| call.arguments.iter().find(|argument| argument.role == role);
        // For a request, the peer rank is the argument with the role `Target`.
        let source = of(R::Source).or(of(R::Target));
        let role = source.map_or(R::Source, |source| source.role);
        // A call that also sends waits for its receive, where that is pending.
        let mut arguments = call.arguments.iter();
        let receives = arguments.any(|one| one.expression == sdm_mpi::PENDING);
        let destination = of(R::Destination).filter(|_| !receives);
        let is_rank = |number: &i64| {
            let rank = u32::try_from(*number).ok();
            rank.filter(|rank| members.all.contains(TaskId(*rank)))
        };
        let (mut unknown, mut any) = (IdSet::new(), IdSet::new());
        let is_any = source.is_some_and(|source| source.expression == sdm_mpi::ANY_SOURCE);
        let is_of_any = |from: i64| from < 0 && !is_nobody(role, Some(from));
        let number = |role, argument: Option<&CallArgument>, task| {
            argument.and_then(|argument| argument.number)?;
            probes.number(role, task)
        };
        for task in class.tasks.iter() {
            let from = number(role, source, task);
            let to = number(R::Destination, destination, task);
            let from_rank = from.as_ref().and_then(is_rank);
            let to_rank = to.as_ref().and_then(is_rank);
            // A message to or from no rank is never outstanding.
            let both = source.is_some() && destination.is_some();
            let both = both && !is_nobody(role, from) && !is_nobody(R::Destination, to);
            match (from_rank, to_rank) {
                // Which of the two messages is outstanding is unknown.
                (Some(from), Some(to)) => self.graph.either.push((task.0, [from, to])),
                (Some(one), None) | (None, Some(one)) if !both => {
                    self.graph.ones.push((task.0, one));
                    if takes_requests(class.call) {
                        self.graph.by_request.insert(task);
                    }
                }
                // A waiting receive without a source rank accepts a message of any rank. MPI_PROC_NULL is no
                // source.
                _ if !both && (is_any || from.is_some_and(is_of_any)) => {
                    any.insert(task);
                }
                _ => {
                    unknown.insert(task);
                }
            }
        }
        if !any.is_empty() {
            let all = of(R::Communicator).and_then(CallArgument::members);
            let peers = members.others(all.as_ref().unwrap_or(members.all), &any);
            self.graph.sets.push(SetNeed {
                who: any,
                peers,
                all: false,
                guessed: false,
            });
        }
        self.with_unknown.union_with(&unknown);
        self.any_other(&unknown, members);
    }
}

/// Ranks in `MPI_Init` while other ranks wait in later calls: those have done their part of it.
fn starting(classes: &[Class<'_>]) -> IdSet {
    let in_mpi = [WaitKind::Collective, WaitKind::Message, WaitKind::Mpi];
    let in_mpi = classes.iter().filter(|class| in_mpi.contains(&class.kind));
    let (starting, later): (Vec<_>, Vec<_>) = in_mpi.partition(|class| starts_mpi(class.call));
    match later.is_empty() {
        true => IdSet::new(),
        false => IdSet::union_all(starting.iter().map(|class| &class.tasks)),
    }
}

/// Ranks in a call that sends and receives, whose receive is no longer pending.
fn received(classes: &[Class<'_>]) -> IdSet {
    let is_it = |call: &Call| {
        let mut arguments = call.arguments.iter();
        arguments.any(|one| one.expression == sdm_mpi::RECEIVED)
    };
    let received = classes
        .iter()
        .filter(|class| class.known.is_some_and(is_it));
    IdSet::union_all(received.map(|class| &class.tasks))
}

/// Ranks in a file operation that do not wait for a file: they poll for other ranks.
fn polling(probes: &Probes) -> IdSet {
    let waits = probes.waits.iter();
    let polling = waits.filter(|(_, waits)| waits.main() == Some(&WaitFor::Polling));
    IdSet::union_all(polling.map(|(tasks, _)| tasks))
}

pub(super) fn argument<'a>(class: &Class<'a>, role: ArgumentRole) -> Option<&'a CallArgument> {
    let arguments = class.known?.arguments.iter();
    arguments.into_iter().find(|one| one.role == role)
}

pub(super) fn known(
    probes: &Probes,
    class: &Class<'_>,
    role: ArgumentRole,
    task: TaskId,
) -> Option<i64> {
    argument(class, role)?.number?;
    probes.number(role, task)
}

/// Groups the ranks that stayed in a call by their place and by the known arguments of the call.
fn classes<'a>(probes: &'a Probes, still: &'a [SamePlace]) -> Vec<Class<'a>> {
    let mut classes = Vec::new();
    for group in still {
        let mut rest = group.tasks.clone();
        for (tasks, waits) in &probes.waits {
            let Some(call) = &waits.call else { continue };
            let tasks = tasks.intersection(&rest);
            if tasks.is_empty() || kind(&call.function) != group.wait.kind {
                continue;
            }
            rest.subtract(&tasks);
            classes.push(Class {
                tasks,
                kind: group.wait.kind,
                call: &group.wait.call,
                known: Some(call),
            });
        }
        if !rest.is_empty() {
            classes.push(Class {
                tasks: rest,
                kind: group.wait.kind,
                call: &group.wait.call,
                known: None,
            });
        }
    }
    classes
}

/// Adds waits outside of MPI for processes of this job: for a process that holds a file lock, or that has the other end
/// of a pipe.
pub(super) fn resources(
    needs: &mut Needs,
    waits: &[(IdSet, TaskWaits)],
    still: &IdSet,
    pids: &BTreeMap<i32, TaskId>,
) {
    for (tasks, waits) in waits {
        let Some(WaitFor::Resource(resource)) = waits.main() else {
            continue;
        };
        let holders = resource.holders.iter();
        let holders: Option<Vec<TaskId>> = holders
            .map(|holder| pids.get(&holder.pid).copied())
            .collect();
        let Some(holders) = holders.filter(|holders| !holders.is_empty()) else {
            continue;
        };
        let mut peers = IdSet::new();
        for holder in holders {
            peers.insert(holder);
        }
        let who = tasks.intersection(still);
        let who = who.difference(&peers);
        if !who.is_empty() {
            if resource.is_lock() {
                needs.locks.push((who.clone(), peers.clone()));
            }
            needs.resources.union_with(&who);
            needs.graph.live.subtract(&who);
            needs.graph.sets.push(SetNeed {
                who,
                peers,
                all: false,
                guessed: false,
            });
        }
    }
}
