//! Handling of keys in the views.

use ratatui::crossterm::event::KeyCode;
use sdm_runtime::attribute as id;
use sdm_runtime::states::{self, State};

use super::{MENU, Overlay, Request, Top, View};
use crate::form::Form;
use crate::line::{edit, split, words};
use crate::table::Row;

/// Number of rows that PgUp and PgDn move.
const PAGE: isize = 15;

impl Top {
    pub(super) fn view_key(&mut self, code: KeyCode) {
        match code {
            KeyCode::Char('q') => self.ask(Request::Quit),
            KeyCode::Char('?') | KeyCode::F(1) => self.over = Overlay::Help,
            KeyCode::Char('/') => self.over = Overlay::Filter(self.filter.clone()),
            KeyCode::Char(':') => self.over = Overlay::Command(String::new()),
            KeyCode::Char('1') => self.go(View::Managers),
            KeyCode::Char('2') => self.go(View::Machines),
            KeyCode::Char('3') => self.go(View::Jobs),
            KeyCode::Char('4') => self.go(View::Process),
            KeyCode::Tab | KeyCode::BackTab => {
                self.second = !self.second && self.view != View::Managers;
            }
            KeyCode::Char('y') => self.copy(),
            KeyCode::Char('P') => self.next_palette(),
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

    pub(super) fn back(&mut self) {
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

    pub(super) fn step(&mut self, right: isize, down: isize) {
        let has_map = self.view == View::Machines && self.second;
        let by = |it: isize| i64::try_from(it).unwrap_or(0);
        if has_map {
            return self.map.step(by(right), by(down));
        }
        if self.view == View::Process && self.second {
            let lines = self.facts.output.as_ref().map_or(0, |it| it.lines.len());
            let below = self
                .output_below
                .saturating_add_signed(0_isize.saturating_sub(down));
            self.output_below = below.min(lines.saturating_sub(1));
            return;
        }
        self.table().step(down);
        match self.view {
            View::Machines => self.fill_map(),
            View::Jobs if !self.second => self.fill_processes(),
            _ => {}
        }
    }

    /// Handles a key in the view of managers.
    fn manager_key(&mut self, code: KeyCode) {
        if code == KeyCode::Char('a') {
            self.over = Overlay::Form(Form::add());
            return;
        }
        let Some(Row { name, state, .. }) = self.managers.selected().cloned() else {
            return "no cluster is defined; press a to define one".clone_into(&mut self.hint);
        };
        let words = |verb: &str| words(&["cluster", verb, &name]);
        match (code, states::Manager::read(&state)) {
            (KeyCode::Char('s'), Some(states::Manager::Started | states::Manager::Starting)) => {
                self.hint = format!("{name} is started");
            }
            (KeyCode::Char('s'), _) => self.run(words("start")),
            (KeyCode::Char('x'), Some(states::Manager::Stopped)) => {
                self.hint = format!("{name} is stopped");
            }
            (KeyCode::Char('x'), _) => self.over = Overlay::Confirm(words("stop")),
            (KeyCode::Char('D'), _) => self.over = Overlay::Confirm(words("remove")),
            (KeyCode::Char('e'), _) => {
                let known = self.facts.clusters.iter().find(|it| it.name == name);
                self.over = known.map_or(Overlay::Nothing, |it| Overlay::Form(Form::edit(it)));
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
                self.over = Overlay::Form(self.submit_form());
                return;
            }
            _ => {}
        }
        let Some(Row { name, state, .. }) = self.jobs.selected().cloned() else {
            return "no job is selected".clone_into(&mut self.hint);
        };
        let now = states::Job::read(&state);
        let is_pending = now == Some(states::Job::Pending);
        let has_ended = now.is_some_and(states::Job::has_ended);
        let words = |verb: &str| words(&[verb, &name]);
        match code {
            KeyCode::Enter if self.second && self.view == View::Jobs => self.go(View::Process),
            KeyCode::Enter => self.over = Overlay::Menu { name, at: 0 },
            KeyCode::Char('c') if has_ended => self.hint = format!("job {name} has ended already"),
            KeyCode::Char('c') => self.over = Overlay::Confirm(words("cancel")),
            KeyCode::Char('h') if !is_pending => {
                self.hint = format!("job {name} is {state}: only a PENDING job can be held");
            }
            KeyCode::Char('h') => self.over = Overlay::Confirm(words("hold")),
            KeyCode::Char('r') if !is_pending => {
                self.hint = format!("job {name} is {state}: only a PENDING job can be released");
            }
            KeyCode::Char('r') => self.over = Overlay::Confirm(words("release")),
            KeyCode::Char('l') => self.show(words("logs")),
            KeyCode::Char('d') => self.show(words("show")),
            _ => {}
        }
    }

    pub(super) fn menu_key(&mut self, code: KeyCode, name: String, at: usize) {
        let at = match code {
            KeyCode::Up | KeyCode::Char('k') => at.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => (at + 1).min(MENU.len() - 1),
            KeyCode::Enter => return self.show(words(&[MENU[at].0, &name])),
            KeyCode::Esc | KeyCode::Char('q') => return,
            _ => at,
        };
        self.over = Overlay::Menu { name, at };
    }

    /// The form for a new job, with the only started cluster or, if several are started, the selected job's.
    fn submit_form(&self) -> Form {
        use sdm_runtime::wire::event::Kind;
        let names = self.facts.clusters.iter();
        let names: Vec<String> = names.map(|it| it.name.clone()).collect();
        let started = self
            .facts
            .clusters
            .iter()
            .filter(|it| it.state == states::Manager::Started.word());
        let started: Vec<&String> = started.map(|it| &it.name).collect();
        let of_job = self.jobs.selected().map(|row| &row.key.0);
        let only = match started[..] {
            [one] => Some(one),
            _ => of_job.filter(|name| started.contains(name)),
        };
        let mut queues: Vec<String> = self
            .facts
            .of(Kind::Queue)
            .map(|it| it.name().to_owned())
            .collect();
        queues.sort_unstable();
        queues.dedup();
        let only = only.cloned().unwrap_or_default();
        Form::submit(names, &only, queues, self.facts.profiles.clone())
    }

    pub(super) fn form_key(&mut self, code: KeyCode, mut form: Form) {
        match code {
            KeyCode::Esc => return "not done".clone_into(&mut self.hint),
            KeyCode::Enter => match form.words() {
                Ok(words) => return self.run(words),
                Err((at, why)) => {
                    form.at = at;
                    self.hint = why;
                }
            },
            code => form.key(code),
        }
        self.over = Overlay::Form(form);
    }

    /// Copies the name of the selected row or node, or the last shown line of a job's output, to the terminal's
    /// clipboard.
    fn copy(&mut self) {
        let node = self
            .map
            .selected()
            .map(|(node, id)| match (node.get(id::NAME), id) {
                (None, Some(id)) => id.to_string(),
                _ => node.name().to_owned(),
            });
        let text = match (self.view, self.second) {
            (View::Machines, true) => node,
            (View::Process, true) => {
                let output = self.facts.output.as_ref();
                output.and_then(|it| it.lines.iter().rev().nth(self.output_below).cloned())
            }
            _ => self.table().selected().map(|row| row.name.clone()),
        };
        match text.filter(|text| !text.is_empty()) {
            Some(text) => {
                self.hint = format!("copied: {text}");
                self.ask(Request::Copy(text));
            }
            None => "this panel has nothing to copy".clone_into(&mut self.hint),
        }
    }

    fn next_palette(&mut self) {
        self.style.palette = self.style.palette.next();
        self.hint = match self.style.color {
            true => format!("colours: {}", self.style.palette.word()),
            false => "NO_COLOR is set: colours are off".to_owned(),
        };
    }

    pub(super) fn filter_key(&mut self, code: KeyCode, before: String) {
        match code {
            KeyCode::Enter => return,
            KeyCode::Esc => self.filter.clone_from(&before),
            code => {
                edit(&mut self.filter, code);
                self.over = Overlay::Filter(before);
            }
        }
        self.fill();
    }

    pub(super) fn command_key(&mut self, code: KeyCode, mut line: String) {
        match code {
            KeyCode::Esc => {}
            KeyCode::Enter => self.command(line.trim()),
            code => {
                edit(&mut line, code);
                self.over = Overlay::Command(line);
            }
        }
    }

    /// Carries out an entered line: a view's name, `help`, `quit`, or words of `sdm`.
    fn command(&mut self, line: &str) {
        match line {
            "" => {}
            "managers" | "clusters" => self.go(View::Managers),
            "machines" | "nodes" => self.go(View::Machines),
            "jobs" => self.go(View::Jobs),
            "process" | "processes" => self.go(View::Process),
            "help" => self.over = Overlay::Help,
            "q" | "quit" => self.ask(Request::Quit),
            line => match split(line) {
                Some(words) => match &*words[0] {
                    "submit" | "cancel" | "hold" | "release" | "cluster" => self.run(words),
                    // Other commands may need the terminal.
                    _ => self.show(words),
                },
                None => "unclosed quotation mark".clone_into(&mut self.hint),
            },
        }
    }
}
