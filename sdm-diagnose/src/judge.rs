//! The judgement: from observations to a diagnosis.

mod unwaited;

use sdm_debug::probe::{ArgumentRole, WaitFor};
use sdm_idset::IdSet;
use sdm_mpi::{ends_mpi, is_between_groups, is_of_window, locks_window, starts_mpi};

use super::blame::Blocked;
use super::collective_groups::{CollectiveGroup, unmet_group};
use super::collective_order::{absent, left_behind, past_its_file, proving};
use super::culprits::guilty;
use super::endings::{aborts, over};
use super::epochs::unfinished_epochs;
use super::evidence::Evidence;
use super::findings::findings;
use super::graph::Reduced;
use super::members::Members;
use super::messages::{explained, from_another_source, misdirected, tags_of_circle};
use super::mismatch::{gathers_alone, mismatch, root_of_other_group, root_waits_back};
use super::motion::{SamePlace, Seen, all_of, groups};
use super::neighbors::skipped_by_neighbors;
use super::strict::hidden_without;
use super::threads::{MpiWaits, by_other_threads};
use super::verdict::{Verdict, in_number};
use super::wait::WaitKind;
use super::wait_for::{Needs, resources};
use super::{Cause, Diagnosis, Observed, Step};

/// The beginning of a verdict on ranks whose main thread waits for a computing thread. The line about the thread
/// follows.
const BESIDE: &str = "the other ranks wait for [it; its|them; their] main thread waits while ";

/// Judges the observations. Nothing is proved about ranks that exchange data while they stay in their
/// calls.
#[must_use]
pub fn judge(observed: &Observed) -> Diagnosis {
    let seen = Seen::of(&observed.samples);
    let found = judge_seen(observed, &seen);
    if found.doubtful.is_empty() {
        return found;
    }
    // Nothing is proved of ranks that exchange data.
    let doubting = judge_seen(observed, &seen.doubting_exchange_of(&found.doubtful));
    Diagnosis {
        doubtful: found.doubtful,
        ..doubting
    }
}

fn judge_seen(observed: &Observed, seen: &Seen) -> Diagnosis {
    let still = groups(&observed.samples, &seen.still);
    let still = by_other_threads(observed.samples.last(), still);
    let evidence = observed.samples.last().map(Evidence::of);
    let evidence = evidence.unwrap_or_default().of_idle(&seen.idle);
    let case = Case::of(observed, seen, &evidence, &still);
    let mut verdict = case.conclude();
    if verdict.cause == Cause::CallOrdering {
        verdict.cause = case.cause_of_blocked();
    }
    if verdict.step.is_proved() {
        verdict.text += hidden_without(observed, &still, &case.reduced.blocked);
    }
    let doubtful = case.doubtful();
    let findings = findings(observed, &evidence, seen, &still, &verdict);
    Diagnosis {
        samples: observed.samples.len(),
        span: observed.span,
        guilty: guilty(
            (&observed.samples, &still, &seen.polls),
            &verdict,
            &case.needs.gatherings,
        ),
        conclusion: verdict.text,
        step: verdict.step,
        cause: verdict.cause,
        suspects: verdict.suspects,
        held_up_by: verdict.held_up_by,
        circle: case.reduced.circle,
        graph: case.needs.graph,
        doubtful,
        findings,
    }
}

/// The data that a verdict is made from.
struct Case<'a> {
    observed: &'a Observed,
    seen: &'a Seen,
    evidence: &'a Evidence<'a>,
    still: &'a [SamePlace],
    /// All ranks of the job, sampled or not.
    all: IdSet,
    /// Tasks that wait in MPI, also by a thread for which their main thread waits. They can go on only through other
    /// tasks.
    waiting: IdSet,
    /// Tasks whose main thread waits in MPI, while another thread of the task can go on.
    acting: IdSet,
    /// Tasks of which it is unknown whether they can go on.
    unknown: IdSet,
    needs: Needs,
    reduced: Reduced,
}

impl<'a> Case<'a> {
    fn of(
        observed: &'a Observed,
        seen: &'a Seen,
        evidence: &'a Evidence<'a>,
        still: &'a [SamePlace],
    ) -> Self {
        let union = |list: &[(IdSet, String)]| IdSet::union_all(list.iter().map(|(who, _)| who));
        let never = union(&observed.gone).union(&union(&observed.halted));
        let looked = observed.samples.iter().map(|sample| all_of(&sample.stacks));
        let looked = looked.fold(IdSet::new(), |all, more| all.union(&more));
        let unknown = seen
            .unknown()
            .union(&union(&observed.unseen))
            .union(&observed.outside)
            .difference(&never);
        let stood = union(&observed.stood);
        let all = looked.union(&never).union(&unknown).union(&stood);
        let MpiWaits {
            waiting,
            acting,
            beside,
        } = MpiWaits::of(observed.samples.last(), still, &never);
        let locked = IdSet::union_all(evidence.circles.iter().map(|(tasks, _)| tasks));
        let locked = locked.intersection(&seen.still);
        let never = never.union(&locked).union(&evidence.orphaned);
        let alone = evidence.alone.union(&evidence.of_own_pipe);
        let never = never.union(&alone.intersection(&seen.still));
        let live = all.difference(&never).difference(&waiting);
        let members = Members {
            all: &all,
            live: &live,
            never: &never,
            unranked: observed.unranked,
        };
        let mut needs = match observed.samples.last() {
            Some(last) => Needs::of(last, still, &members),
            None => Needs::default(),
        };
        needs.by_other_threads(&beside, &members);
        if let Some(last) = observed.samples.last() {
            let elsewhere = seen.still.difference(&waiting).difference(&never);
            let elsewhere = elsewhere.difference(&acting);
            resources(&mut needs, &last.waits, &elsewhere, &observed.pids);
        }
        let mut reduced = needs.graph.reduce();
        if !reduced.blocked.is_disjoint(&needs.outside) {
            // Input and output may just be slow: a rank in such a call proves nothing.
            let graph = &mut needs.graph;
            graph.live.union_with(&needs.outside);
            reduced = graph.reduce();
        }
        Self {
            observed,
            seen,
            evidence,
            still,
            all,
            waiting,
            acting,
            unknown,
            needs,
            reduced,
        }
    }

    /// The cause of the error, from the calls that the blocked ranks are in, if nothing more specific is known.
    fn cause_of_blocked(&self) -> Cause {
        let blocked = &self.reduced.blocked;
        let mut there = self
            .still
            .iter()
            .filter(|group| !group.tasks.is_disjoint(blocked));
        if there.any(|group| is_of_window(&group.wait.call)) {
            return Cause::Rma;
        }
        match self.needs.resources.is_disjoint(blocked) {
            true => Cause::CallOrdering,
            false => Cause::Resource,
        }
    }

    /// The strongest verdict that the observations support.
    fn conclude(&self) -> Verdict {
        if let Some(verdict) = aborts(self.observed).or_else(|| over(self.observed, &self.all)) {
            return verdict;
        }
        if self.observed.samples.len() < 2 {
            let text = "no rank could be sampled twice, so progress cannot be judged";
            return Verdict::new(Step::CannotTell, text);
        }
        if let Some(verdict) = self.beyond_doubt() {
            return verdict;
        }
        let verdict = if !self.reduced.blocked.is_empty() {
            self.blocked()
        } else if !self.reduced.held_up.is_empty() {
            self.held_up()
        } else {
            self.nobody_waits()
        };
        if self.seen.doubted.is_empty() || verdict.step.is_proved() {
            return verdict;
        }
        let text =
            "ranks exchange data while they stay in their calls: this may be a long transfer";
        Verdict::new(Step::CannotTell, text)
    }

    /// The verdict that holds even if ranks exchange data. None if there is no such verdict.
    fn beyond_doubt(&self) -> Option<Verdict> {
        let lost_on = &self.reduced.lost_on;
        let locked = IdSet::union_all(self.evidence.circles.iter().map(|(who, _)| who));
        let locked = locked.intersection(&self.seen.still);
        if !locked.is_empty() {
            let mut circles = self.evidence.circles.iter();
            let text = match circles.all(|(_, circle)| circle.len() == 1) {
                true => "a thread waits for a lock that it holds itself",
                false => "threads wait for each other's locks in a cycle",
            };
            return Some(
                Verdict::new(Step::Deadlock, text)
                    .of(Cause::Thread)
                    .blaming(locked),
            );
        }
        let orphaned = self.evidence.orphaned.intersection(&self.seen.still);
        if !orphaned.is_empty() {
            let text =
                "[it waits|they wait] for a lock whose holder has ended without releasing it";
            return Some(
                Verdict::new(Step::CannotGoOn, in_number(text, orphaned.len()))
                    .of(Cause::Thread)
                    .blaming(orphaned),
            );
        }
        let alone = self.evidence.alone.intersection(&self.seen.still);
        if !alone.is_empty() {
            let text = match alone.is_disjoint(&self.evidence.of_several) {
                true => {
                    "[it waits|they wait] for another thread of [its|their] process, but there is none: that has ended, or the \
                     process was forked without it"
                }
                false => "all threads of [this process|these processes] wait for one another",
            };
            let verdict =
                Verdict::new(Step::CannotGoOn, in_number(text, alone.len())).of(Cause::Thread);
            return Some(verdict.blaming(alone));
        }
        let of_own_pipe = self.evidence.of_own_pipe.intersection(&self.seen.still);
        if !of_own_pipe.is_empty() {
            let text = match of_own_pipe.is_subset(&self.evidence.waited_back) {
                true => {
                    "[it waits|they wait] for processes that cannot go on before [it does|they do]"
                }
                false => "[it waits|they wait] at a pipe whose other end no other process has open",
            };
            let text = in_number(text, of_own_pipe.len());
            let verdict = Verdict::new(Step::CannotGoOn, text).of(Cause::Resource);
            return Some(verdict.blaming(of_own_pipe));
        }
        (!lost_on.is_empty()).then(|| self.lost(lost_on))
    }

    /// The ranks that would be proved stuck if some of them had not exchanged data. Empty if there are none.
    fn doubtful(&self) -> IdSet {
        let blocked = &self.reduced.blocked;
        // A rank that waits for a lock cannot get the lock by exchanged data.
        let locks = IdSet::union_all(self.needs.locks.iter().map(|(who, _)| who));
        let in_doubt = blocked.difference(&locks);
        let in_doubt = !in_doubt.is_disjoint(&self.seen.exchanged) && self.beyond_doubt().is_none();
        if in_doubt {
            blocked.clone()
        } else {
            IdSet::new()
        }
    }

    /// The verdict on ranks that wait for tasks that have ended or are stopped.
    fn lost(&self, lost_on: &IdSet) -> Verdict {
        let all = |list: &[(IdSet, String)]| IdSet::union_all(list.iter().map(|(who, _)| who));
        let halted = all(&self.observed.halted).intersection(lost_on);
        let gone = all(&self.observed.gone).intersection(lost_on);
        let (cause, text) = match (gone.is_empty(), halted.is_empty()) {
            (true, false) => (
                Cause::Stopped,
                "a signal has stopped [it, and the other ranks wait for it|them, and the other ranks wait for them]",
            ),
            (false, true) => (
                Cause::Ended,
                "[it has|they have] ended or [is|are] lost, and the other ranks wait for [it|them] in MPI",
            ),
            _ => (
                Cause::Ended,
                "they have ended or are lost, or a signal has stopped them, and the other ranks wait for them",
            ),
        };
        Verdict::new(Step::CannotGoOn, in_number(text, lost_on.len()))
            .of(cause)
            .blaming(lost_on.clone())
    }

    /// The verdict on ranks that wait for each other.
    fn blocked(&self) -> Verdict {
        let blocked = &self.reduced.blocked;
        let there = self.needs.gatherings.iter();
        let mut there: Vec<&CollectiveGroup> = there
            .filter(|one| !one.tasks.is_disjoint(blocked))
            .collect();
        // Of equally large ones the end of the job is the last.
        there.sort_by_key(|one| (std::cmp::Reverse(one.tasks.len()), ends_mpi(&one.name)));
        let within = |is_it: fn(&str) -> bool| {
            let groups = self.still.iter().filter(|group| is_it(&group.wait.call));
            IdSet::union_all(groups.map(|group| &group.tasks))
        };
        let (locking, in_epochs) = (within(locks_window), within(is_between_groups));
        let case = Blocked {
            needs: &self.needs,
            blocked,
            locking: &locking,
            in_epochs: &in_epochs,
            all: &self.all,
            circle: &self.reduced.circle,
            circles: &self.reduced.circles,
            there,
        };
        let mismatched = || {
            proving(&case.there, &self.all)
                .iter()
                .find_map(|these| mismatch(these))
        };
        let verdict = misdirected(&self.needs, blocked);
        let verdict = verdict.or_else(|| from_another_source(&self.needs, blocked));
        let verdict = verdict.or_else(|| left_behind(&self.needs, blocked));
        let verdict = verdict.or_else(|| unfinished_epochs(&self.needs, blocked));
        let verdict = verdict.or_else(|| skipped_by_neighbors(&self.needs, blocked));
        let verdict = verdict.or_else(|| unmet_group(&self.needs, blocked));
        let verdict = verdict.or_else(|| root_of_other_group(&case.there));
        let verdict = verdict.or_else(|| case.apart());
        let verdict = verdict.or_else(|| absent(&self.needs, blocked, &self.all));
        let verdict = verdict.or_else(|| past_its_file(&case.there, &self.all));
        let verdict = verdict.or_else(|| gathers_alone(&case.there, &self.all));
        let verdict = verdict.or_else(mismatched);
        let verdict = verdict.or_else(|| root_waits_back(&case.there, &self.all));
        let verdict = verdict.or_else(|| tags_of_circle(&self.needs, &self.reduced.circle));
        let verdict = verdict.unwrap_or_else(|| case.conclude());
        explained(verdict, &self.needs, blocked)
    }

    fn held_up(&self) -> Verdict {
        let holders = &self.reduced.holders;
        let stuck_for_no_reason = self.needs.matched.union(&self.needs.complete);
        let known = holders
            .difference(&self.unknown)
            .difference(&stuck_for_no_reason);
        if known.is_empty() {
            return self.cannot_tell(holders);
        }
        self.held_up_by(known)
    }

    /// The verdict on ranks that other ranks wait for, by the activity of the awaited ranks.
    fn held_up_by(&self, known: IdSet) -> Verdict {
        let polls = self.seen.polling();
        let stood = IdSet::union_all(self.observed.stood.iter().map(|(who, _)| who));
        let computing = self.evidence.computing_beside(&known);
        let (cause, text) = match () {
            () if known.is_subset(&stood) => (
                Cause::Stopped,
                "the debugger has stopped [it, and the other ranks wait for it|them, and the other ranks wait for them]",
            ),
            () if known.is_subset(&self.needs.starting) => (
                Cause::Unknown,
                "the other ranks wait for [it, which is|them, which are] still in MPI_Init",
            ),
            () if known.is_subset(&self.acting) => (
                Cause::Thread,
                "the other ranks wait for [it; its|them; their] main thread waits while another of [its|their] threads runs",
            ),
            () if known.is_subset(&polls) => (
                Cause::Polling,
                "the other ranks wait for [it while it polls|them while they poll]: what [it polls|they poll] for does not arrive, or \
                 is not due yet",
            ),
            () if known.is_subset(&self.seen.sleeping()) => (
                Cause::Sleeping,
                "the other ranks wait for [it while it sleeps|them while they sleep], once or repeatedly; the reason is unknown",
            ),
            () if known.is_subset(&self.seen.at_windows) => (
                Cause::Polling,
                "the other ranks wait for [it while it uses|them while they use] a window again and again: what [it waits|they \
                 wait] for there does not come or is not due yet, or there is much to transfer",
            ),
            () if known.is_subset(&self.seen.moving) => (
                Cause::Computing,
                "the other ranks wait for [it while it computes|them while they compute]: an endless loop, or a long computation",
            ),
            () if computing.is_some() => (Cause::Computing, BESIDE),
            () if known.is_subset(&self.evidence.among_threads) => (
                Cause::Thread,
                "the other ranks wait for [it; its|them; their] threads all wait for one another",
            ),
            () if known.is_subset(&self.seen.still) => (
                self.cause_of_still(&known),
                "the other ranks wait for [it while it waits|them while they wait] for something else; what would end that wait \
                 is unknown",
            ),
            () => (
                Cause::Unknown,
                "the other ranks wait for [it; it was|them; they were] not seen waiting for the others",
            ),
        };
        let doubt = match self.reduced.holders_guessed {
            true => "; which rank each of the others waits for is unknown",
            false => "",
        };
        let doing = computing.filter(|_| text == BESIDE);
        let doing = doing.map(String::as_str).unwrap_or_default();
        Verdict {
            held_up_by: known.clone(),
            ..Verdict::new(Step::HeldUp, in_number(text, known.len()) + doing + doubt).of(cause)
        }
    }

    /// The cause for tasks that wait outside of MPI.
    fn cause_of_still(&self, tasks: &IdSet) -> Cause {
        let waits = self.observed.samples.last();
        let waits = waits.map(|last| &last.waits[..]).unwrap_or_default();
        let mut waits = waits.iter().filter(|(who, _)| !who.is_disjoint(tasks));
        let mut stands = self.still.iter();
        let stands = stands.find(|group| !group.tasks.is_disjoint(tasks));
        match waits.find_map(|(_, waits)| waits.main()) {
            Some(WaitFor::Resource(_)) => Cause::Resource,
            Some(WaitFor::SystemCall(name)) if is_of_socket(name) => Cause::Resource,
            Some(what) if what.is_for_a_thread() => Cause::Thread,
            _ => match stands.map(|group| group.wait.kind) {
                Some(WaitKind::Lock) => Cause::Thread,
                Some(WaitKind::File) => Cause::Resource,
                Some(WaitKind::Sleep) => Cause::Sleeping,
                Some(WaitKind::Running) => Cause::Computing,
                _ => Cause::Unknown,
            },
        }
    }

    fn cannot_tell(&self, holders: &IdSet) -> Verdict {
        let complete = &self.needs.complete;
        let text = if holders.is_subset(complete) && !holders.is_empty() {
            let call = self.needs.gatherings.iter();
            let call = call.filter(|one| one.tasks.is_subset(complete));
            let call = call.map(|one| one.call.as_str()).next();
            let call = call.unwrap_or("operation");
            if starts_mpi(call) {
                let text =
                    "all observed ranks are still in MPI_Init: the job starts, or cannot start";
                return Verdict::new(Step::CannotTell, text);
            }
            if self.has_several_handles(complete) {
                let text = format!(
                    "all observed ranks are in {call}, but with different communicator handles: they may be in \
                     different communicators"
                );
                return Verdict::new(Step::CannotTell, text);
            }
            format!(
                "all observed ranks are in the same {call}: either a rank that was not observed is missing from it, \
                 or the stacks do not show the cause",
            )
        } else if holders.is_subset(&self.needs.matched) {
            "a send and its matching receive are both posted and do not complete: the cause is below MPI, or the message is long"
                .to_owned()
        } else {
            "some ranks wait for others whose activity is unknown".to_owned()
        };
        Verdict::new(Step::CannotTell, text)
    }

    /// True if these tasks have different handles for the communicator of their calls.
    fn has_several_handles(&self, tasks: &IdSet) -> bool {
        let last = self.observed.samples.last();
        let Some(handles) = last.and_then(|last| last.numbers.get(&ArgumentRole::Handle)) else {
            return false;
        };
        let mut handles = tasks.iter().filter_map(|task| handles.of(task));
        let first = handles.next();
        handles.any(|handle| Some(handle) != first)
    }
}

/// True for a system call that waits for the other end of a socket.
fn is_of_socket(call: &str) -> bool {
    const CALLS: [&str; 7] = [
        "accept", "accept4", "connect", "recvfrom", "recvmsg", "sendmsg", "sendto",
    ];
    CALLS.contains(&call)
}
