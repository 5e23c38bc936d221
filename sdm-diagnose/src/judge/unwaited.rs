//! The verdict on jobs in which no rank waits in MPI for another rank.

use sdm_debug::probe::Within;
use sdm_idset::{IdSet, TaskId};

use super::Case;
use crate::motion::SamePlace;
use crate::verdict::{Verdict, in_number};
use crate::wait::WaitKind;
use crate::{Cause, Step};

impl Case<'_> {
    /// The verdict if no rank waits in MPI for another rank.
    pub(super) fn nobody_waits(&self) -> Verdict {
        let complete = &self.needs.complete;
        if !complete.is_empty() || !self.needs.matched.is_empty() {
            return self.cannot_tell(&complete.union(&self.needs.matched));
        }
        let awaited = self.awaited_by_acting();
        if !awaited.is_empty() {
            return self.held_up_by(awaited);
        }
        if !self.acting.is_empty() {
            let text = "[its main thread waits|their main threads wait] in MPI, while other threads of the same process[|es] run";
            let text = in_number(text, self.acting.len());
            return Verdict {
                held_up_by: self.acting.clone(),
                ..Verdict::new(Step::HeldUp, text).of(Cause::Thread)
            };
        }
        let stands = self.still.iter().filter(|group| !group.wait.is_mpi());
        let stands: Vec<&SamePlace> = stands.collect();
        let elsewhere = IdSet::union_all(stands.iter().map(|group| &group.tasks));
        if self.seen.still.is_empty() && self.seen.moving.is_empty() {
            return Verdict::new(Step::CannotTell, "no rank could be observed");
        }
        if elsewhere.is_empty() && self.waiting.is_empty() {
            return self.nobody_stands();
        }
        if let Some(verdict) = self.polled_for(&elsewhere) {
            return verdict;
        }
        let biggest = stands
            .first()
            .map(|group| (&group.wait.call, group.wait.kind));
        let everybody = self.seen.moving.is_empty();
        let text = match biggest {
            Some((call, WaitKind::File)) => {
                format!("[it waits|they wait] for a file, in {call}: the cause is outside the job")
            }
            Some((call, WaitKind::Lock)) => format!("[it waits|they wait] for a lock or a thread, in {call}"),
            Some(_) if everybody => "no rank made progress, and no rank waits in MPI".to_owned(),
            None if everybody && self.observed.unranked => {
                let text = "all wait in MPI, but their ranks in one job are unknown: diagnose each job by itself";
                return Verdict::new(Step::CannotTell, text);
            }
            None if everybody => {
                "[it waits in an MPI call|they wait in MPI calls] that can depend on files or other programs".to_owned()
            }
            _ => "[it|they] made no progress, while other ranks did".to_owned(),
        };
        let holders = match self.waiting.is_empty() {
            true => elsewhere,
            false => self.needs.outside.union(&elsewhere),
        };
        let cause = self.cause_of_still(&holders);
        let text = in_number(&text, holders.len());
        Verdict {
            held_up_by: holders,
            ..Verdict::new(Step::HeldUp, text).of(cause)
        }
    }

    /// The running ranks that are awaited by tasks whose main thread waits in MPI while another thread of the task can
    /// go on.
    fn awaited_by_acting(&self) -> IdSet {
        let graph = &self.needs.graph;
        let ones = graph.ones.iter();
        let ones = ones.filter(|(who, _)| self.acting.contains(TaskId(*who)));
        let ones = ones.map(|(_, peer)| TaskId(*peer)).collect::<IdSet>();
        let sets = graph.sets.iter();
        let sets = sets.filter(|set| !set.guessed && !set.who.is_disjoint(&self.acting));
        let sets = IdSet::union_all(sets.map(|set| &set.peers));
        let running = self.seen.moving.difference(&self.acting);
        ones.union(&sets).intersection(&running)
    }

    /// The verdict if all ranks that stay in one place were seen polling, and other ranks compute: the polling ranks
    /// may wait for those. None otherwise.
    fn polled_for(&self, standing: &IdSet) -> Option<Verdict> {
        let polling = self.seen.polling();
        let busy = self.seen.moving.difference(&self.seen.asking);
        let busy = busy.difference(&self.unknown);
        let is_it = self.waiting.is_empty() && standing.is_subset(&polling);
        if !is_it || standing.is_empty() || busy.is_empty() {
            return None;
        }
        let text = "the other ranks poll while [it computes|they compute]: an endless loop, or a long computation";
        let text = in_number(text, busy.len());
        Some(Verdict {
            held_up_by: busy,
            ..Verdict::new(Step::HeldUp, text).of(Cause::Computing)
        })
    }

    /// The verdict if no rank stayed in one call for the whole observation.
    fn nobody_stands(&self) -> Verdict {
        let within = &self.seen.within;
        let stays = |within: &Within| within.depth > 0 && !within.changed;
        let staying = within.iter().filter(|(_, within)| stays(within));
        let staying = IdSet::union_all(staying.map(|(tasks, _)| tasks));
        // A rank that polled, and has not left that function, where nothing changed, was between two polls
        // at the other looks.
        let polling = self.seen.polling();
        let asking = &self.seen.asking.union(&polling.intersection(&staying));
        let left = self.all.difference(&self.needs.graph.never);
        // No remaining rank was seen doing anything else.
        let is_everybody = left.difference(&self.unknown) == *asking;
        if is_everybody && !asking.is_disjoint(&polling) {
            if !self.unknown.is_empty() {
                return self.cannot_tell(&self.unknown);
            }
            let text = "all ranks poll: what they poll for does not arrive, or the program always works this way";
            return Verdict {
                held_up_by: asking.clone(),
                ..Verdict::new(Step::HeldUp, text).of(Cause::Polling)
            };
        }
        let text = match within.iter().all(|(_, within)| stays(within)) {
            true if !within.is_empty() => {
                "no rank waits; each rank stays in one function, and its variables do not change: an endless loop, \
                 or a long computation"
            }
            _ => "the samples show progress",
        };
        Verdict::new(Step::NoHangSeen, text)
    }
}
