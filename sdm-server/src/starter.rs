//! The process that started this one: whether it is still there to want something.

use std::fs;

use nix::unistd::{Pid, getppid};

/// The kernel's flag of a thread that is on its way out (`PF_EXITING`).
const EXITING: u64 = 0x4;

/// Who started this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Starter(Pid);

impl Starter {
    /// To be called early: a starter that is gone already is taken for what adopted us.
    pub(crate) fn now() -> Self {
        Self(getppid())
    }

    /// True where it has ended or is about to. The signal that tells us of its death comes when its
    /// first thread goes, while others of its threads may still count as our parent.
    pub(crate) fn is_gone(self) -> bool {
        if getppid() != self.0 {
            return true;
        }
        match fs::read_to_string(format!("/proc/{}/stat", self.0)) {
            Ok(stat) => is_ending(&stat),
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        }
    }
}

/// Reads `/proc/PID/stat`.
fn is_ending(stat: &str) -> bool {
    // The name in parentheses may hold anything.
    let Some((_, fields)) = stat.rsplit_once(") ") else {
        return false;
    };
    let mut fields = fields.split(' ');
    let state = fields.next();
    let flags: Option<u64> = fields.nth(5).and_then(|flags| flags.parse().ok());
    matches!(state, Some("Z" | "X")) || flags.is_some_and(|flags| flags & EXITING != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_living_starter_is_not_gone() {
        assert!(!Starter::now().is_gone());
        assert!(Starter(Pid::from_raw(i32::MAX)).is_gone());
    }

    #[test]
    fn endings_are_told_by_state_and_by_flag() {
        let stat = |state, flags| format!("7 (a ) b) {state} 1 7 7 0 -1 {flags} 0 0");
        assert!(!is_ending(&stat("S", 4_194_304)));
        assert!(is_ending(&stat("Z", 4_194_304)));
        assert!(is_ending(&stat("R", 4_194_308)));
        assert!(!is_ending("nonsense"));
    }
}
