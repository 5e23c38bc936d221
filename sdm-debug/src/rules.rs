//! Merge rules for answers: the tree knows each rule by its number only.
//!
//! | number | rule | a task's own answer | merged |
//! |---|---|---|---|
//! | [`RULE_HASH`] | by equality; the tree's own | any | the same bytes |
//! | [`RULE_STACK_TREE`] | distinct stacks | [`crate::Reply::Stacks`] | [`StackTree`] |
//! | [`RULE_STATS`] | statistics of numbers | [`crate::Reply::Value`], or a [`crate::Reply::Text`] with an array's elements | [`Stats`] |
//! | [`RULE_LINES`] | distinct lines | [`crate::Reply::Text`], [`crate::Reply::Value`] | [`Lines`] |
//! | [`RULE_PROBE`] | the parts of probes, each by itself | [`crate::Reply::Probe`] | [`Probes`] |
//! | [`RULE_USAGE`] | total memory, and the largest tasks | [`crate::Reply::Usage`] | [`TotalUsage`] |
//! | [`RULE_QUEUES`] | pending messages, each kind with its tasks | [`crate::Reply::Queues`] | [`MergedQueues`] |
//! | [`RULE_SAMPLES`] | distinct sampled stacks, with their counts | [`crate::Reply::Samples`] | [`Samples`] |
//!
//! Every rule is associative and commutative, including its limits (the floating-point moments of [`Stats`] within
//! rounding), and accepts the merged payloads of other nodes. A merged payload begins with the byte `0xfe`, with which
//! no reply begins, and the rule's number.

mod array;
mod bins;
mod capped;
mod coding;
mod frames;
mod lines;
mod merged;
mod number;
mod numbers;
mod parts;
mod plain;
mod probe;
mod queues;
mod rule_numbers;
mod samples;
mod stacks;
mod stats;
#[cfg(test)]
mod tests;
mod usage;

use sdm_core::Merge;

use plain::Plain;

pub use array::{ELEMENTS_MAX, NumberArray, fuzz_array};
pub use bins::{BINS_MAX, Bins, Histogram};
pub use lines::{LINE_BYTES_MAX, LineClass, Lines};
pub use merged::Merged;
pub use number::{Number, Parsed, parse as parse_number};
pub use numbers::{Alike, Numbers};
pub use probe::{Marks, Probes};
pub use queues::{MergedQueues, MessageClass};
pub use rule_numbers::{
    RULE_HASH, RULE_LINES, RULE_PROBE, RULE_QUEUES, RULE_SAMPLES, RULE_STACK_TREE, RULE_STATS,
    RULE_USAGE,
};
pub use samples::{Samples, Seen};
pub use stacks::{StackNode, StackTree, Stacks};
pub use stats::{Extreme, Stats, Who, is_address};
pub use usage::{LARGEST_MAX, TotalUsage};

/// The merge rule of a number, for the tree's [`sdm_core::aggregate::Rules`]. `None` for [`RULE_HASH`], for a number
/// from a newer member, and for parameters that the rule does not accept.
#[must_use]
pub fn rule(number: u16, params: &[u8]) -> Option<Box<dyn Merge>> {
    match (number, params) {
        (RULE_STACK_TREE, []) => Some(Plain::<stacks::Stacks>::rule()),
        (RULE_STATS, []) => Some(Box::new(stats::Rule { bins: None })),
        (RULE_STATS, params) => Some(Box::new(stats::Rule {
            bins: Some(Bins::decode(params)?),
        })),
        (RULE_LINES, []) => Some(Plain::<lines::Gathered>::rule()),
        (RULE_PROBE, []) => Some(Plain::<probe::Parts>::rule()),
        (RULE_USAGE, []) => Some(Plain::<TotalUsage>::rule()),
        (RULE_QUEUES, []) => Some(Plain::<queues::QueueParts>::rule()),
        (RULE_SAMPLES, []) => Some(Plain::<Samples>::rule()),
        _ => None,
    }
}

/// The default rule, without parameters, for merging the answers to a command.
#[must_use]
pub fn rule_of(command: &crate::Command) -> u16 {
    match command {
        crate::Command::Probe(_) => RULE_PROBE,
        crate::Command::Look(spec) if spec.probe.is_some() => RULE_PROBE,
        crate::Command::Stacks { .. } | crate::Command::Look(_) => RULE_STACK_TREE,
        crate::Command::Usage | crate::Command::ProcessUsage { .. } => RULE_USAGE,
        crate::Command::Queues => RULE_QUEUES,
        crate::Command::Sample(_) => RULE_SAMPLES,
        _ => RULE_HASH,
    }
}

/// Feeds arbitrary bytes to every rule, as a payload of 100 tasks. Checks that no rule panics, that no output exceeds
/// the bound, and that each output is accepted as input.
pub fn fuzz_rules(payload: &[u8]) {
    let sources = sdm_idset::IdSet::from_range(0..=99);
    let bins = Bins {
        low: 0.0,
        high: 1.0,
        count: 3,
    };
    for (number, params) in [
        (RULE_STACK_TREE, vec![]),
        (RULE_STATS, vec![]),
        (RULE_STATS, bins.encode()),
        (RULE_LINES, vec![]),
        (RULE_PROBE, vec![]),
        (RULE_USAGE, vec![]),
        (RULE_QUEUES, vec![]),
        (RULE_SAMPLES, vec![]),
    ] {
        let rule = rule(number, &params).expect("one of the list");
        let mut acc = rule.start();
        if rule.merge(&mut acc, &sources, payload).is_err() {
            continue;
        }
        let bytes_max = payload.len().max(1 << 16);
        let out = rule.finish(acc, bytes_max);
        assert!(out.len() <= bytes_max, "an output is bounded");
        let again = rule.merge(&mut rule.start(), &sources, &out);
        assert_eq!(again, Ok(()), "an output is a valid input");
    }
    let _ = Bins::decode(payload);
}
