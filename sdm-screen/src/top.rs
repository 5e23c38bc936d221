//! The state of `sdm top`, and its requests.

mod keys;
mod mouse;
mod saved_state;

use std::collections::VecDeque;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;
use sdm_text::printable;

use crate::bindings::Bindings;
use crate::form::Form;
use crate::map::Map;
use crate::platform_state::{Facts, Wants};
use crate::rows::{self, Listing};
use crate::style::Style;
use crate::table::{Row, Table};

/// Maximum number of commands in the log.
const LOG_MAX: usize = 100;

/// An action for the owner of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Run `sdm` with these arguments in the background, and report its end.
    Run(Vec<String>),
    /// Run `sdm` with these arguments in the foreground, with the terminal.
    Show(Vec<String>),
    /// Suspend `sdm`, as Ctrl-Z does.
    Suspend,
    /// Redraw the whole screen.
    Redraw,
    /// Copy this text to the terminal's clipboard.
    Copy(String),
    /// Quit.
    Quit,
}

/// The four views.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum View {
    Managers,
    Machines,
    #[default]
    Jobs,
    Process,
}

/// The overlay that has the keyboard focus instead of the view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Overlay {
    #[default]
    Nothing,
    /// The list of keys.
    Help,
    /// The menu of commands for a job.
    Menu { name: String, at: usize },
    /// A command that waits for confirmation.
    Confirm(Vec<String>),
    /// The input line of the filter. The text is the previous filter.
    Filter(String),
    /// The input line for a view's name or a command of `sdm`.
    Command(String),
    /// A form with the arguments of a command.
    Form(Form),
}

/// A command in the log.
#[derive(Clone, Debug)]
pub(crate) struct Logged {
    pub(crate) words: Vec<String>,
    /// The success and message. None while the command runs.
    pub(crate) end: Option<(bool, String)>,
}

/// The entries of a job's menu: the verb, and its description.
pub(crate) const MENU: [(&str, &str); 5] = [
    ("stacks", "print the stacks of its processes"),
    ("diagnose", "explain why it hangs"),
    ("attach", "debug it"),
    ("logs", "show its output"),
    ("show", "show all its attributes"),
];

/// The screen of `sdm top`.
///
/// Large because a key can involve any view. Each has a type of its own; the rest here is their common
/// state and the keyboard focus.
#[derive(Debug)]
pub struct Top {
    pub(crate) style: Style,
    pub(crate) facts: Facts,
    pub(crate) now: u64,
    pub(crate) view: View,
    pub(crate) over: Overlay,
    pub(crate) filter: String,
    pub(crate) listing: Listing,
    /// True if the view's right or lower part has the keyboard focus.
    pub(crate) second: bool,
    pub(crate) managers: Table,
    pub(crate) machines: Table,
    pub(crate) jobs: Table,
    pub(crate) processes: Table,
    pub(crate) map: Map,
    pub(crate) log: VecDeque<Logged>,
    /// Reason why the last key had no effect; empty if it had.
    pub(crate) hint: String,
    pub(crate) bindings: Bindings,
    /// The area of the last frame.
    pub(crate) area: Rect,
    /// Number of output lines below the displayed ones; 0 while the output is followed.
    pub(crate) output_below: usize,
    requests: VecDeque<Request>,
    changed: bool,
}

impl Top {
    /// The state before the first snapshot. `now` is in seconds of Unix time.
    #[must_use]
    pub fn new(style: Style, now: u64) -> Self {
        let mut top = Self {
            style,
            facts: Facts::default(),
            now,
            view: View::default(),
            over: Overlay::default(),
            filter: String::new(),
            listing: Listing::default(),
            second: false,
            managers: Table::default(),
            machines: Table::default(),
            jobs: Table::default(),
            processes: Table::default(),
            map: Map::default(),
            log: VecDeque::new(),
            hint: String::new(),
            bindings: Bindings::default(),
            area: Rect::default(),
            output_below: 0,
            requests: VecDeque::new(),
            changed: true,
        };
        top.fill();
        top
    }

    /// Sets the user's key bindings.
    pub fn bind(&mut self, bindings: Bindings) {
        self.bindings = bindings;
    }

    /// Sets the snapshot. An unchanged one causes no redraw.
    pub fn handle_facts(&mut self, facts: Facts) {
        let facts = facts.escaped();
        if facts != self.facts {
            self.facts = facts;
            self.fill();
        }
    }

    /// Sets the time, in seconds of Unix time, for the displayed run times.
    pub fn handle_time(&mut self, now: u64) {
        // In linear mode, for screen readers, the time advances once a minute, not every second.
        let now = match self.style.linear {
            true => now / 60 * 60,
            false => now,
        };
        if now != self.now {
            self.now = now;
            self.changed |= self.fill_aged();
        }
    }

    /// Notes the end of a command of [`Request::Run`]: the first running one with these words.
    pub fn handle_end(&mut self, words: &[String], went_well: bool, said: &str) {
        let mut running = self.log.iter_mut().filter(|it| it.end.is_none());
        if let Some(logged) = running.find(|it| it.words == words) {
            let line = said.lines().find(|line| !line.trim().is_empty());
            let line = printable(line.unwrap_or_default().as_bytes());
            logged.end = Some((went_well, line));
            self.changed = true;
        }
    }

    /// Requests a redraw after a resize, or after other programs have written to the terminal.
    pub fn handle_resize(&mut self) {
        self.changed = true;
    }

    /// Takes the next request; None if there is none.
    pub fn poll_request(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }

    /// True once after each change that requires a redraw.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// The details that the current view needs in addition to a snapshot's standard content.
    #[must_use]
    pub fn wants(&self) -> Wants {
        let shows = matches!(self.view, View::Jobs | View::Process);
        let job = self.jobs.selected().filter(|_| shows);
        let process = self
            .processes
            .selected()
            .filter(|_| self.view == View::Process);
        Wants {
            job: job.map(|row| row.key.clone()),
            process: process.map(|row| row.key.1.clone()),
        }
    }

    /// Handles a key.
    pub fn handle_key(&mut self, key: KeyEvent) {
        self.changed = true;
        self.hint.clear();
        let is_typed = matches!(
            self.over,
            Overlay::Filter(_) | Overlay::Command(_) | Overlay::Form(_)
        );
        let meant = match is_typed {
            true => Some(key),
            false => self.bindings.meant(key),
        };
        let Some(key) = meant else {
            return;
        };
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => return self.requests.push_back(Request::Quit),
            KeyCode::Char('z') if control => return self.requests.push_back(Request::Suspend),
            KeyCode::Char('l') if control => return self.requests.push_back(Request::Redraw),
            KeyCode::Char('u') if control && matches!(self.over, Overlay::Form(_)) => {}
            KeyCode::Char(_) if control => return,
            _ => {}
        }
        match std::mem::take(&mut self.over) {
            Overlay::Nothing => self.view_key(key.code),
            // Whatever is typed closes it.
            Overlay::Help => {}
            Overlay::Menu { name, at } => self.menu_key(key.code, name, at),
            Overlay::Confirm(words) => match key.code {
                KeyCode::Char('y' | 'Y') => self.run(words),
                _ => "not done".clone_into(&mut self.hint),
            },
            Overlay::Filter(before) => self.filter_key(key.code, before),
            Overlay::Command(line) => self.command_key(key.code, line),
            Overlay::Form(form) if control => self.form_key(KeyCode::Delete, form),
            Overlay::Form(form) => self.form_key(key.code, form),
        }
    }

    pub(crate) fn ask(&mut self, request: Request) {
        self.requests.push_back(request);
    }

    pub(crate) fn go(&mut self, view: View) {
        if view != self.view {
            self.view = view;
            self.second = false;
            self.output_below = 0;
            self.fill();
        }
    }

    /// The table that has the keyboard focus in the current view.
    pub(crate) fn table(&mut self) -> &mut Table {
        match (self.view, self.second) {
            (View::Managers, _) => &mut self.managers,
            (View::Machines, _) => &mut self.machines,
            (View::Jobs, false) => &mut self.jobs,
            (View::Jobs, true) | (View::Process, _) => &mut self.processes,
        }
    }

    pub(crate) fn run(&mut self, words: Vec<String>) {
        self.note(words.clone(), None);
        self.requests.push_back(Request::Run(words));
    }

    pub(crate) fn show(&mut self, words: Vec<String>) {
        self.note(words.clone(), Some((true, String::new())));
        self.requests.push_back(Request::Show(words));
    }

    pub(crate) fn note(&mut self, words: Vec<String>, end: Option<(bool, String)>) {
        if self.log.len() == LOG_MAX {
            self.log.pop_front();
        }
        self.log.push_back(Logged { words, end });
    }

    /// Fills all tables from the snapshot.
    pub(crate) fn fill(&mut self) {
        let machines = self.filtered(rows::machines(&self.facts), View::Machines);
        self.machines.fill(rows::MACHINES, machines);
        self.fill_aged();
        self.fill_processes();
        self.fill_map();
        self.changed = true;
    }

    /// Updates the cells that change with time. Returns true if the table of the current view has changed; for the
    /// process view, that of the jobs.
    fn fill_aged(&mut self) -> bool {
        let managers = self.filtered(rows::managers(&self.facts, self.now), View::Managers);
        let managers = self.managers.fill(rows::MANAGERS, managers);
        let jobs = rows::jobs(&self.facts, self.listing, self.now);
        let jobs = self.filtered(jobs, View::Jobs);
        let jobs = self.jobs.fill(rows::JOBS, jobs);
        match self.view {
            View::Managers => managers,
            View::Machines => false,
            View::Jobs | View::Process => jobs,
        }
    }

    pub(crate) fn fill_processes(&mut self) {
        let job = self.jobs.selected().map(|row| row.key.clone());
        let rows = job.map(|job| rows::processes(&self.facts, &job));
        self.processes
            .fill(rows::PROCESSES, rows.unwrap_or_default());
    }

    pub(crate) fn fill_map(&mut self) {
        let nodes = self.machines.selected().map(|row| {
            let below = |it: &&crate::Item| (&it.cluster, &it.parent) == (&row.key.0, &row.key.1);
            let nodes = self.facts.of(sdm_runtime::wire::event::Kind::Node);
            nodes.filter(below).cloned().collect()
        });
        self.map.fill(nodes.unwrap_or_default());
    }

    /// Selects a row of the table with the keyboard focus.
    pub(crate) fn select(&mut self, row: usize) {
        let from = isize::try_from(self.table().at()).unwrap_or(0);
        let to = isize::try_from(row).unwrap_or(isize::MAX);
        self.step(0, to - from);
    }

    /// Applies the filter to rows of the current view. Case is ignored.
    fn filtered(&self, mut rows: Vec<Row>, of: View) -> Vec<Row> {
        let view = match self.view {
            View::Process => View::Jobs,
            view => view,
        };
        if view == of && !self.filter.is_empty() {
            let wanted = self.filter.to_lowercase();
            let has = |cell: &String| cell.to_lowercase().contains(&wanted);
            rows.retain(|row| row.cells.iter().any(has));
        }
        rows
    }
}
