//! A function on a stack, with the data that locates its variables.

use gimli::{Expression, UnitOffset, UnitRef};

use crate::elf::Slice;
use crate::memory::Memory;
use crate::snapshot::Registers;

/// A function on a stack.
pub(crate) struct Scope<'a> {
    pub(crate) unit: UnitRef<'a, Slice>,
    /// The function's entry in the debug information.
    pub(crate) function: UnitOffset,
    /// The expression for the frame base by which the function, or the function that it is inlined into, finds its
    /// variables; `None` if it has none.
    pub(crate) frame_base: Option<Expression<Slice>>,
    /// The function's current address, as in the file.
    pub(crate) address: u64,
    /// Load bias of the file.
    pub(crate) bias: u64,
    pub(crate) registers: &'a Registers,
    /// Canonical frame address; 0 if unknown.
    pub(crate) cfa: u64,
    pub(crate) memory: &'a dyn Memory,
}

/// A variable's location and type.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) place: Storage,
    pub(super) kind: UnitOffset,
}

/// The location of a variable.
#[derive(Clone, Debug)]
pub(super) enum Storage {
    /// In memory at this address.
    At(u64),
    /// The bytes themselves, from a register or from the debug information.
    Bytes(Vec<u8>),
}
