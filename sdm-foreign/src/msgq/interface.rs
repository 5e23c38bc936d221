//! The structures and functions of the message queue interface between debuggers and MPI libraries, version 2, and the
//! loaded library. The declarations are written by hand, as the interface has one layout on 64-bit Linux.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_long, c_ulong, c_void};
use std::path::Path;

use anyhow::{Result, bail};

use crate::ffi::{load, symbol};

pub(super) const OK: c_int = 0;
pub(super) const NO_INFORMATION: c_int = 1;
const END_OF_LIST: c_int = 2;
/// The version of the interface without `MPI_Comm_spawn`.
const VERSION: c_int = 2;
/// The rank value that means any rank.
const ANY: c_long = -1;
const MATCHED: c_int = 1;
const COMPLETE: c_int = 2;
const TEXT_LINES: usize = 5;
const LINE_CHARS: usize = 64;

/// A handle of this process, which the debug library passes back in its callbacks.
pub(super) type Opaque = *mut c_void;

/// Sizes of C's types in the process.
#[repr(C)]
pub(super) struct TypeSizes {
    pub(super) short_bytes: c_int,
    pub(super) int_bytes: c_int,
    pub(super) long_bytes: c_int,
    pub(super) long_long_bytes: c_int,
    pub(super) pointer_bytes: c_int,
    pub(super) bool_bytes: c_int,
    pub(super) size_bytes: c_int,
}

/// Callbacks that are independent of a process: memory, messages, and data that the debug library attaches to handles.
#[repr(C)]
pub(super) struct BasicCallbacks {
    pub(super) allocate: unsafe extern "C" fn(usize) -> *mut c_void,
    pub(super) free: unsafe extern "C" fn(*mut c_void),
    pub(super) print: unsafe extern "C" fn(*const c_char),
    pub(super) error_text: unsafe extern "C" fn(c_int) -> *mut c_char,
    pub(super) put_image_info: unsafe extern "C" fn(Opaque, *mut c_void),
    pub(super) image_info: unsafe extern "C" fn(Opaque) -> *mut c_void,
    pub(super) put_process_info: unsafe extern "C" fn(Opaque, *mut c_void),
    pub(super) process_info: unsafe extern "C" fn(Opaque) -> *mut c_void,
}

/// Callbacks about the program: sizes of types, symbols, and structures.
#[repr(C)]
pub(super) struct ImageCallbacks {
    pub(super) type_sizes: unsafe extern "C" fn(Opaque, *mut TypeSizes),
    pub(super) find_function:
        unsafe extern "C" fn(Opaque, *const c_char, c_int, *mut c_ulong) -> c_int,
    pub(super) find_symbol: unsafe extern "C" fn(Opaque, *const c_char, *mut c_ulong) -> c_int,
    pub(super) find_type: unsafe extern "C" fn(Opaque, *const c_char, c_int) -> Opaque,
    pub(super) field_offset: unsafe extern "C" fn(Opaque, *const c_char) -> c_int,
    pub(super) size_of: unsafe extern "C" fn(Opaque) -> c_int,
}

/// Callbacks about the process: its rank, program and memory.
#[repr(C)]
pub(super) struct ProcessCallbacks {
    pub(super) global_rank: unsafe extern "C" fn(Opaque) -> c_int,
    pub(super) image: unsafe extern "C" fn(Opaque) -> Opaque,
    pub(super) fetch: unsafe extern "C" fn(Opaque, c_ulong, c_int, *mut c_void) -> c_int,
    pub(super) to_host: unsafe extern "C" fn(Opaque, *const c_void, *mut c_void, c_int),
}

/// A communicator, in the debug library's layout.
#[repr(C)]
struct Communicator {
    id: c_ulong,
    rank: c_long,
    size: c_long,
    name: [c_char; LINE_CHARS],
}

/// A message, in the debug library's layout.
#[repr(C)]
struct Operation {
    status: c_int,
    desired_rank: c_long,
    desired_world_rank: c_long,
    tag_is_any: c_int,
    desired_tag: c_long,
    desired_bytes: c_long,
    is_system_buffer: c_int,
    buffer: c_ulong,
    actual_rank: c_long,
    actual_world_rank: c_long,
    actual_tag: c_long,
    actual_bytes: c_long,
    texts: [[c_char; LINE_CHARS]; TEXT_LINES],
}

/// A message that the debug library lists, complete or not. The library may be wrong about its completion; the MPI
/// request at [`LibraryMessage::request`] is authoritative.
pub(super) struct LibraryMessage {
    pub(super) is_matched: bool,
    pub(super) is_complete: bool,
    pub(super) peer: Option<i64>,
    pub(super) world_peer: Option<i64>,
    pub(super) tag: Option<i64>,
    pub(super) length_bytes: u64,
    pub(super) buffer: u64,
    /// Address of the message's MPI request; `None` if the debug library does not report it.
    pub(super) request: Option<u64>,
}

type OfImage = unsafe extern "C" fn(Opaque, *const ImageCallbacks) -> c_int;
type OfProcess = unsafe extern "C" fn(Opaque, *const ProcessCallbacks) -> c_int;
type Has = unsafe extern "C" fn(Opaque, *mut *mut c_char) -> c_int;
type Step = unsafe extern "C" fn(Opaque) -> c_int;
type SetUpOperations = unsafe extern "C" fn(Opaque, c_int) -> c_int;
type CommunicatorOf = unsafe extern "C" fn(Opaque, *mut Communicator) -> c_int;
type NextOperation = unsafe extern "C" fn(Opaque, *mut Operation) -> c_int;
type ErrorText = unsafe extern "C" fn(c_int) -> *const c_char;

/// A debug library that is loaded.
pub(super) struct DebugLibrary {
    set_up_image: OfImage,
    image_has_queues: Has,
    set_up_process: OfProcess,
    process_has_queues: Has,
    update_communicators: Step,
    set_up_communicators: Step,
    communicator: CommunicatorOf,
    next_communicator: Step,
    set_up_operations: SetUpOperations,
    next_operation: NextOperation,
    error_text: ErrorText,
}

impl DebugLibrary {
    /// Loads the debug library and passes it the basic callbacks, which must live as long as this process.
    pub(super) fn load(path: &Path, callbacks: &'static BasicCallbacks) -> Result<Self> {
        let handle = load(path)?;
        let version = symbol(handle, c"mqs_version_compatibility")?;
        let width = symbol(handle, c"mqs_dll_taddr_width")?;
        let set_up = symbol(handle, c"mqs_setup_basic_callbacks")?;
        // SAFETY: the interface says that these names are functions with these signatures.
        let (version, width) = unsafe {
            let number = |function| {
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(function)
            };
            (number(version)(), number(width)())
        };
        if version != VERSION || usize::try_from(width) != Ok(size_of::<c_ulong>()) {
            bail!(
                "the interface of the MPI library's debug library has version {version} and addresses of {width} bytes: expected version {VERSION} and {} bytes",
                size_of::<c_ulong>()
            );
        }
        // SAFETY: as above; the library is never unloaded.
        unsafe {
            let set_up: unsafe extern "C" fn(*const BasicCallbacks) = std::mem::transmute(set_up);
            set_up(callbacks);
            Self::of(handle)
        }
    }

    /// Looks up the functions of the interface.
    ///
    /// # Safety
    /// The handle is that of a library with the interface.
    unsafe fn of(handle: *mut c_void) -> Result<Self> {
        // SAFETY: the interface says that these names are functions with these signatures.
        unsafe {
            Ok(Self {
                set_up_image: std::mem::transmute::<Opaque, OfImage>(symbol(
                    handle,
                    c"mqs_setup_image",
                )?),
                image_has_queues: has(handle, c"mqs_image_has_queues")?,
                set_up_process: std::mem::transmute::<Opaque, OfProcess>(symbol(
                    handle,
                    c"mqs_setup_process",
                )?),
                process_has_queues: has(handle, c"mqs_process_has_queues")?,
                update_communicators: step(handle, c"mqs_update_communicator_list")?,
                set_up_communicators: step(handle, c"mqs_setup_communicator_iterator")?,
                communicator: std::mem::transmute::<Opaque, CommunicatorOf>(symbol(
                    handle,
                    c"mqs_get_communicator",
                )?),
                next_communicator: step(handle, c"mqs_next_communicator")?,
                set_up_operations: std::mem::transmute::<Opaque, SetUpOperations>(symbol(
                    handle,
                    c"mqs_setup_operation_iterator",
                )?),
                next_operation: std::mem::transmute::<Opaque, NextOperation>(symbol(
                    handle,
                    c"mqs_next_operation",
                )?),
                error_text: std::mem::transmute::<Opaque, ErrorText>(symbol(
                    handle,
                    c"mqs_dll_error_string",
                )?),
            })
        }
    }

    /// Makes the debug library read the program and the process, which it identifies as `subject` in its callbacks.
    pub(super) fn begin(
        &self,
        subject: Opaque,
        (image, process): (&'static ImageCallbacks, &'static ProcessCallbacks),
    ) -> Result<()> {
        let mut complaint = std::ptr::null_mut();
        // SAFETY: the subject and the callbacks live as long as this process, and the library writes one pointer.
        let looked = unsafe {
            [
                (self.set_up_image)(subject, image),
                (self.image_has_queues)(subject, &raw mut complaint),
            ]
        };
        self.check(looked)?;
        // SAFETY: as above.
        let looked = unsafe {
            [
                (self.set_up_process)(subject, process),
                (self.process_has_queues)(subject, &raw mut complaint),
            ]
        };
        self.check(looked)
    }

    fn check(&self, statuses: [c_int; 2]) -> Result<()> {
        for status in statuses {
            if status != OK {
                // SAFETY: the library gives a static string for any status.
                let text = unsafe { crate::ffi::text((self.error_text)(status)) };
                bail!("{text} ({status})");
            }
        }
        Ok(())
    }

    /// Iterates over the names of the process's communicators; `visit` gets each and returns whether to continue.
    pub(super) fn each_communicator(
        &self,
        subject: Opaque,
        mut visit: impl FnMut(String) -> Result<bool>,
    ) -> Result<()> {
        // SAFETY: the library has begun with this subject.
        let (updated, mut status) = unsafe {
            let updated = (self.update_communicators)(subject);
            (updated, (self.set_up_communicators)(subject))
        };
        self.check([updated, OK])?;
        while status == OK {
            let mut found = Communicator {
                id: 0,
                rank: 0,
                size: 0,
                name: [0; LINE_CHARS],
            };
            // SAFETY: as above; the library fills one structure that lives across the call.
            let known = unsafe { (self.communicator)(subject, &raw mut found) };
            self.check([known, OK])?;
            if !visit(text(&found.name))? {
                return Ok(());
            }
            // SAFETY: as above.
            status = unsafe { (self.next_communicator)(subject) };
        }
        match status {
            END_OF_LIST => Ok(()),
            status => self.check([status, OK]),
        }
    }

    /// Begins to read a queue of the current communicator; false if the debug library has no information on the queue.
    pub(super) fn begin_queue(&self, subject: Opaque, queue: c_int) -> Result<bool> {
        // SAFETY: the library has begun with this subject, and a communicator is looked at.
        match unsafe { (self.set_up_operations)(subject, queue) } {
            NO_INFORMATION => Ok(false),
            status => self.check([status, OK]).map(|()| true),
        }
    }

    /// The next message of the queue; `None` after the last.
    pub(super) fn next_message(&self, subject: Opaque) -> Result<Option<LibraryMessage>> {
        let mut found = Operation {
            status: 0,
            desired_rank: ANY,
            desired_world_rank: ANY,
            tag_is_any: 0,
            desired_tag: 0,
            desired_bytes: 0,
            is_system_buffer: 0,
            buffer: 0,
            actual_rank: ANY,
            actual_world_rank: ANY,
            actual_tag: 0,
            actual_bytes: 0,
            texts: [[0; LINE_CHARS]; TEXT_LINES],
        };
        // SAFETY: a queue is being read; the library fills one structure that lives across the call.
        match unsafe { (self.next_operation)(subject, &raw mut found) } {
            END_OF_LIST => Ok(None),
            OK => Ok(Some(told(&found))),
            status => {
                self.check([status, OK])?;
                Ok(None)
            }
        }
    }
}

/// Looks up a function that tells whether a program or a process has message queues.
///
/// # Safety
/// `handle` must be that of a debug library, and `name` that of a function of type `Has`.
unsafe fn has(handle: *mut c_void, name: &CStr) -> Result<Has> {
    let found = symbol(handle, name)?;
    // SAFETY: the caller says so.
    Ok(unsafe { std::mem::transmute::<*mut c_void, Has>(found) })
}

/// Looks up a function that begins or continues a list.
///
/// # Safety
/// `handle` must be that of a debug library, and `name` that of a function of type `Step`.
unsafe fn step(handle: *mut c_void, name: &CStr) -> Result<Step> {
    let found = symbol(handle, name)?;
    // SAFETY: the caller says so.
    Ok(unsafe { std::mem::transmute::<*mut c_void, Step>(found) })
}

fn told(found: &Operation) -> LibraryMessage {
    let is_matched = found.status == MATCHED;
    // Once a receive from any rank is matched, its actual sender is known.
    let actual = is_matched && rank(found.desired_rank).is_none();
    let (peer, world_peer) = match actual {
        true => (found.actual_rank, found.actual_world_rank),
        false => (found.desired_rank, found.desired_world_rank),
    };
    let tag = match (found.tag_is_any != 0, is_matched) {
        (false, _) => Some(of_int(found.desired_tag)),
        (true, true) => Some(of_int(found.actual_tag)),
        (true, false) => None,
    };
    let request = text(&found.texts[0]);
    let request = request.split_once("0x").map(|(_, digits)| digits);
    LibraryMessage {
        is_matched,
        is_complete: found.status == COMPLETE,
        peer: rank(peer),
        world_peer: rank(world_peer),
        tag,
        length_bytes: u64::try_from(found.desired_bytes).unwrap_or(0),
        buffer: found.buffer,
        request: request.and_then(|digits| u64::from_str_radix(digits, 16).ok()),
    }
}

/// A rank; `None` for any rank, and for one that is not known.
fn rank(number: c_long) -> Option<i64> {
    Some(of_int(number)).filter(|rank| *rank >= 0)
}

/// The number in the lower half of a `long`. Libraries read an `int` of the process into that half, and leave the upper
/// one as it is.
fn of_int(number: c_long) -> i64 {
    let [a, b, c, d, ..] = number.to_le_bytes();
    i32::from_le_bytes([a, b, c, d]).into()
}

/// The text in a character array, which may lack the terminating null.
fn text(chars: &[c_char]) -> String {
    let bytes = chars.iter().map(|char| char.to_ne_bytes()[0]);
    let bytes: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).replace(|it: char| it.is_control(), " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_queue_ranks_are_converted_and_texts_bounded() {
        assert_eq!(rank(5), Some(5));
        assert_eq!(rank(0xffff_ffff), None);
        assert_eq!(rank(-1), None);
        assert_eq!(of_int(0x7fff_ffff), 0x7fff_ffff);
        assert_eq!(text(&[65; LINE_CHARS]), "A".repeat(LINE_CHARS));
        assert_eq!(text(&[65, 10, 66, 0, 67]), "A B");
    }
}
