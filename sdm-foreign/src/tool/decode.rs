//! Conversion of libpmix's values to lines.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int};

use sdm_foreign::names;
use sdm_foreign::tool_protocol::{DEPTH_MAX, Datum, JobPart, Line, TEXT_BYTES_MAX};

use crate::ffi::{
    ByteObject, DataArray, Info, Proc, ProcInfo, TYPE_BOOL, TYPE_BYTE_OBJECT, TYPE_DATA_ARRAY,
    TYPE_FLOAT, TYPE_INFO, TYPE_PID, TYPE_PROC_INFO, TYPE_RANK, TYPE_STRING, TYPE_UINT,
    TYPE_UINT32, Value, text,
};

/// Maximum number of values of one answer that are accepted.
const ITEMS_MAX: usize = 1 << 21;
const TYPE_STATUS: u16 = 20;
const TYPE_VALUE: u16 = 21;
const TYPE_PROC: u16 = 22;
const TYPE_REGATTR: u16 = 48;
const TYPE_NAMESPACE: u16 = 60;

/// libpmix's description of an attribute: its name, key, type, and explanatory texts.
#[repr(C)]
struct Described {
    name: *const c_char,
    key: [c_char; 512],
    kind: u16,
    words: *const *const c_char,
}

const _: () = assert!(size_of::<Described>() == 536);

/// Converts libpmix's structure of a process.
pub(super) fn among(process: &Proc) -> JobPart {
    let end = process.namespace.iter().position(|it| *it == 0);
    let name = &process.namespace[..end.unwrap_or(process.namespace.len())];
    let bytes: Vec<u8> = name.iter().flat_map(|it| it.to_ne_bytes()).collect();
    JobPart {
        namespace: String::from_utf8_lossy(&bytes).into_owned(),
        rank: process.rank,
    }
}

/// The lines of some infos.
///
/// # Safety
/// `infos` must point to `count` infos, or be null. The data of each value must be of the type that it names.
pub(super) unsafe fn infos(infos: *const Info, count: usize) -> Vec<Line> {
    let mut into = Lines::default();
    // SAFETY: the caller says so.
    for info in unsafe { slice(infos, count) } {
        // SAFETY: the caller says so.
        unsafe { into.info(info, 0) };
    }
    into.lines
}

/// The lines of a value.
///
/// # Safety
/// The value's data must be of the type that it names.
pub(super) unsafe fn value(key: &str, value: &Value) -> Vec<Line> {
    let mut into = Lines::default();
    // SAFETY: the caller says so.
    unsafe { into.value(key, value, 0) };
    into.lines
}

/// Items of libpmix as a slice. It is empty for null, and if there are more than [`ITEMS_MAX`].
///
/// # Safety
/// `start` must point to `count` items, or be null.
unsafe fn slice<'a, T>(start: *const T, count: usize) -> &'a [T] {
    if start.is_null() || count > ITEMS_MAX {
        return &[];
    }
    // SAFETY: the caller says so.
    unsafe { std::slice::from_raw_parts(start, count) }
}

/// The text of a string, at most [`TEXT_BYTES_MAX`] bytes of it.
///
/// # Safety
/// `string` must be null or a null-terminated string.
unsafe fn short(string: *const c_char) -> String {
    // SAFETY: the caller says so.
    let mut text = unsafe { text(string) };
    if text.len() > TEXT_BYTES_MAX {
        let is_end = |at: &usize| text.is_char_boundary(*at);
        let end = (0..=TEXT_BYTES_MAX).rev().find(is_end);
        text.truncate(end.unwrap_or(0));
    }
    text
}

#[derive(Default)]
struct Lines {
    lines: Vec<Line>,
}

impl Lines {
    fn push(&mut self, depth: u8, key: &str, value: Datum) {
        if self.lines.len() < ITEMS_MAX {
            let key = key.to_owned();
            self.lines.push(Line { depth, key, value });
        }
    }

    /// Adds the lines of an info.
    ///
    /// # Safety
    /// The data of the info's value must be of the type that the value names.
    unsafe fn info(&mut self, info: &Info, depth: u8) {
        let end = info.key.iter().position(|it| *it == 0);
        let key = &info.key[..end.unwrap_or(info.key.len())];
        let key: Vec<u8> = key.iter().flat_map(|it| it.to_ne_bytes()).collect();
        // SAFETY: the caller says so.
        unsafe { self.value(&String::from_utf8_lossy(&key), &info.value, depth) };
    }

    /// Adds the lines of a value: one, or for an array also those of its elements.
    ///
    /// # Safety
    /// The value's data must be of the type that it names.
    unsafe fn value(&mut self, key: &str, value: &Value, depth: u8) {
        if value.kind == TYPE_DATA_ARRAY && depth < DEPTH_MAX {
            // SAFETY: the type says that it points to an array, or to nothing.
            let Some(array) = (unsafe { value.data.array.as_ref() }) else {
                return self.push(depth, key, Datum::Nothing);
            };
            self.push(depth, key, Datum::Array(array.size as u64));
            // SAFETY: the array says what it holds.
            return unsafe { self.array(array, depth + 1) };
        }
        // SAFETY: the caller says so.
        let datum = unsafe { scalar(value.kind, (&raw const value.data).cast()) };
        self.push(depth, key, datum);
    }

    /// Adds the lines of an array's elements.
    ///
    /// # Safety
    /// The array must have as many elements as it says, of the type that it names.
    unsafe fn array(&mut self, array: &DataArray, depth: u8) {
        // SAFETY: the caller says so, here and below.
        unsafe {
            match array.kind {
                TYPE_INFO => {
                    for info in slice(array.array.cast::<Info>(), array.size) {
                        self.info(info, depth);
                    }
                }
                TYPE_VALUE => {
                    for value in slice(array.array.cast::<Value>(), array.size) {
                        self.value("", value, depth);
                    }
                }
                TYPE_PROC => {
                    for process in slice(array.array.cast::<Proc>(), array.size) {
                        self.push(depth, "", Datum::Process(among(process)));
                    }
                }
                TYPE_PROC_INFO => {
                    for info in slice(array.array.cast::<ProcInfo>(), array.size) {
                        self.push(depth, "", process_info(info));
                    }
                }
                TYPE_REGATTR => {
                    for one in slice(array.array.cast::<Described>(), array.size) {
                        let key: Vec<u8> = one.key.iter().flat_map(|it| it.to_ne_bytes()).collect();
                        let key = CStr::from_bytes_until_nul(&key).unwrap_or_default();
                        let name = Datum::Text(short(one.name));
                        self.push(depth, &key.to_string_lossy(), name);
                    }
                }
                kind => match bytes_of(kind) {
                    Some(bytes) if !array.array.is_null() => {
                        for index in 0..array.size.min(ITEMS_MAX) {
                            let at = array.array.cast::<u8>().add(index * bytes);
                            self.push(depth, "", scalar(kind, at));
                        }
                    }
                    _ => self.push(depth, "", Datum::Opaque(kind)),
                },
            }
        }
    }
}

/// Number of bytes of one value of a plain type in an array. `None` for other types.
fn bytes_of(kind: u16) -> Option<usize> {
    Some(match kind {
        1 | 2 | 7 | 12 | 30 | 32 | 33 | 37 | 43 | 50 | 51 => 1,
        8 | 13 | 36 | 45 => 2,
        TYPE_PID | 6 | 9 | TYPE_UINT | TYPE_UINT32 | TYPE_FLOAT | TYPE_STATUS | 35 | TYPE_RANK => 4,
        TYPE_STRING | 4 | 10 | 15 | 17 | 19 => 8,
        TYPE_BYTE_OBJECT | 18 => 16,
        _ => return None,
    })
}

/// Converts an entry of a process table.
///
/// # Safety
/// The strings of `info` must be null or null-terminated.
unsafe fn process_info(info: &ProcInfo) -> Datum {
    // SAFETY: the caller says so.
    let (host, program) = unsafe { (short(info.host), short(info.program)) };
    Datum::ProcessInfo {
        of: among(&info.process),
        host,
        program,
        pid: info.pid,
        exit_code: info.exit_code,
        state: info.state,
    }
}

/// Converts a value that is not an array.
///
/// # Safety
/// `at` must be where a value of this type is: in a value's union, or in an array.
unsafe fn scalar(kind: u16, at: *const u8) -> Datum {
    // SAFETY: the type says how many bytes are there and what they mean; none of them is a Rust type that not all bits
    // are.
    unsafe {
        let byte = || at.read();
        let short16 = || at.cast::<u16>().read_unaligned();
        let word = || at.cast::<u32>().read_unaligned();
        let signed = || at.cast::<c_int>().read_unaligned();
        let long = || at.cast::<u64>().read_unaligned();
        let signed_long = || at.cast::<i64>().read_unaligned();
        match kind {
            0 => Datum::Nothing,
            TYPE_BOOL => Datum::Flag(byte() != 0),
            2 | 12 => Datum::Unsigned(u64::from(byte())),
            TYPE_STRING => match at.cast::<*const c_char>().read_unaligned() {
                string if string.is_null() => Datum::Nothing,
                string => Datum::Text(short(string)),
            },
            4 | 15 => Datum::Unsigned(long()),
            TYPE_PID | 6 | 9 => Datum::Signed(i64::from(signed())),
            7 => Datum::Signed(i64::from(byte().cast_signed())),
            8 => Datum::Signed(i64::from(short16().cast_signed())),
            10 | 19 => Datum::Signed(signed_long()),
            TYPE_UINT | TYPE_UINT32 => Datum::Unsigned(u64::from(word())),
            13 => Datum::Unsigned(u64::from(short16())),
            TYPE_FLOAT => Datum::Real(f64::from(at.cast::<f32>().read_unaligned())),
            17 => Datum::Real(at.cast::<f64>().read_unaligned()),
            18 => Datum::Time(signed_long(), at.add(8).cast::<i64>().read_unaligned()),
            TYPE_STATUS => Datum::Status(signed()),
            TYPE_PROC => match at.cast::<*const Proc>().read_unaligned().as_ref() {
                Some(process) => Datum::Process(among(process)),
                None => Datum::Nothing,
            },
            TYPE_PROC_INFO => match at.cast::<*const ProcInfo>().read_unaligned().as_ref() {
                Some(info) => process_info(info),
                None => Datum::Nothing,
            },
            TYPE_NAMESPACE => match at.cast::<*const c_char>().read_unaligned() {
                string if string.is_null() => Datum::Nothing,
                string => Datum::Text(short(string)),
            },
            TYPE_BYTE_OBJECT => Datum::Bytes(at.cast::<ByteObject>().read_unaligned().size as u64),
            TYPE_RANK => Datum::Rank(word()),
            30 => Datum::Word(names::persistence(byte()).into_owned()),
            32 => Datum::Word(names::scope(byte()).into_owned()),
            33 => Datum::Word(names::range(byte()).into_owned()),
            35 => Datum::Word(names::directives(word())),
            36 => Datum::Word(names::kind(short16()).into_owned()),
            37 => Datum::Word(names::process_state(byte()).into_owned()),
            43 => Datum::Word(names::allocation(byte()).into_owned()),
            45 => Datum::Word(names::channels(short16())),
            50 => Datum::Word(names::job_state(byte()).into_owned()),
            51 => Datum::Word(names::link(byte()).into_owned()),
            other => Datum::Opaque(other),
        }
    }
}
