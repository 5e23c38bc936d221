//! Copies of libpmix's values, which this server stores for published data.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};

use sdm_foreign::peer_messages::PublishedValue;

use crate::ffi::{ByteObject, Data, TYPE_BYTE_OBJECT, TYPE_STRING, Value};

/// A copy that owns its memory; `None` for a value of another type than those that can be kept.
///
/// # Safety
/// The value's data must be of the type that it names.
pub(crate) unsafe fn copy(value: &Value) -> Option<PublishedValue> {
    match value.kind {
        TYPE_STRING => {
            // SAFETY: the type says that it is a string.
            let string = unsafe { value.data.string };
            // SAFETY: strings of values end.
            let known = |it| unsafe { CStr::from_ptr(it) }.to_owned();
            Some(PublishedValue::Text(match string.is_null() {
                true => CString::default(),
                false => known(string),
            }))
        }
        TYPE_BYTE_OBJECT => {
            // SAFETY: the type says what it is.
            let ByteObject { bytes, size } = unsafe { value.data.bytes };
            // SAFETY: that many bytes.
            let known = |it| unsafe { std::slice::from_raw_parts(it, size) }.to_vec();
            Some(PublishedValue::Bytes(match bytes.is_null() {
                true => Vec::new(),
                false => known(bytes.cast::<u8>()),
            }))
        }
        kind if PublishedValue::is_plain(kind) => {
            // SAFETY: all bytes of a value may be read, whatever is in it.
            let words = unsafe { value.data.words };
            Some(PublishedValue::Plain(kind, words))
        }
        _ => None,
    }
}

/// The value in libpmix's representation. Its pointers are valid as long as `kept` lives.
pub(crate) fn value(kept: &PublishedValue) -> Value {
    let mut data = Data { words: [0; 3] };
    let kind = match kept {
        PublishedValue::Text(string) => {
            data.string = string.as_ptr();
            TYPE_STRING
        }
        PublishedValue::Bytes(bytes) => {
            data.bytes = ByteObject {
                bytes: bytes.as_ptr().cast(),
                size: bytes.len(),
            };
            TYPE_BYTE_OBJECT
        }
        PublishedValue::Plain(kind, words) => {
            data.words = *words;
            *kind
        }
    };
    Value { kind, data }
}
