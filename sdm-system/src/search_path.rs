//! The directories of `PATH` from which programs are started.
//!
//! A directory counts if it is absolute and only root and this user can put a program there. Root or this user must own
//! it, and each directory and link on the way to it, and no other user may write there. A directory on the way may also
//! be sticky, as nobody can rename another user's files in it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use nix::unistd::{AccessFlags, access, geteuid};
use sdm_text::printable_name;

use crate::owner::{others_may_write, user};

/// The directories that are searched if `PATH` is not set, or has no trusted directory.
pub(crate) const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Mode bit of a directory in which nobody can rename another user's files.
const STICKY: u32 = 0o1000;
/// Maximum number of symbolic links on the way to a directory, the same as the kernel's.
const LINKS_MAX: u32 = 40;
/// The program with this name in the directories of [`trusted_path`]; `None` if there is none.
#[must_use]
pub fn search_in(name: &OsStr, folders: &OsStr) -> Option<PathBuf> {
    let folders = trusted_path(folders);
    let mut found = std::env::split_paths(&folders).map(|folder| folder.join(name));
    found.find(|program| is_program(program))
}

/// The trusted directories of a list. If there are none, the usual directories: an empty list would mean the working
/// directory.
#[must_use]
pub fn trusted_path(folders: &OsStr) -> OsString {
    // The folders come from such a list, so none contains a colon.
    let is_trusted = |folder: &PathBuf| objection(folder).is_none();
    let kept = std::env::split_paths(folders).filter(is_trusted);
    let kept = std::env::join_paths(kept).unwrap_or_default();
    match kept.is_empty() {
        true => USUAL_PATH.into(),
        false => kept,
    }
}

/// A message about a program of this name in an untrusted directory that precedes the program found by [`search_in`]:
/// its path, and the reason for which it is skipped. `None` if there is none.
#[must_use]
pub fn passed_over(name: &OsStr, folders: &OsStr) -> Option<String> {
    for folder in std::env::split_paths(folders) {
        let program = match folder.as_os_str().is_empty() {
            true => Path::new(".").join(name),
            false => folder.join(name),
        };
        if !is_program(&program) {
            continue;
        }
        let why = objection(&folder)?;
        let program = printable_name(program);
        return Some(format!(
            "{program} on PATH is skipped: {why}; give the full path to use it"
        ));
    }
    None
}

/// True if the path is a file that this user may execute.
#[must_use]
pub fn is_program(path: &Path) -> bool {
    path.is_file() && access(path, AccessFlags::X_OK).is_ok()
}

/// The reason for which no program is started from a directory; `None` if the directory is trusted.
fn objection(folder: &Path) -> Option<String> {
    if !folder.is_absolute() {
        return Some("the folder on PATH is not an absolute path".to_owned());
    }
    let foreign = |path: &Path, found: &Metadata| {
        let (path, owner) = (printable_name(path), user(found.uid()));
        format!("{path} belongs to {owner}")
    };
    let absent = |path: &Path| format!("{} cannot be read", printable_name(path));
    let mut left = parts_of(folder);
    let mut at = PathBuf::from("/");
    let mut links = 0;
    while let Some(part) = left.pop() {
        if part == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&part);
        let Ok(found) = fs::symlink_metadata(&next) else {
            return Some(absent(&next));
        };
        if !is_trusted(&found) {
            return Some(foreign(&next, &found));
        }
        if found.is_symlink() {
            links += 1;
            let Some(target) = fs::read_link(&next).ok().filter(|_| links <= LINKS_MAX) else {
                return Some(absent(&next));
            };
            if target.is_absolute() {
                at = PathBuf::from("/");
            }
            left.extend(parts_of(&target));
            continue;
        }
        if others_may_write(&found) && found.mode() & STICKY == 0 {
            return Some(writable(&next));
        }
        at = next;
    }
    match fs::symlink_metadata(&at) {
        Ok(found) if others_may_write(&found) => Some(writable(&at)),
        Ok(_) => None,
        Err(_) => Some(absent(&at)),
    }
}

fn writable(folder: &Path) -> String {
    format!("other users may write to {}", printable_name(folder))
}

/// The components of a path, last first.
fn parts_of(path: &Path) -> Vec<OsString> {
    let named = |part: Component<'_>| match part {
        Component::Normal(_) | Component::ParentDir => Some(part.as_os_str().to_owned()),
        _ => None,
    };
    path.components().rev().filter_map(named).collect()
}

/// True if this user or root owns the file. In a user namespace without root, root's files belong to the owner of `/`.
fn is_trusted(found: &Metadata) -> bool {
    let root = fs::symlink_metadata("/").map_or(0, |root| root.uid());
    [0, root, geteuid().as_raw()].contains(&found.uid())
}

#[cfg(test)]
mod tests {
    use std::fs::{DirBuilder, Permissions};
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};

    use super::*;

    /// Makes a new folder with these folders below it, each with a program `tool` in it.
    fn place(name: &str, folders: &[(&str, u32)]) -> PathBuf {
        let place = std::env::temp_dir().join(format!("sdm-path-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&place);
        DirBuilder::new().mode(0o755).create(&place).unwrap();
        for (folder, mode) in folders {
            let folder = place.join(folder);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("tool"), "#!/bin/sh\n").unwrap();
            fs::set_permissions(folder.join("tool"), Permissions::from_mode(0o755)).unwrap();
            fs::set_permissions(&folder, Permissions::from_mode(*mode)).unwrap();
        }
        place
    }

    fn list(place: &Path, folders: &[&str]) -> OsString {
        std::env::join_paths(folders.iter().map(|folder| place.join(folder))).unwrap()
    }

    #[test]
    fn search_uses_only_trusted_folders() {
        let place = place(
            "search",
            &[("open", 0o777), ("sticky", 0o1777), ("own", 0o755)],
        );
        symlink(place.join("own"), place.join("link")).unwrap();
        symlink(place.join("open"), place.join("to-open")).unwrap();
        symlink("loop", place.join("loop")).unwrap();
        let found = |folders: &[&str]| search_in("tool".as_ref(), &list(&place, folders));
        for untrusted in ["open", "sticky", "to-open", "loop", "own/../open", "absent"] {
            assert_eq!(found(&[untrusted]), None, "{untrusted}");
        }
        for trusted in ["own", "link", "open/../own"] {
            let expect = match trusted.starts_with("open") {
                // A user who can rename `open` decides what its parent is.
                true => None,
                false => Some(place.join(trusted).join("tool")),
            };
            assert_eq!(found(&[trusted]), expect, "{trusted}");
        }
        assert_eq!(found(&["open", "own"]), Some(place.join("own/tool")));
        let why = passed_over("tool".as_ref(), &list(&place, &["open", "own"])).unwrap();
        let expect = format!("other users may write to {}", place.join("open").display());
        assert!(why.contains(&expect), "{why}");
        let none = passed_over("tool".as_ref(), &list(&place, &["own", "open"]));
        assert_eq!(none, None);
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn path_without_absolute_folder_becomes_the_default() {
        for path in ["", ".", ":", "::", "bin:./x", "/no/such/folder"] {
            assert_eq!(trusted_path(path.as_ref()), USUAL_PATH, "{path:?}");
        }
        let kept = trusted_path(":/usr/bin:.:/usr/bin/../bin::x".as_ref());
        assert_eq!(kept, "/usr/bin:/usr/bin/../bin");
        for path in ["", ":.:/usr/bin"] {
            let shell = search_in("sh".as_ref(), path.as_ref());
            assert!(shell.is_some_and(|it| it.is_absolute()), "{path:?}");
        }
    }
}
