//! A helper process that ends when this process does, unless it is released.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};

/// A helper process that ends when its input ends, and has no state to lose. Drop kills it, unless it was released or
/// dismissed.
#[derive(Debug)]
pub struct GuardProcess {
    /// The child process; `None` once the helper is released.
    child: Option<Child>,
}

impl GuardProcess {
    /// Starts the helper, in a process group of its own, so that it gets no signals from a terminal.
    ///
    /// # Errors
    /// The system has no resources for one more process or descriptor.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let child = command.process_group(0).spawn()?;
        Ok(Self { child: Some(child) })
    }

    /// The pid of the helper.
    ///
    /// # Panics
    /// Never: a released one cannot be used any more.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("it is not released").id()
    }

    /// Closes the helper's input and does not wait. The helper carries out its task while this process continues, or
    /// after its end.
    pub fn release(mut self) {
        // A child that is not waited for is reaped by init once this process has ended.
        drop(self.child.take().and_then(|mut child| child.stdin.take()));
    }

    /// Closes the helper's piped input, and waits until the helper ends by itself.
    ///
    /// # Errors
    /// The helper cannot be waited for.
    pub fn dismiss(mut self) -> io::Result<ExitStatus> {
        let child = self.child.as_mut().expect("it is not released");
        child.wait()
    }
}

impl Drop for GuardProcess {
    fn drop(&mut self) {
        let Some(child) = &mut self.child else { return };
        // A helper that is killed while its input is open has not performed its task.
        let _ = child.kill();
        let _ = child.wait();
    }
}
