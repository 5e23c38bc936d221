//! Runs of `sdm` while any process may be seconds late, so that the number of lines that report a result is not fixed.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::processes;
use crate::screen::Screen;
use crate::sdm::Running;
use nix::sys::signal::Signal;

/// A command for `sh -c` that writes `waits` again and again until the file `seen` exists, and then becomes
/// `mpi_held GO 0`. Only lines written after a tool has connected reach that tool. So a test can wait for a tool by
/// the lines that it gets.
#[must_use]
pub fn waits_for_tools(seen: &Path, held: &Path, go: &Path) -> String {
    let [seen, held, go] = [seen, held, go].map(Path::display);
    format!("until [ -e {seen} ]; do echo waits; sleep 0.1; done; exec {held} {go} 0")
}

/// A command that runs concurrently with the test.
pub struct Beside {
    /// The process of the command.
    pub child: Child,
    /// The standard output of the command.
    pub out: Screen,
    /// The standard error of the command.
    pub err: Screen,
}

impl Beside {
    /// Starts the command.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().expect("it starts");
        let out = child.stdout.take().expect("it is a pipe");
        let err = child.stderr.take().expect("it is a pipe");
        Self {
            child,
            out: Screen::read(out).0,
            err: Screen::read(err).0,
        }
    }

    /// Waits for its end; gives all that it has written to standard output.
    ///
    /// # Panics
    /// If it does not end.
    #[must_use]
    pub fn finish(mut self) -> String {
        let ended = self.out.wait_end() && self.err.wait_end();
        let (out, err) = (self.out.text(), self.err.text());
        assert!(ended, "it does not end:\n{out}{err}");
        self.child.wait().expect("it is a child of this process");
        out
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running<'_> {
    /// Types a command and waits until `what` was reported of every one of `ranks` from then on, at once or one
    /// after another.
    ///
    /// # Panics
    /// If it was not.
    pub fn ask_each(&mut self, line: &str, ranks: &str, what: &str) -> String {
        let mark = self.out.mark();
        self.ask(line, &format!("(sdm) {line}\n"));
        self.out.wait_each(mark, ranks, what)
    }

    /// Stops running `ranks`, and waits until all were reported as interrupted.
    ///
    /// `interrupt` fails where a rank does not stop within some seconds, and a session whose commands come through
    /// a pipe ends at the first that fails. Ctrl-C at a `wait` requests the same and never fails, however late they
    /// stop.
    ///
    /// # Panics
    /// If a rank does not stop.
    pub fn stop(&mut self, ranks: &str) {
        self.questions.interrupted();
        let mark = self.out.mark();
        // A signal after the echo of `wait` is for the `wait`.
        self.ask(&format!("wait {ranks}"), "(sdm) wait ");
        processes::signal(self.pid(), Signal::SIGINT);
        self.out.wait_each(mark, ranks, "interrupted");
    }
}
