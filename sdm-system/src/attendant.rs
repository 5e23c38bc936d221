//! A process that stands by this one and goes with it.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};

/// A child that waits for the end of its input, has nothing to lose, and is killed where this is dropped before.
#[derive(Debug)]
pub struct Attendant {
    child: Child,
}

impl Attendant {
    /// Starts it. What a terminal sends is not for it.
    ///
    /// # Errors
    /// There is no room for one more process or descriptor.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let child = command.process_group(0).spawn()?;
        Ok(Self { child })
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Closes the input that was piped to it, and waits for its own end.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn dismiss(mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }
}

impl Drop for Attendant {
    fn drop(&mut self) {
        // Killed while its input is open it has done nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
