//! Folds the stacks of a task to the code that its programmer wrote.
//!
//! A frame is the *user's* if it is in the program itself or in a shared object that is no runtime ([`FoldRules`]).
//! Each run of runtime frames called by user code is shown as one frame: the called function, at the user's file and
//! line. Frames outside the outermost user frame (start of libc or of a thread) are dropped. Recursion is counted. A
//! thread without any user frame is counted as a helper, unless it is the main thread or its stack is incomplete.

use sdm_mpi::fortran_name;

pub use crate::fold_rules::FoldRules;
use crate::fold_rules::plain_name;
use crate::reply::{StackFrame, TaskStacks, ThreadStack};

/// Maximum number of frames shown of one stack, with marks. The middle of a deeper stack is left out and counted.
pub const STACK_FRAMES_MAX: usize = 256;
/// Number of shown frames that are reserved for marks: [`STOPPED`] and [`HALTED`], in front of the outermost frame.
const MARKS_MAX: usize = 2;
/// Maximum number of distinct stacks shown of one task. Threads with further stacks count as helpers.
pub const STACKS_MAX: usize = 1024;
/// Maximum length of a shown name, in bytes. A longer one is cut and ends with the hash of the whole name.
pub const NAME_BYTES_MAX: usize = 512;

/// Prefix of gdb's message about a stack that it could not unwind to its end. The message is put in front of such a
/// stack as its outermost frame. It distinguishes an incomplete stack from a complete one.
pub const STOPPED: &str = "Backtrace stopped: ";

/// Text that is put in front of each stack as its outermost frame, if a signal has stopped the process. The stacks
/// themselves are complete.
pub const HALTED: &str = "stopped by a signal (SIGSTOP or another stop signal)";

/// Number of outermost frames that are searched for `main` or for start code. Start code of some linkers has no names,
/// so the end of a complete stack need not be its last frame.
const OUTERMOST: usize = 4;

/// Prefix of the libc functions below which `main` is called.
const LIBC_START: &str = "__libc_start_main";

/// gdb's name of the frame between a signal handler and the interrupted function.
const SIGNAL_FRAME: &str = "<signal handler called>";

/// One frame from gdb.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RawFrame {
    /// The function; `None` if it has no name.
    pub function: Option<String>,
    /// The source file without directories; `None` if unknown.
    pub file: Option<String>,
    /// The line, from 1; 0 if unknown.
    pub line: u32,
    /// File name of the shared object, without directories; empty for the program itself.
    pub module: String,
    /// Module and offset of a frame without a name: `libuser.so+0x1724`.
    pub place: String,
}

/// The stack of one thread as reported by gdb.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RawThread {
    /// True for the main thread.
    pub main: bool,
    /// The thread's name. It is not shown, because threads of one name can be anywhere.
    pub name: String,
    /// The frames as reported by gdb, innermost first.
    pub frames: Vec<RawFrame>,
    /// gdb's message if it could not unwind further, which begins with [`STOPPED`]; `None` for a complete stack.
    pub stopped: Option<String>,
}

/// The innermost frame that the user wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserFrame {
    /// Index of the frame in the stack; 0 is the innermost.
    pub index: usize,
    /// The runtime function that the frame called: `MPI_Recv`, `sleep`; `None` if the thread is in the frame's own
    /// code.
    pub inside: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// A function of the user.
    User,
    /// The function by which the user's code enters a runtime.
    Entry,
    /// A function inside a runtime.
    Runtime,
    /// A frame that is never shown: the start of libc, the loader, `start_thread`.
    Plumbing,
    /// The frame in which a signal arrived.
    Signal,
}

/// The folded stacks of a task; if `full` is set, every frame of every thread instead.
#[must_use]
pub fn fold_task(threads: &[RawThread], rules: &FoldRules, full: bool) -> TaskStacks {
    let mut stacks: Vec<ThreadStack> = Vec::new();
    let mut helpers = 0;
    for thread in threads {
        let frames = if full {
            Some(bounded(
                thread.frames.iter().rev().map(StackFrame::from).collect(),
            ))
        } else {
            fold_thread(thread, rules)
        };
        let Some(mut frames) = frames else {
            helpers += 1;
            continue;
        };
        if let Some(reason) = &thread.stopped {
            frames.insert(0, StackFrame::own(shorten(reason), "", 0));
        }
        match stacks.iter().position(|stack| stack.frames == frames) {
            Some(at) => {
                stacks[at].count += 1;
                stacks[at].main |= thread.main;
            }
            None if stacks.len() >= STACKS_MAX => helpers += 1,
            None => stacks.push(ThreadStack {
                count: 1,
                main: thread.main,
                frames,
            }),
        }
    }
    // The order must not depend on the order in which threads were created.
    stacks.sort_by(|a, b| {
        (b.main, b.count)
            .cmp(&(a.main, a.count))
            .then_with(|| a.frames.cmp(&b.frames))
    });
    TaskStacks {
        threads: stacks,
        helpers,
    }
}

/// Marks the stacks of a process that a signal has stopped with [`HALTED`], so that they merge only with stacks marked
/// likewise.
pub fn mark_halted(stacks: &mut TaskStacks) {
    for thread in &mut stacks.threads {
        thread.frames.insert(0, StackFrame::own(HALTED, "", 0));
    }
}

/// The innermost user frame, and the runtime function that this frame has called. `frames` are given innermost first.
/// `None` if no frame is the user's.
#[must_use]
pub fn innermost_user_frame(frames: &[RawFrame], rules: &FoldRules) -> Option<UserFrame> {
    let kinds = kinds(frames, rules);
    let index = kinds.iter().position(|kind| *kind == Kind::User)?;
    let run = kinds[..index]
        .iter()
        .rposition(|kind| *kind == Kind::Signal)
        .map_or(0, |signal| signal + 1);
    let inside = head(&frames[run..index], &kinds[run..index]).map(|frame| frame.function);
    Some(UserFrame { index, inside })
}

/// The indices of the user's frames, innermost first like `frames`.
#[must_use]
pub fn user_frames(frames: &[RawFrame], rules: &FoldRules) -> Vec<usize> {
    let kinds = kinds(frames, rules);
    let users = kinds.iter().enumerate();
    users
        .filter(|(_, kind)| **kind == Kind::User)
        .map(|(index, _)| index)
        .collect()
}

/// True if a stack was read to its end: to `main`, or to a function that starts threads or programs. A stack whose
/// unwinding failed ends elsewhere.
#[must_use]
pub fn is_whole(frames: &[RawFrame], rules: &FoldRules) -> bool {
    let ends = |name: &str| matches!(name, "main" | "MAIN__") || rules.is_plumbing(name);
    frames
        .iter()
        .rev()
        .take(OUTERMOST)
        .any(|frame| frame.function.as_deref().is_some_and(ends))
}

/// The folded frames of a thread, outermost first; `None` for a helper thread of a runtime.
fn fold_thread(thread: &RawThread, rules: &FoldRules) -> Option<Vec<StackFrame>> {
    let frames = &thread.frames;
    let kinds = kinds(frames, rules);
    let Some(outermost) = kinds.iter().rposition(|kind| *kind == Kind::User) else {
        // No user frame: before `main`, after it, or a broken stack. One frame is shown for the main thread, and for
        // a thread that could not be unwound completely.
        return (thread.main || thread.stopped.is_some()).then(|| {
            let shown = head(frames, &kinds).or_else(|| frames.first().map(StackFrame::from));
            shown.into_iter().collect()
        });
    };
    let mut folded: Vec<StackFrame> = Vec::new();
    let mut end = outermost + 1;
    while end > 0 {
        let at = end - 1;
        match kinds[at] {
            Kind::Plumbing => end = at,
            Kind::User | Kind::Signal => {
                push(&mut folded, StackFrame::from(&frames[at]));
                end = at;
            }
            Kind::Entry | Kind::Runtime => {
                let from = kinds[..end]
                    .iter()
                    .rposition(|kind| matches!(kind, Kind::User | Kind::Signal))
                    .map_or(0, |other| other + 1);
                if let Some(mut entry) = head(&frames[from..end], &kinds[from..end]) {
                    let caller = frames
                        .get(end)
                        .filter(|_| kinds.get(end) == Some(&Kind::User));
                    entry.file = caller.and_then(|c| c.file.clone()).unwrap_or_default();
                    entry.line = caller.map_or(0, |c| c.line);
                    folded.push(entry);
                }
                end = from;
            }
        }
    }
    Some(bounded(folded))
}

/// Adds a frame. A frame of the same function called from the same line as the last one only increases the repeat
/// count.
fn push(folded: &mut Vec<StackFrame>, frame: StackFrame) {
    if let Some(last) = folded.last_mut() {
        let repeat = last.repeat;
        last.repeat = frame.repeat;
        let same = *last == frame;
        last.repeat = repeat;
        if same {
            last.repeat = repeat.saturating_add(1);
            return;
        }
    }
    folded.push(frame);
}

/// The kind of each frame, in the order of the frames: innermost first.
fn kinds(frames: &[RawFrame], rules: &FoldRules) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = frames.iter().map(|frame| kind(frame, rules)).collect();
    // Goes from the outermost frame inward. A runtime that is linked into the program has the program's module. So
    // frames inside such an entry cannot be told from the user's by their module, and count as the runtime's.
    let mut inside_static = false;
    for (frame, kind) in frames.iter().zip(&mut kinds).rev() {
        match *kind {
            Kind::Entry => inside_static = frame.module.is_empty(),
            Kind::Signal => inside_static = false,
            Kind::User if inside_static => *kind = Kind::Runtime,
            _ => {}
        }
    }
    // A sanitizer's replacement of a libc function has libc's name for it. Calls that the compiler inserts are not in
    // the sanitizer's namespace. The caller of a function in the namespace is therefore such a replacement.
    for at in 1..frames.len() {
        let inner = frames[at - 1].function.as_deref().unwrap_or_default();
        let is_linked_in = |frame: &RawFrame| frame.module.is_empty() && frame.file.is_none();
        if kinds[at] == Kind::User
            && inner.starts_with("__asan::")
            && frames[at - 1..=at].iter().all(is_linked_in)
        {
            kinds[at] = Kind::Entry;
        }
    }
    mark_start(frames, &mut kinds);
    // The kernel's vDSO has no module and no source. As the innermost frame below a runtime frame it is not the
    // user's.
    if let [first, second, ..] = frames
        && kinds[0] == Kind::User
        && first.module.is_empty()
        && first.file.is_none()
        && kinds[1] == Kind::Runtime
        && !second.module.is_empty()
    {
        kinds[0] = Kind::Runtime;
    }
    kinds
}

/// Marks libc's start code as plumbing. In a stripped program it has no names: the caller of `__libc_start_main`, and
/// libc's own function that it calls.
fn mark_start(frames: &[RawFrame], kinds: &mut [Kind]) {
    let name = |frame: &RawFrame| {
        frame
            .function
            .as_deref()
            .unwrap_or_default()
            .starts_with(LIBC_START)
    };
    let Some(start) = frames.iter().rposition(name) else {
        return;
    };
    let has_no_name = |frame: &RawFrame| frame.function.is_none();
    let called = frames[..start].last();
    let is_own = |it: &RawFrame| {
        has_no_name(it) && !it.module.is_empty() && it.module == frames[start].module
    };
    let from = start - usize::from(called.is_some_and(is_own));
    for (frame, kind) in frames.iter().zip(kinds).skip(from) {
        if has_no_name(frame) {
            *kind = Kind::Plumbing;
        }
    }
}

fn kind(frame: &RawFrame, rules: &FoldRules) -> Kind {
    let common = frame.module.is_empty() && frame.file.is_some();
    match frame.function.as_deref() {
        Some(SIGNAL_FRAME) => Kind::Signal,
        Some(name) if rules.is_plumbing(name) => Kind::Plumbing,
        Some(name) if rules.is_entry(name, common) => Kind::Entry,
        Some(name) if name.starts_with("__vdso_") => Kind::Runtime,
        _ if rules.is_runtime_module(&frame.module) => Kind::Runtime,
        // Templates of the standard library are compiled into the program.
        Some(name) if is_of_standard_library(name) => Kind::Runtime,
        _ => Kind::User,
    }
}

/// True for functions of the standard library of C++ and its internal layers, and of Rust's `std`, which are compiled
/// into the program.
#[must_use]
pub fn is_of_standard_library(function: &str) -> bool {
    const BEGINNINGS: [&str; 3] = ["std::", "__gnu_cxx::", "__gthread_"];
    BEGINNINGS.iter().any(|space| function.starts_with(space))
}

/// The frame that represents a run of runtime frames (innermost first): its outermost entry, else its outermost frame
/// with a name, else its module. `None` for a run without runtime frames.
fn head(frames: &[RawFrame], kinds: &[Kind]) -> Option<StackFrame> {
    let outermost = |want: &dyn Fn(&RawFrame, Kind) -> bool| {
        let mut run = frames.iter().zip(kinds).rev();
        run.find(|(frame, kind)| want(frame, **kind))
            .map(|(frame, _)| frame)
    };
    let frame = outermost(&|_, kind| kind == Kind::Entry)
        .or_else(|| outermost(&|f, kind| kind == Kind::Runtime && f.function.is_some()))
        .or_else(|| outermost(&|_, kind| kind == Kind::Runtime))?;
    let function = match frame.function.as_deref() {
        Some(name) => match fortran_name(name) {
            Some(name) => shorten(&name),
            None => shorten(plain_name(name)),
        },
        // The place in the runtime does not matter to the user, and would distinguish equal tasks.
        None => shorten(&frame.module),
    };
    Some(StackFrame {
        module: shorten(&frame.module),
        function,
        file: String::new(),
        line: 0,
        repeat: 1,
    })
}

impl From<&RawFrame> for StackFrame {
    /// Converts a frame without folding.
    fn from(frame: &RawFrame) -> Self {
        Self {
            module: shorten(&frame.module),
            function: shorten(frame.function.as_ref().unwrap_or(&frame.place)),
            file: shorten(frame.file.as_deref().unwrap_or_default()),
            line: frame.line,
            repeat: 1,
        }
    }
}

/// A name shortened to [`NAME_BYTES_MAX`].
fn shorten(name: &str) -> String {
    shorten_to(name, NAME_BYTES_MAX)
}

/// A text shortened to at most `bytes_max` bytes, which is at least 32. A longer text ends with the hash of the whole
/// text.
pub(crate) fn shorten_to(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let hash = xxhash_rust::xxh3::xxh3_64(text.as_bytes());
    let mut end = bytes_max - 20;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}...#{hash:016x}", &text[..end])
}

/// A stack shortened to as many frames as fit beside its marks; both ends are kept.
fn bounded(mut frames: Vec<StackFrame>) -> Vec<StackFrame> {
    let most = STACK_FRAMES_MAX - MARKS_MAX;
    if frames.len() <= most {
        return frames;
    }
    let head = most / 2;
    let tail = most - head - 1;
    let left_out = frames.len() - head - tail;
    let gap = StackFrame::own(format!("... {left_out} frames"), "", 0);
    frames.splice(head..head + left_out, [gap]);
    frames
}

#[cfg(test)]
mod tests;
