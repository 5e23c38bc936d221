//! Resource managers that a site adds: an executable `sdm-rm-NAME` on `PATH`, which speaks the resource-manager proxy
//! protocol on its standard streams.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;

use sdm_system::{files, programs};
use sdm_text::printable_name;

use crate::error::ManagerError;

/// The executable of the manager `name`.
///
/// # Errors
/// `PATH` has no such executable, or the executable belongs to another user than this one or root.
pub fn find(name: &str) -> Result<PathBuf, ManagerError> {
    let program = format!("sdm-rm-{name}");
    let found = (!name.contains('/')).then(|| files::search(&program));
    let path = found
        .flatten()
        .ok_or_else(|| ManagerError::NoProgram(printable_name(&program)))?;
    let what = || ManagerError::system(printable_name(&path));
    let metadata = fs::metadata(&path).map_err(what())?;
    if !files::is_own(&metadata) {
        let owner = files::user(metadata.uid());
        let denied = io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("the program belongs to {owner}: it must belong to you or to root"),
        );
        return Err(what()(denied));
    }
    Ok(path)
}

/// Replaces this process by the executable, with the client at its standard input and output. The executable gets no
/// arguments.
///
/// # Errors
/// The executable cannot be started; the function returns in no other case.
pub fn become_it(path: PathBuf, client: Option<(OwnedFd, OwnedFd)>) -> ManagerError {
    let mut command = programs::at(&path);
    if let Some((input, output)) = client {
        command.stdin(input).stdout(output);
    }
    let why = command.exec();
    ManagerError::System(printable_name(&path), why)
}
