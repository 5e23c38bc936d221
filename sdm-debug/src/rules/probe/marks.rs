//! What is true of some of many tasks.

use sdm_core::aggregate::Rejected;
use sdm_idset::IdSet;

use crate::probe::TaskProbe;
use crate::rules::coding::Reader;

/// What is true of some tasks and not of others: a set for each.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Marks {
    /// Who has a variable in the innermost user frame that is another than at the probe before.
    pub inner_changed: IdSet,
    /// Who has one in the frames around it.
    pub outer_changed: IdSet,
    /// Whose stack was not read to its end.
    pub partial: IdSet,
    /// Who was not on a processor, and waits in no system call.
    pub starved: IdSet,
    /// Of whose call nobody has noted whether it has returned.
    pub unfollowed: IdSet,
    /// Who stayed in a call and has exchanged data with others.
    pub exchanged: IdSet,
}

impl Marks {
    /// Who has a variable that is another than at the probe before.
    #[must_use]
    pub fn changed(&self) -> IdSet {
        self.inner_changed.union(&self.outer_changed)
    }

    /// In the order in which they are written.
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

    /// Takes in the equal answers of some tasks.
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
