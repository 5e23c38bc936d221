//! Types of variables, as far as they are needed for plain values.

use gimli::{AttributeValue, DwTag, UnitOffset};

use super::scope::{Object, Scope, Storage};
use super::value::{Number, ObjectValue, Value};

/// Maximum number of typedefs, qualifiers and nested parts of a type.
const HOPS_MAX: usize = 32;
/// Maximum number of direct children of an entry that are examined.
const ENTRIES_MAX: usize = 1 << 16;
/// Maximum nesting depth of anonymous members and base classes.
const DEPTH_MAX: usize = 8;
const POINTER_BYTES: u64 = 8;

impl Scope<'_> {
    /// The type behind typedefs and qualifiers, with its tag; `None` if it is not found.
    pub(super) fn bare(&self, kind: UnitOffset) -> Option<(UnitOffset, DwTag)> {
        let mut kind = kind;
        for _ in 0..HOPS_MAX {
            let tag = self.unit.entry(kind).ok()?.tag();
            match tag {
                gimli::DW_TAG_typedef
                | gimli::DW_TAG_const_type
                | gimli::DW_TAG_volatile_type
                | gimli::DW_TAG_restrict_type
                | gimli::DW_TAG_atomic_type => kind = self.kind(kind)?,
                tag => return Some((kind, tag)),
            }
        }
        None
    }

    /// Size of a value of a type, in bytes; `None` if it is not known.
    pub(super) fn size(&self, kind: UnitOffset) -> Option<u64> {
        let mut kind = kind;
        let mut count = 1_u64;
        for _ in 0..HOPS_MAX {
            let (bare, tag) = self.bare(kind)?;
            let size = self.attribute(bare, gimli::DW_AT_byte_size);
            if let Some(size) = size.and_then(|size| size.udata_value()) {
                return count.checked_mul(size);
            }
            match tag {
                gimli::DW_TAG_array_type => {
                    let mut counts = self.counts(bare)?.into_iter();
                    count = counts.try_fold(count, u64::checked_mul)?;
                    kind = self.kind(bare)?;
                }
                gimli::DW_TAG_pointer_type
                | gimli::DW_TAG_reference_type
                | gimli::DW_TAG_rvalue_reference_type => return count.checked_mul(POINTER_BYTES),
                _ => return None,
            }
        }
        None
    }

    /// The direct children of an entry.
    pub(super) fn children(&self, of: UnitOffset) -> Vec<(UnitOffset, DwTag)> {
        let mut children = Vec::new();
        let Ok(mut entries) = self.unit.entries_at_offset(of) else {
            return children;
        };
        let Ok(Some(top)) = entries
            .next_dfs()
            .map(|top| top.map(super::entry::Entry::depth))
        else {
            return children;
        };
        while let Ok(Some(entry)) = entries.next_dfs() {
            if entry.depth() <= top || children.len() >= ENTRIES_MAX {
                break;
            }
            if entry.depth() == top + 1 {
                children.push((entry.offset(), entry.tag()));
            }
        }
        children
    }

    fn number_of(&self, offset: UnitOffset, name: gimli::DwAt) -> Option<u64> {
        self.attribute(offset, name)?.udata_value()
    }

    /// Number of elements of an array in each dimension; `None` if one is not a constant.
    fn counts(&self, array: UnitOffset) -> Option<Vec<u64>> {
        let dimensions = self.children(array).into_iter();
        let dimensions = dimensions.filter(|(_, tag)| *tag == gimli::DW_TAG_subrange_type);
        let counts = dimensions.map(|(offset, _)| {
            if let Some(count) = self.number_of(offset, gimli::DW_AT_count) {
                return Some(count);
            }
            let first = self.number_of(offset, gimli::DW_AT_lower_bound);
            let last = self.number_of(offset, gimli::DW_AT_upper_bound)?;
            last.checked_add(1)?.checked_sub(first.unwrap_or(0))
        });
        counts.collect()
    }

    /// An element of a Fortran array; `None` if it is not found. The bounds of the array can be in a descriptor in
    /// place of its type.
    pub(super) fn element(&self, array: &Object, indices: &[i128]) -> Option<Object> {
        let (kind, tag) = self.bare(array.kind)?;
        let Storage::At(descriptor) = array.place else {
            return None;
        };
        if tag != gimli::DW_TAG_array_type {
            return None;
        }
        let computed = |of, name| self.computed(&self.attribute(of, name)?, descriptor);
        let data = match self.attribute(kind, gimli::DW_AT_data_location) {
            Some(place) => self.computed(&place, descriptor)?,
            None => i128::from(descriptor),
        };
        // The array is not allocated or associated.
        if data == 0 {
            return None;
        }
        let dimensions = self.children(kind).into_iter();
        let dimensions = dimensions.filter(|(_, tag)| *tag == gimli::DW_TAG_subrange_type);
        let dimensions: Vec<UnitOffset> = dimensions.map(|(offset, _)| offset).collect();
        if dimensions.len() != indices.len() {
            return None;
        }
        let element = self.kind(kind)?;
        let mut stride = Some(i128::from(self.size(element)?));
        let mut offset = 0_i128;
        for (dimension, index) in dimensions.into_iter().zip(indices) {
            let first = match self.attribute(dimension, gimli::DW_AT_lower_bound) {
                Some(bound) => self.computed(&bound, descriptor)?,
                None => 1,
            };
            // The upper bound can be that of a variable, so it is optional. Only the next dimension's stride needs
            // it.
            let last = computed(dimension, gimli::DW_AT_upper_bound);
            let own = computed(dimension, gimli::DW_AT_byte_stride);
            stride = own.or(stride);
            if *index < first || last.is_some_and(|last| *index > last) {
                return None;
            }
            let by = index.checked_sub(first)?;
            offset = offset.checked_add(by.checked_mul(stride?)?)?;
            let count = last.and_then(|last| last.checked_sub(first)?.checked_add(1));
            stride = stride
                .zip(count)
                .and_then(|(it, count)| it.checked_mul(count));
        }
        let at = data.checked_add(offset)?;
        Some(Object {
            place: Storage::At(u64::try_from(at).ok()?),
            kind: element,
        })
    }

    /// Loads the value of a variable. An array becomes a pointer to its first element, and a structure stays an object.
    /// `None` if it cannot be read, for an array of several dimensions, and for a float or character.
    pub(super) fn load(&self, object: Object) -> Option<Value> {
        let (kind, tag) = self.bare(object.kind)?;
        match tag {
            gimli::DW_TAG_base_type => self.load_number(&object.place, kind),
            gimli::DW_TAG_enumeration_type => {
                let is_unsigned = false;
                let mut number = self.word(&object.place, self.size(kind)?, is_unsigned)?;
                let named = self.children(kind).into_iter().find(|(offset, _)| {
                    let value = self.attribute(*offset, gimli::DW_AT_const_value);
                    value.is_some_and(|it| {
                        let signed = it.sdata_value().map(i128::from);
                        let unsigned = it.udata_value().map(i128::from);
                        [signed, unsigned].contains(&Some(number.value))
                    })
                });
                number.name = self.name(named?.0);
                Some(Value::Number(number))
            }
            gimli::DW_TAG_pointer_type => {
                let at = self.word(&object.place, POINTER_BYTES, true)?;
                let at = u64::try_from(at.value).ok()?;
                Some(Value::Pointer {
                    at,
                    to: self.kind(kind),
                })
            }
            gimli::DW_TAG_reference_type | gimli::DW_TAG_rvalue_reference_type => {
                let at = self.word(&object.place, POINTER_BYTES, true)?;
                self.load(Object {
                    place: Storage::At(u64::try_from(at.value).ok()?),
                    kind: self.kind(kind)?,
                })
            }
            gimli::DW_TAG_array_type => {
                let Storage::At(at) = object.place else {
                    return None;
                };
                // An element of an array with several dimensions is itself an array.
                let is_plain = self.counts(kind).is_none_or(|it| it.len() <= 1);
                is_plain.then_some(Value::Pointer {
                    at,
                    to: Some(self.kind(kind)?),
                })
            }
            _ => Some(Value::Object(ObjectValue(object))),
        }
    }

    /// The value of an enumerator that is declared at the top level of the unit; `None` if there is none of this name.
    pub(super) fn enumerator(&self, name: &str) -> Option<i128> {
        let root = self.unit.header.root_offset();
        let kinds = self.children(root).into_iter();
        let mut kinds = kinds.filter(|(_, tag)| *tag == gimli::DW_TAG_enumeration_type);
        kinds.find_map(|(kind, _)| {
            let mut all = self.children(kind).into_iter();
            let (found, _) = all.find(|(it, _)| self.name(*it).as_deref() == Some(name))?;
            let value = self.attribute(found, gimli::DW_AT_const_value)?;
            let signed = value.sdata_value().filter(|it| *it >= 0).map(i128::from);
            // A value of a single byte has no sign.
            signed.or_else(|| value.udata_value().map(i128::from))
        })
    }

    fn load_number(&self, place: &Storage, kind: UnitOffset) -> Option<Value> {
        let encoding = match self.attribute(kind, gimli::DW_AT_encoding)? {
            AttributeValue::Encoding(encoding) => encoding,
            _ => return None,
        };
        let size = self.size(kind)?;
        let is_unsigned = match encoding {
            gimli::DW_ATE_signed => false,
            gimli::DW_ATE_unsigned | gimli::DW_ATE_boolean => true,
            _ => return None,
        };
        let mut number = self.word(place, size, is_unsigned)?;
        if encoding == gimli::DW_ATE_boolean {
            number.name = Some((number.value != 0).to_string());
        }
        Some(Value::Number(number))
    }

    fn word(&self, place: &Storage, size: u64, is_unsigned: bool) -> Option<Number> {
        let bytes = self.bytes(place, size)?;
        let mut word = [0; 8];
        word.get_mut(..bytes.len())?.copy_from_slice(&bytes);
        let word = u64::from_le_bytes(word);
        let unused = 64_u32.checked_sub(u32::try_from(size).ok()?.checked_mul(8)?)?;
        let value = match is_unsigned {
            true => i128::from(word),
            false => i128::from((word.checked_shl(unused)?).cast_signed() >> unused),
        };
        Some(Number {
            value,
            bytes: size,
            is_unsigned,
            name: None,
        })
    }

    /// The member of a structure with this name; `None` if there is none, and for a static member or a bit field.
    pub(super) fn member(&self, of: &ObjectValue, name: &str) -> Option<Object> {
        self.member_within(&of.0, name, 0)
    }

    fn member_within(&self, of: &Object, name: &str, depth: usize) -> Option<Object> {
        if depth > DEPTH_MAX {
            return None;
        }
        let (kind, _) = self.bare(of.kind)?;
        for (offset, tag) in self.children(kind) {
            let is_base = tag == gimli::DW_TAG_inheritance;
            if tag != gimli::DW_TAG_member && !is_base {
                continue;
            }
            let own = self.name(offset);
            let is_it = !is_base && own.as_deref() == Some(name);
            if !is_it && own.is_some() && !is_base {
                continue;
            }
            let part = || {
                let by = self.number_of(offset, gimli::DW_AT_data_member_location);
                let is_bits = self.attribute(offset, gimli::DW_AT_bit_size).is_some();
                let is_static = self.attribute(offset, gimli::DW_AT_external).is_some();
                if is_bits || is_static {
                    return None;
                }
                let by = by.unwrap_or(0);
                let place = match &of.place {
                    Storage::At(at) => Storage::At(at.checked_add(by)?),
                    Storage::Bytes(bytes) => {
                        Storage::Bytes(bytes.get(usize::try_from(by).ok()?..)?.to_vec())
                    }
                };
                let kind = self.kind(offset)?;
                Some(Object { place, kind })
            };
            if is_it {
                return part();
            }
            // The members of an anonymous member count as the structure's own.
            let inner = part().and_then(|part| self.member_within(&part, name, depth + 1));
            if inner.is_some() {
                return inner;
            }
        }
        None
    }
}
