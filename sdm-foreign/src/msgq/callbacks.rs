//! The callbacks through which the debug library reads the process. The debug library calls none of them before
//! [`Subject`] exists, and their data is never freed while this process lives.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::libc;
use sdm_foreign::queues::{LIBRARY_BYTES_MAX, TypeLayout};

use super::answer::give_up;
use super::interface::{
    BasicCallbacks, ImageCallbacks, NO_INFORMATION, OK, Opaque, ProcessCallbacks, TypeSizes,
};

/// Maximum number of bytes that are read at once: a group of a million processes.
const FETCH_BYTES_MAX: usize = 8 << 20;
/// Size of the header in front of an allocation of the debug library, which holds its size; in bytes.
const HEAD_BYTES: usize = 16;

/// The process that the debug library reads. It is both the process and the image in the debug library's interface.
pub(super) struct Subject {
    memory: File,
    symbols: Vec<(String, u64)>,
    types: Vec<TypeLayout>,
    image_info: Cell<*mut c_void>,
    process_info: Cell<*mut c_void>,
}

impl Subject {
    pub(super) fn new(memory: File, symbols: Vec<(String, u64)>, types: Vec<TypeLayout>) -> Self {
        Self {
            memory,
            symbols,
            types,
            image_info: Cell::new(std::ptr::null_mut()),
            process_info: Cell::new(std::ptr::null_mut()),
        }
    }

    /// The handle that stands for the process in the debug library's calls and callbacks.
    pub(super) fn opaque(&'static self) -> Opaque {
        std::ptr::from_ref(self).cast_mut().cast()
    }

    fn read(&self, address: u64, to: &mut [u8]) -> Option<()> {
        self.memory.read_exact_at(to, address).ok()
    }

    /// The `N` bytes of a structure's field in the process. `address` is that of the structure, and `of` its type;
    /// `None` if the field is not known or cannot be read.
    pub(super) fn read_field<const N: usize>(
        &self,
        address: u64,
        (of, field): (&str, &str),
    ) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        let known = self.types.iter().find(|known| known.name == of)?;
        let distance = offset_in(known, field)?;
        self.read(address.checked_add(distance.into())?, &mut bytes)?;
        Some(bytes)
    }

    fn symbol(&self, name: &str) -> Option<u64> {
        let found = self.symbols.iter().find(|(known, _)| known == name);
        found.map(|(_, address)| *address)
    }
}

fn offset_in(known: &TypeLayout, field: &str) -> Option<u32> {
    let mut fields = known.fields.iter();
    let (_, distance) = fields.find(|(name, _)| name == field)?;
    Some(*distance)
}

pub(super) static BASIC: BasicCallbacks = BasicCallbacks {
    allocate,
    free,
    print,
    error_text,
    put_image_info,
    image_info,
    put_process_info,
    process_info,
};

pub(super) static IMAGE: ImageCallbacks = ImageCallbacks {
    type_sizes,
    find_function,
    find_symbol,
    find_type,
    field_offset,
    size_of,
};

pub(super) static PROCESS: ProcessCallbacks = ProcessCallbacks {
    global_rank,
    image,
    fetch,
    to_host,
};

/// Memory of this process that the debug library has allocated now, in bytes.
static HELD_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Allocates memory for the debug library. The memory is filled with 0xff bytes, so that a rank that the debug library
/// forgets to write is no valid rank.
unsafe extern "C" fn allocate(size: usize) -> *mut c_void {
    let held = HELD_BYTES.load(Ordering::Relaxed);
    let whole = size.checked_add(HEAD_BYTES);
    let fits = |whole: &usize| {
        held.checked_add(*whole)
            .is_some_and(|sum| sum <= LIBRARY_BYTES_MAX)
    };
    let Some(whole) = whole.filter(fits) else {
        give_up(&format!(
            "the MPI library's debug library requests more than {LIBRARY_BYTES_MAX} bytes of memory"
        ));
    };
    // SAFETY: malloc gives room for the head and what the library wants, or null.
    unsafe {
        let head = libc::malloc(whole);
        if head.is_null() {
            give_up("out of memory for the MPI library's debug library");
        }
        HELD_BYTES.store(held + whole, Ordering::Relaxed);
        head.cast::<usize>().write(whole);
        let room = head.cast::<u8>().add(HEAD_BYTES);
        room.write_bytes(0xff, size);
        room.cast()
    }
}

unsafe extern "C" fn free(room: *mut c_void) {
    if room.is_null() {
        return;
    }
    // SAFETY: the library gives back what `allocate` gave it, once.
    unsafe {
        let head = room.cast::<u8>().sub(HEAD_BYTES);
        let whole = head.cast::<usize>().read();
        HELD_BYTES.fetch_sub(whole, Ordering::Relaxed);
        libc::free(head.cast());
    }
}

unsafe extern "C" fn print(_: *const c_char) {}

unsafe extern "C" fn error_text(_: c_int) -> *mut c_char {
    c"not found".as_ptr().cast_mut()
}

unsafe extern "C" fn put_image_info(of: Opaque, info: *mut c_void) {
    subject(of).image_info.set(info);
}

unsafe extern "C" fn image_info(of: Opaque) -> *mut c_void {
    subject(of).image_info.get()
}

unsafe extern "C" fn put_process_info(of: Opaque, info: *mut c_void) {
    subject(of).process_info.set(info);
}

unsafe extern "C" fn process_info(of: Opaque) -> *mut c_void {
    subject(of).process_info.get()
}

unsafe extern "C" fn type_sizes(_: Opaque, to: *mut TypeSizes) {
    let of_64_bits = TypeSizes {
        short_bytes: 2,
        int_bytes: 4,
        long_bytes: 8,
        long_long_bytes: 8,
        pointer_bytes: 8,
        bool_bytes: 1,
        size_bytes: 8,
    };
    // SAFETY: the library has room for one of these there.
    unsafe { to.write(of_64_bits) };
}

unsafe extern "C" fn find_function(
    of: Opaque,
    name: *const c_char,
    _: c_int,
    to: *mut c_ulong,
) -> c_int {
    // SAFETY: the same as of a symbol.
    unsafe { find_symbol(of, name, to) }
}

unsafe extern "C" fn find_symbol(of: Opaque, name: *const c_char, to: *mut c_ulong) -> c_int {
    let Some(address) = named(name).and_then(|name| subject(of).symbol(name)) else {
        return NO_INFORMATION;
    };
    if !to.is_null() {
        // SAFETY: it is not null, so the library has room for an address there.
        unsafe { to.write(address) };
    }
    OK
}

unsafe extern "C" fn find_type(of: Opaque, name: *const c_char, _: c_int) -> Opaque {
    let found = named(name).and_then(|name| {
        let mut known = subject(of).types.iter();
        known.find(|known| known.name == name)
    });
    let null = std::ptr::null_mut();
    found.map_or(null, |known| std::ptr::from_ref(known).cast_mut().cast())
}

unsafe extern "C" fn field_offset(of: Opaque, field: *const c_char) -> c_int {
    let distance = named(field).and_then(|field| offset_in(layout(of)?, field));
    let distance = distance.and_then(|distance| c_int::try_from(distance).ok());
    distance.unwrap_or(-1)
}

unsafe extern "C" fn size_of(of: Opaque) -> c_int {
    let size = layout(of).map(|known| known.size_bytes);
    size.and_then(|size| c_int::try_from(size).ok())
        .unwrap_or(-1)
}

unsafe extern "C" fn global_rank(_: Opaque) -> c_int {
    -1
}

unsafe extern "C" fn image(of: Opaque) -> Opaque {
    of
}

unsafe extern "C" fn fetch(of: Opaque, address: c_ulong, length: c_int, to: *mut c_void) -> c_int {
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > FETCH_BYTES_MAX || to.is_null() {
        return NO_INFORMATION;
    }
    // SAFETY: the library has room for as many bytes there, and nobody else uses it meanwhile.
    let to = unsafe { std::slice::from_raw_parts_mut(to.cast::<u8>(), length) };
    match subject(of).read(address, to) {
        Some(()) => OK,
        // Partly read data must not be used.
        None => {
            to.fill(0);
            NO_INFORMATION
        }
    }
}

/// Copies bytes unchanged: the process and this program have the same byte order.
unsafe extern "C" fn to_host(_: Opaque, from: *const c_void, to: *mut c_void, length: c_int) {
    if let Ok(length) = usize::try_from(length) {
        // SAFETY: the library has as many bytes at both.
        unsafe { std::ptr::copy(from.cast::<u8>(), to.cast::<u8>(), length) };
    }
}

fn subject(of: Opaque) -> &'static Subject {
    // SAFETY: the library was given nothing else, and it lives as long as this process.
    unsafe { &*of.cast::<Subject>() }
}

fn layout(of: Opaque) -> Option<&'static TypeLayout> {
    // SAFETY: the library was given null or one of the subject's layouts, which live as long as it.
    unsafe { of.cast::<TypeLayout>().as_ref() }
}

fn named(name: *const c_char) -> Option<&'static str> {
    if name.is_null() {
        return None;
    }
    // SAFETY: the library's names are strings that end, and part of it.
    unsafe { CStr::from_ptr(name) }.to_str().ok()
}
