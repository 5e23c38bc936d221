//! Sends signals to the programs of tasks, and returns their pids and states, and their breakpoints for the next start.

use nix::sys::signal::Signal;
use sdm_debug::Program;
use sdm_debug::command::StartPoint;
use sdm_idset::{IdSet, TaskId};

use super::GdbBackend;
use sdm_gdb::{Driver, SavedBreakpoint};

impl GdbBackend {
    /// Sends a signal to the programs of these tasks that were started here. A stopped program gets it only if
    /// `standing` is set.
    pub(super) fn signal_own(&mut self, tasks: &IdSet, signal: i32, standing: bool) {
        let Ok(signal) = Signal::try_from(signal) else {
            return;
        };
        for task in tasks {
            let known = self.current.get(&task);
            let known = known.and_then(|key| self.slots.get_mut(key));
            if let Some(known) = known {
                known.slot.signal_program(signal, standing);
            }
        }
    }

    /// The breakpoints of a task, for its next start; none if it has no driver.
    pub(super) fn own_points(&self, task: TaskId) -> Vec<StartPoint> {
        let driver = self.slot_of(task).and_then(|slot| slot.driver(task));
        let kept = driver.map(Driver::kept_breakpoints).unwrap_or_default();
        let kept = kept.into_iter();
        let point = |it: SavedBreakpoint| StartPoint {
            tasks: IdSet::single(task),
            spec: it.spec,
            enabled: it.enabled,
        };
        kept.map(point).collect()
    }

    /// The program of each task, with its pid and state.
    pub(super) fn own_programs(&self) -> Vec<Program> {
        let program = |task: &TaskId| {
            let task = *task;
            let driver = self.slot_of(task)?.driver(task)?;
            Some(Program {
                task,
                pid: driver.pid(),
                state: driver.task_state(),
            })
        };
        self.current.keys().filter_map(program).collect()
    }
}
