//! Values of the library's that are kept here.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};

use crate::ffi::{ByteObject, Data, TYPE_BYTE_OBJECT, TYPE_STRING, Value};

/// The types whose values hold no pointers: `bool` to `status`, but for strings; ranks and states.
const PLAIN: [std::ops::RangeInclusive<u16>; 4] = [1..=2, 4..=20, 32..=37, 40..=40];

/// A value that owns what it points to.
#[derive(Clone)]
pub(crate) enum Owned {
    String(CString),
    Bytes(Vec<u8>),
    Plain(u16, [u64; 3]),
}

impl Owned {
    /// A copy; none of what is of no type that is kept.
    ///
    /// # Safety
    /// A value as its type says.
    pub(crate) unsafe fn copy(value: &Value) -> Option<Self> {
        match value.kind {
            TYPE_STRING => {
                // SAFETY: the type says that it is a string.
                let string = unsafe { value.data.string };
                // SAFETY: strings of values end.
                let known = |it| unsafe { CStr::from_ptr(it) }.to_owned();
                Some(Self::String(match string.is_null() {
                    true => CString::default(),
                    false => known(string),
                }))
            }
            TYPE_BYTE_OBJECT => {
                // SAFETY: the type says what it is.
                let ByteObject { bytes, size } = unsafe { value.data.bytes };
                // SAFETY: that many bytes.
                let known = |it| unsafe { std::slice::from_raw_parts(it, size) }.to_vec();
                Some(Self::Bytes(match bytes.is_null() {
                    true => Vec::new(),
                    false => known(bytes.cast::<u8>()),
                }))
            }
            kind if PLAIN.iter().any(|it| it.contains(&kind)) => {
                // SAFETY: all bytes of a value may be read, whatever is in it.
                let words = unsafe { value.data.words };
                Some(Self::Plain(kind, words))
            }
            _ => None,
        }
    }

    /// As the library has it; what it points to lives as long as this does.
    pub(crate) fn value(&self) -> Value {
        let mut data = Data { words: [0; 3] };
        let kind = match self {
            Self::String(string) => {
                data.string = string.as_ptr();
                TYPE_STRING
            }
            Self::Bytes(bytes) => {
                data.bytes = ByteObject {
                    bytes: bytes.as_ptr().cast(),
                    size: bytes.len(),
                };
                TYPE_BYTE_OBJECT
            }
            Self::Plain(kind, words) => {
                data.words = *words;
                *kind
            }
        };
        Value { kind, data }
    }
}
