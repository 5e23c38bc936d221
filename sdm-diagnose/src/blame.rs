//! Conclusions about blocked ranks: the text, and the ranks to blame.

use super::collective_groups::CollectiveGroup;
use super::collective_order::{NAMED_MAX, may_be_right};
use super::verdict::{Verdict, circle_text, in_number, ranks as named, waiting};
use super::wait_for::Needs;
use super::{Cause, Step};
use sdm_idset::{IdSet, TaskId};

/// Maximum number of further cycles that are printed.
const CIRCLES_SHOWN: usize = 3;

/// The ranks that wait only for each other, and the data for a conclusion about them.
pub(super) struct Blocked<'a> {
    pub(super) needs: &'a Needs,
    pub(super) blocked: &'a IdSet,
    /// All ranks of the job.
    pub(super) all: &'a IdSet,
    /// Ranks that wait for the lock of an RMA window, or for the completion of operations under it.
    pub(super) locking: &'a IdSet,
    /// Ranks that wait for the other side of an epoch of an RMA window.
    pub(super) in_epochs: &'a IdSet,
    /// A cycle of blocked ranks; empty if none is known.
    pub(super) circle: &'a [u32],
    /// Further cycles of blocked ranks.
    pub(super) circles: &'a [Vec<u32>],
    /// The collective operations that blocked ranks are in, largest first.
    pub(super) there: Vec<&'a CollectiveGroup>,
}

impl Blocked<'_> {
    pub(super) fn conclude(&self) -> Verdict {
        if let [alone] = self.circle {
            let text = format!(
                "the rank waits for a message from itself{}",
                self.only_one()
            );
            let alone = IdSet::single(TaskId(*alone));
            return Verdict::new(Step::Deadlock, text).blaming(alone);
        }
        if let Some(verdict) = self.alone().or_else(|| self.left_out()) {
            return verdict;
        }
        let Some(most) = self.there.first() else {
            return self.without_collective();
        };
        let others = self.blocked.difference(&most.tasks);
        // Ranks in an operation of fewer ranks, or in one that ranks leave one by one, may be there
        // legitimately.
        let by_right = self.there.iter().filter(|one| may_be_right(one));
        let by_right = IdSet::union_all(by_right.map(|one| &one.tasks));
        let others = others.difference(&by_right);
        let odd = self.closest(&others, &most.tasks);
        // A rank outside the operation's communicator is not missing there.
        let odd = match &most.members {
            Some(members) => odd.intersection(members),
            None => odd,
        };
        let odd = match most.is_owed {
            true => self.without_followers(odd),
            false => odd,
        };
        let circle = circle_text(self.circle);
        let circle = circle.map_or_else(String::new, |circle| format!(" ({circle})"));
        if let Some((whom, text)) = self.wanted_of(&odd, most) {
            return Verdict::new(Step::Deadlock, text + &circle).blaming(whom);
        }
        let call = &most.call;
        if !odd.is_empty() && odd.is_subset(self.locking) {
            let text = format!(
                "ranks wait for a window lock that one of the ranks in {call} may hold; which rank holds it is unknown"
            );
            return Verdict::new(Step::Deadlock, text);
        }
        let untold = self.in_epoch(&odd, most);
        if let Some(verdict) = untold.or_else(|| self.with_unknown(&odd, most)) {
            return verdict;
        }
        if let Some(verdict) = self.of_any_source(&odd, most) {
            return verdict;
        }
        if odd.is_empty() || odd.len() >= most.tasks.len() {
            let text = format!(
                "some ranks wait in {call}, which other blocked ranks have not reached{circle}; no single rank is to blame"
            );
            let between = self.between(&odd, most);
            return Verdict::new(Step::Deadlock, text).between(between);
        }
        if let Some((one, other, call)) = self.pair(&odd, most) {
            // A cycle of two ranks is already described by the text.
            let circle = Some(circle).filter(|_| self.circle.len() > 2);
            let circle = circle.unwrap_or_default();
            let text = format!(
                "rank {one} waits for rank {other}, which waits for rank {one} in {call}{circle}; one of these two ranks is wrong"
            );
            let both = [one, other].map(TaskId).into_iter().collect();
            return Verdict::new(Step::Deadlock, text).blaming(both);
        }
        if let Some(verdict) = self.of_messages(&odd, most) {
            return verdict;
        }
        let not_reached = in_number("which [it has|they have] not reached", odd.len());
        let text = format!("the other ranks wait in {call}, {not_reached}{circle}");
        Verdict::new(Step::Deadlock, text).blaming(odd)
    }

    /// The ranks of `odd` that are in collective operations, if each other one waits for a message of such a rank. `odd`
    /// itself otherwise.
    fn without_followers(&self, odd: IdSet) -> IdSet {
        let there = IdSet::union_all(self.there.iter().map(|one| &one.tasks));
        let leading = odd.intersection(&there);
        let ones = self.needs.graph.ones.iter();
        let following = ones.filter(|(_, peer)| leading.contains(TaskId(*peer)));
        let following = following.map(|(who, _)| TaskId(*who)).collect();
        match odd.difference(&leading).is_subset(&following) && !leading.is_empty() {
            true => leading,
            false => odd,
        }
    }

    /// The ranks between which the error is: those of the cycle, or else `odd` and the ranks in the largest operation.
    /// Empty if the communicator of that operation is unknown and `odd` is empty.
    fn between(&self, odd: &IdSet, most: &CollectiveGroup) -> IdSet {
        // The others can be in another operation of the same ranks, as that of a file.
        let is_unknown = most.communicator.as_deref() == Some("");
        match is_unknown && odd.is_empty() {
            true => IdSet::new(),
            false => self.of_circle().unwrap_or_else(|| odd.union(&most.tasks)),
        }
    }

    /// The verdict if some of the ranks outside the largest operation wait for the other side of an epoch. None if none
    /// does.
    fn in_epoch(&self, odd: &IdSet, most: &CollectiveGroup) -> Option<Verdict> {
        let call = &most.call;
        let text = format!(
            "ranks wait in an RMA epoch for partners that are unknown, and the other ranks wait in {call}: either side \
             has left out a call of its epoch"
        );
        // Which of several ranks of the other side is wanted is unknown.
        let between = match most.tasks.len() {
            1 => odd.union(&most.tasks),
            _ => IdSet::new(),
        };
        let verdict = Verdict::new(Step::Deadlock, text).between(between);
        (!odd.is_disjoint(self.in_epochs)).then_some(verdict)
    }

    /// The verdict if some of the ranks outside the largest operation wait for a message to or from an unknown rank.
    /// None if none does.
    fn with_unknown(&self, odd: &IdSet, most: &CollectiveGroup) -> Option<Verdict> {
        let unknown = self.needs.with_unknown.intersection(odd);
        let they_wait = match unknown.len() {
            0 => return None,
            count if count <= NAMED_MAX => waiting(&unknown),
            _ => "some ranks wait".to_owned(),
        };
        let (them, its_call) = match unknown.len() {
            1 => ("it", "its call"),
            _ => ("them", "their calls"),
        };
        let text = format!(
            "{they_wait} for a message, and other ranks wait for {them} in {call}; which rank left out its send or receive \
             is unknown, as the other side's rank cannot be read from {its_call}",
            call = most.call
        );
        // Which of several other ranks is wanted is unknown.
        let both = odd.union(&most.tasks);
        let is_told = odd.len() == 1 && most.tasks.len() == 1;
        let between = match is_told && *self.blocked == both {
            true => both,
            false => IdSet::new(),
        };
        Some(Verdict::new(Step::Deadlock, text).between(between))
    }

    /// Finds ranks that wait for a message from any source in a communicator that has no other member. None if there
    /// are none.
    fn alone(&self) -> Option<Verdict> {
        let sets = self.needs.graph.sets.iter();
        let alone = sets.filter(|set| set.peers.is_empty() && !set.guessed && set.who.len() == 1);
        let alone = IdSet::union_all(alone.map(|set| &set.who)).intersection(self.blocked);
        let text = format!(
            "waiting for a message from any source in a communicator that has no other member{}",
            self.only_one()
        );
        (!alone.is_empty()).then(|| Verdict::new(Step::Deadlock, text).blaming(alone))
    }

    /// The text for a job of one rank, which cannot have been meant where that rank waits for a message. Empty for other
    /// jobs.
    fn only_one(&self) -> &'static str {
        match self.all.len() {
            1 => "; the job has no other rank: it was started without a launcher, or for one rank",
            _ => "",
        }
    }

    /// Finds ranks that have skipped a collective operation of some of the job's ranks, or that may have. They wait in an
    /// operation of more ranks for the ranks that wait for them. None if there are none.
    fn left_out(&self) -> Option<Verdict> {
        let most = self.there.first()?;
        let wanted = most.missing(self.all)?;
        let found = self.there.iter().skip(1).filter_map(|one| {
            let missing = one.missing(self.all)?;
            let is_one = one.communicator.is_some() && one.is_owed;
            let waits = missing.is_subset(&most.tasks) && !one.tasks.is_disjoint(&wanted);
            (is_one && waits && !missing.is_empty()).then_some((one, missing))
        });
        let (one, missing) = found.min_by_key(|(one, missing)| missing.len() >= one.tasks.len())?;
        let (call, past) = (&one.call, &most.call);
        let verdict = |text| Verdict::new(Step::Deadlock, text);
        // Where no fewer are past it, the others may have made it once too often.
        if missing.len() >= one.tasks.len() {
            let text = format!(
                "{they_wait} in {call} for {missing_ranks}, which {wait} in {past}: {missing_ranks} skipped that call, or {ranks} \
                 made it once too often",
                they_wait = waiting(&one.tasks),
                missing_ranks = named(&missing),
                wait = in_number("[waits|wait]", missing.len()),
                ranks = named(&one.tasks)
            );
            return Some(verdict(text).between(missing.union(&one.tasks)));
        }
        let text = in_number(
            "other ranks wait for [it|them] in {}; [it skipped that call and waits|they skipped that call and wait] in {}",
            missing.len(),
        );
        let text = text.replacen("{}", call, 1).replacen("{}", past, 1);
        Some(verdict(text).blaming(missing))
    }

    /// Returns the only rank outside the largest operation, the only rank that it waits for, and the call in which this
    /// other rank waits for it. The call is that of the largest operation, or one that the first rank has not made. If the
    /// two ranks form a cycle, it can be any collective operation of the other rank. None if there are no two such ranks.
    ///
    /// One of the two ranks is wrong: either the first communicates once too often, or the other has left that call out.
    /// The stacks cannot tell which.
    fn pair(&self, odd: &IdSet, most: &CollectiveGroup) -> Option<(u32, u32, &str)> {
        let one = odd.first().filter(|_| odd.len() == 1)?;
        let ones = self.needs.graph.ones.iter();
        let mut wanted = ones.filter(|(who, _)| *who == one.0);
        let (_, other) = wanted.next()?;
        let is_only = wanted.next().is_none();
        let of_two = [[one.0, *other], [*other, one.0]];
        let is_circle = of_two.iter().any(|two| self.circle == two);
        let mut there = self.there.iter().copied();
        let its = there.find(|it| {
            let is_told = it.communicator.is_none() || it.members.is_some();
            let lacks = || {
                it.missing(self.all)
                    .is_some_and(|missing| missing.contains(one))
            };
            is_told && it.tasks.contains(TaskId(*other)) && (**it == *most || is_circle || lacks())
        })?;
        is_only.then_some((one.0, *other, its.call.as_str()))
    }

    /// Finds ranks that wait in the same operation, but in different communicators: for each other, or for ranks past it.
    /// None if there are none.
    pub(super) fn apart(&self) -> Option<Verdict> {
        let there = self.there.iter();
        let candidates = there.filter_map(|one| {
            let missing = one.missing(self.all)?;
            let (mut covered, mut doubted) = (IdSet::new(), IdSet::new());
            for other in &self.there {
                let wanted = other.missing(self.all).unwrap_or_default();
                let waits_for_these = !wanted.is_disjoint(&one.tasks);
                let is_past = || self.is_past(one, &missing, &wanted);
                if !one.is_of_other_communicator(other, self.all) || !waits_for_these && !is_past()
                {
                    continue;
                }
                covered.union_with(&other.tasks);
                // As few ranks may have skipped it.
                if !waits_for_these && wanted.len() == missing.len() {
                    doubted.union_with(&wanted);
                }
            }
            // With these it would be complete.
            let is_it = !missing.is_empty() && missing.is_subset(&covered);
            is_it.then_some((one, missing, doubted))
        });
        let candidates: Vec<_> = candidates.collect();
        let (most, odd, doubted) = candidates
            .iter()
            .min_by_key(|(_, missing, _)| missing.len())?;
        let alike = candidates
            .iter()
            .filter(|(_, missing, _)| missing.len() == odd.len());
        let between = IdSet::union_all(alike.clone().map(|(_, missing, _)| missing));
        let between = between.union(doubted);
        let ranks = most.ranks(self.all);
        // Of a communicator and a part of it, which operation was skipped is unknown.
        let mut others = alike.clone();
        let other = others.find(|(one, ..)| one.ranks(self.all) != ranks);
        let other = other.filter(|(other, ..)| {
            let both = ranks.zip(other.ranks(self.all));
            both.is_some_and(|(own, others)| own.is_subset(others) || others.is_subset(own))
        });
        let mut members = candidates.iter().map(|(one, ..)| one.ranks(self.all));
        let is_of_same = members.all(|members| members == ranks);
        let communicators = match candidates.len() > 1 && is_of_same {
            false => "different communicators",
            true => "different communicators that have the same ranks",
        };
        let mut text = format!("the ranks are in {}, but in {communicators}", most.call);
        let between =
            match other.and_then(|(other, others, _)| Some((other.ranks(self.all)?, others))) {
                None => between,
                Some((of, others)) => {
                    let own = ranks.cloned().unwrap_or_default();
                    text += &format!(
                        ": {} skipped that of {}, or {} that of {}",
                        named(odd),
                        named(&own),
                        named(others),
                        named(of)
                    );
                    IdSet::new()
                }
            };
        // Of equally many on either side neither is the odd one.
        let odd = match alike.count() {
            1 if doubted.is_empty() => odd.clone(),
            _ => IdSet::new(),
        };
        let verdict = Verdict::new(Step::CannotGoOn, text).of(Cause::Communicator);
        Some(verdict.blaming(odd).between(between))
    }

    /// True if the ranks that `one` lacks wait for as many or more ranks that are all past it. These wait in a later
    /// operation for both.
    fn is_past(&self, one: &CollectiveGroup, missing: &IdSet, wanted: &IdSet) -> bool {
        let both = one.tasks.union(missing);
        let mut later = self.there.iter().filter(|later| later.name != one.name);
        let is_past = later.any(|later| {
            let awaited = later.missing(self.all).unwrap_or_default();
            wanted.is_subset(&later.tasks) && both.is_subset(&awaited)
        });
        one.is_owed && wanted.len() >= missing.len() && is_past
    }

    fn without_collective(&self) -> Verdict {
        let of_locks = IdSet::union_all(self.needs.locks.iter().map(|(who, _)| who));
        let circle = self.of_circle().unwrap_or_default();
        let what = match () {
            () if circle.is_subset(&of_locks) => "locks",
            () if !circle.is_disjoint(&of_locks) => "messages and locks",
            () if circle.is_subset(self.in_epochs) => "epochs",
            () => "messages",
        };
        let more = self.circles.iter().take(CIRCLES_SHOWN);
        let more: Vec<String> = more.filter_map(|circle| circle_text(circle)).collect();
        let is_cut = more.len() < self.circles.len();
        let text = match circle_text(self.circle) {
            Some(circle) if more.is_empty() => format!(
                "the ranks wait for each other's {what} in a cycle ({circle}); no single rank is to blame"
            ),
            Some(circle) => format!(
                "the ranks wait for each other's {what} in {count} cycles ({circle}; {more}{dots}); no single rank is to \
                 blame",
                count = self.circles.len() + 1,
                more = more.join("; "),
                dots = if is_cut { "; ..." } else { "" }
            ),
            None => "the ranks wait for each other, and no other rank is left that could send a message; which rank \
                     each one waits for is unknown"
                .to_owned(),
        };
        let between = self.of_circle().unwrap_or_else(|| self.blocked.clone());
        // Of several ranks that one in the cycle waits for, none is more in it than the others.
        let sets = self.needs.graph.sets.iter();
        let any = sets.filter(|set| !set.all && !set.guessed && !set.who.is_disjoint(&between));
        let any = IdSet::union_all(any.map(|set| &set.peers)).intersection(self.blocked);
        let others = self.circles.iter().flatten().map(|rank| TaskId(*rank));
        let between = between.union(&others.collect());
        Verdict::new(Step::Deadlock, text).between(between.union(&any))
    }

    /// The ranks of the cycle. None without a cycle.
    pub(super) fn of_circle(&self) -> Option<IdSet> {
        let ranks = self.circle.iter().map(|rank| TaskId(*rank));
        (!self.circle.is_empty()).then(|| ranks.collect())
    }

    /// Finds ranks in the largest operation that all ranks of `odd` wait for. They hold a lock, or one of them is the
    /// only sender of the messages for several ranks. None if there are none.
    fn wanted_of(&self, odd: &IdSet, most: &CollectiveGroup) -> Option<(IdSet, String)> {
        if odd.is_empty() {
            return None;
        }
        let locks = self.needs.locks.iter();
        let locks = locks.filter(|(who, _)| !who.is_disjoint(odd));
        let locks: Vec<&(IdSet, IdSet)> = locks.collect();
        let waiting = IdSet::union_all(locks.iter().map(|(who, _)| who));
        let holders = IdSet::union_all(locks.iter().map(|(_, holders)| holders));
        let call = &most.call;
        if odd.is_subset(&waiting) && holders.is_subset(&most.tasks) {
            let text = "[it holds|they hold] a lock that other ranks wait for, and [waits|wait] for those ranks in ";
            let text = in_number(text, holders.len()) + call;
            return Some((holders, text));
        }
        let ones = self.needs.graph.ones.iter();
        let ones = ones.filter(|(who, _)| odd.contains(TaskId(*who)));
        let (mut waiting, mut wanted) = (IdSet::new(), IdSet::new());
        for (who, one) in ones {
            waiting.insert(TaskId(*who));
            wanted.insert(TaskId(*one));
        }
        let is_one = wanted.len() == 1 && wanted.is_subset(&most.tasks);
        (odd.len() > 1 && *odd == waiting && is_one).then(|| {
            let count = odd.len();
            let text = format!(
                "{count} other ranks wait for a message from this rank, which waits in {call}"
            );
            (wanted, text)
        })
    }
}
