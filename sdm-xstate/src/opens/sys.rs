//! Unsafe code: `open` and its variants, which precede those of the C library.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::ptr::null_mut;
use core::sync::atomic::Ordering;

use super::{Kind, is_readable};
use crate::sys::{HOLDS, OWN_NAME, errno, fcntl, getenv, set_errno, syscall};

unsafe extern "C" {
    fn fdopen(fd: c_int, mode: *const c_char) -> *mut c_void;
}

/// The variable with further users whose files may be read, besides root and the caller: user ids with commas between.
const OWNERS: &CStr = c"SDM_GDB_OWNERS";

const SYS_CLOSE: c_long = 3;
const SYS_FSTAT: c_long = 5;
const SYS_GETEUID: c_long = 107;
const SYS_OPENAT: c_long = 257;
const AT_FDCWD: c_int = -100;
const O_ACCMODE: c_int = 3;
const O_WRONLY: c_int = 1;
const O_RDWR: c_int = 2;
const O_CREAT: c_int = 0o100;
const O_EXCL: c_int = 0o200;
const O_TRUNC: c_int = 0o1000;
const O_APPEND: c_int = 0o2000;
const O_NONBLOCK: c_int = 0o4000;
const O_DIRECTORY: c_int = 0o200_000;
const O_NOFOLLOW: c_int = 0o400_000;
const O_CLOEXEC: c_int = 0o2_000_000;
const O_PATH: c_int = 0o10_000_000;
const F_SETFL: c_int = 4;
const EACCES: c_int = 13;

/// The `open(2)` of the C library, guarded. In a process that has attached to another one, nothing is read by which
/// another user could block it: each file is first examined by a descriptor that opens nothing.
///
/// # Safety
/// As of `open(2)`.
#[cfg_attr(preload, unsafe(no_mangle))]
pub unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    // SAFETY: the caller's arguments are passed on unchanged.
    unsafe { openat(AT_FDCWD, path, flags, mode) }
}

/// The guarded `open64`.
///
/// # Safety
/// As of `open(2)`.
#[cfg_attr(preload, unsafe(no_mangle))]
pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    // SAFETY: the caller's arguments are passed on unchanged.
    unsafe { openat(AT_FDCWD, path, flags, mode) }
}

/// The guarded `openat`.
///
/// # Safety
/// As of `openat(2)`.
#[cfg_attr(preload, unsafe(no_mangle))]
pub unsafe extern "C" fn openat(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mode: c_int,
) -> c_int {
    let makes = flags & O_ACCMODE != 0 || flags & (O_CREAT | O_DIRECTORY | O_PATH) != 0;
    if makes || !HOLDS.load(Ordering::Relaxed) {
        // SAFETY: the caller's arguments are passed on unchanged.
        return unsafe { opened(folder, path, flags, mode) };
    }
    let how = O_PATH | O_CLOEXEC | flags & O_NOFOLLOW;
    // SAFETY: the path is the caller's.
    let known = unsafe { opened(folder, path, how, 0) };
    if known < 0 {
        return known;
    }
    let file = match found(known) {
        Some((kind, owner)) if is_readable(kind, owner, caller(), owners()) => {
            let name = Name::of(known);
            // The owner of a file can make other processes wait in `open`, so this one is non-blocking.
            // SAFETY: the path is a null-terminated string of this function.
            let file =
                unsafe { opened(AT_FDCWD, name.text(), (flags & !O_NOFOLLOW) | O_NONBLOCK, 0) };
            if file >= 0 && flags & O_NONBLOCK == 0 {
                // SAFETY: the call sets flags of a descriptor that this function has opened.
                unsafe { fcntl(file, F_SETFL, flags) };
            }
            file
        }
        _ => {
            set_errno(EACCES);
            -1
        }
    };
    let error = errno();
    // SAFETY: this function has opened the descriptor, which has no other owner.
    unsafe { syscall(SYS_CLOSE, c_long::from(known)) };
    set_errno(error);
    file
}

/// Replaces the C library's `fopen(3)`, using [`open`].
///
/// # Safety
/// As for `fopen(3)`.
#[cfg_attr(preload, unsafe(no_mangle))]
pub unsafe extern "C" fn fopen(path: *const c_char, mode: *const c_char) -> *mut c_void {
    // SAFETY: the string is the caller's.
    let text = unsafe { CStr::from_ptr(mode) }.to_bytes();
    let text = text.split(|byte| *byte == b',').next().unwrap_or_default();
    let has = |letter: u8| text.contains(&letter);
    let writes = if has(b'+') { O_RDWR } else { O_WRONLY };
    let flags = match text.first() {
        Some(b'w') => writes | O_CREAT | O_TRUNC,
        Some(b'a') => writes | O_CREAT | O_APPEND,
        _ if has(b'+') => O_RDWR,
        _ => 0,
    };
    let flags = flags | if has(b'e') { O_CLOEXEC } else { 0 } | if has(b'x') { O_EXCL } else { 0 };
    // SAFETY: the path is the caller's. The C library takes over the descriptor, or it is closed here.
    unsafe {
        let file = open(path, flags, 0o666);
        if file < 0 {
            return null_mut();
        }
        let stream = fdopen(file, mode);
        if stream.is_null() {
            syscall(SYS_CLOSE, c_long::from(file));
        }
        stream
    }
}

/// The guarded `fopen64`.
///
/// # Safety
/// As of `fopen(3)`.
#[cfg_attr(preload, unsafe(no_mangle))]
pub unsafe extern "C" fn fopen64(path: *const c_char, mode: *const c_char) -> *mut c_void {
    // SAFETY: the caller's arguments are passed on unchanged.
    unsafe { fopen(path, mode) }
}

/// # Safety
/// As of `openat(2)`.
unsafe fn opened(folder: c_int, path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    let [folder, flags, mode] = [folder, flags, mode].map(c_long::from);
    // SAFETY: the kernel checks the path.
    let file = unsafe { syscall(SYS_OPENAT, folder, path, flags, mode) };
    c_int::try_from(file).unwrap_or(-1)
}

/// The kind and owner of a descriptor's file; `None` if `fstat(2)` fails.
fn found(fd: c_int) -> Option<(Kind, u32)> {
    // In `struct stat` of this architecture the fourth word has mode and owner.
    let mut words = [0_u64; 18];
    // SAFETY: the kernel writes one structure, for which the buffer has room.
    let result = unsafe { syscall(SYS_FSTAT, c_long::from(fd), words.as_mut_ptr()) };
    let [a, b, c, d, owner @ ..] = words[3].to_le_bytes();
    let mode = u32::from_le_bytes([a, b, c, d]);
    (result == 0).then_some((Kind::of(mode), u32::from_le_bytes(owner)))
}

fn caller() -> u32 {
    // SAFETY: the call returns a number.
    let user = unsafe { syscall(SYS_GETEUID) };
    u32::try_from(user).unwrap_or(u32::MAX)
}

fn owners() -> &'static [u8] {
    // SAFETY: the string stays, or there is none, as gdb never changes its own environment.
    unsafe {
        let named = getenv(OWNERS.as_ptr());
        match named.is_null() {
            true => &[],
            false => CStr::from_ptr(named).to_bytes(),
        }
    }
}

/// The null-terminated path of an open descriptor in `/proc`.
struct Name([u8; 32]);

impl Name {
    fn of(fd: c_int) -> Self {
        let mut text = [0; 32];
        text[..OWN_NAME.len()].copy_from_slice(OWN_NAME);
        let (mut left, mut digits) = (fd, 1);
        while left >= 10 {
            left /= 10;
            digits += 1;
        }
        left = fd;
        for at in (OWN_NAME.len()..OWN_NAME.len() + digits).rev() {
            text[at] = b'0' + (left % 10) as u8;
            left /= 10;
        }
        Self(text)
    }

    fn text(&self) -> *const c_char {
        self.0.as_ptr().cast()
    }
}
