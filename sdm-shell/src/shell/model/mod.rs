//! State of the session as the shell knows it: tasks, breakpoints, open commands, output.
//!
//! A [`Model`] is changed by events ([`Model::handle_event`]) and by commands. It does no I/O and reads no
//! clock. Actions for its owner are drained with [`Model::poll_effect`].

pub(crate) mod breaks;
pub(crate) mod dialogue;
pub(crate) mod displays;
mod events;
pub(crate) mod goal;
pub(crate) mod input;
pub(crate) mod job;
pub(crate) mod notices;
pub(crate) mod open_commands;
pub(crate) mod output;
mod saved_commands;
pub(crate) mod sets;
mod spawned_tasks;
pub(crate) mod tasks;
#[cfg(test)]
mod tests;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use breaks::Breaks;
use dialogue::Dialogue;
use displays::Displays;
use input::Input;
use job::Job;
use notices::Notices;
use open_commands::OpenCommands;
use output::Output;
use sdm_debug::EndPolicy;
use sdm_idset::IdSet;
use sdm_view::item::{Gathered, Item};
use sdm_view::overview::Sight;
use sets::Sets;
use tasks::TaskTable;

use super::{Control, Options};

/// The state of a session in the shell.
#[derive(Debug)]
pub(crate) struct Model {
    /// The settings of the shell.
    pub(crate) options: Options,
    /// The tasks of the session: `all`.
    pub(crate) all: IdSet,
    /// The state of each task.
    pub(crate) tasks: TaskTable,
    /// The job that the tasks belong to.
    pub(crate) job: Job,
    /// The focus, and the named sets.
    pub(crate) sets: Sets,
    /// The breakpoints, by the front-end's numbers.
    pub(crate) breaks: Breaks,
    /// The expressions of `display`, shown after each stop.
    pub(crate) displays: Displays,
    /// The commands in progress. A complete one stays until its result is taken.
    pub(crate) open: OpenCommands,
    /// Standard input of the programs.
    pub(crate) input: Input,
    /// News that is delayed for a moment, so that equal items are shown once.
    pub(crate) news: News,
    /// State of the dialogue with the user or script.
    pub(crate) dialogue: Dialogue,
    /// Requests from outside the session that are not handled yet.
    pub(crate) requests: Requests,
    /// State of the full-screen view.
    pub(crate) glance: LastView,
    /// The reason why no command can be carried out any more. None while commands can.
    pub(crate) over: Option<Over>,
    effects: VecDeque<Effect>,
}

/// An action for the owner of a [`Model`].
#[derive(Debug, PartialEq)]
pub(crate) enum Effect {
    /// Show this item.
    Show(Box<Item>),
    /// Print output of the programs that the launcher carries, unchanged.
    Pass {
        /// True for the standard error stream.
        stderr: bool,
        /// The bytes, as the launcher sent them.
        bytes: Vec<u8>,
    },
    /// Request the next piece of the programs' input.
    RequestInput,
    /// A piece of input for the programs. Empty at the end of the input.
    PassInput(Vec<u8>),
}

/// News from the tasks that is delayed.
#[derive(Debug)]
pub(crate) struct News {
    /// Output of the programs.
    pub(crate) output: Output,
    /// Events of tasks, delayed for a moment.
    pub(crate) notices: Notices,
    /// Time of the last news from the tasks.
    pub(crate) activity: Instant,
    /// The time until which gdb may still attach to ranks. Their stops are reported after that. None if gdb attaches to
    /// no rank.
    pub(crate) attach_until: Option<Instant>,
}

impl News {
    /// The time since which the tasks are quiet: after the last news, and after the time that gdb has to attach.
    pub(crate) fn quiet_since(&self) -> Instant {
        let until = self.attach_until.unwrap_or(self.activity);
        until.max(self.activity)
    }

    /// The time at which delayed notices or output are due. None if there are none.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let deadlines = [self.output.deadline(), self.notices.deadline()];
        deadlines.into_iter().flatten().min()
    }

    /// Takes the notices and output whose delay is over.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<Item> {
        let mut items = self.output.take_due(now);
        items.extend(self.notices.take_due(now));
        items
    }

    /// Takes all delayed output and events of tasks, output first. Notices of the launcher and of silent or lost tasks
    /// stay.
    pub(crate) fn take_held(&mut self) -> Vec<Item> {
        let mut items = self.output.take_all();
        items.extend(self.notices.take_happened());
        items
    }
}

/// The last state that a full-screen view was given.
#[derive(Debug, Default)]
pub(crate) struct LastView {
    /// Number of changes so far.
    pub(crate) changes: u64,
    /// The value of `changes` when the view was last updated. None before the first update.
    pub(crate) shown: Option<u64>,
    /// Time of the view's last update. None before the first one.
    pub(crate) shown_at: Option<Instant>,
    /// Number of lines carried out; each may have changed the state.
    pub(crate) lines: u64,
    /// Number of task moves and of lines at the last query. None before the first query.
    pub(crate) seen: Option<(u64, u64)>,
    /// The result of the last query, and the number of task moves that it is of. None before the first result.
    pub(crate) sight: Arc<Sight>,
    pub(crate) known: Option<u64>,
    /// The last stacks of all ranks without a gdb, their time, and the number of task moves that they are of. None
    /// before the first ones, and if ranks have not answered.
    pub(crate) looked: Option<(Instant, u64, Gathered)>,
}

/// Requests from outside the session that are not handled yet.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// Lines, and other input whose place among the lines matters, in order of arrival.
    lines: VecDeque<Control>,
    /// Number of entries that were added to `lines` so far, and that were taken.
    lines_come: u64,
    lines_given: u64,
    /// Ctrl-C and Ctrl-Z that are not handled yet, each with the value of `lines_come` when it arrived.
    breaks: VecDeque<(u64, Break)>,
    /// Number of waits that Ctrl-C or the warning of the time limit has interrupted.
    pub(crate) interrupts: u64,
    /// A signal has warned that the time limit is near.
    pub(crate) warned: bool,
    /// Time at which all waiting ends, in a session without a user at a prompt; `None` for no limit.
    pub(crate) wait_until: Option<Instant>,
}

impl Requests {
    pub(crate) fn add_line(&mut self, line: Control) {
        self.lines.push_back(line);
        self.lines_come += 1;
    }

    /// Takes the next line; None if none has arrived. Ctrl-C and Ctrl-Z from before the line arrived are dropped.
    pub(crate) fn take_line(&mut self) -> Option<Control> {
        let line = self.lines.pop_front()?;
        self.lines_given += 1;
        self.breaks
            .retain(|(lines_before, _)| *lines_before >= self.lines_given);
        Some(line)
    }

    pub(crate) fn has_line(&self) -> bool {
        !self.lines.is_empty()
    }

    pub(crate) fn add_break(&mut self, pressed: Break) {
        self.breaks.push_back((self.lines_come, pressed));
    }

    pub(crate) fn take_break(&mut self) -> Option<Break> {
        self.breaks.pop_front().map(|(_, pressed)| pressed)
    }
}

/// A key by which the user breaks off a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Break {
    /// Ctrl-C: running tasks are stopped, or a query is given up.
    Interrupt,
    /// Ctrl-Z: the prompt returns, and running tasks run on.
    Suspend,
}

/// The reason why no command can be carried out any more.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Over {
    /// A command has requested the end.
    Quit(EndPolicy),
    /// The session has ended, with the reason.
    Ended(String),
    /// A signal requests the end of `sdm`: its number.
    Terminated(u8),
    /// The output is not read any more.
    Unread,
}

impl Model {
    /// A model of a session before its first event.
    pub(crate) fn new(now: Instant, tasks: IdSet, options: Options) -> Self {
        Self {
            options,
            tasks: TaskTable::new(&tasks),
            job: Job::default(),
            sets: Sets {
                focus: tasks.clone(),
                previous: tasks.clone(),
                ..Sets::default()
            },
            all: tasks,
            breaks: Breaks::default(),
            displays: Displays::default(),
            open: OpenCommands::default(),
            input: Input::default(),
            news: News {
                output: Output::new(),
                notices: Notices::default(),
                activity: now,
                attach_until: None,
            },
            dialogue: Dialogue::default(),
            requests: Requests::default(),
            glance: LastView::default(),
            over: None,
            effects: VecDeque::new(),
        }
    }

    /// True if a signal has ended the session.
    pub(crate) fn is_cut_off(&self) -> bool {
        matches!(self.over, Some(Over::Terminated(_)))
    }

    /// Takes the next action for the owner; None if there is none.
    pub(crate) fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Ends the session for this reason. Later reasons are ignored.
    pub(crate) fn end(&mut self, over: Over) {
        self.over.get_or_insert(over);
    }

    /// Resets the state of the old job after another session has replaced the old one. The user's state is
    /// kept.
    pub(crate) fn forget_job(&mut self, now: Instant, tasks: &IdSet) {
        self.all.clone_from(tasks);
        self.tasks = TaskTable::new(tasks);
        self.news = News {
            output: Output::again(&self.news.output),
            notices: Notices::default(),
            activity: now,
            attach_until: None,
        };
        self.open = OpenCommands::default();
        self.glance.looked = None;
        self.job.forget();
        self.input.offsets.clear();
        self.sets.forget_job(tasks);
        self.dialogue.list_from = dialogue::ListFrom::Selected;
        self.breaks.begin_anew(tasks);
    }

    /// Remembers the parts of a shown item that later commands refer to: `@1`, `more`.
    pub(crate) fn note_shown(&mut self, item: &Item) {
        let whole = match item {
            Item::Whole(whole) => &**whole,
            item => item,
        };
        if let Item::Answer(gathered) = whole {
            self.sets.note_classes(gathered.classes());
        }
        if matches!(item, Item::Answer(_) | Item::Ranks(_)) {
            self.dialogue.last_answer = Some(item.clone());
        }
        if let Item::Happened { tasks, .. } = item {
            self.sets.happened.push(tasks.clone());
        }
    }

    /// True if the user is asked before data is lost. `depth` is the nesting depth of sourced files and
    /// user-defined commands around the line.
    pub(crate) fn asks(&self, depth: u32) -> bool {
        self.options.interactive && self.options.confirm && depth == 0
    }

    /// True if every reachable task is live: it is started and not detached, and neither the task nor its gdb has
    /// ended.
    pub(crate) fn all_live(&self) -> bool {
        let reachable = self.all.difference(self.tasks.cut_off());
        reachable.is_subset(&self.tasks.live())
    }

    /// Reachable tasks that were detached and have not ended. None once the launcher has ended.
    pub(crate) fn left_running(&self) -> IdSet {
        if matches!(self.job.launcher, job::Launcher::Ended { .. }) {
            return IdSet::new();
        }
        self.tasks.detached()
    }

    /// The text of the prompt: an open question, `>` while `commands` or `define` reads its lines, or the focus with
    /// the states of its tasks.
    pub(crate) fn prompt(&self) -> String {
        if let Some(question) = &self.dialogue.question {
            return question.text(self.tasks.live().len());
        }
        if self.dialogue.collecting.is_some() {
            return ">".to_owned();
        }
        let focus = &self.sets.focus;
        let who = if *focus == self.all {
            format!("all {}", focus.len())
        } else {
            sdm_idset::set_text(focus, 24)
        };
        let states = self.tasks.summary(focus, &self.job.unattached);
        format!("[{who}: {states}] (sdm) ")
    }
}
