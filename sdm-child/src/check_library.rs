//! Preloads the library that checks a program's use of MPI: see `sdm-check`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use sdm_check::LIBRARY_VARIABLE;
use sdm_debug::command::StartSpec;
use sdm_debug::{Failure, FailureCode};
use sdm_system::files;
use sdm_text::printable_name;

use crate::launch::{Environment, PRELOAD};

/// Adds the library to the program's `LD_PRELOAD`, before the user's own libraries, if `spec` requests the check.
///
/// # Errors
/// The library is not on this host, or another user could have modified it.
pub(crate) fn preload(environment: &mut Environment, spec: &StartSpec) -> Result<(), Failure> {
    let is_it = |(name, _): &&(Vec<u8>, Option<Vec<u8>>)| name == LIBRARY_VARIABLE.as_bytes();
    let given = spec.environment.iter().find(is_it);
    let Some(path) = given.and_then(|(_, value)| value.clone()) else {
        return Ok(());
    };
    let path = PathBuf::from(OsString::from_vec(path));
    files::open_own(&path).map_err(|error| {
        let text = format!(
            "cannot read the check library {}: {error}",
            printable_name(&path)
        );
        Failure::new(FailureCode::NotFound, text)
    })?;
    let mut all = path.into_os_string();
    if let Some(others) = environment.get(&OsString::from(PRELOAD)) {
        all.push(":");
        all.push(others);
    }
    environment.insert(PRELOAD.into(), all);
    Ok(())
}
