//! Field offsets in CPython's structures by version, in bytes from the start of the structure.
//!
//! From 3.13 on the interpreter publishes these offsets at the beginning of `_PyRuntime`, for debuggers. Those of 3.11
//! and 3.12 are the same in every 64-bit release build. The reader notices a layout that does not fit, as it gives up
//! at an invalid address or string.

use crate::memory::{Memory, read_u64};

/// The offsets of one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) threads: ThreadLayout,
    pub(super) lock: LockLayout,
    pub(super) frame: FrameLayout,
    pub(super) code: CodeLayout,
    pub(super) objects: ObjectLayout,
}

/// Offsets that lead to the states of the threads, and offsets in a thread's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThreadLayout {
    /// Offset of the first interpreter in the runtime.
    pub(super) interpreters: u64,
    /// Offsets of the next interpreter, and of the first thread, in an interpreter.
    pub(super) next_interpreter: u64,
    pub(super) first: u64,
    /// Offsets of the next thread, and of the kernel's thread id, in a thread's state.
    pub(super) next: u64,
    pub(super) native_id: u64,
    /// Offset of the innermost frame in a thread's state; up to 3.12 inside a `_PyCFrame`, where the second offset
    /// leads to it.
    pub(super) current: u64,
    pub(super) in_c_frame: Option<u64>,
}

/// Location of the interpreter lock (GIL), which the thread that runs Python code holds, and offsets in the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LockLayout {
    pub(super) place: LockPlace,
    /// Offsets of the thread state of the holder, or of the last holder, and of the flag that is set while the lock is
    /// held.
    pub(super) holder: u64,
    pub(super) held: u64,
}

/// The location of the interpreter lock (GIL).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockPlace {
    /// In the runtime, at this offset.
    Runtime(u64),
    /// At the address that an interpreter has at this offset.
    Interpreter(u64),
}

/// Offsets in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameLayout {
    pub(super) code: u64,
    pub(super) previous: u64,
    pub(super) instruction: u64,
    /// Offset of the pointers to the values of the frame's variables.
    pub(super) variables: u64,
    /// Offset of the dictionary of the module's variables.
    pub(super) globals: u64,
    /// Offset of the dictionary of a frame whose variables are in one, as a module's are; `None` if it is not read:
    /// after 3.12 a dictionary has no version, which would show a change.
    pub(super) dictionary: Option<u64>,
    pub(super) boundary: Boundary,
}

/// The way to recognize the outermost frame of one call of the evaluation function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Boundary {
    /// The outermost frame has a flag at this offset.
    IsEntry(u64),
    /// The frame outside the outermost one is the interpreter's own, with an owner of 3 or more at this offset.
    Owner(u64),
}

/// Offsets in a code object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CodeLayout {
    pub(super) file: u64,
    pub(super) name: u64,
    pub(super) lines: u64,
    pub(super) first_line: u64,
    /// Offset of the tuple with the names of the frame's variables.
    pub(super) variable_names: u64,
    pub(super) instructions: u64,
}

/// Offsets in a `str` and in a `bytes` object, and the form of an `int`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ObjectLayout {
    pub(super) text_state: u64,
    pub(super) text_length: u64,
    /// Offset of the characters in an ASCII `str`.
    pub(super) ascii: u64,
    /// Offset of the characters in any other `str`.
    pub(super) compact: u64,
    pub(super) bytes_length: u64,
    pub(super) bytes: u64,
    /// True if the sign of an `int` is in the low bits of its length. False if the length of a negative `int` is
    /// negative.
    pub(super) has_tagged_numbers: bool,
}

/// Upper limit of offsets: no structure is larger.
const OFFSET_MAX: u64 = 1 << 20;

/// The major and minor version from the number in `Py_Version`: `0x030b02f0`.
fn version(number: u64) -> (u8, u8) {
    let part = |at: u32| (number >> at).to_le_bytes()[0];
    (part(24), part(16))
}

impl Layout {
    /// The offsets for a process with `_PyRuntime` and `Py_Version` at these addresses; `None` if its version is not
    /// supported.
    pub(super) fn of(memory: &dyn Memory, runtime: u64, py_version: Option<u64>) -> Option<Self> {
        const COOKIE: u64 = u64::from_ne_bytes(*b"xdebugpy");
        if read_u64(memory, runtime)? == COOKIE {
            return Self::told(memory, runtime);
        }
        match version(read_u64(memory, py_version?)?) {
            (3, 11) => Some(V3_11),
            (3, 12) => Some(V3_12),
            _ => None,
        }
    }

    /// The offsets that Python 3.13 publishes, as numbers of 8 bytes each. `None` for other versions, and for a
    /// free-threaded build.
    fn told(memory: &dyn Memory, runtime: u64) -> Option<Self> {
        let at = |index: u64| read_u64(memory, runtime + 8 * index);
        // In a free-threaded build, instructions are at another offset.
        let is_free_threaded = at(2)? != 0;
        if version(at(1)?) != (3, 13) || is_free_threaded {
            return None;
        }
        let offset = |index: u64| at(index).filter(|offset| *offset < OFFSET_MAX);
        // Offsets in the lock are published relative to the interpreter that contains it.
        let in_lock = |index: u64| offset(index)?.checked_sub(offset(15)?);
        Some(Self {
            threads: ThreadLayout {
                interpreters: offset(5)?,
                next_interpreter: offset(8)?,
                first: offset(9)?,
                next: offset(21)?,
                current: offset(23)?,
                native_id: offset(25)?,
                in_c_frame: None,
            },
            lock: LockLayout {
                place: LockPlace::Interpreter(offset(14)?),
                held: in_lock(17)?,
                holder: in_lock(18)?,
            },
            frame: FrameLayout {
                previous: offset(29)?,
                code: offset(30)?,
                instruction: offset(31)?,
                variables: offset(32)?,
                // It is not published; in 3.12 and 3.13 it is the same.
                globals: V3_12.frame.globals,
                dictionary: None,
                boundary: Boundary::Owner(offset(33)?),
            },
            code: CodeLayout {
                file: offset(35)?,
                name: offset(37)?,
                lines: offset(38)?,
                first_line: offset(39)?,
                variable_names: offset(41)?,
                instructions: offset(43)?,
            },
            objects: ObjectLayout {
                bytes_length: offset(65)?,
                bytes: offset(66)?,
                text_state: offset(68)?,
                text_length: offset(69)?,
                ascii: offset(70)?,
                // The length and the address of the UTF-8 form are in between.
                compact: offset(70)? + 16,
                has_tagged_numbers: true,
            },
        })
    }
}

const V3_11: Layout = Layout {
    threads: ThreadLayout {
        interpreters: 40,
        next_interpreter: 0,
        first: 16,
        next: 8,
        native_id: 160,
        current: 56,
        in_c_frame: Some(8),
    },
    lock: LockLayout {
        place: LockPlace::Runtime(360),
        holder: 8,
        held: 16,
    },
    frame: FrameLayout {
        code: 32,
        previous: 48,
        instruction: 56,
        variables: 72,
        globals: 8,
        dictionary: Some(24),
        boundary: Boundary::IsEntry(68),
    },
    code: CodeLayout {
        file: 112,
        name: 128,
        lines: 136,
        first_line: 72,
        variable_names: 96,
        instructions: 184,
    },
    objects: ObjectLayout {
        text_state: 32,
        text_length: 16,
        ascii: 48,
        compact: 72,
        bytes_length: 16,
        bytes: 32,
        has_tagged_numbers: false,
    },
};

const V3_12: Layout = Layout {
    threads: ThreadLayout {
        first: 72,
        native_id: 144,
        in_c_frame: Some(0),
        ..V3_11.threads
    },
    lock: LockLayout {
        place: LockPlace::Interpreter(384),
        ..V3_11.lock
    },
    frame: FrameLayout {
        code: 0,
        previous: 8,
        instruction: 56,
        variables: 72,
        globals: 24,
        dictionary: Some(40),
        boundary: Boundary::Owner(70),
    },
    code: CodeLayout {
        first_line: 68,
        instructions: 192,
        ..V3_11.code
    },
    objects: ObjectLayout {
        ascii: 40,
        compact: 56,
        has_tagged_numbers: true,
        ..V3_11.objects
    },
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_versions_are_decoded() {
        assert_eq!(version(0x030b_02f0), (3, 11));
        assert_eq!(version(0xffff_ffff_030d_00f0), (3, 13));
    }
}
