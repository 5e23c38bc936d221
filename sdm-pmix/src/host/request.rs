//! What the library asks of its host: it calls from threads of its own, so nothing is decided there. Each call becomes a
//! [`Request`] whose address goes through a pipe to the main loop.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};

use nix::libc;

use crate::ffi::{Info, Proc, Published, TYPE_BOOL, TYPE_STRING, Value, text};
use crate::host::value::Owned;

/// Done as asked, and no callback comes.
const OPERATION_SUCCEEDED: c_int = -157;
const NOT_SUPPORTED: c_int = -47;
const WAIT: &CStr = c"pmix.wait";
/// What names begin with that are no program's.
const RESERVED: &str = "pmix.";
const LOG_STDOUT: &CStr = c"pmix.log.stdout";
const LOG_STDERR: &CStr = c"pmix.log.stderr";
/// The most keys, values or processes of one call that are believed.
const ITEMS_MAX: usize = 1 << 20;

pub(crate) type OpCallback = unsafe extern "C" fn(c_int, *mut c_void);
type Release = unsafe extern "C" fn(*mut c_void);
pub(crate) type ModexCallback =
    unsafe extern "C" fn(c_int, *const c_char, usize, *mut c_void, Option<Release>, *mut c_void);
pub(crate) type LookupCallback = unsafe extern "C" fn(c_int, *const Published, usize, *mut c_void);

/// What is called when something is done: once, from any thread. The library may have given none.
pub(crate) struct Done<F> {
    callback: Option<F>,
    data: *mut c_void,
}

// SAFETY: the library says that its callbacks may come from any thread; the pointer is only given back to it.
unsafe impl<F> Send for Done<F> {}

impl Done<OpCallback> {
    pub(crate) fn tell(self, status: c_int) {
        if let Some(callback) = self.callback {
            // SAFETY: the library gave it for this, and it is called once.
            unsafe { callback(status, self.data) };
        }
    }
}

impl Done<ModexCallback> {
    pub(crate) fn tell(self, status: c_int, bytes: Vec<u8>) {
        unsafe extern "C" fn release(bytes: *mut c_void) {
            // SAFETY: it is the vector below, which the library gives back once.
            drop(unsafe { Box::from_raw(bytes.cast::<Vec<u8>>()) });
        }
        let Some(callback) = self.callback else {
            return;
        };
        let bytes = Box::new(bytes);
        let (start, count) = (bytes.as_ptr().cast(), bytes.len());
        let kept = Box::into_raw(bytes).cast();
        // SAFETY: the bytes live until the library releases them.
        unsafe { callback(status, start, count, self.data, Some(release), kept) };
    }
}

impl Done<LookupCallback> {
    /// The library copies what it is given before this returns.
    pub(crate) fn tell(self, status: c_int, found: &[Published]) {
        if let Some(callback) = self.callback {
            // SAFETY: the library gave it for this, and it is called once.
            unsafe { callback(status, found.as_ptr(), found.len(), self.data) };
        }
    }
}

/// Something that the library asks for.
pub(crate) enum Request {
    /// A process wants its job to end.
    Abort {
        process: Proc,
        status: i32,
        text: String,
        done: Done<OpCallback>,
    },
    /// All processes of this node are at a barrier, with this to say to all.
    Fence {
        bytes: Vec<u8>,
        done: Done<ModexCallback>,
    },
    Publish {
        process: Proc,
        entries: Vec<(String, Owned)>,
        done: Done<OpCallback>,
    },
    Lookup {
        keys: Vec<String>,
        waits: bool,
        done: Done<LookupCallback>,
    },
    Unpublish {
        process: Proc,
        keys: Vec<String>,
        done: Done<OpCallback>,
    },
    /// A process has something to print.
    Log {
        process: Proc,
        bytes: Vec<u8>,
        done: Done<OpCallback>,
    },
    /// There is nothing to do but to say so.
    Agreed(Done<OpCallback>),
}

/// Where the callbacks write; -1 before there is one.
static PIPE: AtomicI32 = AtomicI32::new(-1);

/// The end of the pipe from which the main loop takes requests.
pub(crate) struct Requests(OwnedFd);

impl Requests {
    /// Opens the pipe; once in a process.
    pub(crate) fn open() -> io::Result<Self> {
        let (reader, writer) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
        PIPE.store(writer.into_raw_fd(), Ordering::SeqCst);
        Ok(Self(reader))
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// The next request; only where the descriptor is readable.
    pub(crate) fn take(&self) -> io::Result<Request> {
        let mut address = [0; size_of::<usize>()];
        let count = nix::unistd::read(&self.0, &mut address)?;
        if count != address.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let request = usize::from_ne_bytes(address) as *mut Request;
        // SAFETY: addresses are written whole, and each is one of `hand_over`'s that nobody else has.
        Ok(*unsafe { Box::from_raw(request) })
    }
}

fn hand_over(request: Request) -> c_int {
    let address = Box::into_raw(Box::new(request)) as usize;
    let bytes = address.to_ne_bytes();
    let pipe = PIPE.load(Ordering::SeqCst);
    // SAFETY: the descriptor is never closed. So few bytes are written whole or not at all.
    let written = unsafe { libc::write(pipe, bytes.as_ptr().cast(), bytes.len()) };
    match usize::try_from(written) {
        Ok(count) if count == bytes.len() => 0,
        _ => NOT_SUPPORTED,
    }
}

/// The processes and infos of a call as slices.
///
/// # Safety
/// That many, or null.
unsafe fn slice<'a, T>(start: *const T, count: usize) -> &'a [T] {
    if start.is_null() || count > ITEMS_MAX {
        return &[];
    }
    // SAFETY: the caller says so.
    unsafe { std::slice::from_raw_parts(start, count) }
}

/// # Safety
/// It must be null or a process.
unsafe fn process(process: *const Proc) -> Proc {
    if process.is_null() {
        return Proc::new("", 0);
    }
    // SAFETY: the caller says so.
    unsafe { *process }
}

/// # Safety
/// It must be null or an array of strings that ends with null.
unsafe fn keys(mut keys: *const *const c_char) -> Vec<String> {
    let mut found = Vec::new();
    while !keys.is_null() && found.len() < ITEMS_MAX {
        // SAFETY: not yet behind its end.
        let key = unsafe { *keys };
        if key.is_null() {
            break;
        }
        // SAFETY: a string that ends.
        found.push(unsafe { text(key) });
        // SAFETY: the null that ends it is not passed.
        keys = unsafe { keys.add(1) };
    }
    found
}

fn done(callback: Option<OpCallback>, data: *mut c_void) -> Done<OpCallback> {
    Done { callback, data }
}

/// True for a flag that is set, or that has no value.
fn is_set(value: &Value) -> bool {
    // SAFETY: the type says what it is.
    value.kind != TYPE_BOOL || unsafe { value.data.flag }
}

unsafe extern "C" fn on_client(
    _: *const Proc,
    _: *mut c_void,
    callback: Option<OpCallback>,
    data: *mut c_void,
) -> c_int {
    hand_over(Request::Agreed(done(callback, data)))
}

unsafe extern "C" fn on_client2(
    _: *const Proc,
    _: *mut c_void,
    _: *const Info,
    _: usize,
    callback: Option<OpCallback>,
    data: *mut c_void,
) -> c_int {
    hand_over(Request::Agreed(done(callback, data)))
}

unsafe extern "C" fn on_abort(
    who: *const Proc,
    _: *mut c_void,
    status: c_int,
    message: *const c_char,
    _: *const Proc,
    _: usize,
    callback: Option<OpCallback>,
    data: *mut c_void,
) -> c_int {
    // SAFETY: as the library's interface says.
    let (process, text) = unsafe { (process(who), text(message)) };
    let done = done(callback, data);
    hand_over(Request::Abort {
        process,
        status,
        text,
        done,
    })
}

unsafe extern "C" fn on_fence(
    _: *const Proc,
    _: usize,
    _: *const Info,
    _: usize,
    bytes: *mut c_char,
    count: usize,
    callback: Option<ModexCallback>,
    data: *mut c_void,
) -> c_int {
    let copy = match bytes.is_null() {
        true => Vec::new(),
        // SAFETY: that many bytes, which are ours.
        false => unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), count) }.to_vec(),
    };
    // SAFETY: the library has allocated it with malloc, and gives it away; or it is null.
    unsafe { libc::free(bytes.cast()) };
    let done = Done { callback, data };
    hand_over(Request::Fence { bytes: copy, done })
}

unsafe extern "C" fn on_publish(
    who: *const Proc,
    infos: *const Info,
    count: usize,
    callback: Option<OpCallback>,
    data: *mut c_void,
) -> c_int {
    // SAFETY: as the library's interface says.
    let (process, infos) = unsafe { (process(who), slice(infos, count)) };
    // Directives stand among the values, and are told apart by their names alone.
    let values = infos.iter().filter_map(|info| {
        // SAFETY: a key always ends.
        let key = unsafe { text(info.key.as_ptr()) };
        match key.starts_with(RESERVED) {
            true => None,
            // SAFETY: a value of the library's.
            false => Some((key, unsafe { Owned::copy(&info.value) }?)),
        }
    });
    let entries = values.collect();
    let done = done(callback, data);
    hand_over(Request::Publish {
        process,
        entries,
        done,
    })
}

unsafe extern "C" fn on_lookup(
    _: *const Proc,
    names: *const *const c_char,
    infos: *const Info,
    count: usize,
    callback: Option<LookupCallback>,
    data: *mut c_void,
) -> c_int {
    // SAFETY: as the library's interface says.
    let (keys, infos) = unsafe { (keys(names), slice(infos, count)) };
    let waits = infos
        .iter()
        .any(|info| info.is(WAIT) && is_set(&info.value));
    let done = Done { callback, data };
    hand_over(Request::Lookup { keys, waits, done })
}

unsafe extern "C" fn on_unpublish(
    who: *const Proc,
    names: *const *const c_char,
    _: *const Info,
    _: usize,
    callback: Option<OpCallback>,
    data: *mut c_void,
) -> c_int {
    // SAFETY: as the library's interface says.
    let (process, keys) = unsafe { (process(who), keys(names)) };
    let done = done(callback, data);
    hand_over(Request::Unpublish {
        process,
        keys,
        done,
    })
}

unsafe extern "C" fn on_connect(
    _: *const Proc,
    _: usize,
    _: *const Info,
    _: usize,
    callback: Option<OpCallback>,
    data: *mut c_void,
) -> c_int {
    hand_over(Request::Agreed(done(callback, data)))
}

unsafe extern "C" fn on_register_events(
    _: *const c_int,
    _: usize,
    _: *const Info,
    _: usize,
    _: Option<OpCallback>,
    _: *mut c_void,
) -> c_int {
    OPERATION_SUCCEEDED
}

unsafe extern "C" fn on_deregister_events(
    _: *const c_int,
    _: usize,
    _: Option<OpCallback>,
    _: *mut c_void,
) -> c_int {
    OPERATION_SUCCEEDED
}

unsafe extern "C" fn on_notify(
    _: c_int,
    _: *const Proc,
    _: u8,
    _: *const Info,
    _: usize,
    _: Option<OpCallback>,
    _: *mut c_void,
) -> c_int {
    OPERATION_SUCCEEDED
}

/// A tool is never answered: an answer of no kills OpenPMIx 4.2 and 5.0 (as of 5.0.11), and so does it where there is nobody to
/// ask.
unsafe extern "C" fn on_tool(_: *const Info, _: usize, _: *const c_void, _: *mut c_void) {}

unsafe extern "C" fn on_log(
    who: *const Proc,
    infos: *const Info,
    count: usize,
    _: *const Info,
    _: usize,
    callback: Option<OpCallback>,
    data: *mut c_void,
) {
    // SAFETY: as the library's interface says.
    let (process, infos) = unsafe { (process(who), slice(infos, count)) };
    let mut bytes = Vec::new();
    for info in infos {
        let is_text = info.is(LOG_STDOUT) || info.is(LOG_STDERR);
        // SAFETY: the type says that it is a string.
        let string = unsafe { info.value.data.string };
        if is_text && info.value.kind == TYPE_STRING && !string.is_null() {
            // SAFETY: a string that ends.
            bytes.extend_from_slice(unsafe { CStr::from_ptr(string) }.to_bytes());
        }
    }
    let done = done(callback, data);
    hand_over(Request::Log {
        process,
        bytes,
        done,
    });
}

/// How many functions the library may look for: each version has its own number, and takes those behind it for absent.
const SLOTS: usize = 64;

/// The table of what the library calls. Places that are empty stand for what is not offered.
#[repr(C)]
pub(crate) struct Module([*const c_void; SLOTS]);

impl Module {
    pub(crate) fn new() -> Self {
        let mut slots = [std::ptr::null(); SLOTS];
        // Not the first one, which the last one replaces since version 4.
        slots[1] = on_client as *const c_void;
        slots[2] = on_abort as *const c_void;
        slots[3] = on_fence as *const c_void;
        slots[5] = on_publish as *const c_void;
        slots[6] = on_lookup as *const c_void;
        slots[7] = on_unpublish as *const c_void;
        slots[9] = on_connect as *const c_void;
        slots[10] = on_connect as *const c_void;
        slots[11] = on_register_events as *const c_void;
        slots[12] = on_deregister_events as *const c_void;
        slots[14] = on_notify as *const c_void;
        slots[16] = on_tool as *const c_void;
        slots[17] = on_log as *const c_void;
        slots[27] = on_client2 as *const c_void;
        Self(slots)
    }
}
