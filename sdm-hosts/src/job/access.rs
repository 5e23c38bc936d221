//! Obstacles to reading a process of this machine, or to attaching to it with gdb.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;

use nix::unistd::geteuid;
use sdm_system::files::user;
use sdm_system::look_socket::TRACER_NAME;
use sdm_system::proc::{self, State};

use super::error::either;

/// The capability that lets a process trace other processes, as a bit of `CapEff` in `/proc/PID/status`.
const CAP_SYS_PTRACE: u32 = 19;

/// Obstacle to attaching to a process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Obstacle {
    /// The process has ended.
    Gone,
    /// The main thread has ended, and other threads continue. The process can be read, but gdb cannot attach to it.
    Headless,
    /// The process belongs to another user.
    Foreign {
        /// The owner's name, or user number if the owner has no name.
        owner: String,
    },
    /// The process is not dumpable: it has changed its user or group ids, or has switched dumping off.
    Undumpable,
    /// Another debugger traces the process.
    Traced {
        /// The debugger, as text for the user.
        by: String,
        /// True if the debugger is a member of an SDM session.
        ours: bool,
    },
    /// The setting `kernel.yama.ptrace_scope` of this machine forbids this process to attach.
    Forbidden {
        /// Value of `kernel.yama.ptrace_scope`.
        scope: u8,
    },
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("has ended"),
            Self::Headless => f.write_str(
                "runs without its main thread, which has ended: gdb cannot attach to such a process",
            ),
            Self::Foreign { owner } => {
                let own = user(geteuid().as_raw());
                let either = either(owner);
                write!(f, "belongs to {owner} and you are {own}: run sdm as {either}root")
            }
            Self::Undumpable => f.write_str(
                "cannot be traced (it runs with different privileges): run sdm as root",
            ),
            Self::Traced { by, ours: true } if by.starts_with(TRACER_NAME) => write!(
                f,
                "is in a batch session of sdm ({by}), to which gdb cannot attach: use `sdm stacks` or `sdm diagnose`"
            ),
            Self::Traced { by, ours: true } => write!(
                f,
                "is in another session of sdm ({by}): use that session or its report"
            ),
            Self::Traced { by, .. } => write!(f, "is already traced by {by}: end that process first"),
            Self::Forbidden { scope } => write!(
                f,
                "cannot be traced on this machine (kernel.yama.ptrace_scope={scope}): run sdm as root, or have root \
                 set it to 0"
            ),
        }
    }
}

/// The purpose for which processes are accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The processes are read, and are stopped only briefly.
    Read,
    /// gdb attaches to the processes.
    Attach,
}

/// The obstacles to this access, each with the pid. Processes without an obstacle are left out.
#[must_use]
pub fn obstacles(pids: &[i32], access: Access) -> Vec<(i32, Obstacle)> {
    let scope = proc::of_machine("sys/kernel/yama/ptrace_scope");
    let scope = scope.ok().and_then(|text| text.trim().parse().ok());
    let scope = match (scope.unwrap_or(0), access) {
        // The kernel lets processes be traced that have called `prctl(PR_SET_PTRACER)`, which only an attempt shows.
        (1, Access::Read) => 0,
        (scope, _) => scope,
    };
    let may_trace_all = may_trace_all();
    let obstacle = |pid: &i32| Some((*pid, obstacle(*pid, access, may_trace_all, scope)?));
    pids.iter().filter_map(obstacle).collect()
}

fn obstacle(pid: i32, access: Access, may_trace_all: bool, scope: u8) -> Option<Obstacle> {
    let process = proc::of(pid);
    let Ok(status) = process.status() else {
        return Some(Obstacle::Gone);
    };
    let state = status.field("State").and_then(|it| it.chars().next());
    let threads = status.field("Threads").and_then(|it| it.parse().ok());
    // A living thread is enough to read the process.
    let is_one = |it: &Obstacle| access == Access::Attach || *it != Obstacle::Headless;
    if let Some(end) = end(state, threads).filter(is_one) {
        return Some(end);
    }
    let tracer = status.tracer().map(|pid| (pid, proc::of(pid)));
    let tracer = tracer.map(|(pid, tracer)| (pid, tracer.name().unwrap_or_default(), tracer));
    let lets_look = |name: &str| access == Access::Read && name.starts_with(TRACER_NAME);
    if let Some((tracer_pid, name, tracer)) = tracer.filter(|(_, name, _)| !lets_look(name)) {
        let by = format!("{name} (pid {tracer_pid})");
        let starter = tracer.stat().ok().and_then(|it| it.parent());
        let starter = starter.and_then(|pid| proc::of(pid).name().ok());
        let names = [Some(name), starter];
        let ours = names.iter().flatten().any(|it| it.starts_with("sdm-"));
        return Some(Obstacle::Traced { by, ours });
    }
    // No process may trace at 3, only one with CAP_SYS_PTRACE at 2, only ancestors at 1.
    if scope >= 3 || (scope >= 1 && !may_trace_all) {
        return Some(Obstacle::Forbidden { scope });
    }
    if may_trace_all {
        return None;
    }
    // Real, effective, saved and file-system ids: all must be ours.
    let own = geteuid().as_raw();
    let ids = status.ids("Uid")?;
    if let Some(other) = ids.into_iter().find(|id| *id != own) {
        return Some(Obstacle::Foreign { owner: user(other) });
    }
    let inside = fs::metadata(process.living().path("environ"));
    let is_ours = inside.is_ok_and(|inside| inside.uid() == own);
    (!is_ours).then_some(Obstacle::Undumpable)
}

/// The obstacle for a process that has ended, from its state and number of threads; `None` if the process runs.
fn end(state: Option<char>, threads: Option<u32>) -> Option<Obstacle> {
    let has_ended = state.is_none_or(|letter| State(letter).has_ended());
    has_ended.then_some(match threads {
        Some(2..) => Obstacle::Headless,
        _ => Obstacle::Gone,
    })
}

fn may_trace_all() -> bool {
    let status = proc::own().status().ok();
    let bits = status.and_then(|status| status.bits("CapEff"));
    bits.unwrap_or(0) >> CAP_SYS_PTRACE & 1 == 1
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn process_whose_main_thread_has_ended_is_headless_not_gone() {
        assert_eq!(end(Some('Z'), Some(2)), Some(Obstacle::Headless));
        assert_eq!(end(Some('Z'), Some(1)), Some(Obstacle::Gone));
        assert_eq!(end(None, None), Some(Obstacle::Gone));
        assert_eq!(end(Some('S'), Some(2)), None);
    }

    #[test]
    fn undumpable_process_is_reported() {
        if geteuid().is_root() {
            println!("SKIP: root may look at everything");
            return;
        }
        // A process that is not dumpable cannot be read.
        let pid = std::process::id().cast_signed();
        nix::sys::prctl::set_dumpable(false).unwrap();
        let told = obstacle(pid, Access::Attach, false, 0);
        nix::sys::prctl::set_dumpable(true).unwrap();
        assert_eq!(told, Some(Obstacle::Undumpable));
    }

    #[test]
    fn attach_obstacle_follows_ptrace_scope_and_process_state() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = child.id().cast_signed();
        assert_eq!(obstacle(pid, Access::Attach, true, 0), None);
        assert_eq!(obstacle(pid, Access::Attach, false, 0), None);
        let forbidden = |scope| Some(Obstacle::Forbidden { scope });
        assert_eq!(obstacle(pid, Access::Attach, false, 1), forbidden(1));
        assert_eq!(obstacle(pid, Access::Attach, true, 2), None);
        assert_eq!(obstacle(pid, Access::Attach, true, 3), forbidden(3));
        drop(child.stdin.take());
        // A zombie is gone too.
        while proc::of(pid).state() != Some(State('Z')) {
            std::thread::yield_now();
        }
        assert_eq!(obstacle(pid, Access::Attach, true, 0), Some(Obstacle::Gone));
        child.wait().unwrap();
        for access in [Access::Read, Access::Attach] {
            assert_eq!(obstacles(&[-1], access), [(-1, Obstacle::Gone)]);
        }
    }
}
