//! What a process of the session is handed when it is started: the session's name and its key.
//!
//! Both come in the environment, in a file that nobody else may read, or on standard input; never on a
//! command line. They are taken out of the environment before anything else is started, so that no
//! program inherits them.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use zeroize::{Zeroize, Zeroizing};

use crate::ids::SessionId;
use crate::link::LinkConfig;
use crate::secure::SessionKey;

/// The variable that names the session.
pub const SESSION_VARIABLE: &str = "SDM_SESSION";
/// The variable that holds the key, in hexadecimal.
pub const KEY_VARIABLE: &str = "SDM_KEY";
/// The variable that says what is logged, in the words of `tracing`: `info`, `sdm_core=debug`.
pub const LOG_VARIABLE: &str = "SDM_LOG";
/// The variable that holds a server's own number where `sdm` itself starts it.
pub const SERVER_VARIABLE: &str = "SDM_SERVER_ID";
/// The variable that holds how many servers there are.
pub const SERVER_COUNT_VARIABLE: &str = "SDM_SERVER_COUNT";
/// The variable that holds a server's number among those of its host.
pub const LOCAL_INDEX_VARIABLE: &str = "SDM_LOCAL_INDEX";
/// All variables of ours: no program is to see them.
const OURS: [&str; 6] = [
    SESSION_VARIABLE,
    KEY_VARIABLE,
    LOG_VARIABLE,
    SERVER_VARIABLE,
    SERVER_COUNT_VARIABLE,
    LOCAL_INDEX_VARIABLE,
];
/// The longest text that is handed over in a file, in bytes.
const TEXT_BYTES_MAX: u64 = 4096;

/// What could not be taken over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandoverError {
    /// It is not there.
    #[error("{0} is not set: this program is started by sdm; by hand it wants --handover")]
    Missing(&'static str),
    /// It is there, but it is not one. The value is not repeated: it may be a key.
    #[error("{0} is set to something else than what sdm hands over")]
    Bad(&'static str),
    /// The file that was to hold it.
    #[error("handover from {name}: {what}")]
    Source {
        /// The file.
        name: String,
        /// What is wrong with it.
        what: String,
    },
}

/// Takes the session's name and key out of the environment, and every other variable of ours; or,
/// where a `source` is given, out of that file: `NAME=VALUE` lines, `-` for standard input.
///
/// Call it first thing in `main`, while the process has one thread.
///
/// # Errors
/// A variable that is missing or is not what it should be; they are all removed even then. A file
/// that cannot be read, or that others may read.
pub fn take(source: Option<&Path>) -> Result<LinkConfig, HandoverError> {
    let lookup = |name: &str| std::env::var_os(name).map(OsString::into_string);
    let [session, key] = [SESSION_VARIABLE, KEY_VARIABLE].map(lookup);
    sys::wipe(KEY_VARIABLE);
    sys::remove_variables(&OURS);
    let Some(source) = source else {
        return config(session, key);
    };
    let mut text = read(source)?;
    let value = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        let (_, value) = lines.find(|(line, _)| *line == name)?;
        Some(Ok(value.trim_end().to_owned()))
    };
    let config = config(value(SESSION_VARIABLE), value(KEY_VARIABLE));
    text.zeroize();
    config
}

/// What [`take`] reads from a file. The caller sees to it that nobody else reads it.
#[must_use]
pub fn to_text(session: SessionId, key: &SessionKey) -> Zeroizing<String> {
    let key = key.to_hex();
    let key = key.as_str();
    Zeroizing::new(format!(
        "{SESSION_VARIABLE}={session}\n{KEY_VARIABLE}={key}\n"
    ))
}

/// A value, or text that is none.
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

/// The first lines of a file or of standard input, up to the first empty one.
fn read(source: &Path) -> Result<String, HandoverError> {
    let name = source.display().to_string();
    let failed = |error: io::Error| HandoverError::Source {
        name: name.clone(),
        what: error.to_string(),
    };
    let input: Box<dyn Read> = if source == Path::new("-") {
        Box::new(io::stdin())
    } else {
        let file = File::open(source).map_err(failed)?;
        let mode = file.metadata().map_err(failed)?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(HandoverError::Source {
                name,
                what: "others may read it: chmod 600 it".to_owned(),
            });
        }
        Box::new(file)
    };
    let mut text = String::new();
    let mut lines = BufReader::new(input.take(TEXT_BYTES_MAX));
    loop {
        let before = text.len();
        lines.read_line(&mut text).map_err(failed)?;
        if text[before..].trim().is_empty() {
            return Ok(text);
        }
    }
}

#[allow(unsafe_code)]
mod sys {
    use std::ffi::{CStr, CString, c_char};

    use zeroize::Zeroize;

    unsafe extern "C" {
        fn getenv(name: *const c_char) -> *mut c_char;
    }

    /// Overwrites a variable's value where the process was started with it, so that it cannot be
    /// read in `/proc` any more; the variable is no use after that.
    pub(super) fn wipe(name: &str) {
        let name = CString::new(name).expect("no name of ours holds a zero");
        // SAFETY: `name` ends with a zero and lives across the call; called at the start of `main`,
        // before any other thread exists that could change the environment.
        let value = unsafe { getenv(name.as_ptr()) };
        if value.is_null() {
            return;
        }
        // SAFETY: getenv gives a string that ends with a zero, in memory of this process that it may
        // write; nobody else refers to it, as there is no other thread.
        let bytes = unsafe {
            let len = CStr::from_ptr(value).count_bytes();
            std::slice::from_raw_parts_mut(value.cast::<u8>(), len)
        };
        bytes.zeroize();
    }

    /// Removes variables.
    pub(super) fn remove_variables(names: &[&str]) {
        for name in names {
            // SAFETY: called at the start of `main`, before any other thread exists that could
            // read the environment.
            unsafe { std::env::remove_var(name) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let name = format!("sdm-handover-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let key = SessionKey::draw().unwrap();
        let id = crate::secure::draw_session_id().unwrap();
        std::fs::write(&path, to_text(id, &key).as_bytes()).unwrap();
        let allow = |mode| {
            let rights = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&path, rights).unwrap();
        };
        allow(0o640);
        let error = take(Some(&path)).map(drop).unwrap_err().to_string();
        assert!(error.contains("chmod 600"), "{error}");
        allow(0o600);
        assert!(take(Some(&path)).is_ok());
        std::fs::write(&path, "SDM_SESSION=x\n\nSDM_KEY=behind the end").unwrap();
        let error = take(Some(&path)).map(drop).unwrap_err();
        assert_eq!(error, HandoverError::Bad(SESSION_VARIABLE));
        std::fs::remove_file(&path).unwrap();
        let error = take(Some(&path)).map(drop).unwrap_err();
        assert!(matches!(error, HandoverError::Source { .. }), "{error}");
    }
}
