//! The call by which a process starts programs (`PMIx_Spawn`, which `MPI_Comm_spawn` makes).
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};

use sdm_foreign::HostProgram;

use super::placement::{Placement, SpawnSpec};
use super::request::{Done, Request, SpawnCallback, hand_over};
use super::upcalls::{is_set, process, slice};
use crate::ffi::{App, DEBUG_TARGET, Info, Proc, TYPE_PROC, TYPE_STRING};

/// Attribute with a program's working directory.
const DIRECTORY: &CStr = c"pmix.wdir";
/// Attribute that makes the processes wait in `PMIx_Init` for a debugger.
const HOLD: &CStr = c"pmix.dbg.init";
/// Attribute that marks the processes as a debugger's daemons.
const DAEMONS: &CStr = c"pmix.debugger";
/// Attribute with the number of debugger daemons on each node of the debugged processes.
const DAEMONS_PER_NODE: &CStr = c"pmix.dbg.dpnd";
/// Attribute with the host names, separated by commas.
const HOSTS: &CStr = c"pmix.host";
/// Attribute with the placement of processes: `ppr:N:node` is N on each node.
const MAP_BY: &CStr = c"pmix.mapby";
/// Attribute with the number of processes on each node.
const PER_NODE: &CStr = c"pmix.ppr";
/// The attributes of a spawn that have an effect here.
pub(super) const SPAWN_ATTRIBUTES: [&CStr; 8] = [
    DIRECTORY,
    HOSTS,
    MAP_BY,
    PER_NODE,
    HOLD,
    DEBUG_TARGET,
    DAEMONS,
    DAEMONS_PER_NODE,
];
/// The attributes for debuggers that have an effect here.
pub(super) const DEBUG_ATTRIBUTES: [&CStr; 4] = [HOLD, DEBUG_TARGET, DAEMONS, DAEMONS_PER_NODE];
/// Maximum accepted number of words in a command line or an environment.
const WORDS_MAX: usize = 1 << 16;

pub(super) unsafe extern "C" fn on_spawn(
    who: *const Proc,
    infos: *const Info,
    info_count: usize,
    apps: *const App,
    app_count: usize,
    callback: Option<SpawnCallback>,
    data: *mut c_void,
) -> c_int {
    // SAFETY: as the library's interface says; all of it lives until the callback is called.
    let (by, infos, apps) = unsafe {
        (
            process(who),
            slice(infos, info_count),
            slice(apps, app_count),
        )
    };
    let is_on = |key| infos.iter().any(|it| it.is(key) && is_set(&it.value));
    let is_debugger = is_on(DAEMONS);
    // SAFETY: the same.
    let programs = apps
        .iter()
        .map(|app| unsafe { program(app, infos, is_debugger) });
    let wish = SpawnSpec {
        programs: programs.collect(),
        is_held: is_on(HOLD),
        // SAFETY: the same.
        target: unsafe { target(apps, infos) },
    };
    let done = Done { callback, data };
    hand_over(Request::Spawn { by, wish, done })
}

/// The processes that a spawn request names as those to debug: a namespace and a rank; `None` if it names none.
///
/// # Safety
/// `apps` and `infos` must come from libpmix.
unsafe fn target(apps: &[App], infos: &[Info]) -> Option<(String, u32)> {
    // SAFETY: the caller says so.
    let own = apps
        .iter()
        .flat_map(|app| unsafe { slice(app.infos, app.info_count) });
    let mut all = infos.iter().chain(own);
    let named = all.find(|it| it.is(DEBUG_TARGET) && it.value.kind == TYPE_PROC)?;
    // SAFETY: the type says that it is a process, or null.
    let process = unsafe { named.value.data.process.as_ref() }?;
    Some((process.name(), process.rank))
}

/// The requested placement of a program's processes.
///
/// # Safety
/// `infos` must come from libpmix. The program's own come first, then those of the whole job.
unsafe fn wanted<'a>(
    infos: impl Iterator<Item = &'a Info> + Clone,
    is_debugger: bool,
) -> Placement {
    let text = |key| {
        let mut infos = infos.clone();
        let found = infos.find(|it| it.is(key) && it.value.kind == TYPE_STRING)?;
        // SAFETY: the type says that it is a string; strings end.
        let bytes = unsafe { bytes(found.value.data.string) }?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let hosts = text(HOSTS).unwrap_or_default();
    let hosts = hosts.split(',').filter(|it| !it.is_empty());
    let mapped = text(MAP_BY).and_then(|it| {
        let words = it.to_lowercase();
        let (count, unit) = words.strip_prefix("ppr:")?.split_once(':')?;
        unit.starts_with("node").then(|| count.parse().ok())?
    });
    let per_node = text(PER_NODE).and_then(|it| it.split(':').next()?.parse().ok());
    let mut numbers = infos.clone();
    let daemons = numbers.find(|it| it.is(DAEMONS_PER_NODE));
    // SAFETY: the standard says that it is a number of two bytes.
    let daemons = daemons.map(|it| unsafe { it.value.data.uint32 } & 0xffff);
    Placement {
        hosts: hosts.map(ToOwned::to_owned).collect(),
        per_node: mapped.or(per_node).or(daemons).or(is_debugger.then_some(1)),
    }
}

/// Converts a program of a spawn request, with the placement of its processes.
///
/// # Safety
/// `app` and `infos` must come from libpmix.
unsafe fn program(app: &App, infos: &[Info], is_debugger: bool) -> (HostProgram, Placement) {
    // SAFETY: the caller says so.
    let (arguments, own, environment) = unsafe {
        (
            words(app.arguments),
            slice(app.infos, app.info_count),
            words(app.environment),
        )
    };
    let mut arguments = arguments.into_iter();
    let first = arguments.next();
    // SAFETY: a string that ends, or null.
    let command = unsafe { bytes(app.command) };
    let named = own.iter().chain(infos).find(|it| it.is(DIRECTORY));
    let named = named.filter(|it| it.value.kind == TYPE_STRING);
    // SAFETY: the type says that it is a string; strings end.
    let directory = unsafe {
        let named = named.map(|it| it.value.data.string);
        named.and_then(|it| bytes(it)).or(bytes(app.directory))
    };
    // SAFETY: the caller says so. Debugger daemons whose number is said are that many.
    let wanted = unsafe { wanted(own.iter().chain(infos), is_debugger && app.count <= 0) };
    let program = HostProgram {
        program: command.or(first).unwrap_or_default(),
        arguments: arguments.collect(),
        environment,
        directory,
        count: u32::try_from(app.count).unwrap_or(0).max(1),
    };
    (program, wanted)
}

/// The bytes of a string; `None` if it is null or empty.
///
/// # Safety
/// `string` must be null or a null-terminated string.
unsafe fn bytes(string: *const c_char) -> Option<Vec<u8>> {
    if string.is_null() {
        return None;
    }
    // SAFETY: the caller says so.
    let bytes = unsafe { CStr::from_ptr(string) }.to_bytes();
    (!bytes.is_empty()).then(|| bytes.to_vec())
}

/// The strings of an array, at most [`WORDS_MAX`].
///
/// # Safety
/// `array` must be null or a null-terminated array of strings.
unsafe fn words(mut array: *const *const c_char) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    while !array.is_null() && found.len() < WORDS_MAX {
        // SAFETY: not yet behind its end.
        let word = unsafe { *array };
        if word.is_null() {
            break;
        }
        // SAFETY: a string that ends.
        found.push(unsafe { CStr::from_ptr(word) }.to_bytes().to_vec());
        // SAFETY: the null that ends it is not passed.
        array = unsafe { array.add(1) };
    }
    found
}
