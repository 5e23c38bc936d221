//! The job of a session: its programs, the progress of its start, and its end.
use std::path::Path;

use sdm_core::CommandId;
use sdm_debug::command::{AttachSpec, StartSpec, StopAt};
use sdm_debug::event::Phase;
use sdm_debug::{Command, FailureCode, TaskState};
use sdm_idset::IdSet;
use sdm_view::item::{BreakRow, Happening, Item, RankRow};

use super::open_commands::OpenCommand;
use super::{Model, Over};
use sdm_view::coalesce::join;

/// Maximum number of gdb settings that are kept.
const SETTINGS_MAX: usize = 256;

/// Advice on commands that need a running program, where none is left.
const START_AGAIN: &str = "`start` starts the job again and stops it at main; `run` starts it";

/// The job that the tasks of a session belong to.
#[derive(Debug, Default)]
pub(crate) struct Job {
    /// Progress of the job.
    pub(crate) stage: Stage,
    /// The state of the launcher.
    pub(crate) launcher: Launcher,
    /// Phases of the tasks' start.
    pub(crate) phases: Vec<(IdSet, Phase)>,
    /// The programs, with the tasks that run each.
    pub(crate) programs: Vec<(IdSet, StartSpec)>,
    /// Settings that were made in gdb, in order, each with its tasks.
    pub(crate) settings: Vec<(IdSet, String)>,
    /// The processes of a running job that can be attached to. None if the session started its job.
    pub(crate) attachable: Option<AttachSpec>,
    /// Tasks of `attachable` that were only sampled. gdb attaches to them when a command needs it.
    pub(crate) unattached: IdSet,
    /// Tasks that this session started and that run without a gdb.
    pub(crate) seized: IdSet,
    /// Tasks of `seized` that are sampled while they run, where a command samples other tasks while they are stopped.
    pub(crate) looked_at: IdSet,
    /// The exit code of a start that failed in all tasks, because no program can be run. None otherwise.
    pub(crate) programless: Option<u8>,
    /// Tasks whose rank in `MPI_COMM_WORLD` is not their launcher's: their MPI did not find the job.
    pub(crate) isolated: IdSet,
    /// Tasks whose use of MPI was to be checked, and that have ended without `MPI_Init`.
    pub(crate) unchecked: IdSet,
    /// The rank that has aborted the job for all tasks, and its status. None without an abort.
    pub(crate) aborted: Option<(u32, i32)>,
    /// The abort as text: the rank, and `ended the job with status 17`. None without an abort.
    pub(crate) abort_words: Option<(u32, String)>,
    /// True if the session can restart the job.
    pub(crate) can_rerun: bool,
}

/// Progress of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Some task is not at the position where its start ended, or was changed.
    #[default]
    Touched,
    /// All tasks are at the position where their start ended, and unchanged.
    Untouched,
    /// All tasks run since their start, without a gdb.
    Begun,
    /// The job is over, and the next one is not started yet.
    Over,
}

/// The state of the launcher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Launcher {
    /// The launcher runs, or there is none.
    #[default]
    Running,
    /// The launcher has ended, with all processes that it started.
    Ended {
        /// The launcher's exit code; `None` if a signal has ended the launcher.
        code: Option<i32>,
    },
}

impl Job {
    /// Resets the state of a job that is over. The programs are kept.
    pub(super) fn forget(&mut self) {
        self.phases.clear();
        self.launcher = Launcher::Running;
    }

    /// True once after a start of tasks that run without a gdb: they need no command to run.
    pub(crate) fn take_begun(&mut self) -> bool {
        let has_begun = self.stage == Stage::Begun;
        if has_begun {
            self.stage = Stage::Touched;
        }
        has_begun
    }

    /// Notes that a command is sent to tasks, which may change them.
    pub(crate) fn note_sent(&mut self, command: &Command) {
        if self.stage == Stage::Untouched && disturbs(command) {
            self.stage = Stage::Touched;
        }
    }

    /// The tasks that have reached a phase of their start.
    pub(crate) fn tasks_at(&self, phase: Phase) -> IdSet {
        let reached = self.phases.iter().filter(|(_, known)| *known >= phase);
        IdSet::union_all(reached.map(|(tasks, _)| tasks))
    }

    /// Replaces the arguments of some tasks.
    pub(crate) fn set_arguments(&mut self, to: &IdSet, arguments: &[String]) {
        let args: Vec<_> = arguments.iter().map(|it| it.clone().into_bytes()).collect();
        for (tasks, start) in std::mem::take(&mut self.programs) {
            let others = tasks.difference(to);
            if !others.is_empty() {
                join(&mut self.programs, &others, start.clone());
            }
            let meant = tasks.intersection(to);
            if !meant.is_empty() {
                let args = args.clone();
                join(&mut self.programs, &meant, StartSpec { args, ..start });
            }
        }
    }

    /// The arguments of some tasks, quoted for a command line.
    pub(crate) fn arguments(&self, to: &IdSet) -> Vec<(IdSet, String)> {
        let mut values: Vec<(IdSet, String)> = Vec::new();
        for (tasks, start) in &self.programs {
            let words = start.args.iter().map(|arg| String::from_utf8_lossy(arg));
            let tasks = tasks.intersection(to);
            if !tasks.is_empty() {
                join(&mut values, &tasks, shell_words::join(words));
            }
        }
        values
    }

    /// Keeps a line that has changed a setting of gdb, with the tasks.
    pub(crate) fn remember_setting(&mut self, done: &IdSet, command: &Command) {
        let Command::Console { line } = command else {
            return;
        };
        if !is_setting(line) || done.is_empty() {
            return;
        }
        for (tasks, known) in &mut self.settings {
            if known == line {
                tasks.subtract(done);
            }
        }
        self.settings.retain(|(tasks, _)| !tasks.is_empty());
        // The last setting wins, so it is placed after the earlier ones.
        self.settings.push((done.clone(), line.clone()));
        if self.settings.len() > SETTINGS_MAX {
            self.settings.remove(0);
        }
    }

    /// The programs by their file names. Empty if there is only one.
    pub(crate) fn several_programs(&self) -> Vec<(String, IdSet)> {
        let mut named = Vec::new();
        for (tasks, start) in &self.programs {
            join(&mut named, tasks, name_of(start));
        }
        if named.len() < 2 {
            return Vec::new();
        }
        named
            .into_iter()
            .map(|(tasks, name)| (name, tasks))
            .collect()
    }

    /// True if all failures come from programs that do not have the command's subject, while another
    /// program has it. That is a difference between programs and not a failure.
    pub(crate) fn only_programs_differ(&self, open: &OpenCommand) -> bool {
        let gathered = &open.gathered;
        let refused = gathered.failed.iter();
        let plain = refused.clone().all(|(_, failure)| {
            matches!(failure.code, FailureCode::Gdb | FailureCode::NoSuchPlace)
        });
        let refused = IdSet::union_all(refused.map(|(tasks, _)| tasks));
        let done = open.done();
        let programs = self.several_programs();
        let whole = programs
            .iter()
            .filter(|(_, tasks)| tasks.is_disjoint(&done));
        let lacking = IdSet::union_all(whole.map(|(_, tasks)| tasks));
        plain
            && !done.is_empty()
            && refused.is_subset(&lacking)
            && gathered.missing.is_empty()
            && gathered.lost.is_empty()
    }
}

impl Model {
    /// The rows of `ranks`; tasks of different programs are in different rows.
    pub(crate) fn rank_rows(&self, among: &IdSet) -> Vec<RankRow> {
        let programs = self.job.several_programs();
        if programs.is_empty() {
            return self.tasks.rank_rows(among, &self.job.unattached);
        }
        let rows_of = |(program, tasks): &(String, IdSet)| {
            let rows = self
                .tasks
                .rank_rows(&among.intersection(tasks), &self.job.unattached);
            let program = program.clone();
            rows.into_iter().map(move |row| RankRow {
                program: program.clone(),
                ..row
            })
        };
        programs.iter().flat_map(rows_of).collect()
    }

    /// The tasks among these that gdb is not attached to, and the processes to sample. Servers know the
    /// processes that they have started.
    pub(crate) fn without_gdb(&self, among: &IdSet) -> (IdSet, AttachSpec) {
        let job = &self.job;
        let seized = job.seized.intersection(&self.tasks.running());
        let free = job.unattached.union(&seized).intersection(among);
        let own = seized.iter().map(|task| (task.0, 0));
        let spec = job.attachable.clone().unwrap_or_else(|| AttachSpec {
            pids: own.collect(),
            ..AttachSpec::default()
        });
        (free, spec)
    }

    /// True if all tasks are at the position where their start ended, and unchanged, and no breakpoint is there.
    pub(crate) fn is_untouched(&self) -> bool {
        // A breakpoint at the current position of tasks is hit only when they reach the position again.
        let met = |row: &BreakRow| {
            row.places
                .iter()
                .any(|(_, file, line)| self.is_met(file, *line))
        };
        self.job.stage == Stage::Untouched
            && self.tasks.standing() == self.all
            && !self.breaks.rows().iter().any(met)
    }

    /// True if a task is stopped at this line.
    fn is_met(&self, file: &str, line: u32) -> bool {
        let here = |last: &Happening| match last {
            Happening::Stopped(stop) => {
                let frame = stop.frame.as_ref();
                frame.is_some_and(|frame| frame.line == line && frame.file == file)
            }
            _ => false,
        };
        !self.tasks.where_last(here).is_empty()
    }

    /// The programs to start when the job is restarted, with their tasks. With `to_main` all tasks stop at `main`,
    /// otherwise only the tasks under `freeze`.
    pub(crate) fn programs_again(&self, to_main: bool) -> Vec<(IdSet, StartSpec)> {
        let points = self.breaks.start_points();
        let mut programs = Vec::new();
        for (tasks, start) in &self.job.programs {
            let tasks = tasks.intersection(&self.all);
            let held = tasks.intersection(&self.sets.held);
            let rest = tasks.difference(&held);
            let stop = if to_main {
                StopAt::Main
            } else {
                StopAt::Nowhere
            };
            for (tasks, stop) in [(held, StopAt::Main), (rest, stop)] {
                let start = StartSpec {
                    stop,
                    points: points.clone(),
                    settings: self.job.settings.clone(),
                    ..start.clone()
                };
                if !tasks.is_empty() {
                    join(&mut programs, &tasks, start);
                }
            }
        }
        programs
    }

    /// Handles the end of the session. The prompt is kept where the job can be restarted, or where the job
    /// had ended before. A resource manager can kill the servers as soon as its launcher has ended, before
    /// `quit` is read.
    pub(super) fn session_ended(&mut self, why: String) {
        let anew = self.options.interactive && self.job.can_rerun;
        let is_lost = !self.has_come_to_its_end();
        if self.over.is_some() || (is_lost && !anew) {
            self.end(Over::Ended(why));
            return;
        }
        self.job.stage = Stage::Over;
        let what = if is_lost { "job is" } else { "servers are" };
        let then = if anew {
            "; `run` starts the job again"
        } else {
            ""
        };
        self.show(Item::Notice(format!("the {what} gone: {why}{then}")));
    }

    /// True if the launcher has ended, and all programs have exited without a signal.
    fn has_come_to_its_end(&self) -> bool {
        let exited = |state: &TaskState| matches!(state, TaskState::Exited(_));
        matches!(self.job.launcher, Launcher::Ended { .. })
            && self.all.is_subset(&self.tasks.in_state(exited))
    }
}

/// Removes a command from those in progress. Where no task is left, failures on tasks that have ended name the command
/// that starts the job again.
pub(crate) fn take_open(model: &mut Model, id: CommandId) -> Option<OpenCommand> {
    let mut open = model.open.remove(id)?;
    if model.options.interactive && model.job.can_rerun && model.tasks.live().is_empty() {
        for (_, failure) in &mut open.gathered.failed {
            if failure.code == FailureCode::NotRunning && failure.hint.is_empty() {
                failure.hint = START_AGAIN.to_owned();
            }
        }
    }
    Some(open)
}

/// The name of a program's file.
fn name_of(start: &StartSpec) -> String {
    let path = String::from_utf8_lossy(&start.program);
    let name = Path::new(&*path).file_name();
    name.map_or_else(
        || path.to_string(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// The tasks whose program file has this name; None if no program has it.
pub(super) fn program_called(programs: &[(IdSet, StartSpec)], name: &str) -> Option<IdSet> {
    let found = programs.iter().filter(|(_, start)| name_of(start) == name);
    let found = IdSet::union_all(found.map(|(tasks, _)| tasks));
    (!found.is_empty()).then_some(found)
}

/// True for a command after which a program is no longer in the state of its start.
fn disturbs(command: &Command) -> bool {
    command.is_run_control()
        || matches!(
            command,
            Command::Kill
                | Command::Detach
                | Command::SetVariable { .. }
                | Command::Call { .. }
                | Command::Return { .. }
                | Command::MemoryWrite { .. }
                | Command::Mi { .. }
        )
}

/// True for a command line that changes gdb and not the program.
fn is_setting(line: &str) -> bool {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match word {
        "handle" | "unset" | "skip" | "directory" => true,
        // `set x = 3` is an assignment like `set var`, but a convenience variable is gdb's own.
        "set" => {
            let rest = rest.trim_start();
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
            let after = rest.trim_start_matches(plain).trim_start();
            rest.starts_with('$')
                || (rest.starts_with(|c: char| c.is_ascii_alphabetic())
                    && !after.starts_with(['=', '[', '.', '(', '+', '>', '*'])
                    && !rest.starts_with("var"))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_distinguished_from_assignments() {
        for (line, expect) in [
            ("set print pretty on", true),
            ("set $i = 3", true),
            ("set logging file=x", true),
            ("handle SIGUSR1 stop", true),
            ("set x = 3", false),
            ("set x=3", false),
            ("set a[2] = 3", false),
            ("set p->x = 3", false),
            ("set *p = 3", false),
            ("set var x = 3", false),
            ("info line", false),
            ("set", false),
        ] {
            assert_eq!(is_setting(line), expect, "{line}");
        }
    }
}
