//! The variables of a function in the text that gdb prints for them. Structures and arrays are left out.

use std::cmp::Reverse;

use gimli::{AttributeValue, DwTag, UnitOffset};
use serde::{Deserialize, Serialize};

use super::scope::{Scope, Storage};
use super::value::Value;
use crate::symbols::is_c;

/// Value of a variable that the compiler has left out at this address, as gdb prints it.
const ABSENT: &str = "<optimized out>";
/// Value of a variable that is no plain number, character or address, or that cannot be read.
const NOT_PLAIN: &str = "<not read without gdb>";
/// Significant digits with which gdb prints a `float` and a `double`.
const FLOAT_DIGITS: i32 = 9;
const DOUBLE_DIGITS: i32 = 17;
/// The smallest exponent of a number that `%g` prints without an exponent.
const EXPONENT_MIN: i32 = -4;

/// A variable or parameter of a function with its value as a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlainVariable {
    /// The name, as in the source.
    pub name: String,
    /// True for a parameter.
    pub is_parameter: bool,
    /// The value as gdb prints it, or the reason in angle brackets why there is none.
    pub value: String,
    /// True if gdb would show no more.
    pub is_whole: bool,
    /// True for structures and arrays, and references to them.
    pub is_aggregate: bool,
}

impl Scope<'_> {
    /// The variables in scope, those of the innermost block first. `address_text` returns the text of an address.
    pub(crate) fn plain(&self, address_text: &dyn Fn(u64) -> String) -> Vec<PlainVariable> {
        let mut locals = self.locals();
        locals.sort_by_key(|it| Reverse(it.depth));
        let plain = |offset| self.plain_text(offset, address_text);
        let locals = locals.into_iter().map(|local| {
            let text = plain(local.offset);
            let is_located = self.is_located(local.offset);
            // Of a parameter that is not there gdb may know the value at the call.
            let is_whole = match &text {
                Some(_) => has_known_form(self, local.offset),
                None => !is_located && !local.is_parameter,
            };
            let missing = || match is_located {
                true => NOT_PLAIN.to_owned(),
                false => ABSENT.to_owned(),
            };
            PlainVariable {
                value: text.unwrap_or_else(missing),
                is_whole,
                is_aggregate: is_located && is_aggregate(self, local.offset),
                name: local.name,
                is_parameter: local.is_parameter,
            }
        });
        locals.collect()
    }

    fn plain_text(
        &self,
        offset: UnitOffset,
        address_text: &dyn Fn(u64) -> String,
    ) -> Option<String> {
        let object = self.object(offset)?;
        let (kind, tag) = self.bare(object.kind)?;
        match tag {
            gimli::DW_TAG_base_type => {
                if let Some(text) = self.float_or_character(&object.place, kind) {
                    return Some(text);
                }
            }
            gimli::DW_TAG_pointer_type | gimli::DW_TAG_enumeration_type => {}
            _ => return None,
        }
        match self.load(object)? {
            Value::Number(number) => Some(match number.name {
                Some(truth) if self.is_fortran() && tag == gimli::DW_TAG_base_type => {
                    format!(".{}.", truth.to_uppercase())
                }
                Some(name) => name,
                // gdb prints it as a sum of the names of its bits.
                None if tag == gimli::DW_TAG_enumeration_type => return None,
                None => number.value.to_string(),
            }),
            Value::Pointer { at, .. } => Some(address_text(at)),
            Value::Object(_) => None,
        }
    }

    fn float_or_character(&self, place: &Storage, kind: UnitOffset) -> Option<String> {
        let encoding = match self.attribute(kind, gimli::DW_AT_encoding)? {
            AttributeValue::Encoding(encoding) => encoding,
            _ => return None,
        };
        let bytes = self.bytes(place, self.size(kind)?)?;
        match (encoding, bytes.as_slice()) {
            (gimli::DW_ATE_float, bytes) => match (bytes.try_into(), bytes.try_into()) {
                (Ok(bytes), _) => general(f32::from_le_bytes(bytes).into(), FLOAT_DIGITS),
                (_, Ok(bytes)) => general(f64::from_le_bytes(bytes), DOUBLE_DIGITS),
                _ => None,
            },
            (gimli::DW_ATE_signed_char, [byte]) => {
                Some(character(byte.cast_signed().into(), *byte))
            }
            (gimli::DW_ATE_unsigned_char, [byte]) => Some(character((*byte).into(), *byte)),
            _ => None,
        }
    }
}

/// True if gdb's form of the variable's type is the one of this reader. It prints the text behind a pointer to a
/// character, and has forms of its own for pointers of other languages than C and C++.
fn has_known_form(scope: &Scope<'_>, offset: UnitOffset) -> bool {
    let Some((kind, tag)) = kind_of(scope, offset) else {
        return false;
    };
    let is_c = is_c(scope.language());
    match tag {
        gimli::DW_TAG_pointer_type => {
            let to = scope.kind(kind).and_then(|to| scope.bare(to));
            let is_text = |(kind, tag)| {
                tag == gimli::DW_TAG_base_type && scope.size(kind).is_none_or(|size| size == 1)
            };
            is_c && !to.is_some_and(is_text)
        }
        gimli::DW_TAG_base_type => is_c || scope.is_fortran(),
        _ => is_c,
    }
}

fn is_aggregate(scope: &Scope<'_>, offset: UnitOffset) -> bool {
    let mut found = kind_of(scope, offset);
    if let Some((kind, gimli::DW_TAG_reference_type | gimli::DW_TAG_rvalue_reference_type)) = found
    {
        found = scope.kind(kind).and_then(|to| scope.bare(to));
    }
    let tag = found.map(|(_, tag)| tag);
    matches!(
        tag,
        Some(
            gimli::DW_TAG_structure_type
                | gimli::DW_TAG_class_type
                | gimli::DW_TAG_union_type
                | gimli::DW_TAG_array_type
        )
    )
}

fn kind_of(scope: &Scope<'_>, offset: UnitOffset) -> Option<(UnitOffset, DwTag)> {
    scope.bare(scope.kind(offset)?)
}

/// A character as gdb prints it: its number and its form in C.
fn character(number: i16, byte: u8) -> String {
    let shown = match byte {
        b'\'' | b'\\' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).to_string(),
        0x07 => "\\a".to_owned(),
        0x08 => "\\b".to_owned(),
        b'\t' => "\\t".to_owned(),
        b'\n' => "\\n".to_owned(),
        0x0b => "\\v".to_owned(),
        0x0c => "\\f".to_owned(),
        b'\r' => "\\r".to_owned(),
        0x1b => "\\033".to_owned(),
        _ => format!("\\{byte:03o}"),
    };
    format!("{number} '{shown}'")
}

/// A number as C's `%g` prints it with this many significant digits; `None` for a NaN.
fn general(number: f64, digits: i32) -> Option<String> {
    if number.is_nan() {
        return None;
    }
    if number.is_infinite() {
        return Some(number.to_string());
    }
    let places = usize::try_from(digits - 1).ok()?;
    let text = format!("{number:.places$e}");
    let (mantissa, exponent) = text.split_once('e')?;
    let exponent: i32 = exponent.parse().ok()?;
    if (EXPONENT_MIN..digits).contains(&exponent) {
        let places = usize::try_from(digits - 1 - exponent).ok()?;
        return Some(without_zeros(&format!("{number:.places$}")).to_owned());
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    let size = exponent.unsigned_abs();
    Some(format!("{}e{sign}{size:02}", without_zeros(mantissa)))
}

fn without_zeros(text: &str) -> &str {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts are those of gdb 13.
    #[test]
    fn numbers_and_characters_are_printed_as_by_gdb() {
        let check = |number, digits, expect: &str| {
            assert_eq!(general(number, digits).as_deref(), Some(expect));
        };
        check(0.0, DOUBLE_DIGITS, "0");
        check(-0.0, DOUBLE_DIGITS, "-0");
        check(0.5, DOUBLE_DIGITS, "0.5");
        check(0.1, DOUBLE_DIGITS, "0.10000000000000001");
        check(1.0e16, DOUBLE_DIGITS, "10000000000000000");
        check(1.0e17, DOUBLE_DIGITS, "1e+17");
        check(-2.5e-5, DOUBLE_DIGITS, "-2.5000000000000001e-05");
        check(1.0e-4, DOUBLE_DIGITS, "0.0001");
        check(0.1_f32.into(), FLOAT_DIGITS, "0.100000001");
        check(f64::NEG_INFINITY, DOUBLE_DIGITS, "-inf");
        assert_eq!(general(f64::NAN, DOUBLE_DIGITS), None);
        for (number, byte, expect) in [
            (97, b'a', "97 'a'"),
            (10, b'\n', "10 '\\n'"),
            (0, 0, "0 '\\000'"),
            (-1, 0xff, "-1 '\\377'"),
            (39, b'\'', "39 '\\''"),
        ] {
            assert_eq!(character(number, byte), expect);
        }
    }
}
