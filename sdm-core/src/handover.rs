//! What a process of the session is handed when it is started: the session's name and its key.
//!
//! Both come in the environment, never on a command line, and are taken out of it before anything
//! else is started, so that no program inherits them.

use std::ffi::OsString;

use zeroize::Zeroize;

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

/// What could not be taken over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandoverError {
    /// It is not there.
    #[error("{0} is not set: this program is started by sdm, not by hand")]
    Missing(&'static str),
    /// It is there, but it is not one. The value is not repeated: it may be a key.
    #[error("{0} is set to something else than what sdm hands over")]
    Bad(&'static str),
}

/// Takes the session's name and key out of the environment, and every other variable of ours.
///
/// Call it first thing in `main`, while the process has one thread.
///
/// # Errors
/// A variable that is missing or is not what it should be; they are all removed even then.
pub fn take() -> Result<LinkConfig, HandoverError> {
    let session = variable(SESSION_VARIABLE).map(OsString::into_string);
    let key = variable(KEY_VARIABLE).map(OsString::into_string);
    sys::remove_variables(&OURS);
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

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

#[allow(unsafe_code)]
mod sys {
    /// Removes variables.
    pub(super) fn remove_variables(names: &[&str]) {
        for name in names {
            // SAFETY: called at the start of `main`, before any other thread exists that could
            // read the environment.
            unsafe { std::env::remove_var(name) };
        }
    }
}
