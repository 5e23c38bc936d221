//! The numbers by which the tree knows the rules. They are on the wire: a new one goes to the end.

/// Merging by equality: the tree's own, needs no rule.
pub const RULE_HASH: u16 = 0;
/// Distinct stacks with who stands there; no parameters.
pub const RULE_STACK_TREE: u16 = 1;
/// Statistics of numbers; parameters: none, or [`Bins::encode`](super::Bins::encode).
pub const RULE_STATS: u16 = 2;
/// Distinct lines with who said them; no parameters.
pub const RULE_LINES: u16 = 3;
/// The parts of probes, each with who has it; no parameters.
pub const RULE_PROBE: u16 = 4;
/// The memory that tasks use, and who uses the most; no parameters.
pub const RULE_USAGE: u16 = 5;
/// Messages that have not completed, each kind with who has it and with whom; no parameters.
pub const RULE_QUEUES: u16 = 6;
/// Distinct stacks over a while, each with who was seen there how often; no parameters.
pub const RULE_SAMPLES: u16 = 7;
