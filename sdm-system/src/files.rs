//! Files, directories and programs in places where other users could interfere.
//!
//! Nothing that another user owns is executed, loaded, sourced or followed. Only plain files, inherited descriptors and
//! `/dev/null` are opened here: a FIFO would block its reader for ever, and opening a device has effects. A file is
//! written under a new unpredictable name, for this user alone, and then renamed to its final name. A program is found
//! on `PATH` only in an absolute directory in which no other user can put one.

use sdm_text::printable_name;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::fcntl::OFlag;
use nix::unistd::{AccessFlags, access, geteuid};

pub use crate::owner::{is_own, others_may_write, user};
pub(crate) use crate::search_path::USUAL_PATH;
pub use crate::search_path::is_program;
use crate::search_path::{self, search_in, trusted_path};

/// Maximum size of a text file that is read, in bytes.
pub const TEXT_BYTES_MAX: u64 = 64 << 20;
/// The variables from which Python takes directories.
const PYTHON_VARIABLES: [&str; 2] = ["PYTHONPATH", "PYTHONHOME"];
/// Permission bits that other users must not have on this user's private files.
const OTHERS: u32 = 0o077;
/// Mode bit of a directory in which nobody can rename another user's files.
const STICKY: u32 = 0o1000;

/// Opens a plain file for reading. Names of inherited descriptors (`/dev/stdin`, `/dev/fd/3`) and `/dev/null` are
/// opened as they are.
///
/// # Errors
/// The file does not exist, may not be read, or is not a plain file; the error says which.
pub fn open(path: &Path) -> io::Result<File> {
    if is_handed_over(path) {
        return File::open(path);
    }
    let (known, found) = look(path, OFlag::empty())?;
    check_plain(&found)?;
    // The file that was checked is opened, even if the path leads to another one now.
    File::open(format!("/proc/self/fd/{}", known.as_raw_fd()))
}

/// Opens a plain file that this user or root owns, and that nobody else can write to.
///
/// # Errors
/// As [`open`]. Also if the file belongs to another user, or others may write to it.
pub fn open_own(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    let found = file.metadata()?;
    if found.file_type().is_char_device() && is_handed_over(path) {
        return Ok(file);
    }
    check_own(&found)?;
    Ok(file)
}

/// The text of a plain file.
///
/// # Errors
/// As [`open`]. Also if the file is longer than [`TEXT_BYTES_MAX`], or not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    text_of(open(path)?, TEXT_BYTES_MAX)
}

/// The text of an open file.
///
/// # Errors
/// The file is longer than `bytes_max`, is not UTF-8, or cannot be read.
pub fn text_of(file: File, bytes_max: u64) -> io::Result<String> {
    let mut text = String::new();
    file.take(bytes_max + 1).read_to_string(&mut text)?;
    match text.len() as u64 > bytes_max {
        true => Err(io::Error::other(format!("larger than {bytes_max} bytes"))),
        false => Ok(text),
    }
}

/// Makes a private directory of this user if it does not exist. No other user can read or replace it.
///
/// # Errors
/// The directory cannot be made or is not private; the error names its owner or the fault.
pub fn private_folder(path: &Path) -> io::Result<()> {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    let above = fs::metadata(above.unwrap_or(Path::new(".")))?;
    if !is_own(&above) {
        return Err(io::Error::other(format!(
            "is in a folder that {}",
            foreign(&above)
        )));
    }
    if above.mode() & 0o002 != 0 && above.mode() & STICKY == 0 {
        let what = "is in a folder where all users can rename files (run chmod +t on that folder)";
        return Err(io::Error::other(what));
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let (_, found) = look(path, OFlag::O_NOFOLLOW)?;
    if !found.is_dir() {
        return Err(io::Error::other("is not a folder"));
    }
    if found.uid() != geteuid().as_raw() {
        return Err(foreign(&found));
    }
    if found.mode() & OTHERS != 0 {
        let what = "is accessible to other users: restrict it (chmod 700)";
        return Err(io::Error::other(what));
    }
    Ok(())
}

/// The directory for temporary files: that of `TMPDIR` if this user can write there, otherwise `/tmp`. Batch systems
/// may set `TMPDIR` to a directory that exists only on the nodes of a job.
#[must_use]
pub fn temporary_folder() -> PathBuf {
    let named = std::env::temp_dir();
    let is_usable = named.is_dir() && access(&named, AccessFlags::W_OK | AccessFlags::X_OK).is_ok();
    if is_usable { named } else { "/tmp".into() }
}

/// The directory for this user's private files on one machine, such as sockets and keys. If another user has created a
/// directory at the usual path, a different one is used, which later calls find again.
///
/// # Errors
/// No such directory can be made. The error names the directory that was tried last.
pub fn runtime_folder() -> io::Result<PathBuf> {
    let own = geteuid();
    let by_system = Path::new("/run/user").join(own.to_string());
    for runtime in given_runtime().into_iter().chain([by_system]) {
        if objection(&runtime).is_none() {
            let folder = runtime.join("sdm");
            return checked(folder);
        }
    }
    let temporary = temporary_folder();
    let name = format!("sdm-{own}");
    let usual = temporary.join(&name);
    let is_taken = fs::symlink_metadata(&usual).is_ok_and(|it| it.uid() != own.as_raw());
    if !is_taken {
        return checked(usual);
    }
    let prefix = format!("{name}-");
    let is_another = |entry: &fs::DirEntry| {
        let named = entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(prefix.as_bytes());
        named && private_folder(&entry.path()).is_ok()
    };
    let entries = fs::read_dir(&temporary)?.flatten();
    let found = entries.filter(is_another).map(|entry| entry.path()).min();
    match found {
        Some(folder) => Ok(folder),
        None => checked(temporary.join(format!("{prefix}{}", random_word()?))),
    }
}

/// The directories in which processes of this user may have put private files: [`runtime_folder`]'s first. A batch job
/// has no directory below `/run/user` if its user is not logged in on that host. The same user, logged in there, has
/// one.
///
/// # Errors
/// As [`runtime_folder`].
pub fn runtime_folders() -> io::Result<Vec<PathBuf>> {
    let mut folders = vec![runtime_folder()?];
    for temporary in [temporary_folder(), PathBuf::from("/tmp")] {
        let folder = temporary.join(format!("sdm-{}", geteuid()));
        let is_there = fs::symlink_metadata(&folder).is_ok();
        if is_there && !folders.contains(&folder) && private_folder(&folder).is_ok() {
            folders.push(folder);
        }
    }
    Ok(folders)
}

/// The directory that an XDG variable names, or the one with this name in the user's home directory; `None` if neither
/// has an absolute path.
#[must_use]
pub fn user_folder(variable: &str, in_home: &str) -> Option<PathBuf> {
    let whole = |name: &str| {
        let set = std::env::var_os(name).map(PathBuf::from);
        set.filter(|path| path.is_absolute())
    };
    whole(variable).or_else(|| Some(whole("HOME")?.join(in_home)))
}

/// The reason for which [`runtime_folder`] ignores the directory in `XDG_RUNTIME_DIR`. The reason names the owner if
/// that is another user: after `su` and `sudo` it is the previous user. `None` if the directory is used, or not set.
#[must_use]
pub fn runtime_passed_by() -> Option<String> {
    let given = given_runtime()?;
    let what = objection(&given)?;
    let folder = printable_name(given);
    Some(format!("XDG_RUNTIME_DIR {folder} {what}"))
}

fn given_runtime() -> Option<PathBuf> {
    let set = std::env::var_os("XDG_RUNTIME_DIR").filter(|set| !set.is_empty());
    set.map(PathBuf::from)
}

/// The reason for which private directories of this user cannot be made in a directory; `None` if they can.
fn objection(runtime: &Path) -> Option<String> {
    match fs::metadata(runtime) {
        Err(error) => Some(format!("cannot be used: {error}")),
        Ok(found) if !found.is_dir() => Some("is not a folder".to_owned()),
        Ok(found) if found.uid() != geteuid().as_raw() => {
            Some(format!("belongs to {}", user(found.uid())))
        }
        Ok(found) if found.mode() & 0o022 != 0 => Some("is writable by other users".to_owned()),
        Ok(_) => None,
    }
}

fn checked(folder: PathBuf) -> io::Result<PathBuf> {
    match private_folder(&folder) {
        Ok(()) => Ok(folder),
        Err(error) => {
            let text = format!("{} {error}", printable_name(&folder));
            Err(io::Error::new(error.kind(), text))
        }
    }
}

/// The program with this name in the trusted folders of `PATH` (see [`search_path()`]); `None` if there is none.
#[must_use]
pub fn search(name: impl AsRef<OsStr>) -> Option<PathBuf> {
    search_in(name.as_ref(), &given_path())
}

/// `PATH` without relative folders, and without folders in which users other than this one and root can put a
/// program.
#[must_use]
pub fn search_path() -> OsString {
    trusted_path(&given_path())
}

/// A program with this name on `PATH` that [`search`] skips, with the reason; `None` if there is none.
#[must_use]
pub fn passed_over(name: impl AsRef<OsStr>) -> Option<String> {
    search_path::passed_over(name.as_ref(), &given_path())
}

pub(crate) fn given_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| USUAL_PATH.into())
}

/// Prevents a program with a Python interpreter, such as gdb, from importing modules from its working directory.
pub fn shut_python(command: &mut Command) {
    for name in PYTHON_VARIABLES {
        command.env_remove(name);
    }
    command.envs(python_variables());
}

/// The absolute directories in the user's Python variables, as variables for a program with a Python interpreter;
/// empty if there are none.
#[must_use]
pub fn python_variables() -> Vec<(&'static str, OsString)> {
    let set = |name| Some((name, whole_names(&std::env::var_os(name)?)));
    let set = PYTHON_VARIABLES.into_iter().filter_map(set);
    set.filter(|(_, folders)| !folders.is_empty()).collect()
}

/// The absolute directories of a list like `PATH`.
fn whole_names(folders: &OsStr) -> OsString {
    let whole = std::env::split_paths(folders).filter(|folder| folder.is_absolute());
    // The folders come from such a list, so none contains a colon.
    std::env::join_paths(whole).unwrap_or_default()
}

/// The file at a path and its metadata, without opening it (`O_PATH`).
fn look(path: &Path, flags: OFlag) -> io::Result<(File, Metadata)> {
    let flags = OFlag::O_PATH | flags;
    let known = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(path)?;
    let found = known.metadata()?;
    Ok((known, found))
}

fn is_handed_over(path: &Path) -> bool {
    let folders = ["/dev/fd", "/proc/self/fd"];
    let one = ["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"]
        .iter()
        .any(|it| path == Path::new(it));
    one || path
        .parent()
        .is_some_and(|it| folders.iter().any(|known| it == Path::new(known)))
}

/// Checks that this is a plain file, not a directory, FIFO, socket or device.
///
/// # Errors
/// The file is not a plain file; the error names its kind and, except for a directory, its owner.
pub fn check_plain(found: &Metadata) -> io::Result<()> {
    let kind = found.file_type();
    let what = match () {
        () if kind.is_file() => return Ok(()),
        () if kind.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        () if kind.is_fifo() => "a FIFO",
        () if kind.is_socket() => "a socket",
        () => "a device",
    };
    let owner = user(found.uid());
    Err(io::Error::other(format!(
        "is {what} of {owner}, not a regular file"
    )))
}

fn check_own(found: &Metadata) -> io::Result<()> {
    if !is_own(found) {
        return Err(foreign(found));
    }
    match others_may_write(found) {
        false => Ok(()),
        true => Err(io::Error::other(
            "other users may write to this file: run chmod go-w on it",
        )),
    }
}

fn foreign(found: &Metadata) -> io::Error {
    let (owner, own) = (user(found.uid()), user(geteuid().as_raw()));
    let text = format!("belongs to {owner} and you are {own}");
    io::Error::new(io::ErrorKind::PermissionDenied, text)
}

/// An unpredictable word, for the name of a file or folder that no other process can create first.
///
/// # Errors
/// The kernel gives no random numbers.
pub fn random_word() -> io::Result<String> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(format!("{:016x}", u64::from_ne_bytes(bytes)))
}

mod new_file;

pub use new_file::{NewFile, Writing, create_new, open_to_write, replace};

#[cfg(test)]
mod tests;
