//! `run`, `start`: the whole job anew. What belongs to the person stays: breakpoints, focus, sets,
//! displays, settings, arguments. What belongs to the job goes with it.

use sdm_debug::command::{BreakSpec, StartSpec, StopAt};
use sdm_debug::{Command, EndPolicy, TaskState};
use sdm_idset::IdSet;
use sdm_session::Debug;
use sdm_view::item::{BreakRow, Happening, Item};

use super::gather::join;
use super::notices::Notices;
use super::open::OpenCommands;
use super::output::Output;
use super::run::Said;
use super::tasks::TaskTable;
use super::wait::Goal;
use super::{Over, Shell, Verdict};
use crate::commands::{JobCommand, UserCommand as C};

/// Ends a session and puts another in its place. Gives what was left undone at the end of the old
/// one; fails where no new one could be opened, and leaves the one that is over.
pub type Restart<D> = Box<dyn FnMut(&mut D) -> Result<Option<String>, String>>;

/// How a job is started anew.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Again {
    pub(super) line: String,
    /// Whose arguments are replaced.
    pub(super) to: IdSet,
    /// By these, where there are any.
    pub(super) arguments: Option<Vec<String>>,
    /// Everybody is held at `main`.
    pub(super) to_main: bool,
    /// Nobody waits for the first stop.
    pub(super) background: bool,
}

/// What the next line answers.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Question {
    /// May what was started be killed?
    Quit,
    /// May the job be ended for another one?
    Again(Again),
    /// May these breakpoints all go?
    Delete(DeleteAll),
    /// Is this one to be kept until its place is loaded?
    Pending(Pending),
}

/// A breakpoint whose place nobody has.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pending {
    pub(super) line: String,
    pub(super) to: IdSet,
    pub(super) spec: BreakSpec,
}

/// `delete` without numbers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DeleteAll {
    pub(super) line: String,
    pub(super) to: IdSet,
    pub(super) named: bool,
}

impl<D: Debug> Shell<D> {
    /// The job can be started anew by this.
    pub fn set_restart(&mut self, restart: Restart<D>) {
        self.restart = Some(restart);
    }

    /// What is about the job as a whole.
    pub(super) fn about_the_job(&mut self, said: &Said<'_>, command: JobCommand) -> Verdict {
        match command {
            JobCommand::Run {
                arguments,
                to_main,
                background,
            } => self.rerun(Again {
                line: said.line.to_owned(),
                to: said.to.clone(),
                arguments,
                to_main,
                background,
            }),
            JobCommand::Arguments(words) => {
                self.set_arguments(&said.to, &words);
                Verdict::Done
            }
            JobCommand::ShowArguments => self.show_arguments(&said.to),
            JobCommand::Confirm(on) => {
                self.options.confirm = on;
                Verdict::Done
            }
        }
    }

    /// `run [ARGS]`, `start [ARGS]`.
    fn rerun(&mut self, again: Again) -> Verdict {
        if self.options.controlled {
            let text = "a job that its own launcher holds is started once";
            return self.complain(text, "`sdm run` without --control starts anew");
        }
        if self.options.attached {
            let text = "these processes were not started here, so they cannot be started anew";
            return self.complain(text, "`sdm run` starts a job under the debugger");
        }
        if self.restart.is_none() {
            return self.complain("this session cannot start its job anew", "");
        }
        if self.is_fresh() && again.arguments.is_none() {
            return self.run_fresh(&again);
        }
        if self.asks() && !self.tasks.live().is_empty() {
            self.asking = Some(Question::Again(again));
            return Verdict::Done;
        }
        self.start_again(again)
    }

    /// True where a person at the prompt is asked before something is lost.
    pub(super) fn asks(&self) -> bool {
        self.options.interactive && self.options.confirm && self.source_depth == 0
    }

    /// True where everybody still stands where the start has brought him, and nobody has touched
    /// anything.
    fn is_fresh(&self) -> bool {
        let standing = self.tasks.in_state(|state| *state == TaskState::Stopped);
        let standing = standing.difference(self.tasks.lost());
        // A breakpoint where they stand is met only by those who come there again.
        let met = |row: &BreakRow| {
            row.places
                .iter()
                .any(|(_, file, line)| self.is_met(file, *line))
        };
        self.fresh && standing == *self.debug.tasks() && !self.breaks.rows().iter().any(met)
    }

    /// True where a task stands at this line.
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

    /// The first `run` of a job that waits at `main`.
    fn run_fresh(&mut self, again: &Again) -> Verdict {
        if again.to_main {
            self.say("all are at main");
            return Verdict::Done;
        }
        let said = Said {
            line: &again.line,
            to: self.debug.tasks().clone(),
            named: false,
        };
        self.run(&said, &Command::Continue, again.background)
    }

    /// The answer to the question whether the job may be ended.
    pub(super) fn answer_again(&mut self, again: Again, answer: &str) -> Verdict {
        if is_yes(answer) {
            return self.start_again(again);
        }
        self.say("not started anew");
        Verdict::Done
    }

    fn start_again(&mut self, again: Again) -> Verdict {
        if let Some(arguments) = &again.arguments {
            self.set_arguments(&again.to, arguments);
        }
        self.show_held();
        let Some(mut restart) = self.restart.take() else {
            return Verdict::Failed;
        };
        let opened = restart(&mut self.debug);
        self.restart = Some(restart);
        self.forget_job();
        self.jobless = opened.is_err();
        match opened {
            Err(why) => {
                let said = format!("{}: {why}", again.line);
                return self.complain(said, "there is no job now; `run` tries again");
            }
            Ok(Some(left)) => self.say(&format!("the job before: {left}")),
            Ok(None) => {}
        }
        let programs = self.programs_again(again.to_main);
        self.show_start(&programs);
        self.say_start(&programs);
        if let Some(lack) = self.lack_of_room(&programs) {
            return self.complain(
                lack,
                "`run` tries again; `sdm run --force` starts them all the same",
            );
        }
        let ids = self.send_starts(programs);
        if again.to_main {
            let waited = self.wait_for(&Goal::Held(ids.clone()), &again.line, None);
            return match self.finish_start(&ids, waited) {
                true => Verdict::Done,
                false => Verdict::Failed,
            };
        }
        let to = self.debug.tasks().clone();
        self.await_run(&again.line, &to, &ids, again.background)
    }

    fn say_start(&mut self, programs: &[(IdSet, StartSpec)]) {
        const SAID_MAX: usize = 3;
        let mut shown: Vec<String> = Vec::new();
        for (_, start) in programs {
            let words = std::iter::once(&start.program).chain(&start.args);
            let text = shell_words::join(words.map(|word| String::from_utf8_lossy(word)));
            if !shown.contains(&text) {
                shown.push(text);
            }
        }
        if shown.len() > SAID_MAX {
            shown.truncate(SAID_MAX);
            shown.push("...".to_owned());
        }
        self.say(&format!("starting anew: {}", shown.join(" : ")));
    }

    /// What was heard of a job that is over.
    pub(super) fn forget_job(&mut self) {
        let tasks = self.debug.tasks().clone();
        self.tasks = TaskTable::new(&tasks);
        self.output = Output::again(&self.output);
        self.notices = Notices::default();
        self.open = OpenCommands::default();
        self.phases.clear();
        self.stdin.clear();
        self.sets.classes.clear();
        self.sets.happened.clear();
        self.lists_on = false;
        self.launcher_over = false;
        self.quiet_runs = false;
        self.activity = self.now();
        self.breaks.forget_hits();
        // Those who have not come this time are in nobody's focus.
        for set in [&mut self.focus, &mut self.sets.previous] {
            let left = set.intersection(&tasks);
            *set = if left.is_empty() { tasks.clone() } else { left };
        }
    }

    /// Who starts what this time. Those that are held come to `main` and no further.
    fn programs_again(&self, to_main: bool) -> Vec<(IdSet, StartSpec)> {
        let all = self.debug.tasks();
        let points = self.breaks.start_points();
        let mut programs = Vec::new();
        for (tasks, start) in &self.programs {
            let tasks = tasks.intersection(all);
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
                    settings: self.settings.clone(),
                    ..start.clone()
                };
                if !tasks.is_empty() {
                    join(&mut programs, &tasks, start);
                }
            }
        }
        programs
    }

    /// `set args [ARGS]`.
    fn set_arguments(&mut self, to: &IdSet, arguments: &[String]) {
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

    /// `show args`.
    fn show_arguments(&mut self, to: &IdSet) -> Verdict {
        let mut values: Vec<(IdSet, String)> = Vec::new();
        for (tasks, start) in &self.programs {
            let words = start.args.iter().map(|arg| String::from_utf8_lossy(arg));
            let tasks = tasks.intersection(to);
            if !tasks.is_empty() {
                join(&mut values, &tasks, shell_words::join(words));
            }
        }
        if self.options.attached {
            return self.complain("these processes were not started here", "");
        }
        self.show_quietly(&Item::Values {
            expression: "args".to_owned(),
            values,
        });
        Verdict::Done
    }

    /// The session is over by itself. A person keeps the prompt where the job can be started anew.
    pub(super) fn session_ended(&mut self, why: String) {
        if self.options.interactive && self.restart.is_some() && self.over.is_none() {
            self.jobless = true;
            self.say(&format!("the job is gone: {why}; `run` starts it anew"));
        } else {
            self.over.get_or_insert(Over::Ended(why));
        }
    }

    /// Whether a command can be carried out without a job.
    pub(super) fn refuse_jobless(&mut self, command: &C) -> Option<Verdict> {
        let needs = !matches!(
            command,
            C::Nothing { .. }
                | C::Job(_)
                | C::Outside(_)
                | C::Quit
                | C::Help(_)
                | C::Breakpoints { .. }
                | C::Displays
                | C::Define(_)
                | C::ShowDefined(_)
                | C::System(_)
                | C::Echo(_)
                | C::SetPending(_)
                | C::Undisplay(_)
                | C::Focus(_)
                | C::Ranks(_)
                | C::DefineSet { .. }
                | C::ForgetSet(_)
                | C::Hold { .. }
                | C::About(_)
                | C::Output(_)
                | C::Report(_)
                | C::Save(_)
                | C::Source(_)
        );
        (self.jobless && needs).then(|| self.complain("there is no job", "`run` starts it anew"))
    }

    /// What is asked at the prompt.
    pub(super) fn question(&self) -> Option<String> {
        let tasks = self.tasks.live().len();
        let noun = if tasks == 1 { "task" } else { "tasks" };
        Some(match self.asking.as_ref()? {
            Question::Quit => format!("kill {tasks} {noun} started here? (y/n/detach) "),
            Question::Again(_) => {
                format!("start the job from the beginning, ending {tasks} {noun}? (y or n) ")
            }
            Question::Delete(_) => "Delete all breakpoints? (y or n) ".to_owned(),
            Question::Pending(_) => {
                "Make breakpoint pending on future shared library load? (y or [n]) ".to_owned()
            }
        })
    }

    pub(super) fn answer_quit(&mut self, answer: &str) -> Verdict {
        let policy = match answer.to_ascii_lowercase().as_str() {
            "y" | "yes" => EndPolicy::KillStarted,
            "d" | "detach" => EndPolicy::Detach,
            _ => {
                self.say("not ended");
                return Verdict::Done;
            }
        };
        self.over.get_or_insert(Over::Quit(policy));
        Verdict::Done
    }
}

/// True where a question was answered with yes.
pub(super) fn is_yes(answer: &str) -> bool {
    matches!(answer.to_ascii_lowercase().as_str(), "y" | "yes")
}
