//! Events of tasks, delayed for a moment so that equal ones are shown once.
use std::time::{Duration, Instant};

use sdm_idset::IdSet;
use sdm_view::item::{Gathered, Happening, Item};

use sdm_view::coalesce::{Merged, join};

/// The delay of notices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Time without a further notice after which the delayed notices are shown.
    quiet: Duration,
    /// Time after the first delayed notice at which all are shown, even if further ones arrive.
    held_max: Duration,
}

impl Patience {
    /// The delay at the prompt.
    pub(crate) const IDLE: Patience = Patience {
        quiet: Duration::from_millis(300),
        held_max: Duration::from_secs(1),
    };
    /// The delay while a command waits, except for a start. The end of a run shows all notices.
    pub(crate) const RUN: Patience = Patience {
        quiet: Duration::from_millis(800),
        held_max: Duration::from_secs(2),
    };
    /// The delay of notices while tasks are started: the tasks reach `main` one after the other.
    pub(crate) const START: Patience = Patience {
        quiet: Duration::from_secs(10),
        held_max: Duration::from_secs(30),
    };
}

/// Time that a launcher's line is delayed, in case the launcher ends.
const LINES_WINDOW: Duration = Duration::from_millis(500);
/// Maximum number of delayed launcher lines.
const LINES_MAX: usize = 256;
/// Time that reports of silent tasks, lost tasks and the launcher's end are delayed, to be combined.
const LAUNCHER_WINDOW: Duration = Duration::from_secs(1);

/// Notices that are delayed.
#[derive(Debug)]
pub(crate) struct Notices {
    happened: Merged<Happening>,
    /// Completed commands that no caller waited for. Their results are shown after the events.
    concluded: Vec<Gathered>,
    first: Option<Instant>,
    newest: Option<Instant>,
    silent: Vec<(IdSet, String)>,
    lost: Vec<(IdSet, String)>,
    launcher: Option<(String, Vec<String>)>,
    /// Delayed lines of the launcher. If the launcher ends, they are reported as its last lines.
    lines: Vec<String>,
    lines_since: Option<Instant>,
    gone_since: Option<Instant>,
    pub(crate) patience: Patience,
}

impl Default for Notices {
    fn default() -> Self {
        Self {
            happened: Merged::new(),
            concluded: Vec::new(),
            first: None,
            newest: None,
            silent: Vec::new(),
            lost: Vec::new(),
            launcher: None,
            lines: Vec::new(),
            lines_since: None,
            gone_since: None,
            patience: Patience::IDLE,
        }
    }
}

impl Notices {
    /// Adds an event of tasks.
    pub(crate) fn push(&mut self, now: Instant, tasks: &IdSet, what: Happening) {
        self.first.get_or_insert(now);
        self.newest = Some(now);
        self.happened.push(tasks.clone(), what);
    }

    /// Adds a completed command that no caller waited for.
    pub(crate) fn conclude(&mut self, now: Instant, gathered: Gathered) {
        self.first.get_or_insert(now);
        self.newest.get_or_insert(now);
        self.concluded.push(gathered);
    }

    /// Notes silent tasks. Silence is often the beginning of a loss, which is then reported instead.
    pub(crate) fn silence(&mut self, now: Instant, tasks: &IdSet, why: String) {
        self.gone_since.get_or_insert(now);
        join(&mut self.silent, tasks, why);
    }

    /// Notes that tasks are reachable again. Returns those of them that were shown as silent.
    pub(crate) fn hear(&mut self, tasks: &IdSet) -> IdSet {
        let held = IdSet::union_all(self.silent.iter().map(|(silent, _)| silent));
        take_out(&mut self.silent, tasks);
        tasks.difference(&held)
    }

    /// Notes that the servers of these tasks are lost. Tasks in `ended` have ended before and are not lost.
    pub(crate) fn lose(&mut self, now: Instant, tasks: &IdSet, ended: &IdSet, why: String) {
        take_out(&mut self.silent, tasks);
        let lost = tasks.difference(ended);
        if !lost.is_empty() {
            self.gone_since.get_or_insert(now);
            join(&mut self.lost, &lost, why);
        }
    }

    /// Adds a line of the launcher.
    pub(crate) fn launcher_line(&mut self, now: Instant, line: String) {
        self.lines_since.get_or_insert(now);
        self.lines.push(line);
    }

    /// Notes the end of the launcher.
    pub(crate) fn launcher_ended(&mut self, now: Instant, status: String, words: Vec<String>) {
        self.gone_since.get_or_insert(now);
        self.launcher = Some((status, words));
    }

    /// The time at which [`Notices::take_due`] returns an item. None if no notice is delayed.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let quiet = self.newest.map(|newest| newest + self.patience.quiet);
        let held = self.first.map(|first| first + self.patience.held_max);
        let gone = self.gone_since.map(|since| since + LAUNCHER_WINDOW);
        let lines = self.lines_since.map(|since| since + LINES_WINDOW);
        [quiet, held, gone, lines].into_iter().flatten().min()
    }

    /// Takes the notices whose delay is over.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<Item> {
        let past = |since: Option<Instant>, window| since.is_some_and(|at| now >= at + window);
        let mut items = Vec::new();
        if past(self.newest, self.patience.quiet) || past(self.first, self.patience.held_max) {
            items.extend(self.take_happened());
        }
        if past(self.lines_since, LINES_WINDOW) || self.lines.len() >= LINES_MAX {
            items.extend(self.take_lines());
        }
        if past(self.gone_since, LAUNCHER_WINDOW) {
            items.extend(self.take_gone());
        }
        items
    }

    /// Takes all events of tasks, and the results of completed commands.
    pub(crate) fn take_happened(&mut self) -> Vec<Item> {
        self.first = None;
        self.newest = None;
        let happened = self.happened.take_biggest_first().into_iter();
        let concluded = std::mem::take(&mut self.concluded).into_iter();
        happened
            .map(|(tasks, what)| Item::Happened { tasks, what })
            .chain(concluded.map(Item::Answer))
            .collect()
    }

    /// Takes the launcher's delayed lines, and the reports of silent tasks, lost tasks and the launcher's end. Tasks
    /// lost with their launcher are one item.
    pub(crate) fn take_gone(&mut self) -> Vec<Item> {
        self.gone_since = None;
        let silent = in_one(std::mem::take(&mut self.silent));
        let silent = silent.map(|(tasks, why)| Item::Silent { tasks, why });
        let lost = std::mem::take(&mut self.lost);
        if let Some((status, last_words)) = self.launcher.take() {
            self.lines.retain(|line| !last_words.contains(line));
            let mut items = self.take_lines();
            items.extend(silent);
            items.push(Item::LauncherEnded {
                status,
                last_words,
                lost: IdSet::union_all(lost.iter().map(|(tasks, _)| tasks)),
            });
            return items;
        }
        let mut items = self.take_lines();
        items.extend(silent);
        items.extend(in_one(lost).map(|(tasks, why)| Item::Lost { tasks, why }));
        items
    }

    fn take_lines(&mut self) -> Vec<Item> {
        self.lines_since = None;
        let lines = std::mem::take(&mut self.lines).into_iter();
        lines.map(Item::LauncherLine).collect()
    }
}

/// Removes tasks from all entries, and removes empty entries.
fn take_out(entries: &mut Vec<(IdSet, String)>, tasks: &IdSet) {
    for (set, _) in entries.iter_mut() {
        set.subtract(tasks);
    }
    entries.retain(|(set, _)| !set.is_empty());
}

/// Merges all entries into one; None without entries. Each names its own server, but a user sees them as one event.
fn in_one(entries: Vec<(IdSet, String)>) -> Option<(IdSet, String)> {
    const NAMED_MAX: usize = 2;
    let tasks = IdSet::union_all(entries.iter().map(|(tasks, _)| tasks));
    let more = entries.len().saturating_sub(NAMED_MAX);
    let named = entries.into_iter().take(NAMED_MAX).map(|(_, why)| why);
    let mut why = named.collect::<Vec<_>>().join("; ");
    if more > 0 {
        why.push_str(&format!("; and {more} more"));
    }
    (!tasks.is_empty()).then_some((tasks, why))
}
