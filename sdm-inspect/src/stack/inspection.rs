//! The stacks of a process at one moment, with its mapped files. They answer the questions of a debugger while the
//! process runs on.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use super::frame::{FrameDetail, ProcessStacks, StackFrame, StoppedThread, ThreadStack};
use super::tail_callee::{self, CALL};
use super::thread::{Detail, ThreadInspection, read_thread};
use crate::address_space::{CODE_BYTES_MAX, Space};
use crate::memory::Memory;
use crate::python::{PythonThread, Runtime, is_evaluation};
use crate::snapshot::{Registers, Snapshot, Thread};
use crate::unwind::{End, FunctionCode, never_returns};
use crate::values::{PlainVariable, Scope, Value, evaluate};
use sdm_system::process_memory::read_memory;

/// Maximum number of frames whose variables are read.
const DETAILED_FRAMES_MAX: usize = 256;
/// Size of a near call with a relative target.
const CALL_BYTES: u64 = 5;

/// The inspection of a process at one moment: its unwound and named stacks.
pub struct Inspection {
    snapshot: Snapshot,
    space: Rc<Space>,
    threads: Vec<ThreadInspection>,
}

impl Inspection {
    /// The inspection of a snapshot, with the process's mappings.
    pub(super) fn of(snapshot: Snapshot, space: &Rc<Space>) -> Self {
        let threads = snapshot.threads.iter();
        let threads = threads.map(|thread| read_thread(thread, space)).collect();
        Self {
            snapshot,
            space: Rc::clone(space),
            threads,
        }
    }

    /// The same snapshot with newer mappings.
    pub(super) fn within_space(self, space: &Rc<Space>) -> Self {
        Self::of(self.snapshot, space)
    }

    /// Time that the process was stopped for the snapshot.
    pub(crate) fn stood(&self) -> Duration {
        self.snapshot.stood
    }

    /// True if all stacks were unwound to their ends, through code that is known.
    pub(super) fn is_whole(&self) -> bool {
        let is_code = |frame: &StackFrame| self.space.is_code(frame.address);
        let is_whole = |it: &ThreadStack| it.is_whole && it.frames.iter().all(is_code);
        self.stacks().all(is_whole)
    }

    /// Stack addresses that are needed and were not read, by thread.
    pub(super) fn missing(&self) -> Vec<(i32, u64)> {
        let missing = |thread: &ThreadInspection| match thread.end {
            End::Missing(address) => Some((thread.stack.thread, address)),
            End::Whole | End::Cut => None,
        };
        self.threads.iter().filter_map(missing).collect()
    }

    /// The interpreter that a thread is in; `None` if there is none.
    pub(super) fn interpreter(&self) -> Option<Runtime> {
        self.evaluating().next()?;
        Some(Runtime {
            address: self.space.variable("_PyRuntime")?,
            version: self.space.variable("Py_Version"),
        })
    }

    /// True if Python functions were found for some thread, but not for every thread in the interpreter. While a thread
    /// calls or leaves a function, its structures are inconsistent for a moment.
    pub(super) fn lacks_functions(&self) -> bool {
        let python = self.python();
        let mut evaluating = self.evaluating();
        !python.is_empty() && evaluating.any(|thread| !python.contains_key(&thread.thread))
    }

    /// The threads that are in the interpreter's evaluation function.
    fn evaluating(&self) -> impl Iterator<Item = &ThreadStack> {
        let evaluates = |thread: &&ThreadStack| {
            let mut names = thread.frames.iter().flat_map(|it| &it.function);
            names.any(|name| is_evaluation(name))
        };
        self.stacks().filter(evaluates)
    }

    /// The threads of the Python interpreter by kernel thread id, as the snapshot found them.
    #[must_use]
    pub fn python(&self) -> &BTreeMap<i32, PythonThread> {
        &self.snapshot.python
    }

    /// Copies of the threads' stacks; the thread that runs `main` is first.
    pub(crate) fn to_stacks(&self) -> ProcessStacks {
        ProcessStacks {
            program: self.space.program().to_owned(),
            threads: self.stacks().cloned().collect(),
            stood: self.snapshot.stood,
        }
    }

    /// The first of these threads of the process, or else its first thread, with its variables and registers. `None`
    /// without a thread.
    pub(crate) fn stopped_thread(&self, ids: &[i32]) -> Option<StoppedThread> {
        let is_it = |it: &ThreadStack| ids.contains(&it.thread);
        let thread = self.stacks().position(is_it).unwrap_or(0);
        let stack = self.stacks().nth(thread)?.clone();
        let detail = |level| FrameDetail {
            path: self.path(thread, level).map(str::to_owned),
            variables: match level < DETAILED_FRAMES_MAX {
                true => self.plain_variables(thread, level),
                false => Vec::new(),
            },
            registers: self
                .registers(thread, level)
                .map(Registers::named)
                .unwrap_or_default(),
        };
        Some(StoppedThread {
            program: self.space.program().to_owned(),
            details: (0..stack.frames.len()).map(detail).collect(),
            stack,
        })
    }

    fn plain_variables(&self, thread: usize, level: usize) -> Vec<PlainVariable> {
        let text = |address| self.address_text(address);
        let plain = self.within(thread, level, |scope| scope.plain(&text));
        plain.unwrap_or_default()
    }

    /// Pid of the process.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.snapshot.pid
    }

    /// Name of the program's file; empty if unknown.
    #[must_use]
    pub fn program(&self) -> &str {
        self.space.program()
    }

    /// The threads' stacks; the thread that runs `main` is first.
    pub fn stacks(&self) -> impl Iterator<Item = &ThreadStack> {
        self.threads.iter().map(|thread| &thread.stack)
    }

    fn detail(&self, thread: usize, level: usize) -> Option<&Detail> {
        self.threads.get(thread)?.details.get(level)
    }

    /// The threads, as the snapshot found them.
    #[must_use]
    pub fn threads(&self) -> &[Thread] {
        &self.snapshot.threads
    }

    /// The path of a frame's source file; `None` if unknown.
    #[must_use]
    pub fn path(&self, thread: usize, level: usize) -> Option<&str> {
        self.detail(thread, level)?.path.as_deref()
    }

    /// The registers in a frame, as far as they are known; `None` if there is no such frame.
    #[must_use]
    pub fn registers(&self, thread: usize, level: usize) -> Option<&Registers> {
        Some(&self.detail(thread, level)?.frame.registers)
    }

    /// The function that the call instruction in front of an address names; `None` if there is none.
    #[must_use]
    pub fn called_before(&self, address: u64) -> Option<String> {
        tail_callee::before(&self.space, address)
    }

    /// The code of the function that contains an address; `None` if it is not known. The code of a function without a
    /// symbol ends at the address.
    #[must_use]
    pub fn function_code(&self, address: u64) -> Option<FunctionCode> {
        let (begin, bytes) = self.space.function_code(address).or_else(|| {
            let begin = self.space.begins(address)?;
            let count = (address.checked_sub(begin)? + 1).min(CODE_BYTES_MAX);
            Some((begin, self.space.code(begin, count)?))
        })?;
        // Each place that looks like a call: those that are none are not asked for.
        let calls = bytes.iter().zip(begin..).filter(|(byte, _)| **byte == CALL);
        let is_end = |at: &u64| {
            let called = tail_callee::before(&self.space, at + CALL_BYTES);
            called.is_some_and(|name| never_returns(&name))
        };
        Some(FunctionCode {
            begin,
            bytes: bytes.to_vec(),
            ends: calls.map(|(_, at)| at).filter(is_end).collect(),
        })
    }

    /// Address of a variable, in the first file that has a variable of this name; `None` if none has.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<u64> {
        self.space.variable(name)
    }

    fn within<T>(
        &self,
        thread: usize,
        level: usize,
        ask: impl FnOnce(&Scope<'_>) -> T,
    ) -> Option<T> {
        let Detail { frame, inlined, .. } = self.detail(thread, level)?;
        let place = self.space.place(frame.lookup)?;
        let entry = place.module.symbols().entry(place.address, *inlined);
        let entry = entry.filter(|_| !frame.is_tail && !frame.is_signal)?;
        let memory = self.memory(thread);
        Some(ask(&Scope {
            unit: entry.unit,
            function: entry.offset,
            frame_base: entry.frame_base,
            address: place.address,
            bias: place.bias(),
            registers: &frame.registers,
            cfa: frame.cfa,
            memory: &memory,
        }))
    }

    /// The variables of a frame, each with its name and bytes. The bytes are `None` for a variable without a location.
    #[must_use]
    pub fn contents(&self, thread: usize, level: usize) -> Vec<(String, Option<Vec<u8>>)> {
        let contents = self.within(thread, level, |scope| scope.contents());
        contents.unwrap_or_default()
    }

    /// The parameters of a frame, in order, with their values if these are scalars.
    #[must_use]
    pub fn parameters(&self, thread: usize, level: usize) -> Vec<(String, Option<String>)> {
        let parameters = self.within(thread, level, |scope| scope.parameters());
        let parameters = parameters.unwrap_or_default().into_iter();
        parameters
            .map(|(name, value)| (name, value.and_then(|value| self.text(&value))))
            .collect()
    }

    /// The value of an expression in a frame: a number, an enumerator's name, or an address with its symbol. `None` for
    /// any other value.
    #[must_use]
    pub fn evaluate(&self, thread: usize, level: usize, expression: &str) -> Option<String> {
        let variable = |name: &str| self.variable(name);
        let of = |level| {
            self.within(thread, level, |scope| {
                evaluate(scope, expression, &variable)
            })?
        };
        let value = of(level).or_else(|| of(self.host(thread, level, expression)?));
        self.text(&value?)
    }

    /// Level of the enclosing function's frame, if no name of the expression belongs to the inner function. `None` if
    /// there are several such frames, as the right one is unknown.
    fn host(&self, thread: usize, level: usize, expression: &str) -> Option<usize> {
        let hosts = self.within(thread, level, |scope| {
            let is_own = scope.has_any_of(expression);
            (!is_own).then(|| scope.hosts())
        })??;
        let unit = |scope: &Scope<'_>| scope.unit.header.offset();
        let inner = self.within(thread, level, unit)?;
        let is_host = |level: &usize| {
            let found = self.within(thread, *level, |scope| (unit(scope), scope.function));
            found.is_some_and(|(unit, function)| unit == inner && hosts.contains(&function))
        };
        let frames = self.threads.get(thread)?.details.len();
        let mut around = (level + 1..frames).filter(is_host);
        around.next().filter(|_| around.next().is_none())
    }

    fn text(&self, value: &Value) -> Option<String> {
        match value {
            Value::Number(number) => {
                let name = number.name.clone();
                Some(name.unwrap_or_else(|| number.value.to_string()))
            }
            Value::Pointer { at, .. } => Some(self.address_text(*at)),
            Value::Object(_) => None,
        }
    }

    /// An address, followed by the name of the variable at it, if any.
    #[must_use]
    pub fn address_text(&self, address: u64) -> String {
        match self.space.variable_at(address) {
            Some((name, 0)) => format!("{address:#x} <{name}>"),
            Some((name, offset)) => format!("{address:#x} <{name}+{offset}>"),
            None => format!("{address:#x}"),
        }
    }

    /// True if a thread has not left a frame since an earlier moment, and its data and that of the outer frames is
    /// unchanged.
    #[must_use]
    pub fn is_still_in(&self, earlier: &Self, thread: usize, level: usize) -> bool {
        let Some((now, was)) = (self.snapshot.threads.get(thread))
            .zip(earlier.snapshot.threads.get(thread))
            .filter(|(now, was)| now.id == was.id)
        else {
            return false;
        };
        // Frames further inside are not compared, as levels count from the inside.
        let depth = |one: &Self| one.threads[thread].details.len().checked_sub(level);
        let Some(depth) = depth(earlier) else {
            return false;
        };
        let at = |one: &Self| {
            let level = one.threads[thread].details.len().checked_sub(depth)?;
            one.registers(thread, level).copied()
        };
        let (Some(registers), Some(before)) = (at(self), at(earlier)) else {
            return false;
        };
        registers.kept() == before.kept()
            && registers.pc() == before.pc()
            && registers.sp() == before.sp()
            && has_same_stack(now, was, registers.sp())
    }

    /// The process's memory: the bytes of the snapshot, and outside them the present contents.
    #[must_use]
    pub fn memory(&self, thread: usize) -> impl Memory {
        let thread = self.snapshot.threads.get(thread);
        StoppedMemory {
            // The main thread may have ended: the kernel then has no memory for the process's own id.
            id: thread.map_or(self.snapshot.pid, |thread| thread.id),
            thread,
        }
    }
}

/// True if a thread has the same stack contents in two snapshots, from an address on and as far as both were read.
fn has_same_stack(now: &Thread, was: &Thread, from: Option<u64>) -> bool {
    let (Some(now), Some(was)) = (part(now, from), part(was, from)) else {
        return false;
    };
    let bytes = now.len().min(was.len());
    now[..bytes] == was[..bytes]
}

fn part(thread: &Thread, from: Option<u64>) -> Option<&[u8]> {
    let from = from?;
    thread.windows.iter().find_map(|window| {
        let from = usize::try_from(from.checked_sub(window.start)?).ok()?;
        window.bytes.get(from..)
    })
}

struct StoppedMemory<'a> {
    /// The kernel's id of a thread of the process.
    id: i32,
    thread: Option<&'a Thread>,
}

impl Memory for StoppedMemory<'_> {
    fn read(&self, address: u64, to: &mut [u8]) -> Option<()> {
        let stood = self.thread.and_then(|it| it.bytes(address, to.len()));
        match stood {
            Some(bytes) => to.copy_from_slice(bytes),
            None => {
                let read = read_memory(self.id, address, to).ok()?;
                (read == to.len()).then_some(())?;
            }
        }
        Some(())
    }
}
