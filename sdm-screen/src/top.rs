//! What the keys of `sdm top` do.

use std::collections::VecDeque;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use sdm_text::printable;

use crate::facts::{Facts, Wants};
use crate::line::{edit, split, words};
use crate::map::Map;
use crate::rows::{self, Listing};
use crate::style::Style;
use crate::table::{Row, Table};

/// So many commands are kept in the log.
const LOG_MAX: usize = 100;
/// How many rows PgUp and PgDn go.
const PAGE: isize = 15;

/// What the owner of the screen is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Carry out `sdm` with these words beside the screen, and say how it ended.
    Run(Vec<String>),
    /// Give the terminal to `sdm` with these words until it ends.
    Show(Vec<String>),
    /// Stop, as Ctrl-Z does.
    Suspend,
    /// Write every cell anew.
    Redraw,
    /// End.
    Quit,
}

/// Which of the four views is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum View {
    Managers,
    Machines,
    #[default]
    Jobs,
    Process,
}

/// What has the keys instead of the view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Over {
    #[default]
    Nothing,
    /// The list of keys.
    Help,
    /// What can be done with a job.
    Menu { name: String, at: usize },
    /// A command that is carried out once it is confirmed.
    Confirm(Vec<String>),
    /// A filter that is typed, with the one that holds.
    Filter(String),
    /// A view's name or a command of `sdm` that is typed.
    Command(String),
}

/// A command that was carried out.
#[derive(Clone, Debug)]
pub(crate) struct Logged {
    pub(crate) words: Vec<String>,
    /// Whether it went well, and what it said; none while it runs.
    pub(crate) end: Option<(bool, String)>,
}

/// What a job's menu offers, with the verb for it.
pub(crate) const MENU: [(&str, &str); 5] = [
    ("stacks", "where its processes stand"),
    ("diagnose", "what is wrong with it"),
    ("attach", "debug it"),
    ("logs", "what it has written"),
    ("show", "all that is known of it"),
];

/// `sdm top`.
#[derive(Debug)]
pub struct Top {
    pub(crate) style: Style,
    pub(crate) facts: Facts,
    pub(crate) now: u64,
    pub(crate) view: View,
    pub(crate) over: Over,
    pub(crate) filter: String,
    pub(crate) listing: Listing,
    /// The view's right or lower part has the keys.
    pub(crate) second: bool,
    pub(crate) managers: Table,
    pub(crate) machines: Table,
    pub(crate) jobs: Table,
    pub(crate) processes: Table,
    pub(crate) map: Map,
    pub(crate) log: VecDeque<Logged>,
    /// Why the last key did nothing; empty where it did.
    pub(crate) hint: String,
    requests: VecDeque<Request>,
    changed: bool,
}

impl Top {
    /// One that knows nothing yet; `now` is in seconds of Unix time.
    #[must_use]
    pub fn new(style: Style, now: u64) -> Self {
        let mut top = Self {
            style,
            facts: Facts::default(),
            now,
            view: View::default(),
            over: Over::default(),
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
            requests: VecDeque::new(),
            changed: true,
        };
        top.fill();
        top
    }

    /// Takes what is known now. Nothing is drawn anew where it is what was known.
    pub fn handle_facts(&mut self, facts: Facts) {
        let facts = facts.escaped();
        if facts != self.facts {
            self.facts = facts;
            self.fill();
        }
    }

    /// Takes the time, in seconds of Unix time: what runs gets older.
    pub fn handle_time(&mut self, now: u64) {
        if now != self.now {
            self.now = now;
            self.changed |= self.fill_aged();
        }
    }

    /// Takes how a command of [`Request::Run`] has ended; the first one of these words that still runs is meant.
    pub fn handle_end(&mut self, words: &[String], went_well: bool, said: &str) {
        let mut running = self.log.iter_mut().filter(|it| it.end.is_none());
        if let Some(logged) = running.find(|it| it.words == words) {
            let line = said.lines().find(|line| !line.trim().is_empty());
            let line = printable(line.unwrap_or_default().as_bytes());
            logged.end = Some((went_well, line));
            self.changed = true;
        }
    }

    /// The terminal has another size, or was written on by others.
    pub fn handle_resize(&mut self) {
        self.changed = true;
    }

    /// What is to be done next.
    pub fn poll_request(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }

    /// True once after each change of what is shown.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// What is to be known beyond what always is.
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

    /// Takes a key.
    pub fn handle_key(&mut self, key: KeyEvent) {
        self.changed = true;
        self.hint.clear();
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => return self.requests.push_back(Request::Quit),
            KeyCode::Char('z') if control => return self.requests.push_back(Request::Suspend),
            KeyCode::Char('l') if control => return self.requests.push_back(Request::Redraw),
            KeyCode::Char(_) if control => return,
            _ => {}
        }
        match std::mem::take(&mut self.over) {
            Over::Nothing => self.view_key(key.code),
            // Whatever is typed closes it.
            Over::Help => {}
            Over::Menu { name, at } => self.menu_key(key.code, name, at),
            Over::Confirm(words) => match key.code {
                KeyCode::Char('y' | 'Y') => self.run(words),
                _ => "not done".clone_into(&mut self.hint),
            },
            Over::Filter(before) => self.filter_key(key.code, before),
            Over::Command(line) => self.command_key(key.code, line),
        }
    }

    fn view_key(&mut self, code: KeyCode) {
        match code {
            KeyCode::Char('q') => self.requests.push_back(Request::Quit),
            KeyCode::Char('?') | KeyCode::F(1) => self.over = Over::Help,
            KeyCode::Char('/') => self.over = Over::Filter(self.filter.clone()),
            KeyCode::Char(':') => self.over = Over::Command(String::new()),
            KeyCode::Char('1') => self.go(View::Managers),
            KeyCode::Char('2') => self.go(View::Machines),
            KeyCode::Char('3') => self.go(View::Jobs),
            KeyCode::Char('4') => self.go(View::Process),
            KeyCode::Tab | KeyCode::BackTab => {
                self.second = !self.second && matches!(self.view, View::Machines | View::Jobs);
            }
            KeyCode::Esc => self.back(),
            KeyCode::Up | KeyCode::Char('k') => self.step(0, -1),
            KeyCode::Down | KeyCode::Char('j') => self.step(0, 1),
            KeyCode::Left => self.step(-1, 0),
            KeyCode::Right => self.step(1, 0),
            KeyCode::PageUp => self.step(0, -PAGE),
            KeyCode::PageDown => self.step(0, PAGE),
            KeyCode::Home | KeyCode::Char('g') => self.step(0, isize::MIN / 2),
            KeyCode::End | KeyCode::Char('G') => self.step(0, isize::MAX / 2),
            code => match self.view {
                View::Managers => self.manager_key(code),
                View::Machines => self.machine_key(code),
                View::Jobs | View::Process => self.job_key(code),
            },
        }
    }

    pub(crate) fn go(&mut self, view: View) {
        if view != self.view {
            self.view = view;
            self.second = false;
            self.fill();
        }
    }

    /// What was opened last is closed: the filter, the lower part, the detail.
    fn back(&mut self) {
        if !self.filter.is_empty() {
            self.filter.clear();
            self.fill();
        } else if self.second {
            self.second = false;
        } else if self.view == View::Process {
            self.go(View::Jobs);
            self.second = true;
        }
    }

    fn step(&mut self, right: isize, down: isize) {
        let has_map = self.view == View::Machines && self.second;
        let by = |it: isize| i64::try_from(it).unwrap_or(0);
        if has_map {
            return self.map.step(by(right), by(down));
        }
        self.table().step(down);
        match self.view {
            View::Machines => self.fill_map(),
            View::Jobs if !self.second => self.fill_processes(),
            _ => {}
        }
    }

    /// The table that has the keys.
    fn table(&mut self) -> &mut Table {
        match (self.view, self.second) {
            (View::Managers, _) => &mut self.managers,
            (View::Machines, _) => &mut self.machines,
            (View::Jobs, false) => &mut self.jobs,
            (View::Jobs, true) | (View::Process, _) => &mut self.processes,
        }
    }

    fn manager_key(&mut self, code: KeyCode) {
        if code == KeyCode::Char('a') {
            self.over = Over::Command("cluster add ".to_owned());
            return;
        }
        let Some(Row { name, state, .. }) = self.managers.selected().cloned() else {
            return "no cluster is defined; `a` defines one".clone_into(&mut self.hint);
        };
        let words = |verb: &str| words(&["cluster", verb, &name]);
        match (code, &*state) {
            (KeyCode::Char('s'), "STARTED" | "STARTING") => {
                self.hint = format!("{name} is started");
            }
            (KeyCode::Char('s'), _) => self.run(words("start")),
            (KeyCode::Char('x'), "STOPPED") => self.hint = format!("{name} is stopped"),
            (KeyCode::Char('x'), _) => self.over = Over::Confirm(words("stop")),
            (KeyCode::Char('D'), _) => self.over = Over::Confirm(words("remove")),
            (KeyCode::Char('e'), _) => {
                self.over = Over::Command(format!("cluster edit {name} "));
            }
            (KeyCode::Char('d'), _) => self.show(crate::line::words(&["show", &name])),
            (KeyCode::Enter, _) => self.go(View::Machines),
            _ => {}
        }
    }

    fn machine_key(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.second = true,
            KeyCode::Char('+') => self.map.zoom(true),
            KeyCode::Char('-') => self.map.zoom(false),
            _ => {}
        }
    }

    fn job_key(&mut self, code: KeyCode) {
        match code {
            KeyCode::Char('o') => {
                self.listing.order = self.listing.order.next();
                return self.fill();
            }
            KeyCode::Char('O') => {
                self.listing.reverse = !self.listing.reverse;
                return self.fill();
            }
            KeyCode::Char('m') => {
                self.listing.own = !self.listing.own;
                return self.fill();
            }
            KeyCode::Char('n') => {
                self.over = Over::Command("submit -n 1 -- ".to_owned());
                return;
            }
            _ => {}
        }
        let Some(Row { name, state, .. }) = self.jobs.selected().cloned() else {
            return "no job is selected".clone_into(&mut self.hint);
        };
        let has_ended = matches!(&*state, "TERMINATED" | "ERROR");
        let words = |verb: &str| words(&[verb, &name]);
        match code {
            KeyCode::Enter if self.second && self.view == View::Jobs => self.go(View::Process),
            KeyCode::Enter => self.over = Over::Menu { name, at: 0 },
            KeyCode::Char('c') if has_ended => self.hint = format!("{name} has ended already"),
            KeyCode::Char('c') => self.over = Over::Confirm(words("cancel")),
            KeyCode::Char('h') if state != "PENDING" => {
                self.hint = format!("{name} is {state}: a job is held while it is PENDING");
            }
            KeyCode::Char('h') => self.over = Over::Confirm(words("hold")),
            KeyCode::Char('r') if state != "PENDING" => {
                self.hint = format!("{name} is {state}: a job is released while it is PENDING");
            }
            KeyCode::Char('r') => self.over = Over::Confirm(words("release")),
            KeyCode::Char('l') => self.show(words("logs")),
            KeyCode::Char('d') => self.show(words("show")),
            _ => {}
        }
    }

    fn menu_key(&mut self, code: KeyCode, name: String, at: usize) {
        let at = match code {
            KeyCode::Up | KeyCode::Char('k') => at.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => (at + 1).min(MENU.len() - 1),
            KeyCode::Enter => return self.show(words(&[MENU[at].0, &name])),
            KeyCode::Esc | KeyCode::Char('q') => return,
            _ => at,
        };
        self.over = Over::Menu { name, at };
    }

    fn filter_key(&mut self, code: KeyCode, before: String) {
        match code {
            KeyCode::Enter => return,
            KeyCode::Esc => self.filter.clone_from(&before),
            code => {
                edit(&mut self.filter, code);
                self.over = Over::Filter(before);
            }
        }
        self.fill();
    }

    fn command_key(&mut self, code: KeyCode, mut line: String) {
        match code {
            KeyCode::Esc => {}
            KeyCode::Enter => self.command(line.trim()),
            code => {
                edit(&mut line, code);
                self.over = Over::Command(line);
            }
        }
    }

    /// A view's name, or words of `sdm`.
    fn command(&mut self, line: &str) {
        match line {
            "" => {}
            "managers" | "clusters" => self.go(View::Managers),
            "machines" | "nodes" => self.go(View::Machines),
            "jobs" => self.go(View::Jobs),
            "process" | "processes" => self.go(View::Process),
            "help" => self.over = Over::Help,
            "q" | "quit" => self.requests.push_back(Request::Quit),
            line => match split(line) {
                Some(words) => match &*words[0] {
                    "submit" | "cancel" | "hold" | "release" | "cluster" => self.run(words),
                    // It may want the terminal.
                    _ => self.show(words),
                },
                None => "a quotation mark without its other one".clone_into(&mut self.hint),
            },
        }
    }

    fn run(&mut self, words: Vec<String>) {
        self.note(words.clone(), None);
        self.requests.push_back(Request::Run(words));
    }

    fn show(&mut self, words: Vec<String>) {
        self.note(words.clone(), Some((true, String::new())));
        self.requests.push_back(Request::Show(words));
    }

    fn note(&mut self, words: Vec<String>, end: Option<(bool, String)>) {
        if self.log.len() == LOG_MAX {
            self.log.pop_front();
        }
        self.log.push_back(Logged { words, end });
    }

    /// Makes all that is shown of what is known.
    fn fill(&mut self) {
        let machines = self.filtered(rows::machines(&self.facts), View::Machines);
        self.machines.fill(rows::MACHINES, machines);
        self.fill_aged();
        self.fill_processes();
        self.fill_map();
        self.changed = true;
    }

    /// Makes what time alone changes; true where something of it is looked at.
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

    fn fill_processes(&mut self) {
        let job = self.jobs.selected().map(|row| row.key.clone());
        let rows = job.map(|job| rows::processes(&self.facts, &job));
        self.processes
            .fill(rows::PROCESSES, rows.unwrap_or_default());
    }

    fn fill_map(&mut self) {
        let nodes = self.machines.selected().map(|row| {
            let below = |it: &&crate::Item| (&it.cluster, &it.parent) == (&row.key.0, &row.key.1);
            let nodes = self.facts.of(sdm_runtime::wire::event::Kind::Node);
            nodes.filter(below).cloned().collect()
        });
        self.map.fill(nodes.unwrap_or_default());
    }

    /// The filter is about the view that it is typed in; upper and lower case are alike.
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
