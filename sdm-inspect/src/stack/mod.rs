//! Stacks of processes, with names and source lines, without a debugger.

mod frame;
mod inspection;
mod tail_callee;
mod tail_calls;
mod thread;

use std::rc::Rc;
use std::time::Duration;

pub use crate::values::PlainVariable;
pub use frame::{FrameDetail, ProcessStacks, StackFrame, StoppedThread, ThreadStack};
pub use inspection::Inspection;

use crate::address_space::Space;
use crate::module::Modules;
use crate::snapshot::{CaptureRequest, Refusal, Snapshot, WINDOW_BYTES_MAX, take_all};

/// Maximum number of snapshots of one process for one answer. A stack may be deeper than was read, a thread may have a
/// second stack, or the process may execute another program meanwhile. Functions of a Python interpreter are read in a
/// second snapshot.
const LOOKS_MAX: usize = 4;
/// Factor by which more bytes are read of a stack that is deeper than was read.
const DEEPER: usize = 16;

/// Inspects processes of this host. The files that were read are cached.
pub struct Inspector {
    modules: Modules,
}

/// The processes to inspect, with their mapped files opened beforehand.
pub struct Spaces {
    processes: Vec<(i32, Result<Rc<Space>, Refusal>)>,
    /// True until the first snapshot is taken.
    is_new: bool,
    /// True if the functions of an interpreter are read too.
    pub(crate) reads_python: bool,
}

impl Inspector {
    /// An empty inspector. With `of_system` the system's debug information is used too, which takes longer.
    #[must_use]
    pub fn new(of_system: bool) -> Self {
        let modules = Modules::new(of_system);
        Self { modules }
    }

    /// The stacks of each of these processes. Each process has the time `patience` to stop.
    pub fn stacks(
        &mut self,
        pids: &[i32],
        patience: Duration,
    ) -> Vec<Result<ProcessStacks, Refusal>> {
        let mut spaces = self.open(pids);
        self.look(&mut spaces, patience)
    }

    /// Inspects each of these processes. Each process has the time `patience` to stop. With `reads_python` the
    /// functions of a Python interpreter are read too, while the process is stopped a second time.
    pub fn inspect(
        &mut self,
        pids: &[i32],
        reads_python: bool,
        patience: Duration,
    ) -> Vec<Result<Inspection, Refusal>> {
        let mut spaces = self.open(pids);
        spaces.reads_python = reads_python;
        self.inspect_open(&mut spaces, patience)
    }

    /// Opens the files of processes. Do this before repeated inspections at short intervals, as it takes longer than an
    /// inspection.
    pub fn open(&mut self, pids: &[i32]) -> Spaces {
        let processes = pids.iter().map(|pid| (*pid, self.space(*pid)));
        Spaces {
            processes: processes.collect(),
            is_new: true,
            reads_python: false,
        }
    }

    /// The stacks of processes whose files are already open. Each process has the time `patience` to stop.
    pub fn look(
        &mut self,
        spaces: &mut Spaces,
        patience: Duration,
    ) -> Vec<Result<ProcessStacks, Refusal>> {
        let inspections = self.inspect_open(spaces, patience).into_iter();
        inspections
            .map(|found| found.map(|it| it.to_stacks()))
            .collect()
    }

    /// Inspects processes whose files are already open. Each process has the time `patience` to stop.
    pub(crate) fn inspect_open(
        &mut self,
        spaces: &mut Spaces,
        patience: Duration,
    ) -> Vec<Result<Inspection, Refusal>> {
        let is_new = std::mem::take(&mut spaces.is_new);
        let reads_python = spaces.reads_python;
        let processes = &mut spaces.processes;
        for (pid, space) in processes.iter_mut().filter(|_| !is_new) {
            if !space.as_ref().is_ok_and(|space| space.is_of(*pid)) {
                *space = self.space(*pid);
            }
        }
        let mut results: Vec<Option<Result<Inspection, Refusal>>> = processes
            .iter()
            .map(|(_, space)| space.as_ref().err().cloned().map(Err))
            .collect();
        let mut wanted: Vec<(usize, CaptureRequest)> = processes
            .iter()
            .map(|(pid, _)| CaptureRequest::of(*pid))
            .enumerate()
            .collect();
        wanted.retain(|(at, _)| results[*at].is_none());
        for _ in 0..LOOKS_MAX {
            let asked: Vec<CaptureRequest> =
                wanted.iter().map(|(_, wanted)| wanted.clone()).collect();
            let taken = take_all(&asked, patience);
            let mut again = Vec::new();
            for ((at, wanted), taken) in wanted.into_iter().zip(taken) {
                let stood = results[at].as_ref().and_then(|it| it.as_ref().ok());
                let stood = stood.map_or(Duration::ZERO, Inspection::stood);
                let looked = taken.and_then(|mut snapshot| {
                    snapshot.stood += stood;
                    self.inspection(snapshot, &mut processes[at].1)
                });
                if looked.as_ref().is_err_and(|it| *it == Refusal::Executed) {
                    processes[at].1 = self.space(wanted.pid);
                }
                again.extend(next(&wanted, reads_python, &looked).map(|next| (at, next)));
                results[at] = Some(looked);
            }
            wanted = again;
            if wanted.is_empty() {
                break;
            }
        }
        let results = results.into_iter();
        results
            .map(|it| it.unwrap_or(Err(Refusal::Stuck)))
            .collect()
    }

    /// Unwinds the stacks of a snapshot. The mappings are replaced if they are older than the program or a library.
    fn inspection(
        &mut self,
        snapshot: Snapshot,
        space: &mut Result<Rc<Space>, Refusal>,
    ) -> Result<Inspection, Refusal> {
        let known = space.as_mut().map_err(|refusal| refusal.clone())?;
        let pid = snapshot.pid;
        if known.is_outdated(pid) {
            return Err(Refusal::Executed);
        }
        let looked = Inspection::of(snapshot, known);
        // The process may have loaded a library since its mappings were read.
        if looked.is_whole() {
            return Ok(looked);
        }
        let Ok(now) = self.space(pid) else {
            return Ok(looked);
        };
        *known = now;
        Ok(looked.within_space(known))
    }

    fn space(&mut self, pid: i32) -> Result<Rc<Space>, Refusal> {
        if !cfg!(target_arch = "x86_64") {
            return Err(Refusal::Architecture);
        }
        let space = Space::of(pid, &mut self.modules).map(Rc::new);
        space.map_err(|error| Refusal::of_files(pid, error))
    }
}

/// The next request for a process that must be inspected again; `None` if it need not.
fn next(
    wanted: &CaptureRequest,
    reads_python: bool,
    looked: &Result<Inspection, Refusal>,
) -> Option<CaptureRequest> {
    match looked {
        Ok(inspection) => {
            let missing = inspection.missing();
            let known = wanted.python;
            let interpreter = || inspection.interpreter().filter(|_| reads_python);
            let mut next = match missing.is_empty() {
                true => wanted.clone(),
                false => further(wanted, &missing),
            };
            next.python = known.or_else(interpreter);
            (next != *wanted || inspection.lacks_functions()).then_some(next)
        }
        Err(Refusal::Executed) => Some(CaptureRequest::of(wanted.pid)),
        Err(_) => None,
    }
}

/// The next request for a process whose stacks were not read far enough.
fn further(wanted: &CaptureRequest, missing: &[(i32, u64)]) -> CaptureRequest {
    let mut wanted = wanted.clone();
    wanted.window_bytes = wanted
        .window_bytes
        .saturating_mul(DEEPER)
        .min(WINDOW_BYTES_MAX);
    wanted.further.extend_from_slice(missing);
    wanted
}
