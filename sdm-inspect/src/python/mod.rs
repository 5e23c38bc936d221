//! Reads the Python functions of a CPython process's threads from its memory.
//!
//! Nothing is called in the process, and nothing in it is changed: it is read while it is stopped. The data can be
//! anything, so every length, count and chain is bounded.

mod layout;
mod lines;
mod torch;
mod variables;

use std::collections::BTreeMap;

use layout::{Boundary, Layout, LockPlace};
use serde::{Deserialize, Serialize};
pub use torch::{ProcessGroup, TorchArguments};

use crate::memory::{Memory, read_u64};

/// Maximum number of interpreters, and of threads of one interpreter.
const INTERPRETERS_MAX: usize = 64;
const THREADS_MAX: usize = 4096;
/// Maximum number of frames of one thread.
pub const FRAMES_MAX: usize = 1024;
/// Maximum length of a name, in characters, and of a table of lines, in bytes.
const TEXT_MAX: u64 = 1024;
const TABLE_BYTES_MAX: u64 = 1 << 20;

/// Upper limit of addresses in any process.
const ADDRESS_MAX: u64 = 1 << 62;

/// The interpreter's function that evaluates Python code; from 3.11 on one call of it can run several functions.
pub const EVALUATES: &str = "_PyEval_EvalFrameDefault";

/// True for the name of the interpreter's evaluation function.
#[must_use]
pub fn is_evaluation(name: &str) -> bool {
    // The compiler also splits off `_PyEval_EvalFrameDefault.cold`.
    name.strip_prefix(EVALUATES)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The addresses that lead to an interpreter's structures in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runtime {
    /// Address of `_PyRuntime`.
    pub address: u64,
    /// Address of `Py_Version`, if it exists.
    pub version: Option<u64>,
}

/// One Python frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PythonFrame {
    /// Qualified name of the function: `Solver.step`.
    pub function: String,
    /// The path of the source file, as the interpreter has it: mostly absolute.
    pub path: String,
    /// The line, from 1; 0 if unknown.
    pub line: u32,
    /// The state of the frame, for comparison with a later one.
    pub state: PythonState,
}

/// The state of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PythonState {
    /// Address of the frame.
    pub address: u64,
    /// Address of the frame's current instruction.
    pub instruction: u64,
    /// Fingerprint of the frame's variables.
    pub variables: u64,
}

/// File of PyTorch's collective operations.
const TORCH_OPERATIONS: &str = "/torch/distributed/distributed_c10d.py";

impl PythonFrame {
    /// Display name of the function. PyTorch's operations get their package as prefix, as many programs have an
    /// `all_reduce` of their own.
    pub fn called(&self) -> String {
        match self.path.ends_with(TORCH_OPERATIONS) {
            true => format!("{}{}", sdm_mpi::TORCH_PREFIX, self.function),
            false => self.function.clone(),
        }
    }
}

/// The frames of one thread.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PythonThread {
    /// One group of frames for each call of the interpreter's evaluation function, innermost first. The frames in a
    /// group are innermost first too.
    pub groups: Vec<Vec<PythonFrame>>,
    /// True if not all frames were read: the outermost group may be incomplete, and groups around it may be missing.
    pub is_cut: bool,
    /// True for the thread with the interpreter's lock: no other thread runs Python code at that time.
    pub has_lock: bool,
}

/// The threads of a Python process, by kernel thread id; empty if its Python version is not supported.
pub fn threads(memory: &dyn Memory, runtime: Runtime) -> BTreeMap<i32, PythonThread> {
    match Reader::of(memory, runtime) {
        Some(mut reader) => reader.threads(runtime.address),
        None => BTreeMap::new(),
    }
}

/// The fields of a code object.
#[derive(Clone)]
struct CodeObject {
    function: String,
    path: String,
    first_line: i64,
    table: Vec<u8>,
    /// Number of the function's variables.
    variables: u64,
}

struct Reader<'a> {
    memory: &'a dyn Memory,
    layout: Layout,
    /// Code objects by address: threads often run the same functions.
    codes: BTreeMap<u64, Option<CodeObject>>,
    /// True for types whose objects are plain numbers, by the address of the type; `None` if the type cannot be read.
    numbers: BTreeMap<u64, Option<bool>>,
}

impl<'a> Reader<'a> {
    /// The reader for a process; `None` if its Python version is not supported.
    fn of(memory: &'a dyn Memory, runtime: Runtime) -> Option<Self> {
        let Runtime { address, version } = runtime;
        let layout = Layout::of(memory, address, version)?;
        (address < ADDRESS_MAX).then_some(Self {
            memory,
            layout,
            codes: BTreeMap::new(),
            numbers: BTreeMap::new(),
        })
    }
}

impl Reader<'_> {
    fn threads(&mut self, runtime: u64) -> BTreeMap<i32, PythonThread> {
        let layout = self.layout.threads;
        let mut found = BTreeMap::new();
        let interpreters = self.chain(
            runtime + layout.interpreters,
            layout.next_interpreter,
            INTERPRETERS_MAX,
        );
        for interpreter in interpreters {
            let holder = self.lock_holder(runtime, interpreter);
            for thread in self.chain(interpreter + layout.first, layout.next, THREADS_MAX) {
                let id = read_u64(self.memory, thread + layout.native_id);
                let id = id.and_then(|id| i32::try_from(id).ok());
                if let (Some(id), Some((groups, is_cut))) = (id, self.groups(thread)) {
                    let known: &mut PythonThread = found.entry(id).or_default();
                    known.has_lock |= holder == Some(thread);
                    // A thread has one state per interpreter that it has used.
                    if known.groups.is_empty() {
                        known.groups = groups;
                        known.is_cut = is_cut;
                    }
                }
            }
        }
        found
    }

    /// Address of the state of the thread that holds an interpreter's lock; `None` if no thread holds it.
    fn lock_holder(&self, runtime: u64, interpreter: u64) -> Option<u64> {
        let layout = self.layout.lock;
        let lock = match layout.place {
            LockPlace::Runtime(at) => runtime + at,
            LockPlace::Interpreter(at) => self.address(interpreter + at)?,
        };
        let mut held = [0; 4];
        self.memory.read(lock + layout.held, &mut held)?;
        // The field is -1 before the lock is created.
        (i32::from_ne_bytes(held) == 1).then(|| self.address(lock + layout.holder))?
    }

    /// The members of a linked list, at most `max`. `at` is the address of the pointer to the first member, and `next`
    /// the offset of a member's link.
    fn chain(&self, at: u64, next: u64, max: usize) -> Vec<u64> {
        let pointed = |at: u64| self.address(at).filter(|address| *address != 0);
        std::iter::successors(pointed(at), |member| pointed(member.wrapping_add(next)))
            .take(max)
            .collect()
    }

    /// The frames of a thread, and whether it has more than the maximum; `None` if its structures are inconsistent.
    fn groups(&mut self, thread: u64) -> Option<(Vec<Vec<PythonFrame>>, bool)> {
        let layout = self.layout;
        let mut frame = self.address(thread + layout.threads.current)?;
        if let Some(offset) = layout.threads.in_c_frame {
            frame = self.address(frame + offset)?;
        }
        let mut groups = Vec::new();
        let mut group = Vec::new();
        for depth in 0..FRAMES_MAX {
            if frame == 0 {
                break;
            }
            let is_boundary = |at: u64| -> Option<u8> {
                let mut byte = [0];
                self.memory.read(frame.checked_add(at)?, &mut byte)?;
                Some(byte[0])
            };
            let (ends, is_shown) = match layout.frame.boundary {
                Boundary::IsEntry(at) => (is_boundary(at)? != 0, true),
                Boundary::Owner(at) => {
                    let is_own = is_boundary(at)? >= 3;
                    (is_own, !is_own)
                }
            };
            if is_shown {
                group.push(self.frame(frame, depth)?);
            }
            if ends {
                groups.push(std::mem::take(&mut group));
            }
            frame = self.address(frame + layout.frame.previous)?;
        }
        if !group.is_empty() {
            groups.push(group);
        }
        Some((groups, frame != 0))
    }

    /// Reads a frame; `None` if its structures are inconsistent. `depth` is the number of frames inside it.
    fn frame(&mut self, frame: u64, depth: usize) -> Option<PythonFrame> {
        let layout = self.layout;
        let address = self.address(frame + layout.frame.code)?;
        let instruction = self.address(frame + layout.frame.instruction)?;
        if !self.codes.contains_key(&address) {
            let code = self.code(address);
            self.codes.insert(address, code);
        }
        let count = self.codes.get(&address)?.as_ref()?.variables;
        let variables = self.variables(frame, count, depth);
        let code = self.codes.get(&address)?.as_ref()?;
        // Before a frame's first instruction the pointer is in front of the code.
        let begin = address + layout.code.instructions;
        let at = instruction.saturating_sub(begin);
        let line = lines::line_of(&code.table, code.first_line, at);
        Some(PythonFrame {
            function: code.function.clone(),
            path: code.path.clone(),
            line: line.unwrap_or_else(|| u32::try_from(code.first_line).unwrap_or(0)),
            state: PythonState {
                address: frame,
                instruction,
                variables,
            },
        })
    }

    fn code(&self, code: u64) -> Option<CodeObject> {
        let layout = self.layout.code;
        // The number of variables follows the first line in each version.
        let numbers = read_u64(self.memory, code.checked_add(layout.first_line)?)?.to_ne_bytes();
        let [a, b, c, d, number @ ..] = numbers;
        let variables = i32::from_ne_bytes(number);
        Some(CodeObject {
            function: self.text(self.address(code + layout.name)?)?,
            path: self.text(self.address(code + layout.file)?)?,
            first_line: i64::from(i32::from_ne_bytes([a, b, c, d])),
            variables: u64::try_from(variables).unwrap_or(0),
            table: self.bytes(self.address(code + layout.lines)?)?,
        })
    }

    /// The text of a `str`, cut if it is too long; `None` for other objects.
    fn text(&self, text: u64) -> Option<String> {
        let layout = self.layout.objects;
        let state = read_u64(self.memory, text.checked_add(layout.text_state)?)?;
        if cfg!(target_endian = "big") {
            // On such processors bit fields are in reverse order, which is untested.
            return None;
        }
        let (width, is_compact, is_ascii) = (
            (state >> 2) & 7,
            state & (1 << 5) != 0,
            state & (1 << 6) != 0,
        );
        if !is_compact || !matches!(width, 1 | 2 | 4) {
            return None;
        }
        let length = self.address(text + layout.text_length)?.min(TEXT_MAX);
        let at = text
            + if is_ascii {
                layout.ascii
            } else {
                layout.compact
            };
        let mut bytes = vec![0; usize::try_from(length * width).ok()?];
        self.memory.read(at, &mut bytes)?;
        let characters = bytes
            .chunks_exact(usize::try_from(width).ok()?)
            .map(|unit| {
                let mut wide = [0; 4];
                wide[..unit.len()].copy_from_slice(unit);
                char::from_u32(u32::from_le_bytes(wide)).unwrap_or(char::REPLACEMENT_CHARACTER)
            });
        Some(characters.collect())
    }

    fn bytes(&self, bytes: u64) -> Option<Vec<u8>> {
        let layout = self.layout.objects;
        let length = self.address(bytes.checked_add(layout.bytes_length)?)?;
        if length > TABLE_BYTES_MAX {
            return None;
        }
        let mut content = vec![0; usize::try_from(length).ok()?];
        self.memory.read(bytes + layout.bytes, &mut content)?;
        Some(content)
    }

    /// Reads an address or a length from the process; `None` if it is so large that adding an offset could overflow.
    fn address(&self, at: u64) -> Option<u64> {
        read_u64(self.memory, at).filter(|address| *address < ADDRESS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pytorch_operations_have_their_package_name() {
        let own = "/usr/lib/python3/dist-packages/torch/distributed/";
        let at = |file: &str| {
            let frame = PythonFrame {
                function: "all_reduce".to_owned(),
                path: format!("{own}{file}"),
                line: 1,
                state: PythonState::default(),
            };
            frame.called()
        };
        assert_eq!(at("distributed_c10d.py"), "torch.distributed.all_reduce");
        assert_eq!(at("run.py"), "all_reduce");
    }

    /// Memory in which every address is readable and has arbitrary content.
    struct Noise(Cell<u64>);

    impl Memory for Noise {
        fn read(&self, address: u64, to: &mut [u8]) -> Option<()> {
            let mut seed = self.0.get() ^ address;
            for byte in to {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *byte = seed.to_le_bytes()[7];
            }
            Some(())
        }
    }

    /// A layout as in 3.11, in memory full of small numbers that point into themselves.
    struct Ring;

    impl Memory for Ring {
        fn read(&self, address: u64, to: &mut [u8]) -> Option<()> {
            let value: u64 = if address == 8 { 0x030b_02f0 } else { 0x60 };
            let bytes = value.to_ne_bytes();
            for (at, byte) in to.iter_mut().enumerate() {
                *byte = bytes[at % 8];
            }
            Some(())
        }
    }

    proptest! {
            #[test]
            fn python_frame_reader_never_panics_on_any_memory(seed: u64, runtime in 0_u64..1 << 50, version: u64) {
                let memory = Noise(Cell::new(seed));
                let _ = threads(&memory, Runtime { address: runtime, version: Some(version) });
                let mut reader = Reader {
                    memory: &memory,
                    layout: Layout::of(&Ring, 1 << 20, Some(8)).unwrap(),
                    codes: BTreeMap::new(),
    numbers: BTreeMap::new(),
                };
                let _ = reader.groups(runtime);
                let _ = reader.text(runtime);
                let _ = reader.bytes(runtime);
            }
        }

    #[test]
    fn cyclic_frame_chain_is_bounded() {
        let reader = Reader {
            memory: &Ring,
            layout: Layout::of(&Ring, 1 << 20, Some(8)).unwrap(),
            codes: BTreeMap::new(),
            numbers: BTreeMap::new(),
        };
        assert_eq!(reader.chain(0x1000, 0, 64).len(), 64);
        assert!(
            threads(
                &Ring,
                Runtime {
                    address: 1 << 20,
                    version: Some(8)
                }
            )
            .len()
                <= 1
        );
    }
}
