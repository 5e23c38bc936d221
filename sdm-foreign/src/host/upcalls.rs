//! The callbacks of the PMIx server library, each of which passes on a request, and their table.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};

use nix::libc;

use super::app::on_spawn;
use super::barrier::Purpose;
use super::control::{on_control, on_group, on_notify, on_pull, on_push};
use super::query::on_query;
use super::request::{
    Done, JobParticipants, LogTexts, LookupCallback, ModexCallback, OpCallback, Participants,
    Request, ToolCallback, hand_over,
};
use super::value;
use crate::ffi::{Info, NAMESPACE, Proc, TYPE_BOOL, TYPE_RANK, TYPE_STRING, Value, text};

/// Status of PMIx: the operation is done, and no callback follows.
const OPERATION_SUCCEEDED: c_int = -157;
const WAIT: &CStr = c"pmix.wait";
pub(super) const RANK: &CStr = c"pmix.rank";
/// Rank value of PMIx that stands for all ranks of a job.
pub(super) const RANK_WILDCARD: u32 = u32::MAX - 1;
/// Prefix of keys that the standard reserves and no program may publish.
const RESERVED: &str = "pmix.";
const LOG_STDOUT: &CStr = c"pmix.log.stdout";
const LOG_STDERR: &CStr = c"pmix.log.stderr";
/// Channels that this host does not have: mail, a store of data, the record of a job, and messages for others. The log of
/// the system is libpmix's own.
const NO_CHANNELS: [&CStr; 5] = [
    c"pmix.log.email",
    c"pmix.log.gstore",
    c"pmix.log.gstr",
    c"pmix.log.jrec",
    c"pmix.log.msg",
];
/// Maximum number of keys, values or processes of one call that are accepted.
const ITEMS_MAX: usize = 1 << 20;

impl Participants {
    /// Groups consecutive processes of a call that are of one job.
    pub(super) unsafe fn of(processes: *const Proc, count: usize) -> Self {
        // SAFETY: the caller says so.
        let processes = unsafe { slice(processes, count) };
        let mut parts: Vec<JobParticipants> = Vec::new();
        for of_one in processes.chunk_by(|a, b| a.namespace == b.namespace) {
            parts.push(JobParticipants {
                namespace: of_one[0].name(),
                ranks: of_one.iter().map(|it| it.rank).collect(),
                is_all: of_one.iter().any(|it| it.rank == RANK_WILDCARD),
            });
        }
        Self { parts }
    }
}

/// Items of a call as a slice: processes, infos or bytes. The slice is empty for null, and for more than [`ITEMS_MAX`]
/// items.
///
/// # Safety
/// `start` must point to `count` items, or be null.
pub(super) unsafe fn slice<'a, T>(start: *const T, count: usize) -> &'a [T] {
    if start.is_null() || count > ITEMS_MAX {
        return &[];
    }
    // SAFETY: the caller says so.
    unsafe { std::slice::from_raw_parts(start, count) }
}

/// A copy of a process; rank 0 without a namespace for null.
///
/// # Safety
/// `process` must be null or point to a process.
pub(super) unsafe fn process(process: *const Proc) -> Proc {
    if process.is_null() {
        return Proc::new("", 0);
    }
    // SAFETY: the caller says so.
    unsafe { *process }
}

/// The keys of an array, at most [`ITEMS_MAX`].
///
/// # Safety
/// `keys` must be null or a null-terminated array of strings.
pub(super) unsafe fn keys(mut keys: *const *const c_char) -> Vec<String> {
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

pub(super) fn done(callback: Option<OpCallback>, data: *mut c_void) -> Done<OpCallback> {
    Done { callback, data }
}

/// True for a flag that is set, and for any value that is not a flag.
pub(super) fn is_set(value: &Value) -> bool {
    // SAFETY: the type says what it is.
    value.kind != TYPE_BOOL || unsafe { value.data.flag } != 0
}

unsafe extern "C" fn on_finalized(
    who: *const Proc,
    _: *mut c_void,
    callback: Option<OpCallback>,
    data: *mut c_void,
) -> c_int {
    // SAFETY: as the library's interface says.
    let process = unsafe { process(who) };
    let done = done(callback, data);
    hand_over(Request::Finalized { process, done })
}

unsafe extern "C" fn on_client2(
    who: *const Proc,
    _: *mut c_void,
    _: *const Info,
    _: usize,
    callback: Option<OpCallback>,
    data: *mut c_void,
) -> c_int {
    // SAFETY: as the library's interface says.
    let process = unsafe { process(who) };
    let done = done(callback, data);
    hand_over(Request::Come { process, done })
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
    processes: *const Proc,
    process_count: usize,
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
    // SAFETY: as the library's interface says.
    let among = unsafe { Participants::of(processes, process_count) };
    hand_over(Request::Fence {
        among,
        bytes: copy,
        done,
    })
}

unsafe extern "C" fn on_modex(
    who: *const Proc,
    _: *const Info,
    _: usize,
    callback: Option<ModexCallback>,
    data: *mut c_void,
) -> c_int {
    // SAFETY: as the library's interface says.
    let process = unsafe { process(who) };
    let done = Done { callback, data };
    hand_over(Request::Modex { process, done })
}

/// Callback with the data that a process of this node has put; `data` is made by [`asked_for`].
pub(crate) unsafe extern "C" fn on_put(
    status: c_int,
    bytes: *mut c_char,
    count: usize,
    data: *mut c_void,
) {
    // SAFETY: it is what `asked_for` made, which the library gives back once.
    let (to, number) = *unsafe { Box::from_raw(data.cast::<(u32, u64)>()) };
    let bytes = match bytes.is_null() {
        true => Vec::new(),
        // SAFETY: that many bytes, which stay the library's.
        false => unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), count) }.to_vec(),
    };
    hand_over(Request::Put {
        to,
        number,
        status,
        bytes,
    });
}

/// Callback data of [`on_put`]: the rank that requests the data, and the number of its message.
pub(crate) fn asked_for(to: u32, number: u64) -> *mut c_void {
    Box::into_raw(Box::new((to, number))).cast()
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
    // Directives are among the values, and differ only in the beginning of their names.
    let values = infos.iter().filter_map(|info| {
        // SAFETY: a key always ends.
        let key = unsafe { text(info.key.as_ptr()) };
        match key.starts_with(RESERVED) {
            true => None,
            // SAFETY: a value of the library's.
            false => Some((key, unsafe { value::copy(&info.value) }?)),
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
    processes: *const Proc,
    count: usize,
    _: *const Info,
    _: usize,
    callback: Option<OpCallback>,
    data: *mut c_void,
) -> c_int {
    // SAFETY: as the library's interface says.
    unsafe { meet(Purpose::Connect, processes, count, done(callback, data)) }
}

unsafe extern "C" fn on_disconnect(
    processes: *const Proc,
    count: usize,
    _: *const Info,
    _: usize,
    callback: Option<OpCallback>,
    data: *mut c_void,
) -> c_int {
    // SAFETY: as the library's interface says.
    unsafe { meet(Purpose::Disconnect, processes, count, done(callback, data)) }
}

/// Passes on that processes meet for this purpose; returns the status for libpmix.
///
/// # Safety
/// `processes` must point to `count` processes, or be null.
unsafe fn meet(
    purpose: Purpose,
    processes: *const Proc,
    count: usize,
    done: Done<OpCallback>,
) -> c_int {
    // SAFETY: the caller says so.
    let among = unsafe { Participants::of(processes, count) };
    hand_over(Request::Meet {
        among,
        purpose,
        done,
    })
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

/// Accepts every tool: only processes of this user and of root can connect. A refusal would kill OpenPMIx 4.2 and 5.0
/// (as of 5.0.11), and so would the lack of this function.
unsafe extern "C" fn on_tool(
    infos: *const Info,
    count: usize,
    callback: Option<ToolCallback>,
    data: *mut c_void,
) {
    // SAFETY: as the library's interface says.
    let infos = unsafe { slice(infos, count) };
    let mut name = None;
    let mut rank = 0;
    for info in infos {
        // SAFETY: the type says what it is; a string of the library's ends.
        unsafe {
            if info.is(NAMESPACE) && info.value.kind == TYPE_STRING {
                name = Some(text(info.value.data.string));
            } else if info.is(RANK) && info.value.kind == TYPE_RANK {
                rank = info.value.data.uint32;
            }
        }
    }
    let name = name.filter(|it| !it.is_empty());
    let name = name.map(|it| Proc::new(&it, rank));
    let done = Done { callback, data };
    hand_over(Request::Tool { name, done });
}

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
    let mut texts = LogTexts::default();
    for info in infos {
        texts.is_refused |= NO_CHANNELS.iter().any(|key| info.is(key));
        let channel = match () {
            () if info.is(LOG_STDOUT) => &mut texts.out,
            () if info.is(LOG_STDERR) => &mut texts.err,
            () => continue,
        };
        // SAFETY: the type says that it is a string.
        let string = unsafe { info.value.data.string };
        if info.value.kind == TYPE_STRING && !string.is_null() {
            // SAFETY: a string that ends.
            channel.extend_from_slice(unsafe { CStr::from_ptr(string) }.to_bytes());
        }
    }
    let done = done(callback, data);
    hand_over(Request::Log {
        process,
        texts,
        done,
    });
}

/// The functions of programs and tools that the functions of [`Module`] serve.
pub(super) const FUNCTIONS: [&str; 15] = [
    "PMIx_Abort",
    "PMIx_Connect",
    "PMIx_Disconnect",
    "PMIx_Fence",
    "PMIx_Get",
    "PMIx_Group_construct",
    "PMIx_IOF_pull",
    "PMIx_IOF_push",
    "PMIx_Job_control",
    "PMIx_Log",
    "PMIx_Lookup",
    "PMIx_Notify_event",
    "PMIx_Publish",
    "PMIx_Query_info",
    "PMIx_Spawn",
];

/// Size of the function table. Each version of libpmix reads its own number of entries; the zero entries are absent
/// functions.
const SLOTS: usize = 64;

/// libpmix's function table. Empty entries are functions that the host does not offer.
#[repr(C)]
pub(crate) struct Module([*const c_void; SLOTS]);

impl Module {
    pub(crate) fn new() -> Self {
        let mut slots = [std::ptr::null(); SLOTS];
        // Not the first one, which the last one replaces since version 4.
        slots[1] = on_finalized as *const c_void;
        slots[2] = on_abort as *const c_void;
        slots[3] = on_fence as *const c_void;
        slots[4] = on_modex as *const c_void;
        slots[5] = on_publish as *const c_void;
        slots[6] = on_lookup as *const c_void;
        slots[7] = on_unpublish as *const c_void;
        slots[8] = on_spawn as *const c_void;
        slots[9] = on_connect as *const c_void;
        slots[10] = on_disconnect as *const c_void;
        slots[11] = on_register_events as *const c_void;
        slots[12] = on_deregister_events as *const c_void;
        slots[14] = on_notify as *const c_void;
        slots[15] = on_query as *const c_void;
        slots[16] = on_tool as *const c_void;
        slots[17] = on_log as *const c_void;
        slots[19] = on_control as *const c_void;
        slots[23] = on_pull as *const c_void;
        slots[24] = on_push as *const c_void;
        slots[25] = on_group as *const c_void;
        slots[27] = on_client2 as *const c_void;
        Self(slots)
    }
}
