//! Builds the wait-for graph from the calls that tasks are in.

use std::collections::BTreeMap;

use sdm_debug::probe::{ArgumentRole, Call, CallArgument, TaskWaits, WaitFor};
use sdm_debug::rules::{Numbers, Probes};
use sdm_idset::{IdSet, TaskId};
use sdm_mpi::{is_of_all, is_of_world, is_outside, mpi_name, needs_all, takes_requests};

use super::graph::{SetNeed, WaitGraph};
use super::motion::SamePlace;
use super::operations::{
    Members, NONBLOCKING, alternatives, is_nobody, is_of_collective, is_owed, is_with_other_jobs,
    names_ranks_of_the_job, started_by,
};
use super::wait::{WaitKind, kind, locks_window};

/// Tasks that are in one collective operation together, as far as its arguments say.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CollectiveGroup {
    pub(super) tasks: IdSet,
    /// The name of the operation in lower case, without `MPI_`: `allreduce`.
    pub(super) name: String,
    /// The name of the called function; for a nonblocking operation that of the waiting one.
    pub(super) call: String,
    /// The function that has started a nonblocking operation, if only one can have.
    pub(super) started_by: Option<String>,
    /// True if no rank leaves the operation before all its ranks have entered.
    pub(super) is_owed: bool,
    /// The expression for the communicator; empty if unknown. None for `MPI_COMM_WORLD`.
    pub(super) communicator: Option<String>,
    /// The context id of the communicator, which is the same at all its ranks. None if unknown.
    pub(super) context: Option<i64>,
    /// The ranks of the communicator. None if they are unknown, and for `MPI_COMM_WORLD`.
    pub(super) members: Option<IdSet>,
    pub(super) root: Option<i64>,
    pub(super) count: Option<i64>,
}

/// The waits of all ranks that stayed in a call.
#[derive(Debug, Default)]
pub(super) struct Needs {
    pub(super) graph: WaitGraph,
    pub(super) gatherings: Vec<CollectiveGroup>,
    /// Ranks in a matching send and receive, which should complete.
    pub(super) matched: IdSet,
    /// Sends and receives whose tags differ: sender, receiver, the tag sent, the tag expected.
    pub(super) mismatched: Vec<(u32, u32, i64, i64)>,
    /// As `mismatched`, of messages that have arrived from senders that wait themselves. They can send more later.
    pub(super) early: Vec<(u32, u32, i64, i64)>,
    /// Ranks of which one sends and another receives, but in different communicators.
    pub(super) apart: IdSet,
    /// Ranks in an MPI call that can depend on more than this job's ranks: on other programs, or a disk.
    /// Each counts as waiting for any other rank while one is left.
    pub(super) outside: IdSet,
    /// Ranks in a collective operation in which no rank is missing, and which should complete.
    pub(super) complete: IdSet,
    /// Ranks that wait for messages.
    pub(super) messages: IdSet,
    /// Ranks that wait for the first of several messages, with the senders.
    pub(super) alternatives: Vec<(IdSet, IdSet)>,
    /// Ranks that wait for a file, a pipe or a child.
    pub(super) resources: IdSet,
    /// Ranks that wait for a lock, of an RMA window or outside of MPI, with the ranks that hold it.
    pub(super) locks: Vec<(IdSet, IdSet)>,
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

impl CollectiveGroup {
    /// True if both are the same operation with the same arguments. The name of a communicator can
    /// differ between ranks, so its members identify it if they are known.
    fn is_same_operation(&self, other: &Self) -> bool {
        let key = |one: &Self| (one.root, one.count, one.context);
        let is_told = self.members.is_some() || self.communicator == other.communicator;
        let is_same = self.name == other.name && self.members == other.members;
        is_same && is_told && key(self) == key(other)
    }

    /// Adds the ranks of the same operation. The function that started it is known if it is the same at all ranks.
    fn absorb(&mut self, other: &Self) {
        self.tasks.union_with(&other.tasks);
        self.is_owed &= other.is_owed;
        if self.started_by != other.started_by {
            self.started_by = None;
        }
    }

    /// The ranks of the communicator; for `MPI_COMM_WORLD` those of the job. None if unknown.
    pub(super) fn ranks<'a>(&'a self, all: &'a IdSet) -> Option<&'a IdSet> {
        match &self.communicator {
            None => Some(all),
            Some(_) => self.members.as_ref(),
        }
    }

    /// The ranks of the communicator that are not in the operation. None if the communicator's ranks are
    /// unknown.
    pub(super) fn missing(&self, all: &IdSet) -> Option<IdSet> {
        Some(self.ranks(all)?.difference(&self.tasks))
    }

    /// True if both are the same operation, and certainly in different communicators.
    pub(super) fn is_of_other_communicator(&self, other: &Self, all: &IdSet) -> bool {
        let ranks = self.ranks(all).zip(other.ranks(all));
        let contexts = self.context.zip(other.context);
        let is_other = ranks.is_some_and(|(own, others)| own != others)
            || self.communicator.is_none() != other.communicator.is_none()
            || contexts.is_some_and(|(own, others)| own != others);
        self.name == other.name && ranks.is_some() && is_other
    }

    /// True if this can be the same operation as `known`, of whose communicator more is known.
    fn can_be(&self, known: &Self) -> bool {
        let is_unknown = match (&self.members, &known.members) {
            (None, Some(_)) => self.communicator.is_some(),
            (own, others) => own == others && self.context.is_none() != known.context.is_none(),
        };
        self.name == known.name && is_unknown
    }
}

impl Needs {
    pub(super) fn of(probes: &Probes, still: &[SamePlace], members: &Members<'_>) -> Self {
        let mut needs = Self::default();
        needs.graph.live = members.live.clone();
        needs.graph.never = members.never.clone();
        let classes = classes(probes, still);
        let polling = polling(probes);
        for class in &classes {
            match class.kind {
                WaitKind::Message | WaitKind::Collective if members.unranked => {
                    needs.outside(&class.tasks, members);
                }
                WaitKind::Message | WaitKind::Collective | WaitKind::Mpi
                    if is_with_other_jobs(class.known) =>
                {
                    needs.outside(&class.tasks, members);
                }
                WaitKind::Message if is_of_collective(class.known) => needs.gather(probes, class),
                WaitKind::Message => needs.message(probes, class, members),
                WaitKind::Mpi | WaitKind::Collective if is_outside(class.call) => {
                    // In a collective file operation, ranks that poll wait for the other ranks, and not for
                    // a file.
                    let there = match is_of_all(class.call) {
                        true => class.tasks.intersection(&polling),
                        false => IdSet::new(),
                    };
                    needs.outside(&class.tasks.difference(&there), members);
                    if !there.is_empty() {
                        needs.gather(probes, &class.only(there));
                    }
                }
                WaitKind::Collective => needs.gather(probes, class),
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
        needs
    }

    /// The ranks in `MPI_Finalize`.
    pub(super) fn at_end(&self) -> IdSet {
        let at_end = self.gatherings.iter();
        let at_end = at_end.filter(|one| one.name == "finalize");
        IdSet::union_all(at_end.map(|one| &one.tasks))
    }

    /// Adds waits of ranks with several threads in MPI. Any of the threads can let the rank go on, so its
    /// peer is unknown.
    pub(super) fn by_other_threads(&mut self, who: &IdSet, members: &Members<'_>) {
        self.any_other(who, members);
    }

    /// Adds waits of ranks that can depend on more than the job's ranks.
    fn outside(&mut self, who: &IdSet, members: &Members<'_>) {
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
        let destination = of(R::Destination);
        let is_rank = |number: &i64| {
            let rank = u32::try_from(*number).ok();
            rank.filter(|rank| members.all.contains(TaskId(*rank)))
        };
        let (mut unknown, mut any) = (IdSet::new(), IdSet::new());
        let is_any = source.is_some_and(|source| source.expression == sdm_mpi::ANY_SOURCE);
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
                // A waiting receive without a source rank accepts a message of any rank.
                _ if !both && (is_any || from.is_some_and(|from| from < 0)) => {
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
        self.any_other(&unknown, members);
    }

    fn gather(&mut self, probes: &Probes, class: &Class<'_>) {
        use ArgumentRole as R;
        let call = class.known;
        let name = match is_of_collective(call) {
            true => NONBLOCKING.to_owned(),
            false => mpi_name(class.call).unwrap_or_default(),
        };
        let argument = |role| call?.arguments.iter().find(|one| one.role == role);
        let communicator = match argument(R::Communicator) {
            Some(argument) if argument.is_world() => None,
            Some(argument) => Some(argument.expression.clone()),
            None if is_of_world(&name) => None,
            None => Some(String::new()),
        };
        let members = argument(R::Communicator).or(argument(R::Window));
        let members = members.and_then(CallArgument::members);
        let numbers = |role| {
            argument(role)?.number?;
            probes.numbers.get(&role)
        };
        let (roots, counts) = (numbers(R::Root), numbers(R::Count));
        let contexts = numbers(R::Context);
        let mut parts: BTreeMap<[Option<i64>; 3], IdSet> = BTreeMap::new();
        let number = |numbers: Option<&Numbers>, task| numbers.and_then(|all| all.of(task));
        for task in class.tasks.iter() {
            let key = [roots, counts, contexts].map(|numbers| number(numbers, task));
            parts.entry(key).or_default().insert(task);
        }
        let started = started_by(call);
        let started = <[&str; 1]>::try_from(started).ok();
        for ([root, count, context], tasks) in parts {
            let gathering = CollectiveGroup {
                tasks,
                name: name.clone(),
                call: class.call.to_owned(),
                started_by: started.map(|[function]| function.to_owned()),
                is_owed: is_owed(&name, call),
                communicator: communicator.clone(),
                context,
                members: members.clone(),
                root,
                count,
            };
            let is_same = |known: &&mut CollectiveGroup| known.is_same_operation(&gathering);
            let same = self.gatherings.iter_mut().find(is_same);
            match same {
                Some(known) => known.absorb(&gathering),
                None => self.gatherings.push(gathering),
            }
        }
    }

    /// Adds the waits of ranks in a collective operation for the ranks that are not in it.
    fn collectives(&mut self, members: &Members<'_>) {
        let at_end = self.at_end();
        for one in &self.gatherings {
            let all = one.members.as_ref().unwrap_or(members.all);
            let unsure = self.gatherings.iter().filter(|other| other.can_be(one));
            let there = IdSet::union_all(unsure.map(|other| &other.tasks)).union(&one.tasks);
            let peers = all.difference(&there);
            // A rank at its end has left an operation that ranks leave one by one, unless no other rank is missing.
            let later = peers.difference(&at_end);
            let late = match later.is_empty() {
                true => &peers,
                false => &later,
            };
            let root = one.root.and_then(|root| u32::try_from(root).ok());
            let root = root.map(TaskId);
            let world = one.communicator.is_none() || one.members.is_some();
            let need = |who: IdSet, peers: &IdSet, all| SetNeed {
                who,
                peers: peers.clone(),
                all,
                guessed: !world,
            };
            // Any absent rank may be the one that is waited for. If some can never arrive (`lost`), the
            // wait is for these.
            let any_or_lost = |who, lost: &IdSet| match lost.is_empty() {
                true => need(who, late, false),
                false => need(who, lost, true),
            };
            if peers.is_empty() {
                self.complete.union_with(&one.tasks);
                continue;
            }
            let sets = &mut self.graph.sets;
            match (one.name.as_str(), root) {
                _ if !world => sets.push(need(one.tasks.clone(), &peers, false)),
                ("bcast" | "scatter" | "scatterv", Some(root)) if !one.tasks.contains(root) => {
                    // The root may be past it already, and a rank between it and these late.
                    let lost = IdSet::single(root).intersection(members.never);
                    sets.push(any_or_lost(one.tasks.clone(), &lost));
                }
                ("reduce" | "gather" | "gatherv", Some(root)) => {
                    let root = one.tasks.intersection(&IdSet::single(root));
                    let others = one.tasks.difference(&root);
                    if !root.is_empty() {
                        // Ranks that have contributed may have left: any absent rank may be the missing
                        // one.
                        sets.push(any_or_lost(root, &peers.intersection(members.never)));
                    }
                    if !others.is_empty() {
                        sets.push(need(others, late, false));
                    }
                }
                (name, _) => sets.push(need(one.tasks.clone(), &peers, needs_all(name))),
            }
        }
    }
}

/// Ranks in a file operation that wait at no file: they poll for other ranks.
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

/// Adds waits outside of MPI for processes of this job: for a file lock that one holds, or for its end of a
/// pipe.
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
