//! System calls that the standard library lacks.
#![allow(unsafe_code)]

use anyhow::{Context, Result};
use nix::unistd::{ForkResult, Pid, fork};

/// Forks this process, which must have one thread; gives the child's id to the parent and none to the child.
pub(crate) fn fork_off() -> Result<Option<Pid>> {
    // SAFETY: one thread, so that the child finds every lock free and may do whatever its parent may.
    match unsafe { fork() }.context("fork")? {
        ForkResult::Child => Ok(None),
        ForkResult::Parent { child } => Ok(Some(child)),
    }
}
