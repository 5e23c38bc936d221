//! Programs that a shim of another session traces. A shim is the parent process of a rank. It detaches from the program
//! on request, so that this process can inspect the program. It reads the registers of a program that stays stopped.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use sdm_system::look_socket::{
    DETACHED, STOPPED, StoppedThread, TRACER_NAME, connect, read_threads,
};
use sdm_system::proc;

/// Time that all tracers together have to detach, and that each has to trace its program again.
const WAIT: Duration = Duration::from_secs(2);

/// The traced programs among some processes.
#[derive(Default)]
pub(super) struct TracedPrograms {
    /// The programs that may be traced now.
    loose: Vec<LooseProgram>,
    /// The threads of the programs that stay stopped, by pid.
    stopped: BTreeMap<i32, Vec<StoppedThread>>,
}

/// A program from which its tracer has detached. Drop lets the tracer trace it again.
struct LooseProgram(UnixStream);

impl TracedPrograms {
    /// Has the shims that trace some of these processes detach, unless they keep them stopped. The other processes stay
    /// as they are.
    pub(super) fn among(pids: impl Iterator<Item = i32>) -> Self {
        let asked = pids.filter_map(|pid| Some((pid, connect(shim_of(pid)?).ok()?)));
        let asked: Vec<(i32, UnixStream)> = asked.collect();
        let until = Instant::now() + WAIT;
        let mut all = Self::default();
        for (pid, mut shim) in asked {
            match receives(&shim, until) {
                Some(DETACHED) => all.loose.push(LooseProgram(shim)),
                Some(STOPPED) => {
                    let is_its = |(id, _): &StoppedThread| proc::of(pid).thread(*id).stat().is_ok();
                    let mut threads = read_threads(&mut shim).unwrap_or_default();
                    threads.retain(is_its);
                    all.stopped.insert(pid, threads);
                }
                _ => {}
            }
        }
        all
    }

    /// The threads of a program that stays stopped; `None` for another process.
    pub(super) fn stopped(&self, pid: i32) -> Option<&[StoppedThread]> {
        self.stopped.get(&pid).map(Vec::as_slice)
    }
}

/// The shim that traces a process; `None` if none does.
fn shim_of(pid: i32) -> Option<i32> {
    let tracer = proc::of(pid).living().status().ok()?.tracer()?;
    let name = proc::of(tracer).name();
    name.is_ok_and(|name| name.starts_with(TRACER_NAME))
        .then_some(tracer)
}

impl Drop for LooseProgram {
    /// Waits until the program is traced again: an inspection while its tracer seizes it would be refused.
    fn drop(&mut self) {
        let until = Instant::now() + WAIT;
        if self.0.shutdown(Shutdown::Write).is_ok() {
            while receives(&self.0, until).is_some() {}
        }
    }
}

/// The next byte; `None` at the end, or if nothing comes in time.
fn receives(mut from: &UnixStream, until: Instant) -> Option<u8> {
    let left = until.saturating_duration_since(Instant::now());
    from.set_read_timeout(Some(left.max(Duration::from_millis(1))))
        .ok()?;
    let mut byte = [0];
    (from.read(&mut byte).ok()? == 1).then_some(byte[0])
}
