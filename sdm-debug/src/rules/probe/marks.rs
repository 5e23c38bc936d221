//! Sets of tasks whose probes have a property: a changed user frame, an incomplete stack, no processor time, a call
//! that was not tracked or that exchanged data.

use sdm_core::aggregate::Rejected;
use sdm_idset::IdSet;

use crate::probe::TaskProbe;
use crate::rules::coding::Reader;

/// For each property the tasks for which it holds.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Marks {
    /// Tasks whose innermost user frame has changed since the probe before.
    pub inner_changed: IdSet,
    /// Tasks in which a user frame other than the innermost one has changed since the probe before.
    pub outer_changed: IdSet,
    /// Tasks whose stack could not be read to its end.
    pub partial: IdSet,
    /// Tasks that hardly ran on a processor and wait in no system call but `sched_yield`.
    pub starved: IdSet,
    /// Tasks whose MPI call could not be tracked, so that it may have returned.
    pub unfollowed: IdSet,
    /// Tasks that stayed in an MPI call and exchanged data with other processes.
    pub exchanged: IdSet,
}

impl Marks {
    /// Tasks with a changed user frame.
    #[must_use]
    pub fn changed(&self) -> IdSet {
        self.inner_changed.union(&self.outer_changed)
    }

    /// All sets, in the order of the payload.
    pub(super) fn all(&self) -> [&IdSet; 6] {
        [
            &self.inner_changed,
            &self.outer_changed,
            &self.partial,
            &self.starved,
            &self.unfollowed,
            &self.exchanged,
        ]
    }

    fn all_mut(&mut self) -> [&mut IdSet; 6] {
        [
            &mut self.inner_changed,
            &mut self.outer_changed,
            &mut self.partial,
            &mut self.starved,
            &mut self.unfollowed,
            &mut self.exchanged,
        ]
    }

    /// Adds the equal answers of some tasks.
    pub(super) fn insert(&mut self, tasks: &IdSet, probe: &TaskProbe) {
        let said = [
            probe.inner_changed == Some(true),
            probe.outer_changed == Some(true),
            probe.partial,
            probe.starved,
            probe.unfollowed,
            probe.exchanged,
        ];
        for (set, _) in self.all_mut().into_iter().zip(said).filter(|(_, is)| *is) {
            set.union_with(tasks);
        }
    }

    pub(super) fn absorb(&mut self, other: &Self) {
        for (set, more) in self.all_mut().into_iter().zip(other.all()) {
            set.union_with(more);
        }
    }

    pub(super) fn forget(&mut self, tasks: &IdSet) {
        for set in self.all_mut() {
            set.subtract(tasks);
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Rejected> {
        let mut marks = Self::default();
        for set in marks.all_mut() {
            *set = reader.set()?;
        }
        Ok(marks)
    }
}
