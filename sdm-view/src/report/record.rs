//! Records the items of a session that belong into a report.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use sdm_diagnose::Diagnosis;
use sdm_idset::IdSet;
use sdm_text::counted;

use super::mpi_errors::{MpiError, MpiErrors};
use super::output::OutputLog;
use super::places::placed;
use super::{End, Fact, Look, Moment, Report};
use crate::item::{Gathered, Happening, Item, MergedStacks, RankRow};
use crate::render::{Names, Style, item_lines, sentence};

/// Number of events that are kept from the beginning, and as many from the end.
const MOMENTS_MAX: usize = 250;
/// Maximum size of the recorded output of commands, in bytes.
const COMMANDS_BYTES_MAX: usize = 128 << 10;
/// Maximum number of groups of lost tasks, and of texts about missing answers.
const LOST_MAX: usize = 64;
/// Width of the recorded output of commands, in characters.
const COMMANDS_WIDTH: usize = 120;

/// A record of the items that a session shows, bounded in size.
#[derive(Clone, Debug)]
pub struct Recorder {
    session: String,
    began: SystemTime,
    names: Names,
    program: Vec<String>,
    facts: Vec<Fact>,
    end: Option<End>,
    first: Option<Moment>,
    crashed: Vec<Look>,
    outliers: Vec<Look>,
    stacks: Option<MergedStacks>,
    diagnosis: Option<Diagnosis>,
    output: OutputLog,
    timeline: Timeline,
    commands: String,
    commands_left_out: usize,
    mpi_errors: MpiErrors,
    lost: Vec<(IdSet, String)>,
    missing: Vec<String>,
    dirty: bool,
}

impl Recorder {
    /// A recorder of a session that begins now, with names for its tasks.
    #[must_use]
    pub fn new(facts: Vec<Fact>, names: Names) -> Self {
        Self {
            session: String::new(),
            began: SystemTime::now(),
            names,
            program: Vec::new(),
            facts,
            end: None,
            first: None,
            crashed: Vec::new(),
            outliers: Vec::new(),
            stacks: None,
            diagnosis: None,
            output: OutputLog::default(),
            timeline: Timeline::default(),
            commands: String::new(),
            commands_left_out: 0,
            mpi_errors: MpiErrors::default(),
            lost: Vec::new(),
            missing: Vec::new(),
            dirty: true,
        }
    }

    /// Adds a fact about the run, or replaces the fact with that name.
    pub fn fact(&mut self, fact: Fact) {
        self.facts.retain(|known| known.name != fact.name);
        self.facts.push(fact);
        self.dirty = true;
    }

    /// True if there is a fact of this name.
    #[must_use]
    pub fn knows(&self, name: &str) -> bool {
        self.facts.iter().any(|fact| fact.name == name)
    }

    /// The tasks of the first crash; None without a crash.
    #[must_use]
    pub fn first_crash(&self) -> Option<&IdSet> {
        self.first.as_ref().map(|first| &first.tasks)
    }

    /// Records the stacks of `asked`, and the stacks with variables of crashed tasks and outliers. Stacks
    /// that are known for all tasks are kept where a later query was answered by only some.
    pub fn look(
        &mut self,
        asked: &IdSet,
        stacks: Option<MergedStacks>,
        crashed: Vec<Look>,
        outliers: Vec<Look>,
    ) {
        let knows_all = self
            .stacks
            .as_ref()
            .is_some_and(|it| asked.is_subset(&it.tasks));
        let stacks = stacks.filter(|later| !knows_all || asked.is_subset(&later.tasks));
        let has_outliers = stacks.is_some() || !outliers.is_empty();
        self.stacks = stacks.or(self.stacks.take());
        keep_best(&mut self.crashed, crashed);
        if has_outliers {
            self.outliers = outliers;
        }
        self.dirty = true;
    }

    /// Records the end of the session.
    pub fn end(&mut self, code: u8, reason: Option<String>) {
        self.end = Some(End { code, reason });
        self.dirty = true;
    }

    /// Returns true if anything was recorded since the last call.
    pub fn take_dirty(&mut self) -> bool {
        std::mem::take(&mut self.dirty)
    }

    /// Records an item, with the time since the session's beginning.
    pub fn record(&mut self, at: Duration, item: &Item) {
        self.dirty = true;
        match item {
            Item::Start {
                session, programs, ..
            } => self.start(at, session, programs),
            Item::Happened { tasks, what } => self.happened(at, tasks, what),
            Item::Output {
                tasks,
                stream,
                line,
                complete,
            } => {
                self.output.exceptions.read(at, tasks, *stream, line);
                self.output.push(tasks, *stream, line, *complete);
            }
            Item::Lost { tasks, why } => {
                self.timeline
                    .push(moment(at, tasks, &format!("lost: {why}"), true));
                if self.lost.len() < LOST_MAX {
                    self.lost.push((tasks.clone(), why.clone()));
                }
            }
            Item::Silent { tasks, why } => {
                let text = format!("not answering: {why}");
                self.timeline.push(moment(at, tasks, &text, true));
            }
            Item::Reachable { tasks } => {
                self.timeline.push(moment(at, tasks, "heard again", false));
            }
            Item::LauncherLine(line) => self.say(at, &format!("launcher: {line}"), false),
            Item::LauncherEnded {
                status, last_words, ..
            } => {
                let text = format!("the launcher ended: {status}");
                let mut moment = moment(at, &IdSet::new(), &text, true);
                moment.below.extend(last_words.iter().take(8).cloned());
                self.timeline.push(moment);
            }
            Item::Notice(text) => self.say(at, text, false),
            Item::Echo { line } => {
                self.say(at, &format!("(sdm) {line}"), false);
                self.command(item);
            }
            Item::End { code, reason } => self.end(*code, reason.clone()),
            Item::Diagnosis(found) => {
                self.diagnosis = Some(found.clone());
                self.command(item);
            }
            Item::Answer(gathered) => self.answer(gathered, item),
            Item::Whole(item) => self.record(at, item),
            _ => self.command(item),
        }
    }

    /// Handles the start of a session or the restart of its job. Evidence from the previous job is dropped.
    fn start(&mut self, at: Duration, session: &str, programs: &[(IdSet, Vec<String>)]) {
        if !self.session.is_empty() {
            self.say(at, "started anew", false);
            self.first = None;
            self.crashed.clear();
            self.outliers.clear();
            self.stacks = None;
            self.diagnosis = None;
            self.mpi_errors.all.clear();
            self.output = OutputLog::default();
        }
        session.clone_into(&mut self.session);
        let words: Vec<_> = programs.iter().map(|(_, words)| &words[..]).collect();
        self.program = words.join(&":".to_owned());
    }

    fn say(&mut self, at: Duration, text: &str, bad: bool) {
        self.timeline.push(moment(at, &IdSet::new(), text, bad));
    }

    fn happened(&mut self, at: Duration, tasks: &IdSet, what: &Happening) {
        if matches!(what, Happening::Progress(_)) {
            return;
        }
        let said = sentence(what);
        let moment = Moment {
            at,
            tasks: tasks.clone(),
            what: said.line,
            below: said.below,
            bad: said.bad,
        };
        if is_mpi_error(what) {
            self.mpi_errors.add(MpiError {
                tasks: moment.tasks.clone(),
                what: moment.what.clone(),
                below: moment.below.clone(),
            });
        }
        if self.first.is_none() && is_crash(what) {
            self.first = Some(moment.clone());
        }
        self.timeline.push(moment);
    }

    /// The recorded errors in the use of MPI.
    #[must_use]
    pub fn mpi_errors(&self) -> &[MpiError] {
        &self.mpi_errors.all
    }

    fn answer(&mut self, gathered: &Gathered, item: &Item) {
        if let Some(stacks) = gathered.stacks() {
            let before = self.stacks.as_ref().map_or(0, |stacks| stacks.tasks.len());
            if stacks.tasks.len() >= before {
                self.stacks = Some(stacks);
            }
        }
        for (tasks, why) in &gathered.missing {
            let who = self.names.label(tasks, 60);
            let text = format!("{}: no answer from {who}: {why}", gathered.command);
            if self.missing.len() < LOST_MAX && !self.missing.contains(&text) {
                self.missing.push(text);
            }
        }
        self.command(item);
    }

    /// Records the output of a command, as on a screen.
    fn command(&mut self, item: &Item) {
        let style = Style {
            colour: false,
            width: Some(COMMANDS_WIDTH),
            rows: usize::MAX,
        };
        for line in item_lines(item, &self.names, style) {
            if self.commands.len() + line.len() > COMMANDS_BYTES_MAX {
                self.commands_left_out += 1;
                continue;
            }
            self.commands.push_str(&line);
            self.commands.push('\n');
        }
    }

    /// The rows of states, with those of running tasks divided by their places in the recorded stacks. `looked` are the
    /// tasks whose stacks were read while they ran.
    #[must_use]
    pub fn placed(&self, rows: Vec<RankRow>, looked: &IdSet) -> Vec<RankRow> {
        match &self.stacks {
            Some(stacks) => placed(rows, &stacks.tree, looked),
            None => rows,
        }
    }

    /// The first failure. An exception of a task that crashed first is added as the reason. If no task crashed, the
    /// first exception is the failure, unless the run was good.
    fn first_failure(&self) -> Option<Moment> {
        let is_good = self.end.as_ref().is_none_or(|end| end.code == 0);
        let mut first = self.first.clone();
        let Some(error) = &self.output.exceptions.first else {
            return first;
        };
        match &mut first {
            Some(crash) if !crash.tasks.is_disjoint(&error.tasks) => {
                crash.what = format!("{} ({})", crash.what, error.what);
            }
            None if !is_good => return Some(moment(error.at, &error.tasks, &error.what, true)),
            _ => {}
        }
        first
    }

    /// The report at this time, with the session's tasks and their states.
    #[must_use]
    pub fn report(&self, tasks: &IdSet, states: Vec<RankRow>, took: Duration) -> Report {
        let mut cut = self.output.cut();
        if self.timeline.left_out > 0 {
            cut.push(format!(
                "timeline: {} from the middle",
                counted(self.timeline.left_out, "event")
            ));
        }
        if self.commands_left_out > 0 {
            let count = self.commands_left_out;
            let lines = counted(count, "line");
            cut.push(format!("commands: {lines} at the end of their output"));
        }
        if self.mpi_errors.left_out > 0 {
            let count = self.mpi_errors.left_out;
            let errors = counted(count, "error");
            cut.push(format!("errors in the use of MPI: the last {errors}"));
        }
        cut.extend(self.missing.iter().cloned());
        Report {
            session: self.session.clone(),
            began: self.began,
            took,
            tasks: tasks.clone(),
            names: self.names.clone(),
            program: self.program.clone(),
            end: self.end.clone(),
            facts: self.facts.clone(),
            states,
            first: self.first_failure(),
            crashed: self.crashed.clone(),
            diagnosis: self.diagnosis.clone(),
            stacks: self.stacks.clone(),
            outliers: self.outliers.clone(),
            output: self.output.classes(),
            timeline: self.timeline.all(),
            commands: self.commands.clone(),
            mpi_errors: self.mpi_errors.all.clone(),
            lost: self.lost.clone(),
            cut,
        }
    }
}

/// Adds later stacks. Earlier ones of tasks that are missing now, or have no frame now, are kept.
fn keep_best(known: &mut Vec<Look>, mut later: Vec<Look>) {
    later.retain(|look| !look.frames.is_empty());
    let is_new = |look: &Look| later.iter().all(|other| other.task != look.task);
    let kept: Vec<Look> = std::mem::take(known).into_iter().filter(is_new).collect();
    *known = later;
    known.extend(kept);
}

fn moment(at: Duration, tasks: &IdSet, what: &str, bad: bool) -> Moment {
    Moment {
        at,
        tasks: tasks.clone(),
        what: what.to_owned(),
        below: Vec::new(),
        bad,
    }
}

/// True for a crash, an end by a signal, and an exit before `MPI_Finalize`.
fn is_crash(what: &Happening) -> bool {
    match what {
        Happening::Stopped(stop) => stop.reason.is_crash(),
        Happening::Signalled(_) => true,
        Happening::Exited {
            before_finalize, ..
        } => *before_finalize,
        _ => false,
    }
}

fn is_mpi_error(what: &Happening) -> bool {
    matches!(what, Happening::Stopped(stop) if stop.reason.is_mpi_error())
}

/// The events of a session, of which the first and the last are kept.
#[derive(Clone, Debug, Default)]
struct Timeline {
    head: Vec<Moment>,
    tail: VecDeque<Moment>,
    left_out: u64,
}

impl Timeline {
    fn push(&mut self, moment: Moment) {
        if self.head.len() < MOMENTS_MAX {
            return self.head.push(moment);
        }
        if self.tail.len() == MOMENTS_MAX {
            self.tail.pop_front();
            self.left_out += 1;
        }
        self.tail.push_back(moment);
    }

    fn all(&self) -> Vec<Moment> {
        self.head.iter().chain(&self.tail).cloned().collect()
    }
}
