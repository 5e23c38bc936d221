//! Threads that nothing stops: they wait uninterruptibly (state D) for a device, a file server or a child of `vfork`.

use std::time::{Duration, Instant};

use sdm_system::proc::{self, Process};

use super::Refusal;

/// Time after which a thread in state D is not expected to continue.
const PATIENCE: Duration = Duration::from_secs(1);
/// Pause between two checks. The kernel does not notify when a thread leaves state D.
const PAUSE: Duration = Duration::from_millis(10);

/// A thread in state D.
pub(super) struct KernelWait {
    thread: Process,
    is_main: bool,
    channel: String,
}

/// The first thread of a process that is in state D; `None` if there is none.
pub(super) fn of(pid: i32) -> Option<KernelWait> {
    let process = proc::of(pid);
    process.thread_ids().ok()?.find_map(|id| {
        let thread = process.thread(id);
        let channel = channel_of(&thread)?;
        Some(KernelWait {
            is_main: id == pid,
            thread,
            channel,
        })
    })
}

/// The reason why a process has not stopped although it had time.
#[must_use]
pub fn why_not_stopped(pid: i32) -> Refusal {
    of(pid).map_or(Refusal::Stuck, |wait| wait.refusal())
}

impl KernelWait {
    /// Waits until the thread leaves its wait in the kernel, or ends: then `None`. Otherwise returns the reason not to
    /// inspect its process.
    pub(super) fn outlasts(&self) -> Option<Refusal> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if channel_of(&self.thread).as_ref() != Some(&self.channel) {
                return None;
            }
            std::thread::sleep(PAUSE);
        }
        Some(self.refusal())
    }

    fn refusal(&self) -> Refusal {
        let known = !self.channel.is_empty() && self.channel != "0";
        Refusal::Uninterruptible {
            what: if self.is_main {
                "the process"
            } else {
                "a thread of the process"
            }
            .to_owned(),
            within: if known {
                format!(", in {}", self.channel)
            } else {
                String::new()
            },
        }
    }
}

/// The kernel function in which a thread in state D waits; empty if the kernel does not tell. None in other states.
fn channel_of(thread: &Process) -> Option<String> {
    let state = thread.state()?;
    (state.0 == 'D').then(|| thread.wait_channel())
}
