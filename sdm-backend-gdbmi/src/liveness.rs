//! Checks whether processes that gdb holds are still alive.
//!
//! gdb does not notice the end of a stopped process, which only SIGKILL can cause. The kernel reports that end to no
//! other process until gdb has waited for the process's threads. gdb also misses the end of a process whose events it
//! has lost.

use std::time::{Duration, Instant};

use sdm_system::proc::{self, State};

use sdm_gdb::Driver;

/// Interval of checks of the processes whose end gdb may miss.
const PERIOD: Duration = Duration::from_secs(1);

/// The time of the next check.
#[derive(Default)]
pub(crate) struct LivenessTimer {
    look_at: Option<Instant>,
}

impl LivenessTimer {
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.look_at
    }

    /// Schedules the next check, if gdb may miss the end of a process; otherwise none.
    pub(crate) fn keep(&mut self, now: Instant, some_end_may_be_missed: bool) {
        if !some_end_may_be_missed {
            self.look_at = None;
        } else if self.look_at.is_none() {
            self.look_at = Some(now + PERIOD);
        }
    }

    /// True if the check is due. It is then no longer scheduled.
    pub(crate) fn take_due(&mut self, now: Instant) -> bool {
        self.look_at.take_if(|at| *at <= now).is_some()
    }
}

/// Checks a task's process, and tells its driver if it is dead.
pub(crate) fn look(now: Instant, driver: &mut Driver) {
    let watched = driver.pid().filter(|_| driver.may_miss_end());
    if watched.is_some_and(is_dead) {
        driver.handle_dead(now);
    }
}

/// True if no thread of a process is alive. The main thread alone may have ended before the others.
fn is_dead(pid: i32) -> bool {
    let process = proc::of(pid);
    let Ok(mut threads) = process.thread_ids() else {
        return true;
    };
    threads.all(|thread| process.thread(thread).state().is_none_or(State::has_ended))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zombie_process_counts_as_dead() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id().cast_signed();
        assert!(!is_dead(pid));
        child.kill().unwrap();
        let begin = Instant::now();
        while !is_dead(pid) && begin.elapsed() < Duration::from_secs(30) {
            std::thread::yield_now();
        }
        assert!(is_dead(pid), "a zombie");
        child.wait().unwrap();
        assert!(is_dead(pid), "gone");
    }
}
