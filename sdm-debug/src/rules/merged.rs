//! A merged answer, decoded by the rule that its payload names.

use sdm_core::aggregate::Rejected;
use sdm_idset::IdSet;

use super::coding::{is_merged, rule_of};
use super::plain::MergedForm;
use super::rule_numbers::{
    RULE_LINES, RULE_PROBE, RULE_QUEUES, RULE_SAMPLES, RULE_STACK_TREE, RULE_STATS, RULE_USAGE,
};
use super::{Lines, MergedQueues, Probes, Samples, Stacks, Stats, TotalUsage};
use crate::Reply;

/// A merged answer; the variant names the rule.
#[derive(Clone, Debug, PartialEq)]
pub enum Merged {
    /// Stacks, by [`RULE_STACK_TREE`].
    Stacks(Stacks),
    /// Statistics, by [`RULE_STATS`].
    Stats(Box<Stats>),
    /// Lines, by [`RULE_LINES`].
    Lines(Lines),
    /// Probes, by [`RULE_PROBE`].
    Probes(Box<Probes>),
    /// Memory usage, by [`RULE_USAGE`].
    Usage(TotalUsage),
    /// Message queues, by [`RULE_QUEUES`].
    Queues(MergedQueues),
    /// Sampled stacks, by [`RULE_SAMPLES`].
    Samples(Box<Samples>),
}

impl Merged {
    /// True if a payload is a merged answer, which names its rule. Every other payload is a [`Reply`].
    #[must_use]
    pub fn is(payload: &[u8]) -> bool {
        is_merged(payload)
    }

    /// Reads the merged answer of these sources.
    ///
    /// # Errors
    /// The payload is not from a known rule.
    pub fn decode(sources: &IdSet, payload: &[u8]) -> Result<Self, Rejected> {
        Ok(match rule_of(payload)? {
            RULE_STACK_TREE => Self::Stacks(Stacks::read(sources, payload)?),
            RULE_STATS => Self::Stats(Box::new(Stats::decode(sources, payload)?)),
            RULE_LINES => Self::Lines(Lines::decode(sources, payload)?),
            RULE_PROBE => Self::Probes(Box::new(Probes::decode(sources, payload)?)),
            RULE_USAGE => Self::Usage(TotalUsage::decode(sources, payload)?),
            RULE_QUEUES => Self::Queues(MergedQueues::decode(sources, payload)?),
            RULE_SAMPLES => Self::Samples(Box::new(Samples::read(sources, payload)?)),
            _ => {
                return Err(Rejected(
                    "the answer was merged by a rule that this version does not know",
                ));
            }
        })
    }

    /// The merged form of equal answers of `tasks` that no node has merged. `None` for answers that are merged by
    /// equality.
    #[must_use]
    pub fn of(tasks: &IdSet, reply: &Reply) -> Option<Self> {
        Some(match reply {
            Reply::Stacks(own) => Self::Stacks(Stacks::of(tasks, own).ok()?),
            Reply::Probe(own) => Self::Probes(Box::new(Probes::of(tasks, (**own).clone()))),
            Reply::Usage(own) => Self::Usage(TotalUsage::of(tasks, own)),
            Reply::Queues(own) => Self::Queues(MergedQueues::of(tasks, own).ok()?),
            Reply::Samples(own) => Self::Samples(Box::new(Samples::of(tasks, own).ok()?)),
            _ => return None,
        })
    }

    /// Merges in an answer that the same rule has produced from other tasks.
    ///
    /// # Errors
    /// The other answer is of another rule, has lines, or has statistics over other bins or with too large a sum.
    pub fn absorb(&mut self, other: Self) -> Result<(), Rejected> {
        match (self, other) {
            (Self::Stacks(own), Self::Stacks(other)) => own.absorb(other),
            (Self::Stats(own), Self::Stats(other)) => own.absorb(&other)?,
            (Self::Probes(own), Self::Probes(other)) => own.absorb(*other),
            (Self::Usage(own), Self::Usage(other)) => own.absorb(&other),
            (Self::Queues(own), Self::Queues(other)) => own.absorb(other),
            (Self::Samples(own), Self::Samples(other)) => own.absorb(*other),
            _ => {
                return Err(Rejected(
                    "the answer was merged by another rule than that of the command",
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use sdm_idset::TaskId;

    use super::*;
    use crate::reply::Usage;
    use crate::rules::rule;
    use crate::wire;

    #[test]
    fn merged_answer_is_decoded_by_its_rule() {
        let usage = Reply::Usage(Usage {
            resident_bytes: 7,
            peak_bytes: 9,
        });
        let own = wire::encode(&usage);
        let (one, two) = (IdSet::single(TaskId(1)), IdSet::single(TaskId(2)));
        let both = one.union(&two);
        let by = |number: u16| {
            let rule = rule(number, &[]).unwrap();
            let mut acc = rule.start();
            let taken = [&one, &two].map(|task| rule.merge(&mut acc, task, &own).is_ok());
            (taken, rule.finish(acc, 1 << 10))
        };
        let (taken, payload) = by(RULE_USAGE);
        assert!(taken == [true; 2] && Merged::is(&payload) && !Merged::is(&own));
        let merged = Merged::decode(&both, &payload).unwrap();
        let mut parts = Merged::of(&one, &usage).unwrap();
        parts.absorb(Merged::of(&two, &usage).unwrap()).unwrap();
        assert_eq!(parts, merged);
        let (taken, payload) = by(RULE_STACK_TREE);
        assert_eq!(taken, [false; 2]);
        let stacks = Merged::decode(&both, &payload).unwrap();
        assert_eq!(stacks, Merged::Stacks(Stacks::default()));
        assert!(parts.absorb(stacks).is_err());
        for wrong in [&own[..], &[0xfe], &[0xfe, 99], &payload[..3]] {
            assert!(Merged::decode(&both, wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(Merged::of(&one, &Reply::Done), None);
    }
}
