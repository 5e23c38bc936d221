//! Owners of files, names of users, and other users' rights to write to files.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use nix::unistd::{Uid, User, geteuid};

/// The first group id for ordinary users (Debian policy, 9.2.2). Root alone decides the members of groups below it, so
/// their right to write is not counted.
const USERS_GROUP: u32 = 100;

/// True if a file or directory belongs to this user or to root.
#[must_use]
pub fn is_own(found: &Metadata) -> bool {
    [0, geteuid().as_raw()].contains(&found.uid())
}

/// Name of a user; `user` and the number if the user has no name.
#[must_use]
pub fn user(uid: u32) -> String {
    match User::from_uid(Uid::from_raw(uid)) {
        Ok(Some(user)) => user.name,
        _ => format!("user {uid}"),
    }
}

/// True if users other than the owner and root may write. Write permission of a group does not count if the group has
/// the owner's number, as it is then the owner's private group. For root's files that of a system group does not count
/// either, as root decides its members.
#[must_use]
pub fn others_may_write(found: &Metadata) -> bool {
    let is_private = found.gid() == found.uid();
    let is_systems = found.uid() == 0 && found.gid() < USERS_GROUP;
    let by_group = found.mode() & 0o020 != 0 && !is_private && !is_systems;
    found.mode() & 0o002 != 0 || by_group
}
