//! A function that stands on a stack, and where its variables are.

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
    /// Where it stands, as the file has it.
    pub(crate) address: u64,
    /// By how much the file was moved.
    pub(crate) bias: u64,
    pub(crate) registers: &'a Registers,
    /// Where its part of the stack ends; 0 where that is not known.
    pub(crate) cfa: u64,
    pub(crate) memory: &'a dyn Memory,
}

/// A variable: where it is and of which type.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) place: Storage,
    pub(super) kind: UnitOffset,
}

/// Where something is.
#[derive(Clone, Debug)]
pub(super) enum Storage {
    /// In memory.
    At(u64),
    /// In a register, or nowhere but in the debug information.
    Bytes(Vec<u8>),
}
