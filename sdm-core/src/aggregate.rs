//! Merging answers: by equality, or by a rule that knows what they mean.

use std::any::Any;

use bytes::Bytes;
use sdm_idset::IdSet;

/// What a rule gathers into; only the rule that made it looks inside.
pub type Acc = Box<dyn Any + Send>;

/// Why a rule could not take a payload; it becomes a class of its own then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rejected(pub &'static str);

/// A merge rule: associative and commutative, caps included; its output is a valid input.
pub trait Merge: Send + Sync {
    /// Nothing gathered yet.
    fn start(&self) -> Acc;

    /// Takes in the payload that all of `sources` gave: a task's own answer, or the output of
    /// another node's [`Merge::finish`].
    ///
    /// # Errors
    /// A payload that the rule cannot merge; `acc` is unchanged then.
    fn merge(&self, acc: &mut Acc, sources: &IdSet, payload: &[u8]) -> Result<(), Rejected>;

    /// What was gathered, in at most `bytes_max` bytes.
    fn finish(&self, acc: Acc, bytes_max: usize) -> Bytes;
}

/// The merge rules of a protocol, by number; 0 is merging by equality and needs no rule.
pub type Rules = fn(number: u16, params: &[u8]) -> Option<Box<dyn Merge>>;
