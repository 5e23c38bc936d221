//! The launcher that `--control` has started: its output, its end, and the end of its job.

use std::io;
use std::os::fd::RawFd;
use std::time::Instant;

use sdm_launch::{Launch, LaunchEvent};

use super::api::SessionEvent;
use super::end_launch::{END_WAIT, end_launch};
use super::live::Session;

impl Session {
    /// Takes over the launcher of the tasks. The launcher's output is passed on, and the launcher ends with the
    /// session. With `records`, its output does not go to standard output.
    ///
    /// # Errors
    /// The process cannot be watched.
    pub fn adopt(&mut self, starter: Launch, records: bool) -> io::Result<()> {
        for fd in starter.fds() {
            self.driver.transport().watch(fd, true, false)?;
        }
        self.starter = Some(starter);
        self.passing = Some(records);
        Ok(())
    }

    /// Reads a descriptor of the launcher. Returns false if the descriptor is not its own.
    pub(super) fn handle_starter(&mut self, fd: RawFd) -> bool {
        let Some(mut starter) = self.starter.take_if(|it| it.holds(fd)) else {
            return false;
        };
        loop {
            let more = starter.handle_ready(fd);
            self.take_events(&mut starter);
            if !more {
                break;
            }
        }
        if !starter.holds(fd) {
            self.driver.transport().forget(fd);
        }
        self.starter = Some(starter);
        true
    }

    fn take_events(&mut self, starter: &mut Launch) {
        while let Some(event) = starter.poll_event() {
            match event {
                LaunchEvent::Bytes { stderr, bytes } => self.pass(stderr, bytes),
                LaunchEvent::Ended {
                    status,
                    code,
                    last_words,
                    ..
                } if !self.ending => self.waiting.push_back(SessionEvent::LauncherEnded {
                    status,
                    code,
                    last_words,
                }),
                LaunchEvent::Text { line, .. } | LaunchEvent::Note(line) if !self.ending => {
                    self.waiting.push_back(SessionEvent::Launcher { line });
                }
                _ => {}
            }
        }
    }

    /// The time at which [`Self::look_at_starter`] is due. None if no check is due.
    pub(super) fn next_look(&self) -> Option<Instant> {
        self.starter.as_ref().and_then(Launch::next_look)
    }

    /// Ends a launcher that has no process left and does not end by itself.
    pub(super) fn look_at_starter(&mut self) {
        if let Some(mut starter) = self.starter.take() {
            starter.look(Instant::now());
            self.take_events(&mut starter);
            self.starter = Some(starter);
        }
    }

    /// Ends the launcher, and the job with it.
    pub(super) fn end_starter(&mut self) {
        if let Some(mut starter) = self.starter.take() {
            end_launch(&mut self.driver, &mut starter, END_WAIT);
        }
    }
}
