//! Property tests of sets: the laws against `BTreeSet`, and the text and wire forms against arbitrary
//! input.

mod forms;
mod laws;
mod sets;
