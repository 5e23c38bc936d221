//! Tools of PMIx that are killed at a given moment of their life.

use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use sdm_system::proc::{State, of_machine};

use crate::processes::{self, signal, wait_state};
use crate::run::BOUND;

/// Time that a tool runs before it is stopped again.
const STEP: Duration = Duration::from_micros(200);

/// A moment in the life of a tool, by what the kernel says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToolMoment {
    /// It has not loaded the library.
    Begun,
    /// It has the library, and no connection.
    Loaded,
    /// It has a connection to a server.
    Connected,
}

impl ToolMoment {
    /// All of them, in their order.
    pub const ALL: [Self; 3] = [Self::Begun, Self::Loaded, Self::Connected];

    /// The moment of a stopped process.
    fn of(pid: u32) -> Self {
        let maps = std::fs::read_to_string(processes::of(pid).path("maps")).unwrap_or_default();
        match () {
            () if is_connected(pid) => Self::Connected,
            () if maps.contains("libpmix") => Self::Loaded,
            () => Self::Begun,
        }
    }
}

/// True if a process has an established connection.
fn is_connected(pid: u32) -> bool {
    let sockets = processes::sockets(pid);
    let table = of_machine("net/tcp").expect("the kernel has TCP");
    let rows = table.lines().skip(1);
    rows.map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|row| row.get(3) == Some(&"01"))
        .filter_map(|row| row.get(9)?.parse().ok())
        .any(|number| sockets.contains(&number))
}

/// Kills a tool at a moment: some are started until one could be stopped there.
///
/// # Panics
/// If no tool could be stopped at this moment.
pub fn kill_at(moment: ToolMoment, start: impl Fn() -> Child) {
    let begin = Instant::now();
    loop {
        let mut tool = start();
        let is_there = is_stopped_at(moment, tool.id(), begin);
        tool.kill().expect("it is ours");
        let status = tool.wait().expect("it ends");
        if is_there {
            assert_eq!(status.signal(), Some(Signal::SIGKILL as i32), "{moment:?}");
            return;
        }
        assert!(begin.elapsed() < BOUND, "no tool was stopped at {moment:?}");
    }
}

/// Lets a process run step by step. Returns true once it is stopped at the moment. Returns false if the moment is over,
/// the process has ended, or the time limit has passed.
fn is_stopped_at(moment: ToolMoment, pid: u32, begin: Instant) -> bool {
    while begin.elapsed() < BOUND {
        signal(pid, Signal::SIGSTOP);
        wait_state(pid, "TZX");
        let state = processes::of(pid).state();
        if !state.is_some_and(State::is_stopped) {
            return false;
        }
        let now = ToolMoment::of(pid);
        if now >= moment {
            return now == moment;
        }
        signal(pid, Signal::SIGCONT);
        std::thread::park_timeout(STEP);
    }
    false
}
