//! The call by which a process starts programs (`PMIx_Spawn`, which `MPI_Comm_spawn` makes).
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};

use sdm_pmix::HostProgram;

use super::request::{Done, Request, SpawnCallback, hand_over};
use super::upcalls::{is_set, process, slice};
use crate::ffi::{App, Info, Proc, TYPE_STRING};

/// The directory of a program, as directives have it.
const DIRECTORY: &CStr = c"pmix.wdir";
/// The processes are to wait for a debugger.
const HOLD: &CStr = c"pmix.dbg.init";
/// The most words of a command line or of an environment that are believed.
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
    // SAFETY: the same.
    let programs = apps.iter().map(|app| unsafe { program(app, infos) });
    let programs = programs.collect();
    let is_held = infos.iter().any(|it| it.is(HOLD) && is_set(&it.value));
    let done = Done { callback, data };
    hand_over(Request::Spawn {
        by,
        programs,
        is_held,
        done,
    })
}

/// # Safety
/// An app and infos of the library's.
unsafe fn program(app: &App, infos: &[Info]) -> HostProgram {
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
    HostProgram {
        program: command.or(first).unwrap_or_default(),
        arguments: arguments.collect(),
        environment,
        directory,
        count: u32::try_from(app.count).unwrap_or(0).max(1),
    }
}

/// # Safety
/// A string that ends, or null.
unsafe fn bytes(string: *const c_char) -> Option<Vec<u8>> {
    if string.is_null() {
        return None;
    }
    // SAFETY: the caller says so.
    let bytes = unsafe { CStr::from_ptr(string) }.to_bytes();
    (!bytes.is_empty()).then(|| bytes.to_vec())
}

/// # Safety
/// An array of strings that ends with null, or null.
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
