//! Watch over a launcher that does not end although all its processes have ended.
//!
//! `prterun` of Open MPI 5.0.11 sometimes hangs if a job that it held (`stop-on-exec`) ends with an exit code other
//! than 0. On a busy machine that was 1 of 6 jobs of two ranks. It releases the job twice, and then waits for a lock in
//! freed memory. Every process that waits for the launcher would hang, too. So a launcher that has had no process and
//! no output for [`END_AFTER`] is asked to end, and then killed.

use std::time::{Duration, Instant};

use sdm_system::proc;

/// Interval between checks whether the launcher still has a process.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Time for which a launcher without processes may be silent.
pub(crate) const END_AFTER: Duration = Duration::from_secs(10);
/// Time limit for the launcher to end after it was asked to.
const KILL_AFTER: Duration = Duration::from_secs(3);

/// The action to take on a launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LauncherAction {
    Nothing,
    /// Send a request to end.
    Terminate,
    /// Kill the launcher.
    Kill,
}

/// Measures the time for which a launcher has had no child process.
#[derive(Debug)]
pub(crate) struct Lingering {
    pid: i32,
    /// Pid of the child that was found at the last check; 0 before the first.
    known: i32,
    last: Instant,
    next: Instant,
    /// Time for which the launcher has had no process and no output.
    idle: Duration,
    asked: bool,
}

impl Lingering {
    /// Watches a launcher whose child processes all exist already.
    pub(crate) fn new(pid: i32, now: Instant) -> Self {
        Self {
            pid,
            known: 0,
            last: now,
            next: now + LOOK_EVERY,
            idle: Duration::ZERO,
            asked: false,
        }
    }

    /// Time of the next check with [`Self::look`].
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// Records output of the launcher.
    pub(crate) fn heard(&mut self) {
        self.idle = Duration::ZERO;
    }

    /// Checks the launcher for living child processes, if a check is due. Returns the action to take.
    pub(crate) fn look(&mut self, now: Instant) -> LauncherAction {
        if now < self.next {
            return LauncherAction::Nothing;
        }
        let works = is_stopped(self.pid) || self.has_child();
        self.look_at(now, works)
    }

    fn look_at(&mut self, now: Instant, works: bool) -> LauncherAction {
        // If this process was delayed, the launcher's output since then may be unread, so only a part of the time
        // counts.
        let passed = now.saturating_duration_since(self.last).min(2 * LOOK_EVERY);
        (self.last, self.next) = (now, now + LOOK_EVERY);
        self.idle = if works {
            Duration::ZERO
        } else {
            self.idle + passed
        };
        if self.asked && self.idle >= KILL_AFTER {
            self.idle = Duration::ZERO;
            return LauncherAction::Kill;
        }
        if self.idle >= END_AFTER {
            self.idle = Duration::ZERO;
            self.asked = true;
            return LauncherAction::Terminate;
        }
        LauncherAction::Nothing
    }

    /// True if a child process of the launcher lives; also true if the processes cannot be listed.
    fn has_child(&mut self) -> bool {
        if is_child(self.known, self.pid) {
            return true;
        }
        let Ok(mut pids) = proc::pids() else {
            return true;
        };
        match pids.find(|pid| is_child(*pid, self.pid)) {
            Some(pid) => {
                self.known = pid;
                true
            }
            None => false,
        }
    }
}

fn is_child(pid: i32, of: i32) -> bool {
    let lives_below = |it: proc::Stat| it.parent() == Some(of) && !it.state().has_ended();
    proc::of(pid).stat().is_ok_and(lives_below)
}

fn is_stopped(pid: i32) -> bool {
    let state = proc::of(pid).state();
    state.is_some_and(|state| state.is_stopped() || state.is_held())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes `seconds` checks, one each time one is due. Returns the resulting actions with their time in seconds since
    /// `begun`.
    fn looks(
        lingering: &mut Lingering,
        begun: Instant,
        works: bool,
        seconds: u32,
    ) -> Vec<(u64, LauncherAction)> {
        let mut came = Vec::new();
        for _ in 0..seconds {
            let now = lingering.next();
            let due = lingering.look_at(now, works);
            if due != LauncherAction::Nothing {
                came.push(((now - begun).as_secs(), due));
            }
        }
        came
    }

    #[test]
    fn silent_launcher_without_children_is_ended() {
        let begun = Instant::now();
        let mut lingering = Lingering::new(1, begun);
        assert_eq!(looks(&mut lingering, begun, true, 100), []);
        assert_eq!(looks(&mut lingering, begun, false, 9), []);
        lingering.heard();
        assert_eq!(looks(&mut lingering, begun, false, 9), []);
        let ends = [
            (119, LauncherAction::Terminate),
            (122, LauncherAction::Kill),
        ];
        assert_eq!(looks(&mut lingering, begun, false, 4), ends);
    }

    #[test]
    fn delayed_check_does_not_end_a_lingering_launcher() {
        let begun = Instant::now();
        let mut lingering = Lingering::new(1, begun);
        let late = begun + Duration::from_secs(1000);
        assert_eq!(lingering.look_at(late, false), LauncherAction::Nothing);
    }

    #[test]
    fn only_living_children_of_the_launcher_are_found() {
        let own = std::process::id().cast_signed();
        let mut lingering = Lingering::new(own, Instant::now());
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        assert!(lingering.has_child());
        assert_eq!(lingering.known, child.id().cast_signed());
        assert!(!is_child(own, own));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_child(child.id().cast_signed(), own));
    }
}
