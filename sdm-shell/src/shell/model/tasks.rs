//! The last known state of every task.
use sdm_debug::TaskState;
use sdm_idset::IdSet;
use sdm_view::item::{Happening, RankRow};

/// Maximum number of distinct rows. Beyond it, tasks are known by their state only.
const ROWS_MAX: usize = 4096;

/// The states of all tasks of a session.
#[derive(Debug)]
pub(crate) struct TaskTable {
    rows: Vec<Row>,
    silent: IdSet,
    /// Tasks whose server is lost.
    cut_off: IdSet,
    /// Tasks that a command of the user has ended.
    killed: IdSet,
    /// Number of times that tasks were moved or have changed.
    moves: u64,
}

/// A set of tasks with the same state and the same last event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) tasks: IdSet,
    pub(crate) state: TaskState,
    pub(crate) last: Option<Happening>,
}

impl TaskTable {
    /// A table in which all tasks are absent.
    pub(crate) fn new(tasks: &IdSet) -> Self {
        let row = Row {
            tasks: tasks.clone(),
            state: TaskState::Absent,
            last: None,
        };
        Self {
            rows: vec![row],
            silent: IdSet::new(),
            cut_off: IdSet::new(),
            killed: IdSet::new(),
            moves: 0,
        }
    }

    /// Number of times that tasks were moved or have changed.
    pub(crate) fn moves(&self) -> u64 {
        self.moves
    }

    /// Sets the state of tasks.
    pub(crate) fn set(&mut self, tasks: &IdSet, state: TaskState, last: Option<Happening>) {
        if tasks.is_empty() {
            return;
        }
        self.moves += 1;
        for row in &mut self.rows {
            row.tasks.subtract(tasks);
        }
        self.rows.retain(|row| !row.tasks.is_empty());
        let last = last.filter(|_| self.rows.len() < ROWS_MAX);
        let equal = |row: &&mut Row| row.state == state && row.last == last;
        match self.rows.iter_mut().find(equal) {
            Some(row) => row.tasks.union_with(tasks),
            None => self.rows.push(Row {
                tasks: tasks.clone(),
                state,
                last,
            }),
        }
    }

    /// The rows of these tasks, for [`TaskTable::restore`].
    pub(crate) fn rows_of(&self, tasks: &IdSet) -> Vec<Row> {
        let row_of = |row: &Row| Row {
            tasks: row.tasks.intersection(tasks),
            ..row.clone()
        };
        let rows = self.rows.iter().map(row_of);
        rows.filter(|row| !row.tasks.is_empty()).collect()
    }

    /// Restores the rows of `tasks`.
    pub(crate) fn restore(&mut self, rows: &[Row], tasks: &IdSet) {
        for row in rows {
            let tasks = row.tasks.intersection(tasks);
            self.set(&tasks, row.state.clone(), row.last.clone());
        }
    }

    /// All tasks in a state that `is` accepts.
    pub(crate) fn in_state(&self, is: impl Fn(&TaskState) -> bool) -> IdSet {
        let rows = self.rows.iter().filter(|row| is(&row.state));
        IdSet::union_all(rows.map(|row| &row.tasks))
    }

    /// Tasks that run, or are being started, and are reachable.
    pub(crate) fn running(&self) -> IdSet {
        let running = |state: &TaskState| matches!(state, TaskState::Running | TaskState::Starting);
        self.in_state(running).difference(&self.cut_off)
    }

    /// Reachable tasks with a living process that is not detached.
    pub(crate) fn live(&self) -> IdSet {
        self.in_state(TaskState::is_live).difference(&self.cut_off)
    }

    /// Tasks that are stopped and reachable.
    pub(crate) fn standing(&self) -> IdSet {
        let standing = self.in_state(|state| *state == TaskState::Stopped);
        standing.difference(&self.cut_off)
    }

    /// Detached tasks that are reachable.
    pub(crate) fn detached(&self) -> IdSet {
        let detached = self.in_state(|state| *state == TaskState::Detached);
        detached.difference(&self.cut_off)
    }

    /// Tasks that are stopped at a crash: at a signal, before an abort or an early exit, or at an error that a
    /// sanitizer or Valgrind has found.
    pub(crate) fn about_to_crash(&self) -> IdSet {
        self.where_last(|last| matches!(last, Happening::Stopped(stop) if stop.reason.is_crash()))
    }

    /// Tasks that are stopped at an error in the use of MPI.
    pub(crate) fn at_mpi_errors(&self) -> IdSet {
        self.where_last(
            |last| matches!(last, Happening::Stopped(stop) if stop.reason.is_mpi_error()),
        )
    }

    /// Tasks that a signal has ended, and those that are stopped at a crash, as in [`TaskTable::about_to_crash`].
    pub(crate) fn crashed(&self) -> IdSet {
        let killed = self.in_state(|state| matches!(state, TaskState::Signalled(_)));
        killed.union(&self.about_to_crash())
    }

    /// Notes that a command of the user has ended these tasks.
    pub(crate) fn mark_killed(&mut self, tasks: &IdSet) {
        self.killed.union_with(tasks);
    }

    /// Tasks that a command of the user has ended.
    pub(crate) fn killed(&self) -> &IdSet {
        &self.killed
    }

    /// Tasks that were killed where another one had exited with an error or without `MPI_Finalize`: launchers kill the
    /// rest of a job then.
    pub(crate) fn killed_after_an_exit(&self) -> IdSet {
        let has_failed = |row: &Row| match row.last {
            Some(Happening::Exited {
                code,
                before_finalize,
            }) => code != 0 || before_finalize,
            _ => false,
        };
        let is_killed = |state: &TaskState| match state {
            TaskState::Signalled(signal) => signal == "SIGKILL" || signal == "SIGTERM",
            _ => false,
        };
        match self.rows.iter().any(has_failed) {
            true => self.in_state(is_killed),
            false => IdSet::new(),
        }
    }

    /// Tasks that have ended.
    pub(crate) fn ended(&self) -> IdSet {
        self.in_state(|state| matches!(state, TaskState::Exited(_) | TaskState::Signalled(_)))
    }

    /// The tasks among these that have ended.
    pub(crate) fn ended_among(&self, tasks: &IdSet) -> IdSet {
        self.ended().intersection(tasks)
    }

    /// Tasks whose server is lost, so that no further event arrives.
    pub(crate) fn cut_off(&self) -> &IdSet {
        &self.cut_off
    }

    /// Tasks whose server was lost before their end was reported. Their state is unknown.
    pub(crate) fn lost(&self) -> IdSet {
        self.cut_off.difference(&self.ended())
    }

    /// Tasks whose server is silent.
    pub(crate) fn silent(&self) -> &IdSet {
        &self.silent
    }

    /// Stopped tasks whose last event `is` accepts.
    pub(crate) fn where_last(&self, is: impl Fn(&Happening) -> bool) -> IdSet {
        let standing = |row: &&Row| row.state == TaskState::Stopped;
        let rows = self.rows.iter().filter(standing);
        let rows = rows.filter(|row| row.last.as_ref().is_some_and(&is));
        IdSet::union_all(rows.map(|row| &row.tasks))
    }

    /// Marks tasks whose server is lost.
    pub(crate) fn mark_lost(&mut self, tasks: &IdSet) {
        self.moves += 1;
        self.cut_off.union_with(tasks);
        self.silent.subtract(tasks);
    }

    /// Marks tasks whose server is silent.
    pub(crate) fn mark_silent(&mut self, tasks: &IdSet) {
        self.moves += 1;
        self.silent.union_with(tasks);
    }

    /// Marks tasks as reachable again.
    pub(crate) fn mark_reachable(&mut self, tasks: &IdSet) {
        self.moves += 1;
        self.silent.subtract(tasks);
        self.cut_off.subtract(tasks);
    }

    /// The rows of `ranks`, largest first. `unattached` has the tasks without gdb.
    pub(crate) fn rank_rows(&self, among: &IdSet, unattached: &IdSet) -> Vec<RankRow> {
        let mut rows = Vec::new();
        let lost = self.lost();
        for row in self.rows_of(among) {
            let reachable = row.tasks.difference(&lost).difference(&self.silent);
            let parts = [
                (reachable.difference(unattached), None),
                (reachable.intersection(unattached), Some("not attached")),
                (row.tasks.intersection(&self.silent), Some("silent")),
                (row.tasks.intersection(&lost), Some("lost")),
            ];
            rows.extend(
                parts
                    .into_iter()
                    .filter(|(tasks, _)| !tasks.is_empty())
                    .map(|(tasks, health)| RankRow {
                        program: String::new(),
                        tasks,
                        state: row.state.clone(),
                        last: row.last.clone(),
                        health,
                        place: None,
                    }),
            );
        }
        rows.sort_by(|a, b| {
            let size = b.tasks.len().cmp(&a.tasks.len());
            size.then(a.tasks.first().cmp(&b.tasks.first()))
        });
        rows
    }

    /// The numbers of tasks in each state, for the prompt: `7 stopped, 1 running`. `unattached` has the tasks without
    /// gdb.
    pub(crate) fn summary(&self, among: &IdSet, unattached: &IdSet) -> String {
        let mut counts: Vec<(&'static str, u64)> = Vec::new();
        let mut add = |word, count| {
            if count == 0 {
                return;
            }
            match counts.iter_mut().find(|(known, _)| *known == word) {
                Some((_, known)) => *known += count,
                None => counts.push((word, count)),
            }
        };
        let all_lost = self.lost();
        for row in self.rows_of(among) {
            let lost = row.tasks.intersection(&all_lost).len();
            let free = row.tasks.difference(&all_lost).intersection(unattached);
            add(row.state.name(), row.tasks.len() - lost - free.len());
            add("not attached", free.len());
            add("lost", lost);
        }
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let parts = counts.iter().map(|(word, count)| format!("{count} {word}"));
        parts.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_task_is_not_lost_with_its_server() {
        let all = IdSet::all_below(4);
        let mut table = TaskTable::new(&all);
        table.set(&all, TaskState::Running, None);
        table.set(&"1".parse().unwrap(), TaskState::Exited(3), None);
        table.set(
            &"2".parse().unwrap(),
            TaskState::Signalled("SIGSEGV".to_owned()),
            None,
        );
        table.mark_lost(&"1-3".parse().unwrap());
        assert_eq!(table.lost().to_string(), "3");
        assert_eq!(table.cut_off().to_string(), "1-3");
        let rows = table.rank_rows(&all, &IdSet::new());
        let health = |rank| {
            let row = rows
                .iter()
                .find(|row| row.tasks.contains(sdm_idset::TaskId(rank)));
            row.and_then(|row| row.health)
        };
        assert_eq!([0, 1, 2, 3].map(health), [None, None, None, Some("lost")]);
        assert_eq!(
            table.summary(&all, &IdSet::new()),
            "1 running, 1 lost, 1 exited, 1 signalled"
        );
    }

    #[test]
    fn every_task_is_in_exactly_one_row() {
        let all = IdSet::all_below(8);
        let mut table = TaskTable::new(&all);
        table.set(&all, TaskState::Stopped, None);
        table.set(&"3,5".parse().unwrap(), TaskState::Running, None);
        table.mark_lost(&"7".parse().unwrap());
        assert_eq!(
            table.summary(&all, &IdSet::new()),
            "5 stopped, 2 running, 1 lost"
        );
        assert_eq!(table.running().to_string(), "3,5");
        assert_eq!(table.live().to_string(), "0-6");
        let rows = table.rank_rows(&all, &IdSet::new());
        let sum: u64 = rows.iter().map(|row| row.tasks.len()).sum();
        assert_eq!(sum, 8);
    }

    #[test]
    fn refused_run_restores_the_task_state() {
        let all = IdSet::all_below(4);
        let mut table = TaskTable::new(&all);
        let last = Some(Happening::Notice("here".to_owned()));
        table.set(&all, TaskState::Stopped, last.clone());
        let before = table.rows_of(&all);
        table.set(&all, TaskState::Running, None);
        table.restore(&before, &"1".parse().unwrap());
        assert_eq!(table.running().to_string(), "0,2-3");
        assert_eq!(table.rows_of(&"1".parse().unwrap())[0].last, last);
    }
}
