//! The structures and constants of libpmix that this program uses, as the PMIx standard 4 lays them out; version 5
//! and OpenPMIx 6 have the same layout. They are written by hand, and functions are resolved at run time, so that
//! one program works with all these versions.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use nix::libc;
use sdm_text::printable_name;

pub(crate) const SUCCESS: c_int = 0;
pub(crate) const NAMESPACE_CHARS: usize = 256;
const KEY_CHARS: usize = 512;

pub(crate) const TYPE_BOOL: u16 = 1;
pub(crate) const TYPE_STRING: u16 = 3;
pub(crate) const TYPE_SIZE: u16 = 4;
pub(crate) const TYPE_PID: u16 = 5;
pub(crate) const TYPE_UINT: u16 = 11;
pub(crate) const TYPE_UINT32: u16 = 14;
pub(crate) const TYPE_FLOAT: u16 = 16;
pub(crate) const TYPE_STATUS: u16 = 20;
pub(crate) const TYPE_PROC: u16 = 22;
pub(crate) const TYPE_INFO: u16 = 24;
pub(crate) const TYPE_BYTE_OBJECT: u16 = 27;
pub(crate) const TYPE_PROC_INFO: u16 = 38;
pub(crate) const TYPE_DATA_ARRAY: u16 = 39;
pub(crate) const TYPE_RANK: u16 = 40;

pub(crate) const SERVER_PID: &CStr = c"pmix.srvr.pidinfo";
pub(crate) const NAMESPACES: &CStr = c"pmix.qry.ns";
/// Attribute of a debugger's job: the processes that it debugs.
pub(crate) const DEBUG_TARGET: &CStr = c"pmix.dbg.tgt";
pub(crate) const PROCESS_TABLE: &CStr = c"pmix.qry.ptable";
pub(crate) const NAMESPACE: &CStr = c"pmix.nspace";
/// Attribute of a query: the name of the batch queue that it is about.
pub(crate) const QUEUE: &CStr = c"pmix.alloc.queue";

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Proc {
    pub(crate) namespace: [c_char; NAMESPACE_CHARS],
    pub(crate) rank: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ByteObject {
    pub(crate) bytes: *const c_char,
    pub(crate) size: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) union Data {
    /// A C `bool`. Its type is a byte, as a library may write any value into it.
    pub(crate) flag: u8,
    pub(crate) uint32: u32,
    pub(crate) pid: libc::pid_t,
    pub(crate) string: *const c_char,
    pub(crate) bytes: ByteObject,
    pub(crate) array: *const DataArray,
    pub(crate) process: *const Proc,
    /// As large as the largest member of the standard's union.
    pub(crate) words: [u64; 3],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Value {
    pub(crate) kind: u16,
    pub(crate) data: Data,
}

#[repr(C)]
pub(crate) struct Info {
    pub(crate) key: [c_char; KEY_CHARS],
    pub(crate) flags: u32,
    pub(crate) value: Value,
}

/// A published value as a lookup returns it: its owner, key and value.
#[repr(C)]
pub(crate) struct Published {
    pub(crate) owner: Proc,
    pub(crate) key: [c_char; KEY_CHARS],
    pub(crate) value: Value,
}

#[repr(C)]
pub(crate) struct Query {
    pub(crate) keys: *mut *mut c_char,
    pub(crate) qualifiers: *mut Info,
    pub(crate) qualifier_count: usize,
}

#[repr(C)]
pub(crate) struct DataArray {
    pub(crate) kind: u16,
    pub(crate) size: usize,
    pub(crate) array: *const c_void,
}

#[repr(C)]
pub(crate) struct ProcInfo {
    pub(crate) process: Proc,
    pub(crate) host: *const c_char,
    pub(crate) program: *const c_char,
    pub(crate) pid: libc::pid_t,
    pub(crate) exit_code: c_int,
    pub(crate) state: u8,
}

/// A program that is to be started.
#[repr(C)]
pub(crate) struct App {
    pub(crate) command: *const c_char,
    pub(crate) arguments: *const *const c_char,
    pub(crate) environment: *const *const c_char,
    pub(crate) directory: *const c_char,
    pub(crate) count: c_int,
    pub(crate) infos: *const Info,
    pub(crate) info_count: usize,
}

const _: () = assert!(size_of::<App>() == 56);
const _: () = assert!(size_of::<Value>() == 32 && size_of::<Proc>() == 260);
const _: () = assert!(size_of::<Info>() == 552 && size_of::<Query>() == 24);
const _: () = assert!(size_of::<ProcInfo>() == 296 && size_of::<DataArray>() == 24);
const _: () = assert!(size_of::<Published>() == 808);

impl Proc {
    /// A process; a name that is too long is cut off.
    pub(crate) fn new(namespace: &str, rank: u32) -> Self {
        let mut chars = [0; NAMESPACE_CHARS];
        for (to, from) in chars[..NAMESPACE_CHARS - 1]
            .iter_mut()
            .zip(namespace.bytes())
        {
            *to = c_char::from_ne_bytes([from]);
        }
        Self {
            namespace: chars,
            rank,
        }
    }

    /// Namespace of the process.
    pub(crate) fn name(&self) -> String {
        let end = self.namespace.iter().position(|it| *it == 0);
        let chars = &self.namespace[..end.unwrap_or(NAMESPACE_CHARS)];
        let bytes: Vec<u8> = chars.iter().flat_map(|it| it.to_ne_bytes()).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Info {
    pub(crate) fn new(key: &CStr, kind: u16, data: Data) -> Self {
        Self {
            key: key_of(key),
            flags: 0,
            value: Value { kind, data },
        }
    }

    pub(crate) fn flag(key: &CStr, flag: bool) -> Self {
        let mut data = Data { words: [0; 3] };
        data.flag = u8::from(flag);
        Self::new(key, TYPE_BOOL, data)
    }

    pub(crate) fn number(key: &CStr, kind: u16, number: u32) -> Self {
        let mut data = Data { words: [0; 3] };
        data.uint32 = number;
        Self::new(key, kind, data)
    }

    pub(crate) fn float(key: &CStr, number: f32) -> Self {
        Self::number(key, TYPE_FLOAT, number.to_bits())
    }

    pub(crate) fn size(key: &CStr, size: u64) -> Self {
        let words = [size, 0, 0];
        Self::new(key, TYPE_SIZE, Data { words })
    }

    /// An attribute with a string value. The text must live as long as the attribute is used.
    pub(crate) fn string(key: &CStr, text: &CStr) -> Self {
        let string = text.as_ptr();
        Self::new(key, TYPE_STRING, Data { string })
    }

    /// True if the attribute has this key.
    pub(crate) fn is(&self, key: &CStr) -> bool {
        self.key == key_of(key)
    }
}

/// A key as the fixed-size character array of libpmix's structures.
pub(crate) fn key_of(key: &CStr) -> [c_char; KEY_CHARS] {
    let mut chars = [0; KEY_CHARS];
    for (to, from) in chars[..KEY_CHARS - 1].iter_mut().zip(key.to_bytes()) {
        *to = c_char::from_ne_bytes([*from]);
    }
    chars
}

/// Loads a library, by its path or by the name that the loader knows.
pub(crate) fn load(library: &Path) -> Result<*mut c_void> {
    let path = CString::new(library.as_os_str().as_bytes())
        .context("the path of the PMIx library contains a zero byte")?;
    // SAFETY: loading runs the library's initialisers: that it may do anything is why this is a
    // process of its own.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    if handle.is_null() {
        // SAFETY: the argument is a string of the loader, or null.
        let why = unsafe { text(libc::dlerror()) };
        bail!("load {}: {why}", printable_name(library));
    }
    Ok(handle)
}

/// Finds a function in a library.
pub(crate) fn symbol(handle: *mut c_void, name: &CStr) -> Result<*mut c_void> {
    // SAFETY: the handle was returned by dlopen.
    let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
    if found.is_null() {
        bail!(
            "the PMIx library has no function {}",
            name.to_string_lossy()
        );
    }
    Ok(found)
}

/// The text of a C string, on one line and without tabs; empty for null.
///
/// # Safety
/// `string` must be null or a null-terminated string.
pub(crate) unsafe fn text(string: *const c_char) -> String {
    if string.is_null() {
        return String::new();
    }
    // SAFETY: the caller says so.
    let text = unsafe { CStr::from_ptr(string) }.to_string_lossy();
    text.replace(|it: char| it.is_control(), " ")
}
