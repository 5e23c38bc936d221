//! A gdb that is held at a chosen command of its server, so that a test can act while gdb is held there.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::place::Place;
use crate::run::until;
use crate::sdm::Running;

const RELAY: &str = include_str!("../fixtures/gdb_relay.py");

/// The point at which a gdb is held: the `number`th command that matches `pattern`.
#[derive(Clone, Debug, PartialEq)]
pub struct Hold {
    /// True to hold the answer; false to hold the command before gdb gets it.
    pub is_answer: bool,
    /// Number of the command among those that match, counted from 1.
    pub number: usize,
    /// Regular expression of Python for the command.
    pub pattern: String,
}

impl Hold {
    /// Holds the first command for gdb.
    #[must_use]
    pub fn first() -> Self {
        Self::command(1, "")
    }

    /// Holds the `number`th command that matches, before gdb gets it.
    #[must_use]
    pub fn command(number: usize, pattern: &str) -> Self {
        Self {
            is_answer: false,
            number,
            pattern: pattern.to_owned(),
        }
    }

    /// Holds the answer to the `number`th command that matches, after gdb has carried it out.
    #[must_use]
    pub fn answer(number: usize, pattern: &str) -> Self {
        Self {
            is_answer: true,
            ..Self::command(number, pattern)
        }
    }
}

/// A program for `--gdb` that relays between server and gdb, and holds gdb once.
pub struct Relay(PathBuf);

impl Relay {
    /// Writes the program into a place.
    #[must_use]
    pub fn new(place: &Place, hold: &Hold) -> Self {
        let folder = place.path().join("relay");
        fs::create_dir(&folder).expect("a folder");
        let program = folder.join("gdb");
        fs::write(&program, RELAY).expect("a file");
        fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("it is ours");
        let what = if hold.is_answer { "answer" } else { "command" };
        let text = format!("{what}\n{}\n{}\n", hold.number, hold.pattern);
        fs::write(folder.join("hold"), text).expect("a file");
        crate::ordinary::give(&folder);
        Self(folder)
    }

    /// The program.
    ///
    /// # Panics
    /// If its path is no text.
    #[must_use]
    pub fn gdb(&self) -> String {
        let path = self.0.join("gdb");
        path.into_os_string().into_string().expect("text")
    }

    /// Waits until gdb is held; gives its pid.
    ///
    /// # Panics
    /// If `sdm` ends before, or it never is.
    #[must_use]
    pub fn wait(&self, running: &Running<'_>) -> u32 {
        self.wait_beside(running.pid(), || running.out.text())
    }

    /// As [`Relay::wait`], with the process that has started gdb, and its output for the message of a failed test.
    ///
    /// # Panics
    /// If the process ends before, or gdb is never held.
    #[must_use]
    pub fn wait_beside(&self, pid: u32, told: impl Fn() -> String) -> u32 {
        let at = self.0.join("at");
        until("gdb is held", || {
            let is_held = at.exists();
            let state = crate::processes::of(pid).state();
            let is_over = state.is_none_or(|state| state.has_ended());
            assert!(is_held || !is_over, "no moment: {}", told());
            is_held
        });
        let pid = fs::read_to_string(at).expect("it is there");
        pid.parse().expect("a pid")
    }

    /// The commands for gdb until now, a held one included.
    ///
    /// # Panics
    /// If gdb was not started.
    #[must_use]
    pub fn sent(&self) -> Vec<String> {
        let text = fs::read_to_string(self.0.join("sent")).expect("the relay writes it");
        text.lines().map(str::to_owned).collect()
    }

    /// Releases gdb.
    ///
    /// # Panics
    /// If the release cannot be sent.
    pub fn release(&self) {
        fs::write(self.0.join("go"), "").expect("a file");
    }
}
