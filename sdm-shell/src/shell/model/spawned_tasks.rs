//! Tasks that are created when a task (`MPI_Comm_spawn`) or a PMIx tool spawns programs. They are then tasks like all
//! others.
use sdm_debug::command::{StartSpec, StopAt};
use sdm_debug::{Joined, TaskState};
use sdm_idset::IdSet;
use sdm_view::coalesce::join;

use super::Model;

impl Model {
    /// Adds new tasks. Returns the notice about them.
    pub(super) fn take_in(&mut self, tasks: &IdSet, joined: Joined) -> String {
        let Joined {
            by,
            like,
            program,
            args,
        } = joined;
        let had_all = |set: &IdSet| *set == self.all;
        let (focus, previous) = (had_all(&self.sets.focus), had_all(&self.sets.previous));
        if focus {
            self.sets.focus.union_with(tasks);
        }
        if previous {
            self.sets.previous.union_with(tasks);
        }
        self.all.union_with(tasks);
        self.tasks.set(tasks, TaskState::Running, None);
        self.breaks.copy(like, tasks);
        if let Some(by) = by {
            self.open.join(by, tasks);
        }
        let words = std::iter::once(&program).chain(&args);
        let line = shell_words::join(words.map(|word| String::from_utf8_lossy(word)));
        let start = StartSpec {
            program,
            args,
            stop: StopAt::Nowhere,
            ..StartSpec::default()
        };
        join(&mut self.job.programs, tasks, start);
        match by {
            Some(by) => format!("started by rank {by}, command line: {line}"),
            None => format!("started by a PMIx tool, command line: {line}"),
        }
    }
}
