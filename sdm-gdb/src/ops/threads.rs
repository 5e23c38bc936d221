//! A thread as read from gdb, and its id in the kernel.

use sdm_debug::Failure;
use sdm_debug::fold::RawThread;

use super::frames::GdbFrame;

/// A thread and its frames.
pub(crate) struct ReadThread {
    /// gdb's number of the thread.
    pub(crate) id: u32,
    /// Number of the thread in the task, from 1.
    pub(crate) number: u32,
    /// Kernel thread id; `None` if gdb does not provide it.
    pub(crate) kernel_id: Option<i32>,
    /// The thread in the form of the fold rules.
    pub(crate) raw: RawThread,
    /// The frames as gdb gives them.
    pub(crate) frames: Vec<GdbFrame>,
    /// True if the thread holds the lock of a Python interpreter.
    pub(crate) has_interpreter: bool,
    /// The reason why the thread's frames were not read; `None` if they were.
    pub(crate) missing: Option<Failure>,
}

/// The kernel thread id in a thread's `target-id`, as MI has no field for it: `Thread 0x7ffff7dd1740 (LWP 4711)`, `LWP
/// 4711` or `process 4711`, the same from gdb 7 to 17. `None` for other text.
pub(crate) fn kernel_id(target_id: &str) -> Option<i32> {
    let (_, number) = target_id
        .rsplit_once("LWP ")
        .or_else(|| target_id.rsplit_once("process "))?;
    number.trim_end_matches(')').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_thread_id_is_parsed() {
        let check = |text, expect| assert_eq!(kernel_id(text), expect, "{text}");
        check("Thread 0x7ffff7dd1740 (LWP 4711)", Some(4711));
        check("LWP 4711", Some(4711));
        check("process 4711", Some(4711));
        check("Thread 1.1", None);
        check("", None);
    }
}
