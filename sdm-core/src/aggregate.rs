//! Merging answers.

/// A merge rule: associative and commutative; its output is a valid input.
pub trait Merge {}
