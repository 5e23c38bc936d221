//! A function on a stack, with the data that locates its variables.

use gimli::{Expression, UnitOffset, UnitRef};

use crate::elf::Slice;
use crate::memory::Memory;
use crate::snapshot::Registers;

/// A function that stands on a stack.
pub(crate) struct Scope<'a> {
    pub(crate) unit: UnitRef<'a, Slice>,
    /// Its entry.
    pub(crate) function: UnitOffset,
    /// By what the one that it was put into finds its variables.
    pub(crate) frame_base: Option<Expression<Slice>>,
    /// Its current address, as in the file.
    pub(crate) address: u64,
    /// By how much the file was moved.
    pub(crate) bias: u64,
    pub(crate) registers: &'a Registers,
    /// Canonical frame address; 0 if unknown.
    pub(crate) cfa: u64,
    pub(crate) memory: &'a dyn Memory,
}

/// A variable: where it is and of which type.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) place: Storage,
    pub(super) kind: UnitOffset,
}

/// The location of a variable.
#[derive(Clone, Debug)]
pub(super) enum Storage {
    /// In memory.
    At(u64),
    /// In a register, or nowhere but in the debug information.
    Bytes(Vec<u8>),
}
