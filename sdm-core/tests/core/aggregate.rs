//! The accounting of the aggregator alone: in any tree, in any order, in any number of parts, each
//! source is in one block, and that block has the source's answer.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use sdm_core::aggregate::{Acc, Aggregate, Merge, Rejected};
use sdm_core::message::{Block, Status};
use sdm_idset::{IdSet, TaskId};

const PAYLOAD_BYTES_MAX: usize = 1 << 20;

/// Merge rule that sums numbers of eight bytes, and rejects other payloads.
struct Sum;

impl Merge for Sum {
    fn start(&self) -> Acc {
        Box::new(0_u64)
    }

    fn merge(&self, acc: &mut Acc, _sources: &IdSet, payload: &[u8]) -> Result<(), Rejected> {
        let number = payload
            .try_into()
            .map_err(|_| Rejected("a number has 8 bytes"))?;
        let sum = acc.downcast_mut::<u64>().expect("made by this rule");
        *sum = sum.wrapping_add(u64::from_le_bytes(number));
        Ok(())
    }

    fn finish(&self, acc: Acc, _bytes_max: usize) -> Bytes {
        let sum = *acc.downcast::<u64>().expect("made by this rule");
        Bytes::copy_from_slice(&sum.to_le_bytes())
    }
}

/// Answer of one task: its class, and whether it is a failure.
#[derive(Clone, Copy, Debug)]
struct Said {
    class: u8,
    fails: bool,
}

impl Said {
    fn block(self, task: u32, is_summed: bool) -> Block {
        let payload = match (self.fails, is_summed, self.class) {
            // Some payloads are no numbers: the rule rejects them.
            (false, true, 0) => Bytes::from_static(b"no number"),
            (false, true, class) => Bytes::copy_from_slice(&u64::from(class).to_le_bytes()),
            (_, _, class) => Bytes::from(format!("class {class}")),
        };
        Block {
            status: if self.fails {
                Status::Failed
            } else {
                Status::Ok
            },
            sources: IdSet::single(TaskId(task)),
            payload,
        }
    }
}

/// One case: the answers of the tasks, the limit of classes, the merge rule, and the random shape of the tree.
#[derive(Clone, Debug)]
struct Case {
    said: Vec<Said>,
    classes_max: usize,
    is_summed: bool,
    dice: Vec<u16>,
}

impl Case {
    fn rule(&self) -> Option<&'static dyn Merge> {
        self.is_summed.then_some(&Sum as &dyn Merge)
    }

    fn blocks(&self) -> Vec<Block> {
        let said = (0..).zip(&self.said);
        said.map(|(task, said)| said.block(task, self.is_summed))
            .collect()
    }

    fn gather(&self, blocks: impl IntoIterator<Item = Block>) -> Vec<Block> {
        let mut aggregate = Aggregate::default();
        for block in blocks {
            aggregate.add(self.rule(), self.classes_max, block);
        }
        let mut blocks = aggregate.take(self.rule(), PAYLOAD_BYTES_MAX);
        blocks.sort_by(|a, b| (a.status as u8, &a.payload).cmp(&(b.status as u8, &b.payload)));
        blocks
    }

    /// Merges the answers in a random tree: some at a time, until one answer is left.
    fn gather_in_a_tree(&self) -> Vec<Block> {
        let mut waiting: Vec<Vec<Block>> = self.blocks().into_iter().map(|b| vec![b]).collect();
        let mut dice = self.dice.iter().cycle().map(|die| usize::from(*die));
        let mut roll = |below: usize| dice.next().expect("a cycle has no end") % below;
        while waiting.len() > 1 {
            let count = 2 + roll(waiting.len() - 1).min(6);
            let mut some = Vec::new();
            for _ in 0..count {
                some.extend(waiting.swap_remove(roll(waiting.len())));
            }
            let gathered = self.gather(some);
            waiting.push(gathered);
        }
        waiting.pop().unwrap_or_default()
    }

    /// Asserts that each source is in one block, and that the block has the source's answer.
    fn check_account(&self, blocks: &[Block]) -> Result<(), TestCaseError> {
        let mut counted = IdSet::new();
        let mut classes: BTreeMap<(u8, &[u8]), usize> = BTreeMap::new();
        for block in blocks {
            prop_assert!(block.sources.is_disjoint(&counted), "counted twice");
            counted.union_with(&block.sources);
            *classes
                .entry((block.status as u8, &block.payload))
                .or_default() += 1;
            let said = block.sources.iter().map(|task| {
                let said = self.said[task.0 as usize];
                (said, said.block(task.0, self.is_summed))
            });
            let said: Vec<(Said, Block)> = said.collect();
            let equal = said
                .iter()
                .all(|(_, own)| own.status == block.status && own.payload == block.payload);
            let sum: u64 = said.iter().map(|(said, _)| u64::from(said.class)).sum();
            let is_sum = self.is_summed
                && block.payload[..] == sum.to_le_bytes()
                && said.iter().all(|(said, _)| !said.fails && said.class > 0);
            let is_rest = block.status == Status::Others && block.payload.is_empty();
            prop_assert!(equal || is_sum || is_rest, "nobody said {block:?}");
        }
        prop_assert_eq!(
            counted,
            IdSet::all_below(u32::try_from(self.said.len()).expect("below 200"))
        );
        prop_assert!(classes.values().all(|count| *count == 1), "one class twice");
        prop_assert!(classes.len() <= self.classes_max + 2);
        Ok(())
    }
}

fn cases() -> impl Strategy<Value = Case> {
    let said = (0..40_u8, 0..4_u8).prop_map(|(class, die)| Said {
        class,
        fails: die == 0,
    });
    let said = prop::collection::vec(said, 1..200);
    let dice = prop::collection::vec(any::<u16>(), 1..64);
    (said, 1..60_usize, any::<bool>(), dice).prop_map(|(said, classes_max, is_summed, dice)| Case {
        said,
        classes_max,
        is_summed,
        dice,
    })
}

proptest! {
    /// Merging is associative and commutative, also with limits: the tree and the order do not matter.
    #[test]
    fn any_tree_yields_the_aggregate_of_one_node(case in cases()) {
        let flat = case.gather(case.blocks());
        case.check_account(&flat)?;
        prop_assert_eq!(&case.gather(case.blocks().into_iter().rev()), &flat);
        prop_assert_eq!(&case.gather_in_a_tree(), &flat);
    }

    /// Aggregates taken in parts, as for late answers: no part repeats an earlier one, and merged
    /// again they are the whole.
    #[test]
    fn partial_aggregates_merge_to_the_whole_without_repeats(case in cases()) {
        let mut aggregate = Aggregate::default();
        let mut parts: Vec<Block> = Vec::new();
        let mut dice = case.dice.iter().cycle();
        for block in case.blocks() {
            aggregate.add(case.rule(), case.classes_max, block);
            if dice.next().is_some_and(|die| die % 8 == 0) {
                parts.extend(aggregate.take(case.rule(), PAYLOAD_BYTES_MAX));
                prop_assert!(aggregate.is_empty() && aggregate.sources().is_empty());
            }
        }
        parts.extend(aggregate.take(case.rule(), PAYLOAD_BYTES_MAX));
        let told: u64 = parts.iter().map(|block| block.sources.len()).sum();
        prop_assert_eq!(told, case.said.len() as u64);
        prop_assert_eq!(case.gather(parts), case.gather(case.blocks()));
    }
}
