//! A program that was started here and then detached: it continues as if there were no debugger.
//!
//! Its standard streams end in this process, which must read them until the program ends. Its launcher waits for this
//! process, which therefore stays and exits with the program's code.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::ExitStatusExt;
use std::rc::Rc;
use std::time::Instant;

use nix::sys::signal::Signal;
use sdm_inferior::Identity;

use super::gdb::LOOK_AGAIN;
use sdm_child::{ShimLink, ToShim};

/// A detached program that continues to run.
pub(super) struct DetachedProgram {
    who: Identity,
    /// The shim that becomes the program's parent; `None` if this process becomes it.
    shim: Option<Rc<ShimLink>>,
    /// Becomes readable when the program ends; `None` if the kernel has no pidfds.
    pidfd: Option<OwnedFd>,
    /// Time of the next check whether the program has ended; `None` while the pidfd reports the end.
    look_at: Option<Instant>,
}

/// The way in which a detached program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DetachedEnd {
    Exited(i32),
    Signalled(i32),
}

impl DetachedProgram {
    /// Watches a program that is being detached. Call this while gdb still holds it or is about to detach. Until gdb's
    /// end the program's parent is gdb. After gdb's end it is this process, or the shim that started gdb.
    pub(super) fn new(now: Instant, who: Identity, shim: Option<Rc<ShimLink>>) -> Self {
        match &shim {
            None => sdm_child::adopt_orphans(),
            Some(shim) => {
                shim.begins(who.pid());
                // A shim that has ended cannot report the program's end.
                let _ = shim.send(&ToShim::Left(who.pid()));
            }
        }
        let pidfd = sdm_system::pidfd_open(who.pid().cast_unsigned()).ok();
        let look_at = pidfd.is_none().then_some(now + LOOK_AGAIN);
        Self {
            who,
            shim,
            pidfd,
            look_at,
        }
    }

    /// The descriptor to watch; `None` if there is none, or if the end is checked by time.
    pub(super) fn fd(&self) -> Option<RawFd> {
        let watched = self.pidfd.as_ref().filter(|_| self.look_at.is_none());
        watched.map(AsRawFd::as_raw_fd)
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.look_at
    }

    /// Checks whether the program has ended, and returns its end; `None` while it runs or its end is not known yet.
    /// `gdb_gone` is true once gdb has ended, so that this process or the shim is the program's parent.
    pub(super) fn look(&mut self, now: Instant, gdb_gone: bool) -> Option<DetachedEnd> {
        self.look_at = Some(now + LOOK_AGAIN);
        if self.who.is_alive() {
            if self.pidfd.is_some() {
                self.look_at = None;
            }
            return None;
        }
        if !gdb_gone {
            return None;
        }
        let status = match &self.shim {
            Some(shim) => shim.status_of(self.who.pid())?,
            None => match sdm_child::reap(self.who.pid()) {
                Ok(status) => status?,
                // Another process has reaped it, so its exit status is unknown.
                Err(_) => return Some(DetachedEnd::Exited(0)),
            },
        };
        match (status.code(), status.signal()) {
            (Some(code), _) => Some(DetachedEnd::Exited(code)),
            (None, Some(signal)) => Some(DetachedEnd::Signalled(signal)),
            (None, None) => None,
        }
    }

    /// Sends a signal to the program.
    pub(super) fn signal(&self, signal: Signal) {
        self.who.signal(signal);
    }

    /// Releases the pidfd, so that the caller closes it; `None` if there is none.
    pub(super) fn into_fd(self) -> Option<OwnedFd> {
        self.pidfd
    }
}
