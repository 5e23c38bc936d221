//! Names processes by their pid and the time of their start, as pids are used again.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sdm_system::files;

/// One process, told from a later one of the same pid by when it began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pid: i32,
    /// In clock ticks since the machine began.
    began: u64,
}

/// The process that has this pid now, unless it is dead already.
pub(crate) fn identity(pid: i32) -> Option<Identity> {
    let stat = files::read_lossy(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; the state follows it.
    let mut fields = stat.rsplit_once(") ")?.1.split_ascii_whitespace();
    let state = fields.next()?;
    let began = fields.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(Identity { pid, began })
}

/// Has a process go on that somebody has stopped; one of ours, which nobody has reaped.
pub(crate) fn go_on(pid: i32) {
    if crate::held::is_stopped(pid) {
        let _ = kill(Pid::from_raw(pid), Signal::SIGCONT);
    }
}

/// Kills what a gdb that was killed at its start has left behind: it tries out tracing on a child of its own, which
/// stands still for ever then. Every gdb is a session of its own.
pub(crate) fn end_trials_of(gdb: i32) {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    for pid in pids {
        let stat = files::read_lossy(format!("/proc/{pid}/stat")).unwrap_or_default();
        let Some((name, rest)) = stat.rsplit_once(") ") else {
            continue;
        };
        let fields: Vec<&str> = rest.split(' ').collect();
        let is_its = fields
            .get(3)
            .is_some_and(|session| session.parse() == Ok(gdb));
        if is_its && pid != gdb && name.ends_with("(gdb") {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

/// What a signal is called; gdb's word for those that have no name of their own.
pub(crate) fn signal_name(number: i32) -> String {
    match Signal::try_from(number) {
        Ok(signal) => signal.as_str().to_owned(),
        Err(_) => format!("SIG{number}"),
    }
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
