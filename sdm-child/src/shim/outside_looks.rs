//! Inspections by other sessions of a program that is traced here: its tracer detaches meanwhile. A looker is the
//! process that inspects it.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use sdm_system::look_socket::{self, DETACHED, StoppedThread, write_threads};
use sdm_system::peer::Peer;

/// Maximum number of lookers at a time.
const LOOKERS_MAX: usize = 16;
/// Time after which the program is seized again although a looker is not finished.
const LOOSE_MAX: Duration = Duration::from_secs(10);
/// Maximum time for a looker to receive the threads of a stopped program.
const TELL_MAX: Duration = Duration::from_secs(1);
/// Interval of attempts to seize a program that another process traces.
const SEIZE_AGAIN: Duration = Duration::from_millis(100);

/// The lookers of other sessions.
pub(super) struct OutsideLooks {
    listener: UnixListener,
    lookers: Vec<UnixStream>,
    /// Connections of the lookers that have finished. Closing a connection tells the looker that the program is traced
    /// again.
    finished: Vec<UnixStream>,
    /// Expires when the program must be seized in any case.
    timer: TimerFd,
}

/// The request of the lookers to the tracer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LookRequest {
    /// Release the program.
    LetGo,
    /// Seize the program again.
    Seize,
}

impl OutsideLooks {
    pub(super) fn listen() -> io::Result<Self> {
        let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
        Ok(Self {
            listener: look_socket::listen()?,
            lookers: Vec::new(),
            finished: Vec::new(),
            timer: TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?,
        })
    }

    pub(super) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let own = [self.listener.as_fd(), self.timer.as_fd()];
        own.into_iter().chain(self.lookers.iter().map(AsFd::as_fd))
    }

    /// True while a looker needs the program to be released.
    pub(super) fn is_looking(&self) -> bool {
        !self.lookers.is_empty()
    }

    /// Accepts new lookers, and notices those that have finished. Returns the request to the tracer; `None` if nothing
    /// changes.
    pub(super) fn handle_ready(&mut self) -> Option<LookRequest> {
        let is_late = self.timer.wait().is_ok();
        // A looker writes nothing.
        let is_there = |mut it: &UnixStream| {
            let read = it.read(&mut [0]);
            read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
        };
        let lookers = std::mem::take(&mut self.lookers).into_iter();
        let (stay, left) = lookers.partition::<Vec<_>, _>(|it| !is_late && is_there(it));
        self.lookers = stay;
        self.finished.extend(left);
        let is_over = is_late || !self.finished.is_empty();
        match (self.accept(), self.is_looking()) {
            (true, _) => Some(LookRequest::LetGo),
            (false, false) if is_over => Some(LookRequest::Seize),
            (false, _) => None,
        }
    }

    fn accept(&mut self) -> bool {
        let mut has_come = false;
        while let Ok((looker, _)) = self.listener.accept() {
            let is_allowed = |peer: Peer| peer.is_this_user() || peer.uid == 0;
            if self.lookers.len() < LOOKERS_MAX
                && Peer::of(&looker).is_ok_and(is_allowed)
                && looker.set_nonblocking(true).is_ok()
            {
                self.lookers.push(looker);
                has_come = true;
            }
        }
        if has_come {
            self.wake_after(LOOSE_MAX);
        }
        has_come
    }

    /// Tells the lookers that the program is released.
    pub(super) fn tell_free(&mut self) {
        for mut looker in &self.lookers {
            // A looker that has gone is noticed by its end.
            let _ = looker.write(&[DETACHED]);
        }
    }

    /// Gives the lookers the registers of a program that stays stopped. They need nothing else.
    pub(super) fn tell_stopped(&mut self, threads: &[StoppedThread]) {
        for mut looker in self.lookers.drain(..) {
            // A looker reads at once. One that has gone is left.
            let _ = looker
                .set_nonblocking(false)
                .and_then(|()| looker.set_write_timeout(Some(TELL_MAX)))
                .and_then(|()| write_threads(&mut looker, threads));
        }
    }

    /// Tells the finished lookers that the program is traced again. If another process traces it, another attempt is
    /// scheduled.
    pub(super) fn tell_seized(&mut self, is_seized: bool) {
        self.finished.clear();
        match is_seized {
            true => drop(self.timer.unset()),
            false => self.wake_after(SEIZE_AGAIN),
        }
    }

    fn wake_after(&self, wait: Duration) {
        // It fails for no duration that is not negative.
        let _ = self
            .timer
            .set(Expiration::OneShot(wait.into()), TimerSetTimeFlags::empty());
    }
}
