//! Ranks that wait for messages while the other ranks wait for them in a collective operation. Such a rank can wait for a
//! message too many, or the other side has left its send or receive out.

use sdm_idset::{IdSet, TaskId};

use super::Step;
use super::blame::Blocked;
use super::collective_groups::CollectiveGroup;
use super::graph::SetNeed;
use super::verdict::{Verdict, circle_text, in_number, ranks, waiting};

/// Maximum number of ranks that are named of those of which one may have left out its send. A longer list tells nothing.
const SENDERS_MAX: u64 = 2;

impl Blocked<'_> {
    /// The tasks among `some` that wait directly for one of `these`, or for a message of any of several ranks of which
    /// one is among `these`. Other waits for sets of tasks do not count. Returns all of `some` if none does.
    pub(super) fn closest(&self, some: &IdSet, these: &IdSet) -> IdSet {
        let direct = self.direct(some);
        let direct = direct.filter(|(_, peer)| these.contains(*peer));
        let direct = direct.map(|(who, _)| who).collect::<IdSet>();
        let of_any = self
            .for_any()
            .filter(|set| !set.peers.is_disjoint(these))
            .map(|set| set.who.intersection(some));
        let found = direct.union(&IdSet::union_all(&of_any.collect::<Vec<_>>()));
        match found.is_empty() {
            true => some.clone(),
            false => found,
        }
    }

    /// Pairs of a task among `some` and a task that it waits for by itself. A task whose receive is no longer pending waits
    /// until its own message is received.
    fn direct(&self, some: &IdSet) -> impl Iterator<Item = (TaskId, TaskId)> {
        let graph = &self.needs.graph;
        let either = graph.either.iter();
        let either = either.flat_map(|(who, [from, to])| {
            let receives = !self.needs.received.contains(TaskId(*who));
            let from = Some(*from).filter(|_| receives);
            from.into_iter().chain([*to]).map(|peer| (*who, peer))
        });
        let direct = graph.ones.iter().copied().chain(either);
        direct
            .map(|(who, peer)| (TaskId(who), TaskId(peer)))
            .filter(|(who, _)| some.contains(*who))
    }

    /// The waits for a message of any of several ranks.
    fn for_any(&self) -> impl Iterator<Item = &SetNeed> {
        let sets = self.needs.graph.sets.iter();
        sets.filter(|set| {
            let is_any = !set.all && !set.guessed && !set.peers.is_empty();
            is_any && set.who.is_subset(&self.needs.messages)
        })
    }

    /// The verdict if ranks outside the largest operation wait for a message of any of several ranks: one of these may
    /// have left out its send, as well as a rank with a receive too many. None if none of them waits so.
    pub(super) fn of_any_source(&self, odd: &IdSet, most: &CollectiveGroup) -> Option<Verdict> {
        let sets = self.for_any().filter(|set| !set.who.is_disjoint(odd));
        let sets: Vec<&SetNeed> = sets.collect();
        let who = IdSet::union_all(sets.iter().map(|set| &set.who)).intersection(odd);
        let senders = IdSet::union_all(sets.iter().map(|set| &set.peers));
        let senders = senders.intersection(self.blocked).difference(&who);
        if who.is_empty() {
            return None;
        }
        let count = who.len();
        let text = format!(
            "{they_wait} for {message} of any of several ranks, while other ranks wait for {them} in {call}{circle}: one \
             of the ranks that can send has left out its send, or {who} made a receive too many",
            they_wait = waiting(&who),
            message = in_number("[a message|messages]", count),
            them = in_number("[it|them]", count),
            call = most.call,
            circle = self.circle_in_brackets(),
            who = ranks(&who)
        );
        // A message with another tag or in another communicator shows its sender.
        let come = self.needs.come.iter();
        let come = come.filter(|one| self.blocked.contains(one.from) && !one.to.is_disjoint(&who));
        let come = come.map(|one| one.from).collect::<IdSet>();
        let between = match (come.is_empty(), senders.len() <= SENDERS_MAX) {
            (false, _) => who.union(&come),
            (true, true) => odd.union(&senders),
            (true, false) => IdSet::new(),
        };
        Some(Verdict::new(Step::Deadlock, text).between(between))
    }

    /// The verdict if all ranks outside the largest operation wait for messages. Those of a cycle among them are to blame:
    /// they wait for nobody else. Otherwise the other side of each message may be wrong as well. None if some of them
    /// wait for something else.
    pub(super) fn of_messages(&self, odd: &IdSet, most: &CollectiveGroup) -> Option<Verdict> {
        if !odd.is_subset(&self.needs.messages) {
            return None;
        }
        let (call, circle) = (&most.call, self.circle_in_brackets());
        let not_reached = in_number("which [it has|they have] not reached", odd.len());
        let verdict = |text| Verdict::new(Step::Deadlock, text);
        let first = self.of_circle().filter(|circle| circle.is_subset(odd));
        if let Some(first) = first {
            let more = self.circles.iter().map(|one| ids(one));
            let more: Vec<IdSet> = more.filter(|one| one.is_subset(odd)).collect();
            let text = format!("the other ranks wait in {call}, {not_reached}{circle}");
            return Some(verdict(text).blaming(first.union(&IdSet::union_all(&more))));
        }
        let direct: Vec<(TaskId, TaskId)> = self.direct(odd).collect();
        let partners = direct.iter().map(|(_, peer)| *peer).collect::<IdSet>();
        let is_of_one = |who: TaskId| {
            let peers = direct.iter().filter(|(one, _)| *one == who);
            peers.map(|(_, peer)| *peer).collect::<IdSet>().len() == 1
        };
        let is_told = odd.iter().all(is_of_one) && partners.is_subset(&most.tasks);
        Some(match is_told {
            true => {
                let text = format!(
                    "{they_wait} for messages to or from {partners}, which {wait} for {them} in {call}: {partners} \
                     skipped a call, or {odd_ranks} made one too many",
                    they_wait = waiting(odd),
                    odd_ranks = ranks(odd),
                    partners = ranks(&partners),
                    wait = in_number("[waits|wait]", partners.len()),
                    them = in_number("[it|them]", odd.len())
                );
                verdict(text).blaming(odd.union(&partners))
            }
            false => {
                let doubt = match odd.len() {
                    1 => {
                        "; it waits for a message that another rank may have failed to send or receive"
                    }
                    _ => {
                        "; they wait for messages that other ranks may have failed to send or receive"
                    }
                };
                let text = format!(
                    "the other ranks wait in {call}, {not_reached}{doubt}{circle}; no single rank is to blame"
                );
                verdict(text)
            }
        })
    }

    /// The cycle as text, in brackets after a blank. Empty without a cycle.
    fn circle_in_brackets(&self) -> String {
        let circle = circle_text(self.circle);
        circle.map_or_else(String::new, |circle| format!(" ({circle})"))
    }
}

/// The ranks of a cycle.
fn ids(circle: &[u32]) -> IdSet {
    circle.iter().map(|rank| TaskId(*rank)).collect()
}
