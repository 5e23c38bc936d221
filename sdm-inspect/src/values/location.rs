//! The location of a variable.

use gimli::{
    AttributeValue, EvaluationResult, Expression, Location, Operation, UnitOffset, Value as Word,
    ValueType,
};

use super::scope::{Scope, Storage};
use crate::elf::Slice;

/// Maximum number of operations of an expression that are evaluated, since a file could have an endless expression.
const OPERATIONS_MAX: u32 = 4096;
/// Maximum number of bytes that are read at once.
const BYTES_MAX: u64 = 1 << 16;

impl Scope<'_> {
    /// The location of the variable of an entry; `None` if it is in several pieces, or has no location.
    pub(super) fn place(&self, offset: UnitOffset) -> Option<Storage> {
        if let Some(value) = self.attribute(offset, gimli::DW_AT_const_value) {
            return match value {
                AttributeValue::Block(bytes) => Some(Storage::Bytes(bytes.slice().to_vec())),
                value => {
                    let number = value.sdata_value().map(i64::cast_unsigned);
                    let number = number.or_else(|| value.udata_value())?;
                    Some(Storage::Bytes(number.to_le_bytes().to_vec()))
                }
            };
        }
        match self.attribute(offset, gimli::DW_AT_location)? {
            AttributeValue::Exprloc(expression) => self.located(expression),
            list => self.located(self.listed(list)?),
        }
    }

    /// True if the variable of an entry has a location at the function's current address.
    pub(super) fn is_located(&self, offset: UnitOffset) -> bool {
        match self.attribute(offset, gimli::DW_AT_location) {
            Some(AttributeValue::Exprloc(expression)) => !expression.0.is_empty(),
            Some(list) => self.listed(list).is_some(),
            None => self.attribute(offset, gimli::DW_AT_const_value).is_some(),
        }
    }

    /// The expression of a list for the function's current address; `None` if the list has none.
    fn listed(&self, list: AttributeValue<Slice>) -> Option<Expression<Slice>> {
        let mut list = self.unit.attr_locations(list).ok()??;
        while let Some(one) = list.next().ok()? {
            if (one.range.begin..one.range.end).contains(&self.address) {
                return Some(one.data);
            }
        }
        None
    }

    fn located(&self, expression: Expression<Slice>) -> Option<Storage> {
        let pieces = self.pieces(expression, true, None)?;
        match pieces {
            Location::Address { address } => Some(Storage::At(address)),
            Location::Register { register } => {
                let word = self.registers.get(register.0)?;
                Some(Storage::Bytes(word.to_le_bytes().to_vec()))
            }
            Location::Value { value } => {
                let word = value.to_u64(u64::MAX).ok()?;
                Some(Storage::Bytes(word.to_le_bytes().to_vec()))
            }
            Location::Bytes { value } => Some(Storage::Bytes(value.slice().to_vec())),
            _ => None,
        }
    }

    /// A number from the debug information: a constant, or the result of an expression about the object at address
    /// `object`. `None` if it cannot be computed.
    pub(super) fn computed(&self, value: &AttributeValue<Slice>, object: u64) -> Option<i128> {
        match value {
            AttributeValue::Sdata(number) => Some(i128::from(*number)),
            AttributeValue::Exprloc(expression) => {
                match self.pieces(*expression, true, Some(object))? {
                    Location::Address { address } => Some(i128::from(address.cast_signed())),
                    _ => None,
                }
            }
            // A form without a sign.
            value => value.udata_value().map(i128::from),
        }
    }

    /// The single location that an expression evaluates to; `None` if there are several, or none.
    fn pieces(
        &self,
        expression: Expression<Slice>,
        has_base: bool,
        object: Option<u64>,
    ) -> Option<Location<Slice>> {
        let mut evaluation = expression.evaluation(self.unit.encoding());
        if let Some(object) = object {
            evaluation.set_object_address(object);
        }
        evaluation.set_max_iterations(OPERATIONS_MAX);
        let mut state = evaluation.evaluate().ok()?;
        loop {
            state = match state {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = Word::Generic(self.registers.get(register.0)?);
                    evaluation.resume_with_register(value)
                }
                EvaluationResult::RequiresMemory { address, size, .. } => {
                    let mut word = [0; 8];
                    let to = word.get_mut(..usize::from(size))?;
                    self.memory.read(address, to)?;
                    evaluation.resume_with_memory(Word::Generic(u64::from_le_bytes(word)))
                }
                EvaluationResult::RequiresFrameBase if has_base => {
                    let base = self.pieces(self.frame_base?, false, None)?;
                    let base = match base {
                        Location::Address { address } => address,
                        Location::Register { register } => self.registers.get(register.0)?,
                        _ => return None,
                    };
                    evaluation.resume_with_frame_base(base)
                }
                EvaluationResult::RequiresCallFrameCfa if self.cfa != 0 => {
                    evaluation.resume_with_call_frame_cfa(self.cfa)
                }
                EvaluationResult::RequiresRelocatedAddress(address) => {
                    evaluation.resume_with_relocated_address(address.wrapping_add(self.bias))
                }
                EvaluationResult::RequiresIndexedAddress { index, relocate } => {
                    let address = self.unit.address(index).ok()?;
                    let bias = if relocate { self.bias } else { 0 };
                    evaluation.resume_with_indexed_address(address.wrapping_add(bias))
                }
                EvaluationResult::RequiresBaseType(offset) => {
                    evaluation.resume_with_base_type(self.word_type(offset)?)
                }
                _ => return None,
            }
            .ok()?;
        }
        match evaluation.as_result() {
            [piece] if piece.size_in_bits.is_none() => Some(piece.location),
            _ => None,
        }
    }

    /// True for a static variable, whose address does not depend on a frame.
    pub(super) fn is_fixed(&self, offset: UnitOffset) -> bool {
        let Some(AttributeValue::Exprloc(expression)) =
            self.attribute(offset, gimli::DW_AT_location)
        else {
            return false;
        };
        let mut operations = expression.operations(self.unit.encoding());
        let first = operations.next();
        let is_address = matches!(
            first,
            Ok(Some(
                Operation::Address { .. } | Operation::AddressIndex { .. }
            ))
        );
        is_address && matches!(operations.next(), Ok(None))
    }

    fn word_type(&self, offset: UnitOffset) -> Option<ValueType> {
        let entry = self.unit.entry(offset).ok()?;
        ValueType::from_entry(&entry).ok()?
    }

    /// The first `count` bytes at a location, at most [`BYTES_MAX`]; `None` if they cannot be read.
    pub(super) fn bytes(&self, place: &Storage, count: u64) -> Option<Vec<u8>> {
        let length = usize::try_from(count.min(BYTES_MAX)).ok()?;
        match place {
            Storage::At(address) => {
                let mut bytes = vec![0; length];
                self.memory.read(*address, &mut bytes)?;
                Some(bytes)
            }
            Storage::Bytes(bytes) => bytes.get(..length).map(<[u8]>::to_vec),
        }
    }
}
