//! Properties of sets: the laws against `BTreeSet`, the text form and the wire form against anything.

mod forms;
mod laws;
mod sets;
