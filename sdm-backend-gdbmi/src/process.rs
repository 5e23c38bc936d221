//! Processes by more than their pid, which is used again.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// One process, told from a later one of the same pid by when it began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pid: i32,
    /// In clock ticks since the machine began.
    began: u64,
}

/// The process that has this pid now, unless it is dead already.
pub(crate) fn identity(pid: i32) -> Option<Identity> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; the state follows it.
    let mut fields = stat.rsplit_once(") ")?.1.split_ascii_whitespace();
    let state = fields.next()?;
    let began = fields.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(Identity { pid, began })
}

impl Identity {
    /// True while it runs or stands still.
    pub(crate) fn is_alive(&self) -> bool {
        identity(self.pid).is_some_and(|now| now == *self)
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Kills it, unless it is gone.
    pub(crate) fn kill(&self) {
        self.signal(Signal::SIGKILL);
    }

    /// Sends it a signal, unless it is gone.
    pub(crate) fn signal(&self, signal: Signal) {
        if self.is_alive() {
            let _ = kill(Pid::from_raw(self.pid), signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_until_it_is_gone() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let who = identity(child.id().cast_signed()).unwrap();
        assert!(who.is_alive());
        who.kill();
        child.wait().unwrap();
        assert!(!who.is_alive());
        assert_eq!(identity(-1), None);
    }
}
