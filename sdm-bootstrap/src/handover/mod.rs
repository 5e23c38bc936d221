//! The session's name and key, which a process of the session receives at its start.
//!
//! Both come in the environment, in a file that no other user may read, through a socket of the front-end, or on
//! standard input; never on a command line. They are removed from the environment before any other program is
//! started, so that no program inherits them.

mod source;

pub use source::{HandoverError, SOCKET_SCHEME};

use std::ffi::OsString;
use std::path::Path;

use sdm_core::ids::SessionId;
use sdm_core::link::LinkConfig;
use sdm_core::secure::SessionKey;
use zeroize::Zeroize;
use zeroize::Zeroizing;

/// The environment variable with the session's name.
pub const SESSION_VARIABLE: &str = "SDM_SESSION";
/// The environment variable with the key, in hexadecimal.
pub const KEY_VARIABLE: &str = "SDM_KEY";
/// The variable with the log filter, in the syntax of `tracing`: `info`, `sdm_core=debug`.
pub const LOG_VARIABLE: &str = "SDM_LOG";
/// The environment variable with a server's own number, if `sdm` itself starts the server.
pub const SERVER_VARIABLE: &str = "SDM_SERVER_ID";
/// The environment variable with the number of servers.
pub const SERVER_COUNT_VARIABLE: &str = "SDM_SERVER_COUNT";
/// The environment variable with a server's number among those of its host.
pub const LOCAL_INDEX_VARIABLE: &str = "SDM_LOCAL_INDEX";
/// The variable that selects whether gdbs get the library that completes their register writes: `auto`, `always` or
/// `never`.
pub const XSTATE_VARIABLE: &str = "SDM_XSTATE";
/// The variable by which the processes are found that a launcher has started on this host.
pub const LAUNCH_VARIABLE: &str = "SDM_LAUNCH";
/// The environment variables that SDM hands from process to process, which no program may see.
const OURS: [&str; 8] = [
    SESSION_VARIABLE,
    KEY_VARIABLE,
    LOG_VARIABLE,
    SERVER_VARIABLE,
    SERVER_COUNT_VARIABLE,
    LOCAL_INDEX_VARIABLE,
    XSTATE_VARIABLE,
    LAUNCH_VARIABLE,
];
/// Takes the session's name and key from the environment, and removes all variables of SDM there. With a `source`, name
/// and key come from it: a file of `NAME=VALUE` lines, `-` for standard input, `unix://PATH` for a socket that sends
/// them.
///
/// Call it first in `main`, while the process has one thread.
///
/// # Errors
/// A variable is missing or malformed; all are removed even then. A file cannot be read, or is not private; a socket
/// belongs to another user.
pub fn take(source: Option<&Path>) -> Result<LinkConfig, HandoverError> {
    let lookup = |name: &str| std::env::var_os(name).map(OsString::into_string);
    let [session, key] = [SESSION_VARIABLE, KEY_VARIABLE].map(lookup);
    sys::wipe(KEY_VARIABLE);
    sys::remove_variables(&OURS);
    let Some(source) = source else {
        return config(session, key);
    };
    let text = source::read(source)?;
    let value = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        let (_, value) = lines.find(|(line, _)| *line == name)?;
        Some(Ok(value.trim_end().to_owned()))
    };
    config(value(SESSION_VARIABLE), value(KEY_VARIABLE))
}

/// The text that [`take`] reads from a file. The caller protects the file from other users.
#[must_use]
pub fn to_text(session: SessionId, key: &SessionKey) -> Zeroizing<String> {
    let key = key.to_hex();
    let key = key.as_str();
    Zeroizing::new(format!(
        "{SESSION_VARIABLE}={session}\n{KEY_VARIABLE}={key}\n"
    ))
}

/// The value of an environment variable. `None` if the variable is not set; an error with the raw value if that is not
/// UTF-8.
type Text = Option<Result<String, OsString>>;

fn config(session: Text, key: Text) -> Result<LinkConfig, HandoverError> {
    let session = session.ok_or(HandoverError::Missing(SESSION_VARIABLE))?;
    let session = session.ok().and_then(|text| text.parse::<SessionId>().ok());
    let session = session.ok_or(HandoverError::Bad(SESSION_VARIABLE))?;
    let key = key.ok_or(HandoverError::Missing(KEY_VARIABLE))?;
    let mut text = key.map_err(|_| HandoverError::Bad(KEY_VARIABLE))?;
    let key = text.parse::<SessionKey>();
    text.zeroize();
    Ok(LinkConfig::new(
        key.map_err(|_| HandoverError::Bad(KEY_VARIABLE))?,
        session,
    ))
}

#[allow(unsafe_code)]
mod sys {
    use std::ffi::{CStr, CString, c_char};

    use zeroize::Zeroize;

    unsafe extern "C" {
        fn getenv(name: *const c_char) -> *mut c_char;
    }

    /// Overwrites a variable's initial value, so that it cannot be read in `/proc` any more. The variable has no usable
    /// value after that.
    pub(super) fn wipe(name: &str) {
        let name = CString::new(name).expect("no name of ours holds a zero");
        // SAFETY: `name` is null-terminated and lives across the call. This is called at the start of `main`, before
        // any other thread exists that could change the environment.
        let value = unsafe { getenv(name.as_ptr()) };
        if value.is_null() {
            return;
        }
        // SAFETY: getenv returns a null-terminated string in writable memory of this process. No other reference to
        // it is used, as there is no other thread.
        let bytes = unsafe {
            let len = CStr::from_ptr(value).count_bytes();
            std::slice::from_raw_parts_mut(value.cast::<u8>(), len)
        };
        bytes.zeroize();
    }

    /// Removes these variables from the environment of this process.
    pub(super) fn remove_variables(names: &[&str]) {
        for name in names {
            // SAFETY: this is called at the start of `main`, before any other thread exists that could read the
            // environment.
            unsafe { std::env::remove_var(name) };
        }
    }
}
