//! A gdb of the backend: one task's own, or one that several share.

use std::collections::VecDeque;
use std::os::fd::{OwnedFd, RawFd};
use std::time::Instant;

use nix::sys::signal::Signal;
use sdm_core::CommandId;
use sdm_debug::{BackendOutput, Command};
use sdm_idset::TaskId;

use crate::driver::Driver;
use crate::shared_gdb::SharedGdb;
use crate::task::{Interest, Task};

pub(crate) enum Slot {
    Own(Box<Task>),
    Shared(Box<SharedGdb>),
}

/// What is called of a slot says what it wants when it is settled: see [`Slot::settle`].
impl Slot {
    /// The driver of a task that is here.
    pub(crate) fn driver(&self, task: TaskId) -> Option<&Driver> {
        match self {
            Self::Own(own) => Some(&own.driver),
            Self::Shared(shared) => shared.driver(task),
        }
    }

    pub(crate) fn execute(&mut self, now: Instant, task: TaskId, id: CommandId, command: Command) {
        match self {
            Self::Own(own) => own.execute(now, id, command),
            Self::Shared(shared) => shared.execute(now, task, id, command),
        }
    }

    pub(crate) fn cancel(&mut self, now: Instant, id: CommandId) {
        match self {
            Self::Own(own) => own.cancel(now, id),
            Self::Shared(shared) => shared.cancel(now, id),
        }
    }

    /// Does what came of all calls since it was settled last.
    pub(crate) fn settle(&mut self, now: Instant) {
        match self {
            Self::Own(own) => own.settle(now),
            Self::Shared(shared) => shared.settle(now),
        }
    }

    /// Adds the descriptors to watch now, each for reading and for writing.
    pub(crate) fn add_interests(&self, to: &mut Vec<Interest>) {
        match self {
            Self::Own(own) => own.add_interests(to),
            Self::Shared(shared) => shared.add_interests(to),
        }
    }

    pub(crate) fn handle_ready(&mut self, now: Instant, fd: RawFd) {
        match self {
            Self::Own(own) => own.handle_ready(now, fd),
            Self::Shared(shared) => shared.handle_ready(now, fd),
        }
    }

    pub(crate) fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        match self {
            Self::Own(own) => own.poll_timeout(now),
            Self::Shared(shared) => shared.poll_timeout(),
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Own(own) => own.handle_timeout(now),
            Self::Shared(shared) => shared.handle_timeout(now),
        }
    }

    pub(crate) fn set_paused(&mut self, now: Instant, paused: bool) {
        if let Self::Own(own) = self {
            own.set_paused(now, paused);
        }
    }

    pub(crate) fn shut_down(&mut self, now: Instant, kill_started: bool) {
        match self {
            Self::Own(own) => own.shut_down(now, kill_started),
            Self::Shared(shared) => shared.shut_down(now, kill_started),
        }
    }

    pub(crate) fn is_down(&self) -> bool {
        match self {
            Self::Own(own) => own.is_down(),
            Self::Shared(shared) => shared.is_down(),
        }
    }

    /// True once nothing more will come of it.
    pub(crate) fn is_over(&self) -> bool {
        let is_silent = match self {
            Self::Own(own) => !own.is_left_running() && own.is_silent(),
            Self::Shared(_) => true,
        };
        is_silent && self.is_down()
    }

    pub(crate) fn is_left_running(&self) -> bool {
        matches!(self, Self::Own(own) if own.is_left_running())
    }

    pub(crate) fn signal_left(&self, signal: Signal) {
        if let Self::Own(own) = self {
            own.signal_left(signal);
        }
    }

    pub(crate) fn left_end(&self) -> Option<i32> {
        match self {
            Self::Own(own) => own.left_end(),
            Self::Shared(_) => None,
        }
    }

    /// Moves what it has said since.
    pub(crate) fn take_outputs(&mut self, to: &mut VecDeque<BackendOutput>) {
        to.extend(match self {
            Self::Own(own) => own.outputs.drain(..),
            Self::Shared(shared) => shared.outputs.drain(..),
        });
    }

    /// Moves the descriptors that it needs no longer: to be closed once their owner has forgotten them.
    pub(crate) fn take_closing(&mut self, to: &mut Vec<OwnedFd>) {
        to.append(match self {
            Self::Own(own) => &mut own.closing,
            Self::Shared(shared) => &mut shared.closing,
        });
    }
}
