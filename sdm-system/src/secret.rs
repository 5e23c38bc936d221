//! Files with a secret: only this user can read them, and they are removed when they are not needed any more or when
//! this process ends in any way.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::fcntl::OFlag;
use nix::unistd::geteuid;

use crate::guard_process::GuardProcess;
use crate::{files, programs};

/// Shell script that waits for the end of its input, and then removes the named file and folders. The input ends when
/// this process ends in any way. The script ignores the signals that end all processes of a terminal or of a user, so
/// that it can finish.
const REMOVE: &str = "trap '' HUP INT TERM; read -r line; rm -f -- \"$1\"; shift; rmdir -- \"$@\"";

/// Paths of the files, sockets and directories that this process must remove.
static PLACES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A path to a secret that only processes of this user can read: a file, or a socket that its owner makes there. Drop
/// removes the file or socket, if this value made it or its directory.
#[derive(Debug)]
pub struct SecretFile {
    path: PathBuf,
    /// The private directory of the file; `None` if it has none of its own.
    folder: Option<PathBuf>,
    /// The helper that removes the file if this process is killed; `None` before the file is made.
    removal: Option<GuardProcess>,
}

impl SecretFile {
    /// A path in an existing directory of this user. Nothing is created.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        places().push(path.clone());
        Self {
            path,
            folder: None,
            removal: None,
        }
    }

    /// A path in a new private directory. Only the directory is created.
    ///
    /// # Errors
    /// The folder exists already, or cannot be made.
    pub fn in_new_folder(folder: &Path, name: &str) -> io::Result<Self> {
        places().push(folder.to_owned());
        if let Err(error) = DirBuilder::new().mode(0o700).create(folder) {
            forget(folder);
            return Err(error);
        }
        let mut it = Self::at(folder.join(name));
        it.folder = Some(folder.to_owned());
        Ok(it)
    }

    /// Writes the file, which must not exist. A shell removes the file as soon as this process has ended in any way.
    ///
    /// # Errors
    /// The file exists, it cannot be written, or there is no room for one more process or descriptor.
    pub fn write(&mut self, text: &[u8]) -> io::Result<()> {
        let mut file = self.create()?;
        file.write_all(text)?;
        // The file must become visible on other hosts.
        file.sync_all()
    }

    /// Makes the file, empty and open for writing, with the same removal as [`SecretFile::write`].
    ///
    /// # Errors
    /// The file exists or cannot be made, or a limit allows no further process or descriptor.
    pub fn create(&mut self) -> io::Result<File> {
        let started = self.start_removal();
        let removal = started.map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("cannot start the process that removes the file: {error}"),
            )
        })?;
        let file = files::create_new(&self.path)?;
        self.removal = Some(removal);
        Ok(file)
    }

    /// Path of the file. The path itself is not secret.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Starts the shell that removes the file once this process has ended. It must run before the file is made.
    /// Dropping the result ends the shell without removing the file.
    fn start_removal(&self) -> io::Result<GuardProcess> {
        let mut command = programs::shell(REMOVE);
        command.arg("sdm-key-removal").arg(&self.path);
        command.args(&self.folder).stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        GuardProcess::start(&mut command)
    }
}

impl Drop for SecretFile {
    fn drop(&mut self) {
        // A file that this process did not write is not removed.
        if self.folder.is_some() || self.removal.is_some() {
            remove(&self.path);
        }
        forget(&self.path);
        if let Some(folder) = &self.folder {
            remove(folder);
            forget(folder);
        }
    }
}

fn forget(path: &Path) {
    places().retain(|known| known != path);
}

fn places() -> MutexGuard<'static, Vec<PathBuf>> {
    PLACES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn remove(path: &Path) {
    // The file may already be gone, or may never have been made.
    let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
}

/// Removes every remaining [`SecretFile`], and prevents new ones: call it before an exit that runs no destructors.
pub fn withdraw_all() {
    let places = places();
    places.iter().rev().for_each(|path| remove(path));
    // Threads that need the list from now on wait until the process has ended.
    std::mem::forget(places);
}

/// Opens a private file of this user. It does not follow symbolic links, and does not wait for pipes.
///
/// # Errors
/// The file does not exist, or is not private; the error names the fault.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(flags.bits()).open(path)?;
    let found = file.metadata()?;
    let (owner, own) = (found.uid(), geteuid().as_raw());
    let what = match () {
        () if !found.is_file() => "the path is not a file".to_owned(),
        () if owner != own => {
            format!("the file belongs to user {owner}, but this process runs as user {own}")
        }
        () if found.mode() & 0o077 != 0 => {
            "other users may read this file: run chmod 600 on it".to_owned()
        }
        () => return Ok(file),
    };
    Err(io::Error::other(what))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("sdm-secret-{name}-{}", std::process::id()))
    }

    #[test]
    fn secret_file_is_private_and_removed() {
        let folder = folder("drop");
        let mut secret = SecretFile::in_new_folder(&folder, "-key").unwrap();
        secret.write(b"xyz").unwrap();
        let path = secret.path().to_owned();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&path)), (0o700, 0o600));
        assert_eq!(io::read_to_string(open(&path).unwrap()).unwrap(), "xyz");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(open(&path).unwrap_err().to_string().contains("chmod"));
        // An existing folder is refused, whoever made it, and stays.
        let again = SecretFile::in_new_folder(&folder, "key");
        assert_eq!(again.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert!(path.exists());
        drop(secret);
        assert!(!folder.exists());
    }

    #[test]
    fn secret_file_is_removed_when_its_process_ends() {
        let folder = folder("end");
        fs::create_dir(&folder).unwrap();
        let secret = SecretFile {
            path: folder.join("-key"),
            folder: Some(folder.clone()),
            removal: None,
        };
        let removal = secret.start_removal().unwrap();
        fs::write(&secret.path, "").unwrap();
        drop(removal);
        assert!(secret.path.exists());
        // This closes the shell's input, as the end of this process would.
        secret.start_removal().unwrap().dismiss().unwrap();
        assert!(!folder.exists());
    }
}
