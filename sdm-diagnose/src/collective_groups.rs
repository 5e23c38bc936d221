//! Ranks that are in one collective operation together, and the ranks that they wait for in it.

use std::collections::{BTreeMap, BTreeSet};

use sdm_debug::probe::{ArgumentRole, CallArgument};
use sdm_debug::rules::{Numbers, Probes};
use sdm_idset::{IdSet, TaskId};
use sdm_mpi::usage::{Flow, flow};
use sdm_mpi::{
    TORCH_PREFIX, connects_programs, is_of_two_groups, is_of_world, mpi_name, needs_all,
};

use super::graph::SetNeed;
use super::members::Members;
use super::operations::{
    NONBLOCKING, awaited_ranks, is_of_collective, is_owed, is_served, started_by, tags as tags_in,
    waits_for_parts,
};
use super::verdict::{Verdict, in_number, ranks, waiting};
use super::wait_for::{Class, Needs};
use super::{Cause, Step};

/// Tasks that are in one collective operation together, as far as the arguments of their calls show.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CollectiveGroup {
    pub(super) tasks: IdSet,
    /// The name of the operation in lower case, without `MPI_`: `allreduce`.
    pub(super) name: String,
    /// The name of the called function. For a nonblocking operation it is the function that waits for it.
    pub(super) call: String,
    /// The functions that can have started a nonblocking operation. Empty if they are unknown.
    pub(super) started_by: Vec<String>,
    /// True if no rank leaves the operation before all its ranks have entered it.
    pub(super) is_owed: bool,
    /// The expression for the communicator; empty if unknown. None for `MPI_COMM_WORLD`.
    pub(super) communicator: Option<String>,
    /// The context id of the communicator, which is the same at all its ranks. None if unknown.
    pub(super) context: Option<i64>,
    /// The ranks of the communicator. None if they are unknown, and for `MPI_COMM_WORLD`.
    pub(super) members: Option<IdSet>,
    pub(super) root: Option<i64>,
    pub(super) count: Option<i64>,
    /// The tag of an operation that creates a communicator; None for other operations, and if unknown.
    pub(super) tag: Option<i64>,
    /// The leader of the other group of an operation that creates an intercommunicator. None for other operations, and
    /// if unknown.
    pub(super) remote_leader: Option<TaskId>,
    /// The ranks whose data these ranks still lack: data that the root sends, or data that is gathered. None for other
    /// operations, and if unknown.
    pub(super) awaited: Option<IdSet>,
    /// Ranks of the operation, with the ranks whose data each of them still lacks.
    pub(super) lacking: Vec<(IdSet, IdSet)>,
    /// Ranks that lack no data, although they are still in the operation: they hand data on.
    pub(super) served: IdSet,
    /// Ranks of the operation, with the tags of the data that each of them still lacks.
    pub(super) awaited_tags: Vec<(IdSet, BTreeSet<i64>)>,
    /// Ranks of the operation, with the tags of data of any operation in its communicator that has arrived and is not
    /// received. Without ranks of which that is unknown.
    pub(super) arrived_tags: Vec<(IdSet, BTreeSet<i64>)>,
}

impl CollectiveGroup {
    /// True if both are the same operation with the same arguments. The expression for a communicator can differ
    /// between ranks, so the communicator is identified by its members if they are known.
    fn is_same_operation(&self, other: &Self) -> bool {
        let key = |one: &Self| (one.root, one.count, one.context, one.tag);
        let is_told = self.members.is_some() || self.communicator == other.communicator;
        let is_same = self.name == other.name && self.members == other.members;
        is_same && is_told && key(self) == key(other)
    }

    /// The function that has started a nonblocking operation; None unless exactly one function can have started it.
    pub(super) fn starter(&self) -> Option<&str> {
        match &self.started_by[..] {
            [one] => Some(one),
            _ => None,
        }
    }

    /// The function that the ranks are in. For a nonblocking operation it is the function that has started it, if that
    /// is known.
    pub(super) fn operation(&self) -> &str {
        self.starter().unwrap_or(&self.call)
    }

    /// Adds the ranks of another group of the same operation. The function that has started the operation stays known
    /// only if it is the same in both.
    fn absorb(&mut self, other: &Self) {
        self.tasks.union_with(&other.tasks);
        self.is_owed &= other.is_owed;
        self.remote_leader = self.remote_leader.or(other.remote_leader);
        let awaited = self.awaited.as_ref().zip(other.awaited.as_ref());
        self.awaited = awaited.map(|(own, others)| own.union(others));
        self.lacking.extend(other.lacking.iter().cloned());
        self.served.union_with(&other.served);
        self.awaited_tags.extend(other.awaited_tags.iter().cloned());
        self.arrived_tags.extend(other.arrived_tags.iter().cloned());
        if self.started_by != other.started_by {
            self.started_by.clear();
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

    /// True if this can be the same operation as `known`, whose communicator is known better.
    fn can_be(&self, known: &Self) -> bool {
        let is_unknown = match (&self.members, &known.members) {
            (None, Some(_)) => self.communicator.is_some(),
            (own, others) => own == others && self.context.is_none() != known.context.is_none(),
        };
        self.name == known.name && is_unknown
    }
}

impl Needs {
    pub(super) fn gather(&mut self, probes: &Probes, class: &Class<'_>) {
        use ArgumentRole as R;
        let call = class.known;
        let started = started_by(call);
        let name = match (is_of_collective(call), &started[..]) {
            // In PyTorch an operation that is waited for later is the same as a blocking one.
            (true, [one]) if one.starts_with(TORCH_PREFIX) => mpi_name(one).unwrap_or_default(),
            (true, _) => NONBLOCKING.to_owned(),
            (false, _) => mpi_name(class.call).unwrap_or_default(),
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
        let (contexts, tags) = (numbers(R::Context), numbers(R::Tag));
        let mut parts: BTreeMap<[Option<i64>; 4], IdSet> = BTreeMap::new();
        let number = |numbers: Option<&Numbers>, task| numbers.and_then(|all| all.of(task));
        for task in class.tasks.iter() {
            let key = [roots, counts, contexts, tags].map(|numbers| number(numbers, task));
            parts.entry(key).or_default().insert(task);
        }
        for ([root, count, context, tag], tasks) in parts {
            // Only the leader of a group has to know the other one.
            let leader = rank_of(root).filter(|leader| tasks.contains(*leader));
            let remote_leader = leader.and_then(|leader| number(numbers(R::Target), leader));
            let awaited = call
                .filter(|call| waits_for_parts(call))
                .and_then(awaited_ranks);
            let lacking = awaited.iter().map(|ranks| (tasks.clone(), ranks.clone()));
            let of_tags = |expression| {
                let tags = call.and_then(|call| tags_in(call, expression));
                tags.map(|tags| (tasks.clone(), tags)).into_iter().collect()
            };
            let gathering = CollectiveGroup {
                lacking: lacking.collect(),
                awaited_tags: of_tags(sdm_mpi::AWAITED_TAGS),
                arrived_tags: of_tags(sdm_mpi::ARRIVED_TAGS),
                served: match call.is_some_and(is_served) {
                    true => tasks.clone(),
                    false => IdSet::new(),
                },
                tasks,
                name: name.clone(),
                call: class.call.to_owned(),
                started_by: started.iter().map(|name| (*name).to_owned()).collect(),
                is_owed: is_owed(&name, call),
                communicator: communicator.clone(),
                context,
                members: members.clone(),
                root,
                count,
                tag,
                remote_leader: rank_of(remote_leader),
                awaited,
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
    pub(super) fn collectives(&mut self, members: &Members<'_>) {
        let at_end = self.at_end();
        let (mut unknown, mut outside) = (IdSet::new(), IdSet::new());
        let told = IdSet::union_all(self.neighbors.iter().map(|wait| &wait.who));
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
            let root = rank_of(one.root);
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
            // Other programs are awaited, unless a rank is known to be missing.
            if connects_programs(&one.call) && (peers.is_empty() || !world) {
                outside.union_with(&one.tasks);
                continue;
            }
            if peers.is_empty() {
                match self.remote_side(one) {
                    RemoteSide::Here => self.complete.union_with(&one.tasks),
                    RemoteSide::Led(leader) => {
                        let sets = &mut self.graph.sets;
                        sets.push(need(one.tasks.clone(), &IdSet::single(leader), true));
                    }
                    RemoteSide::Unknown => unknown.union_with(&one.tasks),
                }
                continue;
            }
            let sets = &mut self.graph.sets;
            match (flow(&one.name), root) {
                _ if !world => sets.push(need(one.tasks.clone(), &peers, false)),
                (Some(Flow::FromRoot), Some(root)) if !one.tasks.contains(root) => {
                    // The root may be past it already, and a rank between it and these late.
                    let lost = IdSet::single(root).intersection(members.never);
                    sets.push(any_or_lost(one.tasks.clone(), &lost));
                }
                (Some(Flow::ToRoot), Some(root)) => {
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
                _ => {
                    // The neighbors that these wait for are known.
                    let who = one.tasks.difference(&told);
                    sets.push(need(who, &peers, needs_all(&one.name)));
                }
            }
        }
        self.any_other(&unknown, members);
        self.outside(&outside, members);
    }

    /// The state of the other group for an operation in which no rank of the own group is missing.
    fn remote_side(&self, one: &CollectiveGroup) -> RemoteSide {
        if !is_of_two_groups(&one.call) {
            return RemoteSide::Here;
        }
        let Some(leader) = one.remote_leader else {
            return RemoteSide::Unknown;
        };
        let mut groups = self.gatherings.iter();
        let other = groups.find(|other| other.tasks.contains(leader));
        let is_met = other.is_some_and(|other| {
            let missing = other.members.as_ref();
            let missing = missing.map(|all| all.difference(&other.tasks));
            let is_ours = other.remote_leader == rank_of(one.root);
            let is_alike = other.name == one.name && other.tag == one.tag;
            let is_ours = is_ours && rank_of(other.root) == Some(leader);
            is_ours && is_alike && missing.is_some_and(|missing| missing.is_empty())
        });
        match is_met {
            true => RemoteSide::Here,
            false => RemoteSide::Led(leader),
        }
    }
}

/// The verdict on ranks that wait in `MPI_Intercomm_create`: ranks of their own group or the other group are elsewhere,
/// or the leaders or tags of the two groups differ. None if there are none.
pub(super) fn unmet_group(needs: &Needs, blocked: &IdSet) -> Option<Verdict> {
    let mut groups = needs.gatherings.iter();
    groups.find_map(|one| {
        if !is_of_two_groups(&one.call) || !one.tasks.is_subset(blocked) {
            return None;
        }
        let missing = one.members.as_ref()?.difference(&one.tasks);
        if !missing.is_empty() {
            return skipped_by_members(needs, one, &missing);
        }
        let leader = one.remote_leader.filter(|leader| blocked.contains(*leader))?;
        let mut groups = needs.gatherings.iter();
        let other = groups.find(|other| other.tasks.contains(leader))?;
        let (who, call) = (&one.tasks, &one.call);
        let verdict = |text: String| Verdict::new(Step::CannotGoOn, text);
        // Leaders and tag are those that the leaders give.
        let leaders = rank_of(one.root).map_or_else(|| who.clone(), IdSet::single);
        let leaders = leaders.union(&IdSet::single(leader));
        let both = verdict(String::new()).between(leaders);
        if other.name != one.name {
            let text = format!(
                "{they_wait} in {call} for the group of rank {leader}, which is in {other_call}: that group skipped the \
                 call, or {ranks} made it once too often",
                they_wait = waiting(who),
                other_call = other.call,
                ranks = ranks(who)
            );
            let between = who.union(&IdSet::single(leader));
            return Some(verdict(text).between(between));
        }
        let is_led = other.remote_leader.is_some_and(|own| who.contains(own));
        if rank_of(other.root) != Some(leader) || !is_led {
            let text = format!(
                "ranks {who} and {others} are in {call}, but do not name each other's leader: {ranks} named rank {leader}",
                others = other.tasks,
                ranks = ranks(who)
            );
            // The rank that is named may be none of the leaders.
            let own = rank_of(other.root).map(IdSet::single);
            let own = own.filter(|_| rank_of(other.root) != Some(leader));
            let between = own.map(|own| own.union(&rank_of(one.root).into_iter().collect()));
            let between = between.unwrap_or_else(|| both.between.clone());
            let verdict = Verdict { text, ..both }.of(Cause::Communicator);
            return Some(verdict.between(between));
        }
        let (own, others) = one.tag.zip(other.tag).filter(|(own, others)| own != others)?;
        let text = format!(
            "ranks {who} and {other_ranks} are in {call}, but with different tags: {own} and {others}",
            other_ranks = other.tasks
        );
        Some(Verdict { text, ..both }.of(Cause::Tag))
    })
}

/// The verdict on the missing ranks of a group, which are past an `MPI_Intercomm_create` in which the rest of their
/// group waits. None if that is not certain.
fn skipped_by_members(needs: &Needs, one: &CollectiveGroup, missing: &IdSet) -> Option<Verdict> {
    let mut groups = needs.gatherings.iter();
    let past = groups.find(|other| missing.is_subset(&other.tasks))?;
    let mut groups = needs.gatherings.iter();
    let is_met = groups.any(|other| {
        let leader = other.remote_leader;
        other.name == one.name && leader.is_some_and(|leader| one.tasks.contains(leader))
    });
    let is_told = past.name != one.name && (is_met || missing.len() < one.tasks.len());
    let text = format!(
        "{they_wait} in {call} for {missing_ranks} of the same group, which skipped that call and {wait} in {past_call}",
        they_wait = waiting(&one.tasks),
        call = one.call,
        missing_ranks = ranks(missing),
        wait = in_number("[waits|wait]", missing.len()),
        past_call = past.call
    );
    let verdict = Verdict::new(Step::CannotGoOn, text).blaming(missing.clone());
    is_told.then_some(verdict)
}

/// The state of the other group of a collective operation.
enum RemoteSide {
    /// There is no other group, or it has entered the operation.
    Here,
    /// The other group has this leader, and has not entered the operation.
    Led(TaskId),
    /// The leader of the other group is unknown.
    Unknown,
}

/// The rank with this number; None if the number is unknown or negative.
fn rank_of(number: Option<i64>) -> Option<TaskId> {
    number.and_then(|rank| u32::try_from(rank).ok()).map(TaskId)
}
