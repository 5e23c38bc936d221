//! The tag of a launch: an environment variable by which the processes that a launcher has started on this host are
//! found.
//!
//! Process groups and parents do not suffice. Launchers start helpers in other sessions (Hydra its proxies, wrappers by
//! `setsid`), and a helper whose launcher was killed has another parent. All of them inherit the launcher's
//! environment.

use std::ffi::OsStr;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::signal::Signal;
use sdm_bootstrap::handover::LAUNCH_VARIABLE;
use sdm_system::{proc, signal_process};

/// Prefix of the names of SDM's own processes. They end by themselves, and detach from debugged processes.
const MEMBER: &str = "sdm-";

/// The value of [`LAUNCH_VARIABLE`] in the environment of a launcher.
#[derive(Debug)]
pub(crate) struct LaunchTag(String);

impl LaunchTag {
    /// Puts a new tag into the environment of a launcher.
    pub(crate) fn put(command: &mut Command) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let began = proc::own().stat().ok().and_then(|it| it.began_ticks());
        let (own, began) = (std::process::id(), began.unwrap_or_default());
        let tag = format!("{own}.{began}.{}", COUNT.fetch_add(1, Ordering::Relaxed));
        command.env(LAUNCH_VARIABLE, &tag);
        Self(tag)
    }

    /// The value of the environment variable.
    pub(crate) fn value(&self) -> &str {
        &self.0
    }

    /// Sends a signal to all processes with the tag, except SDM's own.
    pub(crate) fn signal(&self, signal: Signal) {
        for pid in proc::pids().into_iter().flatten() {
            if self.is_of(pid) {
                signal_process(pid, signal, || self.is_of(pid));
            }
        }
    }

    /// True if a process with the tag still exists, other than SDM's own.
    pub(crate) fn has_processes(&self) -> bool {
        let mut pids = proc::pids().into_iter().flatten();
        pids.any(|pid| self.is_of(pid))
    }

    fn is_of(&self, pid: i32) -> bool {
        let process = proc::of(pid);
        let variables = process.environment().unwrap_or_default();
        let mut tags = variables.iter().filter(|(name, _)| name == LAUNCH_VARIABLE);
        tags.any(|(_, tag)| tag == OsStr::new(&self.0))
            && process.name().is_ok_and(|name| !name.starts_with(MEMBER))
    }
}
