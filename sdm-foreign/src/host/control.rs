//! libpmix's callbacks for tools that monitor and control processes, and for events between processes and tools.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};

use nix::libc::{SIGKILL, SIGTERM};
use sdm_foreign::peer_messages::{PeerEvent, PublishedValue};

use super::request::{
    Done, GroupCall, InfoCallback, OpCallback, Participants, Request, Waking, hand_over,
};
use super::upcalls::{done, is_set, process, slice};
use super::value;
use crate::ffi::{ByteObject, Info, Proc, TYPE_BYTE_OBJECT, text};

const SIGNAL: &CStr = c"pmix.jctrl.sig";
const KILL: &CStr = c"pmix.jctrl.kill";
const TERMINATE: &CStr = c"pmix.jctrl.term";
const ENDPOINTS: &CStr = c"pmix.grp.endpt";
const ASSIGN_CONTEXT: &CStr = c"pmix.grp.actxid";
/// Group operation of libpmix's callback: make a group. Any other value is its destruction.
const CONSTRUCT: c_int = 0;
/// Event range of PMIx: only the processes of this node.
const RANGE_LOCAL: u8 = 2;
/// Event range of PMIx: only the process itself.
const RANGE_PROCESS: u8 = 7;

/// A tool requests the output of processes from now on. All output is delivered; libpmix filters it by its own list.
/// The call is answered at once: libpmix (4.2, 5.0) frees the data of its callback when this function returns, whatever
/// the result.
pub(super) unsafe extern "C" fn on_pull(
    _: *const Proc,
    _: usize,
    _: *const Info,
    _: usize,
    _: u16,
    _: Option<OpCallback>,
    _: *mut c_void,
) -> c_int {
    hand_over(Request::Pull);
    OPERATION_SUCCEEDED
}

pub(super) unsafe extern "C" fn on_push(
    _: *const Proc,
    targets: *const Proc,
    count: usize,
    _: *const Info,
    _: usize,
    bytes: *const ByteObject,
    callback: Option<OpCallback>,
    data: *mut c_void,
) -> c_int {
    // SAFETY: as the library's interface says.
    let among = unsafe { Participants::of(targets, count) };
    // SAFETY: null, or an object with that many bytes.
    let bytes = unsafe { bytes.as_ref() }.map(|it| unsafe { bytes_of(*it) });
    let done = done(callback, data);
    hand_over(Request::Push {
        among,
        bytes: bytes.unwrap_or_default(),
        done,
    })
}

pub(super) unsafe extern "C" fn on_control(
    _: *const Proc,
    targets: *const Proc,
    count: usize,
    infos: *const Info,
    info_count: usize,
    callback: Option<InfoCallback>,
    data: *mut c_void,
) -> c_int {
    // SAFETY: as the library's interface says.
    let (among, infos) = unsafe { (Participants::of(targets, count), slice(infos, info_count)) };
    let signal = infos.iter().find_map(|info| {
        if info.is(SIGNAL) {
            // SAFETY: the standard says that it is a number.
            return i32::try_from(unsafe { info.value.data.uint32 }).ok();
        }
        let ends = [(KILL, SIGKILL), (TERMINATE, SIGTERM)].into_iter();
        let mut ends = ends.filter(|(key, _)| info.is(key) && is_set(&info.value));
        ends.next().map(|(_, signal)| signal)
    });
    let done = Done { callback, data };
    hand_over(Request::Control {
        among,
        signal,
        done,
    })
}

/// A process or a tool of this node reports an event; libpmix has informed the processes of this node. The call is
/// answered at once. When libpmix 4.2 reports for all ranks of the node that they wait for a debugger, it frees the
/// callback's data when this function returns.
pub(super) unsafe extern "C" fn on_notify(
    code: c_int,
    source: *const Proc,
    range: u8,
    infos: *const Info,
    count: usize,
    _: Option<OpCallback>,
    _: *mut c_void,
) -> c_int {
    if [RANGE_LOCAL, RANGE_PROCESS].contains(&range) {
        return OPERATION_SUCCEEDED;
    }
    // SAFETY: as the library's interface says.
    let (source, infos) = unsafe { (process(source), slice(infos, count)) };
    let known = infos.iter().filter_map(|info| {
        // SAFETY: a key always ends; a value of the library's.
        unsafe { Some((text(info.key.as_ptr()), value::copy(&info.value)?)) }
    });
    let told = PeerEvent {
        code,
        namespace: source.name(),
        rank: source.rank,
        range,
        infos: known.collect::<Vec<(String, PublishedValue)>>(),
    };
    hand_over(Request::Notify(told));
    OPERATION_SUCCEEDED
}

/// Processes make or destroy a group. A destruction is answered at once: all members on this node already know of it,
/// and no other node is involved. OpenPMIx 5.0 reads freed memory if that answer comes later.
pub(super) unsafe extern "C" fn on_group(
    operation: c_int,
    _: *const c_char,
    processes: *const Proc,
    count: usize,
    infos: *const Info,
    info_count: usize,
    callback: Option<InfoCallback>,
    data: *mut c_void,
) -> c_int {
    if operation != CONSTRUCT {
        return OPERATION_SUCCEEDED;
    }
    // SAFETY: as the library's interface says.
    let (members, infos) = unsafe { (slice(processes, count), slice(infos, info_count)) };
    let endpoints = infos.iter().find(|it| it.is(ENDPOINTS));
    let endpoints = endpoints.filter(|it| it.value.kind == TYPE_BYTE_OBJECT);
    // SAFETY: the type says what it is.
    let endpoints = endpoints.map(|it| unsafe { bytes_of(it.value.data.bytes) });
    let assigns = infos
        .iter()
        .any(|it| it.is(ASSIGN_CONTEXT) && is_set(&it.value));
    let done = Done { callback, data };
    hand_over(Request::Group(GroupCall {
        members: members.to_vec(),
        // SAFETY: as above.
        among: unsafe { Participants::of(processes, count) },
        endpoints: endpoints.unwrap_or_default(),
        assigns,
        done,
    }))
}

/// A copy of the bytes; empty for null.
///
/// # Safety
/// `object` must have as many bytes as its size says, or null.
unsafe fn bytes_of(object: ByteObject) -> Vec<u8> {
    // SAFETY: the caller says so.
    unsafe { slice(object.bytes.cast::<u8>(), object.size) }.to_vec()
}

/// Completion callback of an event: frees the [`Waking`] that was given to libpmix.
pub(crate) unsafe extern "C" fn on_told(_: c_int, data: *mut c_void) {
    // SAFETY: it is what `Waking::into_data` made, which the library gives back once.
    drop(unsafe { Box::from_raw(data.cast::<Waking>()) });
}

const OPERATION_SUCCEEDED: c_int = -157;
