//! How a frame of `sdm top` looks.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};
use sdm_runtime::wire::event::Kind;
use sdm_text::printable;

use crate::style::{Style, Tone};
use crate::table::{Table, shortened};
use crate::top::{MENU, Over, Top, View};

/// Nothing can be shown on less.
const COLUMNS_MIN: u16 = 40;
/// Nothing can be shown on less.
const LINES_MIN: u16 = 10;
/// How many commands of the log are shown, on a terminal of this many lines or more.
const LOG_LINES: [(u16, u16); 2] = [(40, 5), (0, 2)];

const HELP: &[&str] = &[
    "1 2 3 4      managers, machines, jobs, process",
    "Tab          the other part of the view",
    "arrows j k   move    PgUp PgDn g G  further",
    "/            show only what has these letters (Esc: all)",
    ":            a view's name, or a command of sdm",
    "             :submit -n 4 -- ./app   :cluster add here local",
    "managers     a add  e edit  s start  x stop  D remove",
    "machines     Enter the nodes   + - zoom",
    "             first sign: + up  ! down  E error  ? unknown",
    "             second: U u yours, exclusive or shared",
    "             O o of others   R runs   x has ended   . free",
    "jobs         Enter stacks, diagnose, debug, logs, show",
    "             n submit  c cancel  h hold  r release  l logs",
    "             d describe  o sort  O reverse  m mine only",
    "Ctrl-Z stop  Ctrl-L draw anew  q or Ctrl-C end",
];

impl Top {
    /// Draws the frame.
    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        if area.width < COLUMNS_MIN || area.height < LINES_MIN {
            let text = format!("sdm top needs {COLUMNS_MIN}x{LINES_MIN}");
            frame.render_widget(Paragraph::new(text), area);
            return;
        }
        let found = LOG_LINES.iter().find(|(from, _)| area.height >= *from);
        let log = found.map_or(0, |(_, lines)| *lines);
        let parts = [1, 0, log, 1].map(|lines| match lines {
            0 => Constraint::Min(0),
            lines => Constraint::Length(lines),
        });
        let [head, body, log, foot] = Layout::vertical(parts).areas(area);
        self.draw_head(frame, head);
        match self.view {
            View::Managers => {
                let area = self.style.boxed(frame, body, "1 resource managers", true);
                self.style.table(
                    frame,
                    area,
                    &self.managers,
                    true,
                    "no cluster is defined: `a` defines one",
                );
            }
            View::Machines => self.draw_machines(frame, body),
            View::Jobs => self.draw_jobs(frame, body),
            View::Process => self.draw_process(frame, body),
        }
        self.draw_log(frame, log);
        self.draw_foot(frame, foot);
        self.draw_over(frame, body);
    }

    fn draw_head(&self, frame: &mut Frame<'_>, area: Rect) {
        let view = match self.view {
            View::Managers => "managers".to_owned(),
            View::Machines => "machines".to_owned(),
            View::Jobs => "jobs".to_owned(),
            View::Process => {
                let job = self.jobs.selected().map(|row| row.name.clone());
                format!("jobs > {} > process", job.unwrap_or_default())
            }
        };
        let mut text = format!("sdm top > {view}");
        if !self.filter.is_empty() && !matches!(self.over, Over::Filter(_)) {
            text.push_str(&format!("  /{}", printable(self.filter.as_bytes())));
        }
        let stale = self.facts.clusters.iter().filter(|it| it.stale);
        let stale: Vec<&str> = stale.map(|it| &*it.name).collect();
        if !stale.is_empty() {
            text.push_str(&format!("  [not up to date: {}]", stale.join(", ")));
        }
        if !self.facts.error.is_empty() {
            text.push_str(&format!("  [{}]", self.facts.error));
        }
        self.style.text(frame, area, 0, &text, self.style.head());
    }

    fn draw_machines(&mut self, frame: &mut Frame<'_>, area: Rect) {
        let parts = [Constraint::Percentage(35), Constraint::Percentage(65)];
        let [left, right] = Layout::horizontal(parts).areas(area);
        let inner = self.style.boxed(frame, left, "2 machines", !self.second);
        self.style.table(
            frame,
            inner,
            &self.machines,
            !self.second,
            "no machine is known",
        );
        let title = format!("nodes ({})", self.map.total());
        let inner = self.style.boxed(frame, right, &title, self.second);
        if inner.height < 4 {
            return;
        }
        let parts = [Constraint::Min(1), Constraint::Length(3)];
        let [cells, detail] = Layout::vertical(parts).areas(inner);
        let block = self.map.draw(frame, cells, self.style, self.second);
        let Some((node, id)) = self.map.selected() else {
            return self
                .style
                .text(frame, cells, 0, "no node is known", self.style.head());
        };
        let name = match (node.get("name"), id) {
            (Some(name), _) => name.to_owned(),
            (None, Some(id)) => format!("node {id}"),
            (None, None) => node.ids.clone(),
        };
        let (signs, tone) = crate::map::signs(node);
        let state = node.text("nodeState");
        let used = node.text("nodeExtraState");
        let line = format!("{signs} {name}  {state} {used}");
        self.style
            .text(frame, detail, 0, &line, self.style.tone(tone));
        let reason = node.text("nodeReason");
        let cpus = node.get("nodeCpus").map(|cpus| format!("{cpus} cpus  "));
        let line = format!("{}{reason}", cpus.unwrap_or_default());
        self.style
            .text(frame, detail, 1, &line, self.style.tone(Tone::Good));
        let line = match block {
            1 => "a cell is a node".to_owned(),
            block => format!("a cell is the worst of {block} nodes"),
        };
        self.style
            .text(frame, detail, 2, &line, self.style.tone(Tone::Off));
    }

    fn draw_jobs(&self, frame: &mut Frame<'_>, area: Rect) {
        let parts = [Constraint::Percentage(60), Constraint::Percentage(40)];
        let [upper, lower] = Layout::vertical(parts).areas(area);
        let mut title = format!(
            "3 jobs ({}), by {}",
            self.jobs.len(),
            self.listing.order.word()
        );
        if self.listing.reverse {
            title.push_str(", reversed");
        }
        if self.listing.own {
            title.push_str(", mine");
        }
        let inner = self.style.boxed(frame, upper, &title, !self.second);
        let nothing = match self.filter.is_empty() {
            true => "no jobs: `n` submits one",
            false => "no job has these letters: Esc shows all",
        };
        self.style
            .table(frame, inner, &self.jobs, !self.second, nothing);
        let job = self.jobs.selected().map(|row| row.name.clone());
        let title = format!("processes of {}", job.as_deref().unwrap_or("-"));
        let inner = self.style.boxed(frame, lower, &title, self.second);
        self.style.table(
            frame,
            inner,
            &self.processes,
            self.second,
            "no process is known",
        );
    }

    fn draw_process(&self, frame: &mut Frame<'_>, area: Rect) {
        let rows = u16::try_from(self.processes.len()).unwrap_or(u16::MAX);
        let parts = [
            Constraint::Length(rows.saturating_add(3).min(area.height / 3)),
            Constraint::Percentage(40),
            Constraint::Min(0),
        ];
        let [list, attributes, output] = Layout::vertical(parts).areas(area);
        let inner = self.style.boxed(frame, list, "4 processes", true);
        self.style
            .table(frame, inner, &self.processes, true, "no process is known");
        let first = self.processes.selected().map(|row| row.key.1.clone());
        let inner = self
            .style
            .boxed(frame, attributes, "attributes of the first of them", false);
        let mut whole = self.facts.of(Kind::Process).filter(|it| it.sets.is_empty());
        if let Some(it) = whole.find(|it| Some(&it.ids) == first.as_ref()) {
            for (at, (id, value)) in (0..inner.height).zip(&it.attributes) {
                let line = format!("{id:<20} {value}");
                self.style
                    .text(frame, inner, at, &line, self.style.tone(Tone::Good));
            }
        }
        let (title, lines) = match &self.facts.output {
            None => ("output".to_owned(), Vec::new()),
            Some(it) if !it.error.is_empty() => ("output".to_owned(), vec![it.error.clone()]),
            Some(it) => (format!("output: {}", it.path), it.lines.clone()),
        };
        let inner = self.style.boxed(frame, output, &title, false);
        let hidden = lines.len().saturating_sub(usize::from(inner.height));
        for (at, line) in (0..inner.height).zip(lines.iter().skip(hidden)) {
            self.style
                .text(frame, inner, at, line, ratatui::style::Style::new());
        }
    }

    fn draw_log(&self, frame: &mut Frame<'_>, area: Rect) {
        let hidden = self.log.len().saturating_sub(usize::from(area.height));
        for (at, logged) in (0..area.height).zip(self.log.iter().skip(hidden)) {
            let words: Vec<String> = logged.words.iter().map(|word| quoted(word)).collect();
            let command = format!("$ sdm {}", words.join(" "));
            let (end, tone) = match &logged.end {
                None => (" ...".to_owned(), Tone::Wait),
                Some((true, said)) if said.is_empty() => (String::new(), Tone::Off),
                Some((true, said)) => (format!(": {said}"), Tone::Off),
                Some((false, said)) => (format!(": failed: {said}"), Tone::Bad),
            };
            let line = format!("{command}{end}");
            self.style
                .text(frame, area, at, &line, self.style.tone(tone));
        }
    }

    fn draw_foot(&self, frame: &mut Frame<'_>, area: Rect) {
        let (text, tone) = match &self.over {
            Over::Filter(_) => (
                format!("/{}_", printable(self.filter.as_bytes())),
                Tone::Good,
            ),
            Over::Command(line) => (format!(":{}_", printable(line.as_bytes())), Tone::Good),
            Over::Confirm(words) => (format!("sdm {}? y does it", words.join(" ")), Tone::Bad),
            Over::Menu { .. } => ("Enter do it  Esc back".to_owned(), Tone::Good),
            Over::Help => ("any key closes this".to_owned(), Tone::Good),
            Over::Nothing if !self.hint.is_empty() => (self.hint.clone(), Tone::Wait),
            Over::Nothing => (self.keys().to_owned(), Tone::Off),
        };
        let mut text = text;
        if matches!(self.over, Over::Filter(_) | Over::Command(_)) {
            // The end of what is typed is what is looked at.
            while sdm_text::columns(&text) > usize::from(area.width) {
                text.remove(1);
            }
        }
        self.style
            .text(frame, area, 0, &text, self.style.tone(tone));
    }

    /// The keys that do something here.
    fn keys(&self) -> &'static str {
        match (self.view, self.second) {
            (View::Managers, _) => "a add  e edit  s start  x stop  D remove  d describe  / : ? q",
            (View::Machines, false) => "Enter nodes  + - zoom  1-4 views  / filter  : command  ? q",
            (View::Machines, true) => "arrows node  + - zoom  Tab machines  ? help  q",
            (View::Jobs, false) => {
                "Enter do  n submit  c cancel  h hold  r release  l logs  o sort  Tab  / : ? q"
            }
            (View::Jobs, true) => "Enter detail  Tab jobs  c cancel  l logs  ? help  q",
            (View::Process, _) => "Esc jobs  Enter do  l logs  c cancel  ? help  q",
        }
    }

    fn draw_over(&self, frame: &mut Frame<'_>, area: Rect) {
        let (title, lines, at): (&str, Vec<String>, Option<usize>) = match &self.over {
            Over::Help => (
                "keys",
                HELP.iter().map(|it| (*it).to_owned()).collect(),
                None,
            ),
            Over::Menu { name, at } => {
                let each = MENU.iter();
                let each = each.map(|(verb, what)| format!("{verb:<9} {what}"));
                (name, each.collect(), Some(*at))
            }
            Over::Confirm(words) => {
                let line = format!("sdm {}", words.join(" "));
                (
                    "really?",
                    vec![line, "y: yes    any other key: no".to_owned()],
                    None,
                )
            }
            _ => return,
        };
        let width = lines.iter().map(|it| sdm_text::columns(it)).max();
        let width = width.unwrap_or(0).max(title.len() + 2) + 2;
        let width = u16::try_from(width).unwrap_or(u16::MAX).min(area.width);
        let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX);
        let height = height.min(area.height);
        let place = Rect::new(
            area.x + (area.width - width) / 2,
            area.y + (area.height - height) / 2,
            width,
            height,
        );
        frame.render_widget(Clear, place);
        let inner = self.style.boxed(frame, place, title, true);
        for (y, (line, text)) in (0..inner.height).zip(lines.iter().enumerate()) {
            let cells = match at == Some(line) {
                true => self.style.selected(true),
                false => ratatui::style::Style::new(),
            };
            self.style.text(frame, inner, y, text, cells);
        }
    }
}

/// What views are made of.
impl Style {
    pub(crate) fn boxed(
        self,
        frame: &mut Frame<'_>,
        area: Rect,
        title: &str,
        has_focus: bool,
    ) -> Rect {
        let mark = if has_focus { "*" } else { " " };
        let title = shortened(
            &format!("{mark}{title} "),
            usize::from(area.width.saturating_sub(2)),
            self,
        );
        let block = Block::bordered()
            .border_set(self.border())
            .title(Line::from(title));
        let inner = block.inner(area);
        frame.render_widget(block, area);
        inner
    }

    fn table(self, frame: &mut Frame<'_>, area: Rect, table: &Table, focus: bool, nothing: &str) {
        match table.len() {
            0 => self.text(frame, area, 0, nothing, self.tone(Tone::Off)),
            _ => table.draw(frame, area, self, focus),
        }
    }

    /// A line of an area, cut where that ends; nothing below it.
    pub(crate) fn text(
        self,
        frame: &mut Frame<'_>,
        area: Rect,
        line: u16,
        text: &str,
        cells: ratatui::style::Style,
    ) {
        if line < area.height {
            let text = shortened(text, usize::from(area.width), self);
            let width = usize::from(area.width);
            let buffer = frame.buffer_mut();
            buffer.set_stringn(area.x, area.y + line, text, width, cells);
        }
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    let word = printable(word.as_bytes());
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}
