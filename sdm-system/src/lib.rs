//! What a process finds on its machine.
//!
//! [`files`] opens, writes and looks up files, folders and programs where another user could have had a hand. An
//! [`identity::Identity`] is the number that a runtime gave a process, read from the variables that it set, or refused with an
//! [`identity::IdentityError`].
//!
//! Nothing here knows the tree, its key, or debugging.

pub mod files;
pub mod identity;
