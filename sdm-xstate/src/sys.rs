//! Unsafe code: `ptrace` of this library, its memory, and its calls of the C library.
#![allow(unsafe_code)]

use core::arch::asm;
use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::{Registers, complete};

const PTRACE_TRACEME: c_int = 0;
const PTRACE_PEEKTEXT: c_int = 1;
const PTRACE_PEEKUSER: c_int = 3;
const PTRACE_ATTACH: c_int = 16;
const PTRACE_SEIZE: c_int = 0x4206;
const PTRACE_GETREGSET: c_int = 0x4204;
const PTRACE_SETREGSET: c_int = 0x4205;
/// The register set number of the extended registers on x86-64.
const NT_X86_XSTATE: usize = 0x202;
const SYS_PTRACE: c_long = 101;
const RTLD_NEXT: *mut c_void = usize::MAX as *mut c_void;
const FD_CLOEXEC: c_int = 1;
const F_SETFD: c_int = 2;
const F_GET_SEALS: c_int = 1034;
/// The seals of the memory file that this library was loaded from. They distinguish it from a file of the user's with
/// such a name.
const SEALS: c_int = 0xf;
/// Prefix of the path of the file that this library was loaded from.
pub(crate) const OWN_NAME: &[u8] = b"/proc/self/fd/";

/// The kernel's error for a partial write.
pub(crate) const EFAULT: c_int = 14;

/// The type of the C library's `ptrace`, whose later arguments depend on the first.
type Ptrace = unsafe extern "C" fn(c_int, ...) -> c_long;
type Lookup = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

unsafe extern "C" {
    pub(crate) fn syscall(number: c_long, ...) -> c_long;
    fn __errno_location() -> *mut c_int;
    pub(crate) fn getenv(name: *const c_char) -> *const c_char;
    pub(crate) fn fcntl(fd: c_int, command: c_int, ...) -> c_int;
}

#[cfg(preload)]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    unsafe extern "C" {
        fn abort() -> !;
    }
    // SAFETY: the call ends the process.
    unsafe { abort() }
}

/// The kernel's `struct iovec`.
#[repr(C)]
struct Buffer {
    at: *mut u8,
    bytes: usize,
}

/// Replaces the C library's `ptrace(2)`. If the kernel refuses to write extended registers because they are
/// incomplete, they are completed and written again.
///
/// The C library's function is variadic and reads only the arguments that a request needs. On this architecture the
/// arguments are in the same registers in both cases. Arguments that the caller did not pass are forwarded unchanged.
///
/// # Safety
/// As for `ptrace(2)`.
#[cfg_attr(preload, unsafe(no_mangle))]
pub unsafe extern "C" fn ptrace(
    request: c_int,
    pid: c_int,
    address: *mut c_void,
    data: *mut c_void,
) -> c_long {
    if request == PTRACE_TRACEME {
        hide_own_file();
    }
    if matches!(request, PTRACE_ATTACH | PTRACE_SEIZE) {
        HOLDS.store(true, Ordering::Relaxed);
    }
    // SAFETY: the caller's request is passed on unchanged.
    let result = unsafe { below(request, pid, address, data) };
    let is_write = request == PTRACE_SETREGSET && address as usize == NT_X86_XSTATE;
    if result != -1 || !is_write || errno() != EFAULT || data.is_null() {
        return result;
    }
    // SAFETY: the kernel has read the buffer's address and length there. They are the caller's.
    let part = unsafe {
        let buffer = &*data.cast::<Buffer>();
        if buffer.at.is_null() {
            return result;
        }
        core::slice::from_raw_parts(buffer.at, buffer.bytes)
    };
    match complete(part, &mut Traced(pid)) {
        Some(true) => 0,
        Some(false) => -1,
        None => {
            set_errno(EFAULT);
            -1
        }
    }
}

/// True once this process has attached to another one. From then on that process may be stopped whenever this one opens
/// a file.
pub(crate) static HOLDS: AtomicBool = AtomicBool::new(false);

/// A traced thread, by its id.
struct Traced(c_int);

impl Traced {
    /// Makes a register transfer. Returns the number of bytes that the kernel has read or written; `None` if it
    /// refuses.
    fn transfer(&mut self, request: c_int, bytes: &mut [u8]) -> Option<usize> {
        let mut buffer = Buffer {
            at: bytes.as_mut_ptr(),
            bytes: bytes.len(),
        };
        let data = (&raw mut buffer).cast();
        // SAFETY: the buffer lives until the call returns, and has the length that it states.
        let result = unsafe { below(request, self.0, NT_X86_XSTATE as *mut c_void, data) };
        (result == 0).then_some(buffer.bytes)
    }
}

impl Registers for Traced {
    fn read(&mut self, into: &mut [u8]) -> Option<usize> {
        self.transfer(PTRACE_GETREGSET, into)
    }

    fn write(&mut self, whole: &mut [u8]) -> bool {
        self.transfer(PTRACE_SETREGSET, whole).is_some()
    }
}

/// Calls the `ptrace` that this one replaces.
///
/// # Safety
/// As for `ptrace(2)`.
unsafe fn below(request: c_int, pid: c_int, address: *mut c_void, data: *mut c_void) -> c_long {
    if let Some(next) = next() {
        // SAFETY: the function is the C library's, or another library's that precedes it.
        return unsafe { next(request, pid, address, data) };
    }
    let mut word: c_long = 0;
    let is_peek = (PTRACE_PEEKTEXT..=PTRACE_PEEKUSER).contains(&request);
    let data = if is_peek {
        (&raw mut word).cast()
    } else {
        data
    };
    // SAFETY: the request is the caller's. If the kernel stores a word, it stores it in a local variable.
    let result = unsafe {
        syscall(
            SYS_PTRACE,
            c_long::from(request),
            c_long::from(pid),
            address,
            data,
        )
    };
    if is_peek && result == 0 {
        // Any word may have been read, including -1. It is no error if errno is 0.
        set_errno(0);
        return word;
    }
    result
}

/// The next `ptrace` in symbol lookup order; `None` if it cannot be looked up. Some older C libraries have `dlsym` in a
/// library of its own, which gdb loads, and a program run by a wrapper of gdb may not.
fn next() -> Option<Ptrace> {
    static NEXT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    let mut found = NEXT.load(Ordering::Relaxed);
    if found.is_null() {
        let lookup: usize;
        // SAFETY: the instruction reads the address of a function, or 0 if there is none. With a symbol that must
        // exist, the program might not start.
        unsafe {
            asm!(
                ".weak dlsym",
                "mov {}, qword ptr [rip + dlsym@GOTPCREL]",
                out(reg) lookup,
                options(pure, readonly, nostack, preserves_flags)
            );
        }
        if lookup == 0 {
            return None;
        }
        // SAFETY: the address is that of `dlsym`, and the type is that function's.
        found = unsafe {
            let lookup: Lookup = core::mem::transmute::<usize, Lookup>(lookup);
            lookup(RTLD_NEXT, c"ptrace".as_ptr())
        };
        // Another thread that looks it up at the same time finds the same address.
        NEXT.store(found, Ordering::Relaxed);
    }
    if found.is_null() {
        return None;
    }
    // SAFETY: a function of that name has this type.
    Some(unsafe { core::mem::transmute::<*mut c_void, Ptrace>(found) })
}

/// Marks the file of this library close-on-exec in a process that is about to be traced, as it will soon execute
/// another program. Only system calls are made, since the process may be a child that shares its parent's memory.
fn hide_own_file() {
    // SAFETY: the string stays, or there is none. The environment is not changed meanwhile.
    let names = unsafe {
        let names = getenv(c"LD_PRELOAD".as_ptr());
        if names.is_null() {
            return;
        }
        CStr::from_ptr(names).to_bytes()
    };
    for name in names.split(|byte| matches!(byte, b' ' | b':')) {
        let Some(fd) = name.strip_prefix(OWN_NAME).and_then(number) else {
            continue;
        };
        // SAFETY: the calls read flags of a descriptor, and set one.
        unsafe {
            let seals = fcntl(fd, F_GET_SEALS);
            if seals != -1 && seals & SEALS == SEALS {
                fcntl(fd, F_SETFD, FD_CLOEXEC);
            }
        }
    }
}

fn number(digits: &[u8]) -> Option<c_int> {
    core::str::from_utf8(digits).ok()?.parse().ok()
}

pub(crate) fn errno() -> c_int {
    // SAFETY: the address is that of the calling thread's own value.
    unsafe { *__errno_location() }
}

pub(crate) fn set_errno(value: c_int) {
    // SAFETY: the address is that of the calling thread's own value.
    unsafe { *__errno_location() = value }
}

/// Memory that does not come from the program's allocator.
pub(crate) mod room {
    use core::ffi::{c_int, c_long, c_void};
    use core::ops::{Deref, DerefMut};
    use core::ptr::null_mut;

    const PROT_READ_WRITE: c_int = 3;
    const MAP_PRIVATE_ANONYMOUS: c_int = 0x22;

    unsafe extern "C" {
        fn mmap(
            at: *mut c_void,
            bytes: usize,
            access: c_int,
            flags: c_int,
            fd: c_int,
            from: c_long,
        ) -> *mut c_void;
        fn munmap(at: *mut c_void, bytes: usize) -> c_int;
    }

    /// Memory from the kernel: the program's allocator may be active in the calling thread.
    pub struct MappedMemory {
        at: *mut u8,
        bytes: usize,
    }

    impl MappedMemory {
        /// A buffer of zero bytes; `None` if there is no memory.
        #[must_use]
        pub fn new(bytes: usize) -> Option<Self> {
            // SAFETY: the call maps new memory at any address.
            let at = unsafe {
                mmap(
                    null_mut(),
                    bytes,
                    PROT_READ_WRITE,
                    MAP_PRIVATE_ANONYMOUS,
                    -1,
                    0,
                )
            };
            (at as usize != usize::MAX).then_some(Self {
                at: at.cast(),
                bytes,
            })
        }
    }

    impl Deref for MappedMemory {
        type Target = [u8];

        fn deref(&self) -> &[u8] {
            // SAFETY: the bytes were mapped for this value, and stay so until it is dropped.
            unsafe { core::slice::from_raw_parts(self.at, self.bytes) }
        }
    }

    impl DerefMut for MappedMemory {
        fn deref_mut(&mut self) -> &mut [u8] {
            // SAFETY: as above. No other reference to the bytes exists.
            unsafe { core::slice::from_raw_parts_mut(self.at, self.bytes) }
        }
    }

    impl Drop for MappedMemory {
        fn drop(&mut self) {
            // SAFETY: no reference to the bytes exists any more.
            unsafe { munmap(self.at.cast(), self.bytes) };
        }
    }
}
