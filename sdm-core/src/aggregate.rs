//! Merging of answers: by equality, or by a merge rule that interprets their payloads.

use std::any::Any;

use bytes::Bytes;
use sdm_idset::IdSet;

use crate::message::{Block, Status};

/// Accumulated answers of a merge rule; only the rule that made the value reads it.
pub type Acc = Box<dyn Any + Send>;

/// Reason for which a rule rejected a payload. The payload then becomes a class of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rejected(pub &'static str);

/// A merge rule. It is associative and commutative, also where a limit cuts its output. Its output is a valid input.
pub trait Merge: Send + Sync {
    /// Returns an accumulator without answers.
    fn start(&self) -> Acc;

    /// Merges the payload that all of `sources` gave: a task's own answer, or the output of
    /// another node's [`Merge::finish`].
    ///
    /// # Errors
    /// A payload that the rule cannot merge; `acc` is unchanged then.
    fn merge(&self, acc: &mut Acc, sources: &IdSet, payload: &[u8]) -> Result<(), Rejected>;

    /// Encodes the accumulated answers in at most `bytes_max` bytes.
    fn finish(&self, acc: Acc, bytes_max: usize) -> Bytes;
}

/// The merge rules of a protocol, by number; `None` for an unknown number. 0 is merging by equality and needs no rule.
/// A closure can hold state that its rules share between commands. A member asks for a rule once per command.
pub type Rules = Box<dyn Fn(u16, &[u8]) -> Option<Box<dyn Merge>> + Send + Sync>;

/// Gathers the answers to one command until they are sent to the parent.
///
/// Equal payloads of equal status become one block; with a rule, the successful answers become one block. An empty
/// aggregate allocates nothing.
#[derive(Default)]
pub struct Aggregate {
    blocks: Vec<Block>,
    /// Index of the blocks by their hashes; `None` while there are at most [`FEW`] blocks.
    index: Option<BlockIndex>,
    merged: Option<(Acc, IdSet)>,
    others: IdSet,
    sources: IdSet,
}

/// Maximum number of blocks that are compared by their bytes, without hashes.
const FEW: usize = 4;

/// The hashes of the blocks of one aggregate, and their order. A sorted list needs a quarter of the memory of a map, and
/// the next block to evict is its last one.
struct BlockIndex {
    /// Hashes in the order of the blocks.
    hashes: Vec<u128>,
    /// Positions of the blocks in ascending order of their hashes.
    order: Vec<u32>,
}

impl BlockIndex {
    fn of(blocks: &[Block]) -> Self {
        // There is one more block at once, and there may be a few.
        let mut hashes = Vec::with_capacity(2 * FEW);
        hashes.extend(blocks.iter().map(block_hash));
        let mut order = Vec::with_capacity(4 * FEW);
        order.extend((0..hashes.len()).map(as_index));
        order.sort_by_key(|at: &u32| hashes[*at as usize]);
        Self { hashes, order }
    }

    fn hash_at(&self, at: u32) -> u128 {
        self.hashes[at as usize]
    }

    /// Position of the block with the same status and the same bytes; `None` if there is none. The hash finds a
    /// candidate, the comparison of bytes decides.
    fn position(&self, blocks: &[Block], hash: u128, block: &Block) -> Option<usize> {
        let from = self.order.partition_point(|at| self.hash_at(*at) < hash);
        let candidates = self.order[from..].iter().copied();
        let mut candidates = candidates.take_while(|at| self.hash_at(*at) == hash);
        let found = candidates.find(|at| is_same(&blocks[*at as usize], block));
        found.map(|at| at as usize)
    }

    /// Adds the hash of one more block.
    fn push(&mut self, hash: u128) {
        let at = as_index(self.hashes.len());
        self.hashes.push(hash);
        self.enter(at);
    }

    fn enter(&mut self, at: u32) {
        let hash = self.hash_at(at);
        let to = self.order.partition_point(|at| self.hash_at(*at) < hash);
        self.order.insert(to, at);
    }

    /// Gives the place of the block with the largest hash to a block with a smaller one. Returns that place, or `None`
    /// if no hash is larger.
    fn evict(&mut self, hash: u128) -> Option<usize> {
        let at = self.order.pop_if(|at| self.hashes[*at as usize] > hash)?;
        self.hashes[at as usize] = hash;
        self.enter(at);
        Some(at as usize)
    }
}

impl Aggregate {
    /// Adds one payload that all of `sources` gave. The caller ensures that none of them was counted before.
    ///
    /// `classes_max` limits the number of distinct answers that are kept apart. Those with the smallest payload hashes
    /// are kept, in any order of arrival. The sources of all other answers form one class `others`.
    pub fn add(&mut self, rule: Option<&dyn Merge>, classes_max: usize, block: Block) {
        self.sources.union_with(&block.sources);
        match (block.status, rule) {
            (Status::Others, _) => self.others.union_with(&block.sources),
            (Status::Ok, Some(rule)) => {
                let (acc, sources) = self
                    .merged
                    .get_or_insert_with(|| (rule.start(), IdSet::new()));
                match rule.merge(acc, &block.sources, &block.payload) {
                    Ok(()) => sources.union_with(&block.sources),
                    Err(Rejected(_)) => self.add_equal(classes_max, block),
                }
            }
            _ => self.add_equal(classes_max, block),
        }
    }

    /// Adds the sources of `block` to the class of the same status and bytes. Returns false, without a change, if there
    /// is no such class.
    pub(crate) fn join(&mut self, block: &Block) -> bool {
        let found = match &self.index {
            None => self.blocks.iter().position(|other| is_same(other, block)),
            Some(index) => index.position(&self.blocks, block_hash(block), block),
        };
        if let Some(at) = found {
            self.blocks[at].sources.union_with(&block.sources);
            self.sources.union_with(&block.sources);
        }
        found.is_some()
    }

    fn add_equal(&mut self, classes_max: usize, block: Block) {
        let is_full = self.blocks.len() >= classes_max.max(1);
        let blocks = &mut self.blocks;
        if self.index.is_none() {
            if let Some(other) = blocks.iter_mut().find(|other| is_same(other, &block)) {
                return other.sources.union_with(&block.sources);
            }
            if !is_full && blocks.len() < FEW {
                return blocks.push(block);
            }
        }
        let index = self.index.get_or_insert_with(|| BlockIndex::of(blocks));
        let hash = block_hash(&block);
        if let Some(at) = index.position(blocks, hash, &block) {
            blocks[at].sources.union_with(&block.sources);
        } else if is_full {
            let Some(at) = index.evict(hash) else {
                return self.others.union_with(&block.sources);
            };
            let evicted = std::mem::replace(&mut blocks[at], block);
            self.others.union_with(&evicted.sources);
        } else {
            blocks.push(block);
            index.push(hash);
        }
    }

    /// The tasks whose answers are in this aggregate.
    #[must_use]
    pub fn sources(&self) -> &IdSet {
        &self.sources
    }

    /// True if nothing was gathered since the last [`Aggregate::take`].
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// The distinct answers in order of arrival, without those that a rule has merged.
    #[must_use]
    pub fn into_classes(mut self) -> Vec<Block> {
        for block in &mut self.blocks {
            block.sources.compact();
        }
        self.blocks
    }

    /// Returns the gathered blocks, the biggest class first and the `others` class last, and empties the aggregate.
    pub fn take(&mut self, rule: Option<&dyn Merge>, bytes_max: usize) -> Vec<Block> {
        let gathered = std::mem::take(self);
        let mut blocks = gathered.blocks;
        if let (Some((acc, sources)), Some(rule)) = (gathered.merged, rule)
            && !sources.is_empty()
        {
            blocks.push(Block {
                status: Status::Ok,
                sources,
                payload: rule.finish(acc, bytes_max),
            });
        }
        for block in &mut blocks {
            block.sources.compact();
        }
        blocks.sort_by_key(|block| std::cmp::Reverse(block.sources.len()));
        if !gathered.others.is_empty() {
            blocks.push(Block {
                status: Status::Others,
                sources: gathered.others,
                payload: Bytes::new(),
            });
        }
        blocks
    }
}

fn is_same(one: &Block, other: &Block) -> bool {
    one.status == other.status && one.payload == other.payload
}

fn block_hash(block: &Block) -> u128 {
    xxhash_rust::xxh3::xxh3_128_with_seed(&block.payload, block.status as u64)
}

fn as_index(at: usize) -> u32 {
    u32::try_from(at).expect("at most CLASSES_MAX blocks")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(sources: &str, text: &str) -> Block {
        Block {
            status: Status::Ok,
            sources: sources.parse().unwrap(),
            payload: Bytes::copy_from_slice(text.as_bytes()),
        }
    }

    #[test]
    fn equal_answers_join_and_unequal_stay_apart() {
        let mut aggregate = Aggregate::default();
        for (sources, text) in [("0-3", "a"), ("7", "b"), ("5", "a")] {
            aggregate.add(None, 10, block(sources, text));
        }
        let mut failed = block("9", "a");
        failed.status = Status::Failed;
        aggregate.add(None, 10, failed);
        let blocks = aggregate.take(None, 1000);
        let sets: Vec<String> = blocks
            .iter()
            .map(|block| block.sources.to_string())
            .collect();
        assert_eq!(sets, ["0-3,5", "7", "9"]);
        assert!(aggregate.is_empty());
    }

    #[test]
    fn class_limit_keeps_the_same_classes_in_any_order() {
        let texts: Vec<String> = (0..200).map(|n| format!("answer {n}")).collect();
        let gather = |order: &mut dyn Iterator<Item = usize>| {
            let mut aggregate = Aggregate::default();
            for at in order {
                aggregate.add(None, 20, block(&at.to_string(), &texts[at]));
            }
            let mut blocks = aggregate.take(None, 1000);
            blocks.sort_by(|a, b| a.payload.cmp(&b.payload));
            blocks
        };
        let forward = gather(&mut (0..200));
        assert_eq!(forward.len(), 21);
        assert_eq!(forward, gather(&mut (0..200).rev()));
        // And in a tree: halves first, then their blocks.
        let mut root = Aggregate::default();
        for half in [gather(&mut (0..100)), gather(&mut (100..200))] {
            half.into_iter().for_each(|block| root.add(None, 20, block));
        }
        let mut blocks = root.take(None, 1000);
        blocks.sort_by(|a, b| a.payload.cmp(&b.payload));
        assert_eq!(forward, blocks);
    }
}
