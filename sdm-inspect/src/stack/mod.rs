//! The stacks of processes, with names and lines of source, without a debugger.

mod called;
mod frame;
mod tails;

use std::time::Duration;

pub use frame::{ProcessStacks, StackFrame, ThreadStack};

use crate::module::Modules;
use crate::snapshot::{Refusal, Snapshot, Thread, WINDOW_BYTES_MAX, Wanted, take_all};
use crate::space::Space;
use crate::unwind::{End, FRAMES_MAX, unwind};

/// How often one process is looked at for one answer: a stack is deeper than was read, or a thread has another one beside it.
const LOOKS_MAX: usize = 4;
/// By how much more is read of a stack that is deeper.
const DEEPER: usize = 16;
/// How gdb calls the place where a signal came in.
const SIGNAL_FRAME: &str = "<signal handler called>";

/// Looks at processes of this host. What it reads of files is kept.
pub struct Inspector {
    modules: Modules,
}

/// Processes whose files are open.
pub struct Spaces {
    processes: Vec<(i32, Result<Space, Refusal>)>,
    /// No look was taken since.
    is_new: bool,
}

impl Inspector {
    /// One that knows nothing yet. `of_system`: debug information is also looked for where systems keep it, which takes longer.
    #[must_use]
    pub fn new(of_system: bool) -> Self {
        let modules = Modules::new(of_system);
        Self { modules }
    }

    /// The stacks of each of these processes, each of which has so long to stop.
    pub fn stacks(
        &mut self,
        pids: &[i32],
        patience: Duration,
    ) -> Vec<Result<ProcessStacks, Refusal>> {
        let mut spaces = self.open(pids);
        self.look(&mut spaces, patience)
    }

    /// Opens the files of processes that are to be looked at more than once within a moment: that takes longer than a look.
    pub fn open(&mut self, pids: &[i32]) -> Spaces {
        let processes = pids.iter().map(|pid| (*pid, self.space(*pid)));
        Spaces {
            processes: processes.collect(),
            is_new: true,
        }
    }

    /// The stacks of processes whose files are open, each of which has so long to stop.
    pub fn look(
        &mut self,
        spaces: &mut Spaces,
        patience: Duration,
    ) -> Vec<Result<ProcessStacks, Refusal>> {
        let is_new = std::mem::take(&mut spaces.is_new);
        let processes = &mut spaces.processes;
        for (pid, space) in processes.iter_mut().filter(|_| !is_new) {
            if !space.as_ref().is_ok_and(|space| space.is_of(*pid)) {
                *space = self.space(*pid);
            }
        }
        let mut results: Vec<Option<Result<ProcessStacks, Refusal>>> = processes
            .iter()
            .map(|(_, space)| space.as_ref().err().cloned().map(Err))
            .collect();
        let mut wanted: Vec<(usize, Wanted)> = processes
            .iter()
            .map(|(pid, _)| Wanted::of(*pid))
            .enumerate()
            .collect();
        wanted.retain(|(at, _)| results[*at].is_none());
        for look in 1..=LOOKS_MAX {
            let asked: Vec<Wanted> = wanted.iter().map(|(_, wanted)| wanted.clone()).collect();
            let taken = take_all(&asked, patience);
            let mut again = Vec::new();
            for ((at, wanted), taken) in wanted.into_iter().zip(taken) {
                let (pid, Ok(space)) = &mut processes[at] else {
                    continue;
                };
                let stood = results[at].as_ref().and_then(|it| it.as_ref().ok());
                let stood = stood.map_or(Duration::ZERO, |stacks| stacks.stood);
                let looked = taken.map(|mut snapshot| {
                    snapshot.stood += stood;
                    let looked = self.read(&snapshot, space);
                    // It may have loaded a library since.
                    if is_new || looked.0.threads.iter().all(|thread| thread.is_whole) {
                        return looked;
                    }
                    match self.space(*pid) {
                        Ok(now) => *space = now,
                        Err(_) => return looked,
                    }
                    self.read(&snapshot, space)
                });
                let missing = looked.as_ref().map_or(&[][..], |(_, missing)| missing);
                if !missing.is_empty() && look < LOOKS_MAX {
                    again.push((at, further(&wanted, missing)));
                }
                results[at] = Some(looked.map(|(stacks, _)| stacks));
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

    fn space(&mut self, pid: i32) -> Result<Space, Refusal> {
        if !cfg!(target_arch = "x86_64") {
            return Err(Refusal::Architecture);
        }
        Space::of(pid, &mut self.modules).map_err(|error| Refusal::of_files(pid, error))
    }

    /// The stacks of a snapshot, and what it has not: thread, stack pointer and address.
    fn read(&self, snapshot: &Snapshot, space: &Space) -> (ProcessStacks, Vec<(i32, u64)>) {
        let mut missing = Vec::new();
        let threads = snapshot.threads.iter().map(|thread| {
            let (stack, end) = read_thread(thread, space);
            if let End::Missing(address) = end {
                missing.push((thread.id, address));
            }
            stack
        });
        let threads = threads.collect();
        let program = space.program().to_owned();
        let stood = snapshot.stood;
        let stacks = ProcessStacks {
            program,
            threads,
            stood,
        };
        (stacks, missing)
    }
}

/// What is wanted of a process of which more is needed than was read.
fn further(wanted: &Wanted, missing: &[(i32, u64)]) -> Wanted {
    let mut wanted = wanted.clone();
    wanted.window_bytes = wanted
        .window_bytes
        .saturating_mul(DEEPER)
        .min(WINDOW_BYTES_MAX);
    wanted.further.extend_from_slice(missing);
    wanted
}

fn read_thread(thread: &Thread, space: &Space) -> (ThreadStack, End) {
    let (frames, end) = unwind(thread, space);
    let mut stack = Vec::new();
    for frame in tails::insert(space, &frames) {
        let address = frame.pc;
        if frame.is_signal {
            let function = Some(SIGNAL_FRAME.to_owned());
            stack.push(StackFrame {
                address,
                function,
                ..StackFrame::default()
            });
            continue;
        }
        let Some(place) = space.place(frame.lookup) else {
            stack.push(StackFrame {
                address,
                ..unnamed(space, address)
            });
            continue;
        };
        let lines = place.module.lines(place.address);
        // gdb shows the innermost function alone of what it has not found on the stack.
        let shown = if frame.is_tail { 1 } else { lines.len() };
        for line in &lines[..shown] {
            let mut named = StackFrame {
                address,
                function: line.function.clone(),
                called: None,
                file: line.file.clone(),
                line: line.line,
                module: String::new(),
                offset: None,
                is_inlined: line.is_inlined,
            };
            if named.function.is_none() || named.file.is_none() {
                named.module = space.module_name(place.module);
            }
            if named.function.is_none() {
                named.offset = unnamed(space, address).offset;
            }
            stack.push(named);
        }
    }
    stack.truncate(FRAMES_MAX);
    called::name(space, &mut stack);
    let stack = ThreadStack {
        thread: thread.id,
        frames: stack,
        is_whole: end == End::Whole,
    };
    (stack, end)
}

/// A frame of which nothing is known but where it stands.
fn unnamed(space: &Space, address: u64) -> StackFrame {
    let (name, offset) = space.offset(address).unzip();
    let name = name.map(crate::files::base_name);
    StackFrame {
        module: name.unwrap_or_default(),
        offset,
        ..StackFrame::default()
    }
}
