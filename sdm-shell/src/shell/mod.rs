//! What stands between a person's lines and a session.
//!
//! A [`Shell`] carries out one command at a time over a [`Debug`], waits for what it must wait
//! for, and says what comes of it to a [`View`]. It starts no thread and looks at no clock but
//! the one it is given; lines and signals reach it as [`Control`]s.

mod again;
mod batch;
mod breaks;
mod closer;
mod complete;
mod cores;
mod define;
mod diagnose;
mod display;
mod events;
mod feed;
mod flow;
mod gather;
mod here;
mod input;
mod keep;
mod leave;
mod notices;
mod open;
mod output;
mod outside;
mod points;
mod programs;
mod report;
mod room;
mod run;
mod sets;
mod settings;
mod tasks;
#[cfg(test)]
mod tests;
mod topics;
mod values;
mod wait;
mod watch;
mod widen;

pub use again::Restart;
pub use batch::Batch;
pub use diagnose::Diagnosed;
pub use flow::{Ending, StacksCode};
pub use input::{Control, InputSource, LineSource, Script, ScriptLine};
pub use wait::COMPLETE_WAIT;
pub use widen::{Widen, Widened, Widening};

use std::collections::VecDeque;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use sdm_core::CommandId;
use sdm_debug::command::AttachSpec;
use sdm_debug::command::StartSpec;
use sdm_debug::event::Phase;
use sdm_debug::rules::rule_of;
use sdm_debug::{Command, EndPolicy, TaskState};
use sdm_idset::IdSet;

use crate::ReportFiles;
use again::Question;
use breaks::Breaks;
use define::{Collecting, Defined};
use display::Displays;
use feed::OwnInput;
use notices::Notices;
use open::{Open, OpenCommands};
use output::Output;
use report::Reporting;
use sdm_session::{Debug, SendOptions};
use sdm_view::item::{Item, Problem, View};
use sdm_view::report::Report;
use sets::Sets;
use tasks::TaskTable;

/// How long a question is given unless said otherwise.
pub const QUERY_TIMEOUT: Duration = Duration::from_secs(30);

/// How a shell behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// A person sits at a prompt: commands may fail, and `quit` asks.
    pub interactive: bool,
    /// Commands are shown before they are carried out.
    pub echo: bool,
    /// How long a question is given.
    pub query_timeout: Duration,
    /// Whose standard input is fed by `send`.
    pub stdin_tasks: IdSet,
    /// The tasks were attached to, not started.
    pub attached: bool,
    /// Those that were attached to were started by a launcher of this session's own, which ends with it.
    pub controlled: bool,
    /// A person is asked before what was started is ended.
    pub confirm: bool,
    /// Nothing is started where a host seems to lack the memory for so many gdbs.
    pub check_room: bool,
}

impl Options {
    /// The tasks end with the session.
    fn is_ours(&self) -> bool {
        !self.attached || self.controlled
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            interactive: false,
            echo: true,
            query_timeout: QUERY_TIMEOUT,
            stdin_tasks: IdSet::new(),
            attached: false,
            controlled: false,
            confirm: true,
            check_room: false,
        }
    }
}

/// Carries out commands.
pub struct Shell<D> {
    debug: D,
    view: Box<dyn View>,
    clock: Box<dyn Fn() -> Instant>,
    began: Instant,
    controls: Receiver<Control>,
    lines: VecDeque<Control>,
    options: Options,
    focus: IdSet,
    /// The processes of a job that runs already which can be attached to, where it is one.
    attachable: Option<AttachSpec>,
    sets: Sets,
    tasks: TaskTable,
    breaks: Breaks,
    output: Output,
    notices: Notices,
    open: OpenCommands,
    phases: Vec<(IdSet, Phase)>,
    /// What an empty line says again.
    last: Option<String>,
    stdin: Vec<(IdSet, u64)>,
    /// What `sdm` reads for the programs, where it does.
    own_input: Option<OwnInput>,
    asking: Option<Question>,
    /// A line is being completed: nothing is shown.
    completing: bool,
    source_depth: u32,
    /// Lines between `commands` and `end`, and for which breakpoints.
    collecting: Option<Collecting>,
    /// Commands of the user's own.
    defined: Defined,
    displays: Displays,
    /// The command before was a `list`: the next one goes on.
    lists_on: bool,
    /// Tasks are let run and stopped without a word.
    quiet_runs: bool,
    /// When something was last heard of the tasks.
    activity: Instant,
    reporting: Reporting,
    /// What `more` shows as a whole.
    foldable: Option<Item>,
    /// A signal says that the time is nearly over.
    warned: bool,
    /// A person has given up waiting since this was reset.
    interrupted: bool,
    /// Who was started how.
    programs: Vec<(IdSet, StartSpec)>,
    /// What gdb was told to be like, in order, and in which tasks.
    settings: Vec<(IdSet, String)>,
    restart: Option<Restart<D>>,
    widening: Option<Widening<D>>,
    /// The tasks stand where their start has brought them, and nothing of theirs was changed.
    fresh: bool,
    /// The job is over, and the next one not started.
    jobless: bool,
    /// The launcher has ended, and all that it started.
    launcher_over: bool,
    over: Option<Over>,
}

/// What is left of a shell when its session is closed.
pub struct Ended {
    view: Box<dyn View>,
    clock: Box<dyn Fn() -> Instant>,
    began: Instant,
    report: Option<(ReportFiles, Report)>,
}

impl Ended {
    /// Shows that the session is over.
    pub fn show(mut self, code: u8, reason: Option<String>) {
        self.view.status(None);
        let at = (self.clock)().saturating_duration_since(self.began);
        self.view.show(at, &Item::End { code, reason });
    }
}

/// Why nothing more can be done.
#[derive(Clone, Debug, PartialEq)]
enum Over {
    /// It was asked for.
    Quit(EndPolicy),
    /// The session is gone.
    Ended(String),
    /// A signal wants `sdm` to end: its number.
    Terminated(u8),
    /// Nobody reads what is shown.
    Unread,
}

/// What became of one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was done.
    Done,
    /// It failed on some task, or was no command.
    Failed,
    /// A person gave up waiting for it.
    GivenUp,
}

impl<D: Debug> Shell<D> {
    /// A shell over a session; `clock` is what it takes the time from.
    pub fn new(
        debug: D,
        view: Box<dyn View>,
        controls: Receiver<Control>,
        options: Options,
        clock: Box<dyn Fn() -> Instant>,
    ) -> Self {
        let tasks = debug.tasks().clone();
        Self {
            activity: clock(),
            began: clock(),
            reporting: Reporting::new(clock()),
            debug,
            view,
            clock,
            controls,
            lines: VecDeque::new(),
            options,
            tasks: TaskTable::new(&tasks),
            sets: Sets {
                previous: tasks.clone(),
                ..Sets::default()
            },
            focus: tasks,
            attachable: None,
            breaks: Breaks::default(),
            output: Output::new(),
            notices: Notices::default(),
            open: OpenCommands::default(),
            phases: Vec::new(),
            last: None,
            stdin: Vec::new(),
            own_input: None,
            asking: None,
            completing: false,
            source_depth: 0,
            collecting: None,
            defined: Defined::new(),
            displays: Displays::default(),
            lists_on: false,
            foldable: None,
            quiet_runs: false,
            warned: false,
            interrupted: false,
            programs: Vec::new(),
            settings: Vec::new(),
            restart: None,
            widening: None,
            fresh: false,
            jobless: false,
            launcher_over: false,
            over: None,
        }
    }

    /// Gives the session back, and where to show how it ended.
    pub fn into_parts(mut self) -> (D, Ended) {
        let ended = Ended {
            report: self.take_report(),
            view: self.view,
            clock: self.clock,
            began: self.began,
        };
        (self.debug, ended)
    }

    /// True once nothing more can be done.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over.is_some()
    }

    /// A person takes over from a script.
    pub fn set_interactive(&mut self) {
        self.options.interactive = true;
    }

    /// Shows a line of its own.
    pub fn say(&mut self, text: &str) {
        self.show(&Item::Notice(text.to_owned()));
    }

    fn now(&self) -> Instant {
        (self.clock)()
    }

    fn show(&mut self, item: &Item) {
        match item {
            Item::Answer(gathered) => self.note_classes(gathered.classes()),
            Item::Whole(item) => {
                if let Item::Answer(gathered) = &**item {
                    self.note_classes(gathered.classes());
                }
            }
            _ => {}
        }
        if matches!(item, Item::Answer(_) | Item::Ranks(_)) {
            self.foldable = Some(item.clone());
        }
        if let Item::Happened { tasks, .. } = item {
            self.sets.happened.push(tasks.clone());
        }
        self.show_quietly(item);
    }

    /// Shows an item whose classes are not those that `@1` means.
    fn show_quietly(&mut self, item: &Item) {
        let at = self.now().saturating_duration_since(self.began);
        self.reporting.record(at, item);
        self.view.show(at, item);
        if self.view.is_gone() && self.over.is_none() {
            self.over = Some(Over::Unread);
        }
    }

    /// These are `@1`, `@2`, ... from now on.
    fn note_classes(&mut self, classes: Vec<IdSet>) {
        if !classes.is_empty() {
            self.sets.classes = classes;
        }
    }

    fn complain(&mut self, message: impl Into<String>, hint: &str) -> Verdict {
        self.show(&Item::Error(Problem {
            message: message.into(),
            hint: hint.to_owned(),
            ..Problem::default()
        }));
        Verdict::Failed
    }

    /// Sends a command and keeps it open.
    fn send(&mut self, said: &str, to: &IdSet, command: &Command) -> CommandId {
        self.send_merged(said, to, command, (rule_of(command), Vec::new()))
    }

    /// The same, its answers merged by a rule with its parameters.
    fn send_merged(
        &mut self,
        said: &str,
        to: &IdSet,
        command: &Command,
        (rule, rule_params): (u16, Vec<u8>),
    ) -> CommandId {
        let run = command.is_run_control();
        self.fresh &= !disturbs(command);
        let options = SendOptions {
            timeout: (!run).then_some(self.options.query_timeout),
            rule,
            rule_params,
        };
        let mut open = Open::new(said, to);
        open.run = run;
        open.quiet = self.quiet_runs;
        if run {
            let starts = matches!(command, Command::Start(_));
            let still = |state: &TaskState| starts || *state == TaskState::Stopped;
            let moved = self.tasks.in_state(still).intersection(to);
            open.before = self.tasks.rows_of(&moved);
            let state = if starts {
                TaskState::Starting
            } else {
                TaskState::Running
            };
            self.tasks.set(&moved, state, None);
        }
        let id = self.debug.send(to, command, &options);
        self.open.insert(id, open);
        id
    }

    /// What is said at the prompt: focus and states.
    #[must_use]
    pub fn prompt(&self) -> String {
        if let Some(question) = self.question() {
            return question;
        }
        if self.collecting.is_some() {
            return ">".to_owned();
        }
        let who = if self.focus == *self.debug.tasks() {
            format!("all {}", self.focus.len())
        } else {
            sdm_view::render::set_text(&self.focus, 24)
        };
        format!("[{who}: {}] (sdm) ", self.tasks.summary(&self.focus))
    }
}

/// True for a command after which a program is not what it was when it was started.
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
