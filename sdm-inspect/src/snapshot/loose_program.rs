//! Programs that a shim of another session traces. A shim is the parent process of a rank. It detaches from the program
//! on request, so that this process can inspect the program.

use std::io::Read;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use sdm_system::look_socket::{TRACER_NAME, connect};
use sdm_system::proc;

/// Time that all tracers together have to detach, and that each has to trace its program again.
const WAIT: Duration = Duration::from_secs(2);

/// A program from which its tracer has detached. Drop lets the tracer trace it again.
pub(super) struct LooseProgram(UnixStream);

impl LooseProgram {
    /// Has the shims that trace some of these processes detach. Returns the released processes; the other processes
    /// stay as they are.
    pub(super) fn all(pids: impl Iterator<Item = i32>) -> Vec<Self> {
        let tracer = |pid| proc::of(pid).living().status().ok()?.tracer();
        let is_shim = |tracer: &i32| {
            let name = proc::of(*tracer).name();
            name.is_ok_and(|name| name.starts_with(TRACER_NAME))
        };
        let tracers = pids.filter_map(tracer).filter(is_shim);
        let asked: Vec<_> = tracers.filter_map(|it| connect(it).ok()).collect();
        let until = Instant::now() + WAIT;
        let is_free = |it: &UnixStream| receives(it, until) == Some(1);
        asked.into_iter().filter(is_free).map(Self).collect()
    }
}

impl Drop for LooseProgram {
    /// Waits until the program is traced again: an inspection while its tracer seizes it would be refused.
    fn drop(&mut self) {
        let until = Instant::now() + WAIT;
        if self.0.shutdown(Shutdown::Write).is_ok() {
            while receives(&self.0, until) == Some(1) {}
        }
    }
}

/// Number of bytes received, at most one; 0 at the end, `None` if nothing comes in time.
fn receives(mut from: &UnixStream, until: Instant) -> Option<usize> {
    let left = until.saturating_duration_since(Instant::now());
    from.set_read_timeout(Some(left.max(Duration::from_millis(1))))
        .ok()?;
    from.read(&mut [0]).ok()
}
