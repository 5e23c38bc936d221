//! The wait that a stack shows, by the name of the runtime function that the user's code has called.

use sdm_debug::calls::{is_file, is_lock, is_sleep, plain, spoken};
use sdm_debug::fold::STOPPED;
use sdm_debug::reply::{StackFrame, TaskStacks};
use sdm_mpi::{WaitsFor, waits_for};

/// The kind of event that a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitKind {
    /// The ranks of a communicator: `MPI_Allreduce`.
    Collective,
    /// A message: `MPI_Recv`.
    Message,
    /// Nothing: the call polls for a message and returns (`MPI_Iprobe`).
    Poll,
    /// Another MPI call.
    Mpi,
    /// A lock or another thread.
    Lock,
    /// Reading, writing or syncing a file.
    File,
    /// A time-out: `usleep`.
    Sleep,
    /// Unknown: another function of a runtime.
    Other,
    /// Nothing: the user's code runs, or an MPI function that returns at once.
    Running,
}

/// The wait that a stack shows, and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Wait {
    /// The kind of event that the thread waits for.
    pub kind: WaitKind,
    /// The runtime's function, or the user's function if the thread does not wait.
    pub call: String,
    /// The innermost frame of the user's code.
    pub frame: StackFrame,
}

impl Wait {
    /// The wait of the main thread, or of the first thread if none is marked as main; `None` without threads.
    #[must_use]
    pub fn of(stacks: &TaskStacks) -> Option<Self> {
        let main = stacks.threads.iter().find(|thread| thread.main);
        let thread = main.or_else(|| stacks.threads.first())?;
        Self::of_frames(&thread.frames)
    }

    /// The wait of a thread with these frames, outermost first; `None` without frames. A thread that runs the user's
    /// code has the kind [`WaitKind::Running`].
    #[must_use]
    pub fn of_frames(frames: &[StackFrame]) -> Option<Self> {
        let frames = before_jump(frames);
        let last = frames.last()?;
        let user = user_frame(frames)?;
        let call = spoken(&last.function);
        let kind = match kind(&call) {
            // A function of the user's own.
            WaitKind::Other | WaitKind::Sleep if std::ptr::eq(last, user) => WaitKind::Running,
            kind => kind,
        };
        Some(Self {
            kind,
            call,
            frame: user.clone(),
        })
    }

    /// True for a blocking MPI call.
    #[must_use]
    pub fn is_mpi(&self) -> bool {
        matches!(
            self.kind,
            WaitKind::Collective | WaitKind::Message | WaitKind::Mpi
        )
    }

    /// The wait as text: `in MPI_Recv, called from exchange () at halo.c:60`.
    #[must_use]
    pub fn text(&self) -> String {
        let (call, place) = (&self.call, place(&self.frame));
        match self.kind {
            WaitKind::Running => format!("in {place}"),
            _ => format!("in {call}, called from {place}"),
        }
    }
}

/// The frames without the innermost one, if that is a jump to a library's function that waits for nothing (`time@plt`).
fn before_jump(frames: &[StackFrame]) -> &[StackFrame] {
    let leads_to_no_wait = |last: &StackFrame| {
        let name = last.function.strip_suffix("@plt");
        name.is_some_and(|name| matches!(kind(name), WaitKind::Other | WaitKind::Running))
    };
    match frames.split_last() {
        Some((last, rest)) if !rest.is_empty() && leads_to_no_wait(last) => rest,
        _ => frames,
    }
}

/// A frame as text: `exchange () at halo.c:60`.
pub(super) fn place(frame: &StackFrame) -> String {
    if frame.function.starts_with(STOPPED) {
        return "an unknown place".to_owned();
    }
    match (frame.file.as_str(), frame.line) {
        ("", _) => format!("{} ()", frame.function),
        (file, 0) => format!("{} () at {file}", frame.function),
        (file, line) => format!("{} () at {file}:{line}", frame.function),
    }
}

/// The innermost frame of the user's code; `None` without frames. A runtime's function is shown at the line of its
/// call.
pub(super) fn user_frame(frames: &[StackFrame]) -> Option<&StackFrame> {
    let last = frames.last()?;
    let Some(before) = frames.len().checked_sub(2).map(|index| &frames[index]) else {
        return Some(last);
    };
    // Without debug information all functions are at one line, those of the program too.
    let is_known = last.line > 0 || kind(plain(&last.function)) != WaitKind::Other;
    let same_line = is_known && (&last.file, last.line) == (&before.file, before.line);
    let from_runtime = !last.module.is_empty() && before.module.is_empty();
    if last.function != before.function && (same_line || from_runtime) {
        return Some(before);
    }
    Some(last)
}

/// The kind of event that a call waits for.
pub(super) fn kind(call: &str) -> WaitKind {
    if let Some(waits) = waits_for(call) {
        return match waits {
            WaitsFor::All | WaitsFor::Members => WaitKind::Collective,
            WaitsFor::Message => WaitKind::Message,
            WaitsFor::Poll => WaitKind::Poll,
            WaitsFor::Nobody => WaitKind::Running,
            WaitsFor::Other => WaitKind::Mpi,
        };
    }
    match () {
        () if is_lock(call) => WaitKind::Lock,
        () if is_file(call) => WaitKind::File,
        () if is_sleep(call) => WaitKind::Sleep,
        () => WaitKind::Other,
    }
}
