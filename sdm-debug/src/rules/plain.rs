//! A generic merge rule, without parameters, for answers that can absorb each other.

use std::marker::PhantomData;

use bytes::Bytes;
use sdm_core::aggregate::{Acc, Merge, Rejected};
use sdm_idset::IdSet;

/// A merged form of answers.
pub(super) trait MergedForm: Default + Send + 'static {
    /// Reads a task's own answer or a merged payload of these sources.
    fn read(sources: &IdSet, payload: &[u8]) -> Result<Self, Rejected>;

    /// Merges in the answers that `other` has gathered; associative and commutative.
    fn absorb(&mut self, other: Self);

    /// The merged payload, at most `bytes_max` bytes.
    fn write(self, bytes_max: usize) -> Vec<u8>;
}

/// The merge rule of a type that gathers answers.
pub(super) struct Plain<G>(PhantomData<fn() -> G>);

impl<G: MergedForm> Plain<G> {
    pub(super) fn rule() -> Box<dyn Merge> {
        Box::new(Self(PhantomData))
    }
}

impl<G: MergedForm> Merge for Plain<G> {
    fn start(&self) -> Acc {
        Box::new(G::default())
    }

    fn merge(&self, acc: &mut Acc, sources: &IdSet, payload: &[u8]) -> Result<(), Rejected> {
        let more = G::read(sources, payload)?;
        let acc: &mut G = acc.downcast_mut().expect("made by start");
        acc.absorb(more);
        Ok(())
    }

    fn finish(&self, acc: Acc, bytes_max: usize) -> Bytes {
        let acc: Box<G> = acc.downcast().expect("made by start");
        Bytes::from(acc.write(bytes_max))
    }
}

/// Merges answers one after another, with encoding and decoding between steps. Each answer is paired with its tasks.
#[cfg(test)]
pub(super) fn merged<G: MergedForm>(
    answers: &[(IdSet, Vec<u8>)],
    bytes_max: usize,
) -> (IdSet, Bytes) {
    let rule = Plain::<G>::rule();
    let mut whole: Option<(IdSet, Bytes)> = None;
    for (tasks, own) in answers {
        let mut acc = rule.start();
        let mut sources = tasks.clone();
        rule.merge(&mut acc, &sources, own).unwrap();
        if let Some((before, payload)) = whole {
            rule.merge(&mut acc, &before, &payload).unwrap();
            sources.union_with(&before);
        }
        whole = Some((sources, rule.finish(acc, bytes_max)));
    }
    whole.unwrap()
}
