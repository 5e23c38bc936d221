//! Values of evaluated expressions.

use gimli::UnitOffset;

use super::scope::Object;

/// Size of an `int`, in bytes.
const INT_BYTES: u64 = 4;

/// The value of an expression.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// An integer.
    Number(Number),
    /// An address, and the type of its target; `None` if that is not known.
    Pointer { at: u64, to: Option<UnitOffset> },
    /// A structure, or another value that is not a scalar.
    Object(ObjectValue),
}

/// An integer with its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Number {
    pub(crate) value: i128,
    /// Size of the number's type, in bytes.
    pub(super) bytes: u64,
    pub(super) is_unsigned: bool,
    /// Name of the enumerator with this value, or `true` or `false` for a truth value; `None` for a plain number.
    pub(crate) name: Option<String>,
}

impl Number {
    pub(super) fn int(value: i128) -> Self {
        Self {
            value,
            bytes: INT_BYTES,
            is_unsigned: false,
            name: None,
        }
    }

    /// The result of an operation on two numbers; `None` if their common type cannot hold it.
    pub(super) fn of(value: i128, one: &Self, other: &Self) -> Option<Self> {
        let bytes = one.bytes.max(other.bytes).max(INT_BYTES);
        let is_unsigned = [one, other]
            .iter()
            .any(|it| it.is_unsigned && it.bytes == bytes);
        let bits = u32::try_from(bytes).ok()?.checked_mul(8)?;
        let bits = if is_unsigned { bits } else { bits - 1 };
        let high = 1_i128.checked_shl(bits)?;
        let low = if is_unsigned { 0 } else { -high };
        (low..high).contains(&value).then_some(Self {
            value,
            bytes,
            is_unsigned,
            name: None,
        })
    }
}

/// A structure, or another value that is not a scalar.
#[derive(Clone, Debug)]
pub(crate) struct ObjectValue(pub(super) Object);
