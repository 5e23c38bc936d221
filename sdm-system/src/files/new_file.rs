//! Creates files and writes to existing ones without following links of other users.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use nix::unistd::geteuid;

use super::{check_plain, foreign, is_handed_over, is_own, look, random_word};
use crate::owner::others_may_write;

/// Maximum number of further tries to make a new file, after the first.
const TRIES_MAX: u32 = 16;

/// Writes a file that only this user can read, atomically: until the end the earlier file stays. A replaced file of
/// this user keeps its permissions. An inherited descriptor (`/dev/stdout`) is written to directly.
///
/// # Errors
/// The file cannot be written, or the path is not that of a file. Also if the file belongs to another user in a
/// folder where only that user can replace it.
pub fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    if is_handed_over(path) {
        let mut stream = OpenOptions::new().write(true).open(path)?;
        return stream.write_all(contents);
    }
    let mut new = NewFile::beside(path)?;
    if let Some(mode) = new.own_mode() {
        new.file.set_permissions(Permissions::from_mode(mode))?;
    }
    new.file.write_all(contents)?;
    new.finish()
}

/// A private file that is being written, in the directory of its final path and under another name. Drop removes it
/// unless it is finished.
#[derive(Debug)]
pub struct NewFile {
    /// The file, open for writing.
    pub file: File,
    at: PathBuf,
    path: PathBuf,
    /// Metadata of the file to replace; `None` if there is none.
    before: Option<Metadata>,
}

impl NewFile {
    /// Begins a file that will have this path.
    ///
    /// # Errors
    /// The file cannot be made, or the path is not that of a file.
    pub fn beside(path: &Path) -> io::Result<Self> {
        let before = fs::symlink_metadata(path).ok();
        // A link is not followed. The link itself is replaced.
        if let Some(before) = before.as_ref().filter(|it| !it.is_symlink()) {
            check_plain(before)?;
        }
        let (file, at) = create_beside(path)?;
        Ok(Self {
            file,
            at,
            path: path.to_owned(),
            before,
        })
    }

    /// The permissions of the file to replace; `None` if there is none, or if it is a link or another user's.
    fn own_mode(&self) -> Option<u32> {
        let own = |it: &&Metadata| it.is_file() && it.uid() == geteuid().as_raw();
        Some(self.before.as_ref().filter(own)?.mode() & 0o777)
    }

    /// Renames the file to its final path.
    ///
    /// # Errors
    /// A file at that path belongs to another user, in a folder where only that user can replace it.
    pub fn finish(mut self) -> io::Result<()> {
        let renamed = fs::rename(&self.at, &self.path);
        let before = self.before.take().filter(|it| !is_own(it));
        match renamed {
            Ok(()) => {
                self.at = PathBuf::new();
                Ok(())
            }
            Err(error) if error.raw_os_error() == Some(nix::libc::EPERM) => {
                Err(before.map_or(error, |before| foreign(&before)))
            }
            Err(error) => Err(error),
        }
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.at.as_os_str().is_empty() {
            // The unfinished file has no use.
            let _ = fs::remove_file(&self.at);
        }
    }
}

/// The way to write to an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// From the start; the old contents are lost.
    Anew,
    /// After the present contents.
    Behind,
}

/// Opens a file that is written in parts, private to this user if it is new. Use it if the contents are not complete
/// yet, as [`replace`] requires.
///
/// # Errors
/// The path is not that of a file, or the file belongs to another user. In a directory that another user owns or may
/// write to, also if the path is a link or the file has a second name.
pub fn open_to_write(path: &Path, writing: Writing) -> io::Result<File> {
    let mut options = OpenOptions::new();
    match writing {
        Writing::Anew => options.write(true).truncate(true),
        Writing::Behind => options.append(true),
    };
    if is_handed_over(path) {
        return options.open(path);
    }
    let mut tries = 0;
    loop {
        match look(path, OFlag::O_NOFOLLOW) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            looked => return open_known(path, &options, looked?),
        }
        match create_with(path, &mut options.clone()) {
            // Another process has made it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < TRIES_MAX => {}
            created => return created,
        }
        tries += 1;
    }
}

/// Opens an existing file by the descriptor that its metadata was read from.
fn open_known(
    path: &Path,
    options: &OpenOptions,
    (mut known, mut found): (File, Metadata),
) -> io::Result<File> {
    if found.is_symlink() || found.nlink() > 1 {
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
        let folder = fs::metadata(folder.unwrap_or(Path::new(".")))?;
        if !is_own(&found) || !is_own(&folder) || others_may_write(&folder) {
            let what = "is a symbolic link in a folder that other users may write to: name the file itself";
            return Err(io::Error::other(what));
        }
        (known, found) = look(path, OFlag::empty())?;
    }
    check_plain(&found)?;
    if found.uid() != geteuid().as_raw() {
        return Err(foreign(&found));
    }
    options.open(format!("/proc/self/fd/{}", known.as_raw_fd()))
}

/// Creates a new file that only this user can read.
///
/// # Errors
/// The path exists, or the file cannot be made.
pub fn create_new(path: &Path) -> io::Result<File> {
    create_with(path, OpenOptions::new().write(true))
}

fn create_with(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    options.create_new(true).mode(0o600);
    options.custom_flags(OFlag::O_NOFOLLOW.bits()).open(path)
}

/// Creates a file in the directory of `path`, under an unpredictable name.
fn create_beside(path: &Path) -> io::Result<(File, PathBuf)> {
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let mut tries = 0;
    loop {
        let mut new = OsString::from(".");
        new.push(name);
        new.push(format!(".{}.new", random_word()?));
        let new = path.with_file_name(new);
        match create_new(&new) {
            Ok(file) => return Ok((file, new)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < TRIES_MAX => {}
            Err(error) => return Err(error),
        }
        tries += 1;
    }
}
