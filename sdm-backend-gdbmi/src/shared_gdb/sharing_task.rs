//! A task of a gdb that several tasks share.

use sdm_debug::TaskState;
use sdm_gdb::Driver;
use sdm_idset::TaskId;
use sdm_inferior::Held;

pub(super) struct SharingTask {
    pub(super) task: TaskId,
    pub(super) driver: Driver,
    /// The attached process; `None` once gdb has detached from it, or gdb or the process has ended.
    pub(super) held: Option<Held>,
    /// True if the task is counted in `missable_count`.
    pub(super) is_missable: bool,
    /// True if the task is counted in `starting_count`.
    pub(super) starts: bool,
    /// True if the task no longer needs the gdb.
    pub(super) done: bool,
}

impl SharingTask {
    pub(super) fn runs(&self) -> bool {
        self.driver.task_state() == TaskState::Running
    }

    /// Removes gdb's breakpoints from the process, if it runs. gdb inserts them into a stopped process only when it
    /// resumes it.
    pub(super) fn clear(&self) {
        if self.runs() {
            self.held.iter().for_each(Held::clear);
        }
    }
}
