//! Rule numbers of the tree's wire protocol. New numbers are only appended.

/// Merging by equality. The tree does it itself, without a rule.
pub const RULE_HASH: u16 = 0;
/// Distinct stacks with their tasks; no parameters.
pub const RULE_STACK_TREE: u16 = 1;
/// Statistics of numbers; parameters: none, or [`Bins::encode`](super::Bins::encode).
pub const RULE_STATS: u16 = 2;
/// Distinct lines with their tasks; no parameters.
pub const RULE_LINES: u16 = 3;
/// The parts of probes, each with its tasks; no parameters.
pub const RULE_PROBE: u16 = 4;
/// Memory usage: the sum, and the largest tasks; no parameters.
pub const RULE_USAGE: u16 = 5;
/// Pending messages, each kind with its tasks and their peers; no parameters.
pub const RULE_QUEUES: u16 = 6;
/// Distinct sampled stacks, each with its tasks and counts; no parameters.
pub const RULE_SAMPLES: u16 = 7;
