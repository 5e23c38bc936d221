//! Drawing of `sdm top`.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};
use sdm_runtime::attribute as id;
use sdm_runtime::wire::event::Kind;
use sdm_text::{printable, span};

use crate::line::quoted;
use crate::style::{Style, Tone};
use crate::table::{Table, shortened};
use crate::top::{MENU, Overlay, Top, View};

/// Minimum number of columns of the terminal.
const COLUMNS_MIN: u16 = 40;
/// Minimum number of lines of the terminal.
const LINES_MIN: u16 = 10;
/// Pairs of a terminal height and the number of log lines from that height on.
const LOG_LINES: [(u16, u16); 2] = [(40, 5), (0, 2)];

/// Number of lines below the map that describe the selected node.
pub(crate) const NODE_LINES: u16 = 3;

const HELP: &[&str] = &[
    "1 2 3 4      managers, machines, jobs, process",
    "Tab          next part of the view",
    "arrows j k   move    PgUp PgDn g G  move by pages",
    "/            show only lines with this text (Esc: all)",
    ":            type the name of a view, or an sdm command",
    "             :submit -n 4 -- ./app   :cluster add here local",
    "managers     a add  e edit  s start  x stop  D remove",
    "machines     Enter the nodes   + - zoom",
    "             node sign 1: + up  ! down  E error  ? unknown",
    "             sign 2: U your job (exclusive)  u (shared)",
    "             O o other users   R running   x ended   . free",
    "jobs         Enter stacks, diagnose, debug, logs, show",
    "             n submit  c cancel  h hold  r release  l logs",
    "             d describe  o sort  O reverse  m mine only",
    "process      Tab to the output   G follow the output",
    "y copy the selection      P next colours",
    "Ctrl-Z suspend  Ctrl-L redraw  q or Ctrl-C quit",
];

/// A part of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The part that has the keyboard focus at first.
    First,
    /// The part that Tab moves the keyboard focus to.
    Second,
    /// A part without keys.
    Detail,
}

impl Top {
    /// Draws the frame.
    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        if area.width < COLUMNS_MIN || area.height < LINES_MIN {
            let text = format!("sdm top needs {COLUMNS_MIN}x{LINES_MIN} characters");
            frame.render_widget(Paragraph::new(text), area);
            return;
        }
        self.area = area;
        let [head, body, log, foot] = self.frame_parts(area);
        self.draw_head(frame, head);
        for (part, place) in self.parts(body) {
            match self.view {
                View::Managers => {
                    let title = "1 resource managers";
                    let area = self.style.boxed(frame, place, title, true);
                    let nothing = "no cluster is defined; press a to define one";
                    self.style.table(frame, area, &self.managers, true, nothing);
                }
                View::Machines => self.draw_machines(frame, part, place),
                View::Jobs => self.draw_jobs(frame, part, place),
                View::Process => self.draw_process(frame, part, place),
            }
        }
        self.draw_log(frame, log);
        let (text, tone) = self.foot();
        self.style
            .text(frame, foot, 0, &text, self.style.tone(tone));
        self.draw_over(frame, body);
    }

    /// Splits the screen into head, body, log and foot.
    pub(crate) fn frame_parts(&self, area: Rect) -> [Rect; 4] {
        let found = LOG_LINES.iter().find(|(from, _)| area.height >= *from);
        let log = found.map_or(0, |(_, lines)| *lines);
        let parts = [1, 0, log, 1].map(|lines| match lines {
            0 => Constraint::Min(0),
            lines => Constraint::Length(lines),
        });
        Layout::vertical(parts).areas(area)
    }

    /// The parts of the view with their areas. In the linear style, only the focused one, or list and attributes.
    pub(crate) fn parts(&self, body: Rect) -> Vec<(Part, Rect)> {
        let two = |layout: Layout| {
            let [first, second] = layout.areas(body);
            vec![(Part::First, first), (Part::Second, second)]
        };
        let share = |first| {
            [
                Constraint::Percentage(first),
                Constraint::Percentage(100 - first),
            ]
        };
        if self.style.linear && (self.second || self.view != View::Process) {
            let part = if self.second {
                Part::Second
            } else {
                Part::First
            };
            return vec![(part, body)];
        }
        match self.view {
            View::Managers => vec![(Part::First, body)],
            View::Machines => two(Layout::horizontal(share(35))),
            View::Jobs => two(Layout::vertical(share(60))),
            View::Process => {
                let rows = u16::try_from(self.processes.len()).unwrap_or(u16::MAX);
                let parts = [
                    Constraint::Length(rows.saturating_add(3).min(body.height / 3)),
                    Constraint::Percentage(40),
                    Constraint::Min(0),
                ];
                let [list, detail, output] = Layout::vertical(parts).areas(body);
                let mut parts = vec![(Part::First, list), (Part::Detail, detail)];
                match self.style.linear {
                    true => parts[1].1.height += output.height,
                    false => parts.push((Part::Second, output)),
                }
                parts
            }
        }
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
        let mut text = format!("sdm top > {view}{}", self.facts.age_text());
        if !self.filter.is_empty() && !matches!(self.over, Overlay::Filter(_)) {
            text.push_str(&format!("  /{}", printable(self.filter.as_bytes())));
        }
        let stale = self.facts.clusters.iter().filter(|it| it.stale);
        let age = |it: &crate::Cluster| match it.since {
            0 => it.name.clone(),
            since => {
                let age = span(self.now.saturating_sub(since));
                format!("{} for {age}", it.name)
            }
        };
        let stale = stale.map(age).collect::<Vec<_>>().join(", ");
        if !stale.is_empty() {
            text.push_str(&format!("  [clusters not up to date: {stale}]"));
        }
        if !self.facts.error.is_empty() {
            text.push_str(&format!("  [{}]", self.facts.error));
        }
        self.style.text(frame, area, 0, &text, self.style.head());
    }

    fn draw_machines(&mut self, frame: &mut Frame<'_>, part: Part, area: Rect) {
        if part == Part::First {
            let inner = self.style.boxed(frame, area, "2 machines", !self.second);
            let nothing = "no machines reported";
            let table = &self.machines;
            return self.style.table(frame, inner, table, !self.second, nothing);
        }
        let title = format!("nodes ({})", self.map.total());
        let inner = self.style.boxed(frame, area, &title, self.second);
        if self.style.linear {
            let lines = self.map.lines();
            for (at, (line, tone)) in (0..inner.height).zip(&lines) {
                self.style
                    .text(frame, inner, at, line, self.style.tone(*tone));
            }
            return self.style.point(frame, inner, 0, true);
        }
        if inner.height <= NODE_LINES {
            return;
        }
        let parts = [Constraint::Min(1), Constraint::Length(NODE_LINES)];
        let [cells, detail] = Layout::vertical(parts).areas(inner);
        let block = self.map.draw(frame, cells, self.style, self.second);
        let Some((node, id)) = self.map.selected() else {
            return self
                .style
                .text(frame, cells, 0, "no nodes reported", self.style.head());
        };
        let name = match (node.get("name"), id) {
            (Some(name), _) => name.to_owned(),
            (None, Some(id)) => format!("node {id}"),
            (None, None) => node.ids.clone(),
        };
        let (signs, tone) = crate::map::signs(node);
        let line = format!("{signs} {name}  {}", crate::map::words(node));
        self.style
            .text(frame, detail, 0, &line, self.style.tone(tone));
        let reason = node.text(id::NODE_REASON);
        let cpus = node.get(id::NODE_CPUS).map(|cpus| format!("{cpus} cpus  "));
        let line = format!("{}{reason}", cpus.unwrap_or_default());
        self.style
            .text(frame, detail, 1, &line, self.style.tone(Tone::Good));
        let line = match block {
            1 => "each cell is one node".to_owned(),
            block => format!("each cell shows the worst state of {block} nodes"),
        };
        self.style
            .text(frame, detail, 2, &line, self.style.tone(Tone::Off));
    }

    fn draw_jobs(&self, frame: &mut Frame<'_>, part: Part, area: Rect) {
        if part == Part::First {
            let title = self.jobs_title();
            let inner = self.style.boxed(frame, area, &title, !self.second);
            let nothing = match self.filter.is_empty() {
                true => "no jobs; press n to submit one",
                false => "no job matches the filter; press Esc to show all",
            };
            let table = &self.jobs;
            return self.style.table(frame, inner, table, !self.second, nothing);
        }
        let job = self.jobs.selected().map(|row| row.name.clone());
        let title = format!("processes of {}", job.as_deref().unwrap_or("-"));
        let inner = self.style.boxed(frame, area, &title, self.second);
        let nothing = "the resource manager reports no processes of this job";
        let table = &self.processes;
        self.style.table(frame, inner, table, self.second, nothing);
    }

    fn jobs_title(&self) -> String {
        let order = self.listing.order.word();
        let mut title = format!("3 jobs ({}), by {order}", self.jobs.len());
        if self.listing.reverse {
            title.push_str(", reversed");
        }
        if self.listing.own {
            title.push_str(", mine");
        }
        title
    }

    fn draw_process(&self, frame: &mut Frame<'_>, part: Part, area: Rect) {
        match part {
            Part::First => {
                let inner = self.style.boxed(frame, area, "4 processes", !self.second);
                let nothing = "the resource manager reports no processes of this job";
                let table = &self.processes;
                self.style.table(frame, inner, table, !self.second, nothing);
            }
            Part::Detail => {
                let title = "attributes of the first selected process";
                let inner = self.style.boxed(frame, area, title, false);
                let first = self.processes.selected().map(|row| row.key.1.clone());
                let mut whole = self.facts.of(Kind::Process).filter(|it| it.sets.is_empty());
                let whole = whole.find(|it| Some(&it.ids) == first.as_ref());
                let known = whole.map_or(&[][..], |it| &it.attributes);
                for (at, (id, value)) in (0..inner.height).zip(known) {
                    let line = format!("{id:<20} {value}");
                    self.style
                        .text(frame, inner, at, &line, self.style.tone(Tone::Good));
                }
            }
            Part::Second => self.draw_output(frame, area),
        }
    }

    fn draw_output(&self, frame: &mut Frame<'_>, area: Rect) {
        let (mut title, lines) = match &self.facts.output {
            None => ("output".to_owned(), &[][..]),
            Some(it) if !it.error.is_empty() => {
                ("output".to_owned(), std::slice::from_ref(&it.error))
            }
            Some(it) => (format!("output: {}", it.path), &it.lines[..]),
        };
        let below = self.output_below.min(lines.len().saturating_sub(1));
        if below > 0 {
            title.push_str(&format!(", {below} below (G: follow)"));
        }
        let inner = self.style.boxed(frame, area, &title, self.second);
        let end = lines.len() - below;
        let from = end.saturating_sub(usize::from(inner.height));
        for (at, line) in (0..inner.height).zip(&lines[from..end]) {
            self.style
                .text(frame, inner, at, line, ratatui::style::Style::new());
        }
        let last = u16::try_from((end - from).saturating_sub(1)).unwrap_or(0);
        self.style.point(frame, inner, last, self.second);
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

    /// The line at the bottom.
    pub(crate) fn foot(&self) -> (String, Tone) {
        let (mut text, tone) = match &self.over {
            Overlay::Filter(_) => (
                format!("/{}_", printable(self.filter.as_bytes())),
                Tone::Good,
            ),
            Overlay::Command(line) => (format!(":{}_", printable(line.as_bytes())), Tone::Good),
            Overlay::Confirm(words) => (format!("run sdm {}?", words.join(" ")), Tone::Bad),
            Overlay::Menu { .. } => ("Enter confirm  Esc back".to_owned(), Tone::Good),
            Overlay::Form(_) if !self.hint.is_empty() => (self.hint.clone(), Tone::Wait),
            Overlay::Form(_) => (
                "Enter confirm  Tab next  Left Right choose  ^U clear  Esc back".to_owned(),
                Tone::Good,
            ),
            Overlay::Help => ("press any key to close this help".to_owned(), Tone::Good),
            Overlay::Nothing if !self.hint.is_empty() => (self.hint.clone(), Tone::Wait),
            Overlay::Nothing => (self.bindings.footer(self.keys()), Tone::Off),
        };
        if matches!(self.over, Overlay::Filter(_) | Overlay::Command(_)) {
            // The end of the typed text stays visible.
            while sdm_text::columns(&text) > usize::from(self.area.width.max(2)) {
                text.remove(1);
            }
        }
        (text, tone)
    }

    /// The keys with an action here.
    fn keys(&self) -> &'static str {
        match (self.view, self.second) {
            (View::Managers, _) => "a add  e edit  s start  x stop  D remove  d describe  / : ? q",
            (View::Machines, false) => "Enter nodes  + - zoom  1-4 views  / filter  : command  ? q",
            (View::Machines, true) => "arrows node  + - zoom  Tab machines  ? help  q",
            (View::Jobs, false) => {
                "Enter actions  n submit  c cancel  h hold  r release  l logs  o sort  Tab  / : ? q"
            }
            (View::Jobs, true) => "Enter details  Tab jobs  c cancel  l logs  ? help  q",
            (View::Process, true) => {
                "arrows PgUp PgDn  G follow  y copy  Tab processes  Esc jobs  ? help  q"
            }
            (View::Process, false) => {
                "Esc jobs  Tab output  Enter actions  l logs  c cancel  ? help  q"
            }
        }
    }

    /// The overlay in front: title, lines, index of the selected line. None without one, and for a line at the bottom.
    fn over_lines(&self) -> Option<(String, Vec<String>, Option<usize>)> {
        Some(match &self.over {
            Overlay::Help => {
                let mut lines: Vec<String> = HELP.iter().map(|it| (*it).to_owned()).collect();
                lines.extend(self.bindings.lines());
                ("keys".to_owned(), lines, None)
            }
            Overlay::Menu { name, at } => {
                let each = MENU.iter();
                let each = each.map(|(verb, what)| format!("{verb:<9} {what}"));
                (name.clone(), each.collect(), Some(*at))
            }
            Overlay::Confirm(words) => {
                let line = format!("sdm {}", words.join(" "));
                let how = "y: yes    any other key: no".to_owned();
                ("really?".to_owned(), vec![line, how], None)
            }
            Overlay::Form(form) => (form.title(), form.lines(), Some(form.at)),
            _ => return None,
        })
    }

    /// The area of the overlay.
    pub(crate) fn over_place(&self, area: Rect) -> Rect {
        let Some((title, lines, _)) = self.over_lines() else {
            return Rect::default();
        };
        if self.style.linear {
            return area;
        }
        let width = lines.iter().map(|it| sdm_text::columns(it)).max();
        let width = width.unwrap_or(0).max(title.len() + 2) + 2;
        let width = u16::try_from(width).unwrap_or(u16::MAX).min(area.width);
        let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX);
        let height = height.min(area.height);
        let (x, y) = ((area.width - width) / 2, (area.height - height) / 2);
        Rect::new(area.x + x, area.y + y, width, height)
    }

    fn draw_over(&self, frame: &mut Frame<'_>, area: Rect) {
        let Some((title, lines, at)) = self.over_lines() else {
            return;
        };
        let place = self.over_place(area);
        self.style.clear(frame, place);
        let inner = self.style.boxed(frame, place, &title, true);
        for (y, (line, text)) in (0..inner.height).zip(lines.iter().enumerate()) {
            let cells = match at == Some(line) {
                true => self.style.selected(true),
                false => ratatui::style::Style::new(),
            };
            self.style.text(frame, inner, y, text, cells);
        }
        let line = u16::try_from(at.unwrap_or(0)).unwrap_or(0);
        match &self.over {
            Overlay::Form(form) => {
                let x = u16::try_from(form.column()).unwrap_or(u16::MAX);
                let x = inner
                    .x
                    .saturating_add(x)
                    .min(inner.right().saturating_sub(1));
                frame.set_cursor_position((x, inner.y + line));
            }
            _ => self.style.point(frame, inner, line, true),
        }
    }
}

/// Drawing functions that all views use.
impl Style {
    /// Clears an area for an overlay. A wide character that reaches into the area is removed, too.
    pub(crate) fn clear(self, frame: &mut Frame<'_>, place: Rect) {
        frame.render_widget(Clear, place);
        let Some(x) = place.x.checked_sub(1) else {
            return;
        };
        for y in place.y..place.bottom() {
            if let Some(cell) = frame.buffer_mut().cell_mut((x, y))
                && sdm_text::columns(cell.symbol()) > 1
            {
                cell.set_symbol(" ");
            }
        }
    }

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
        if self.linear {
            self.text(frame, area, 0, title.trim(), self.head());
        } else {
            let block = Block::bordered()
                .border_set(self.border())
                .title(Line::from(title));
            frame.render_widget(block, area);
        }
        self.inner(area)
    }

    fn table(self, frame: &mut Frame<'_>, area: Rect, table: &Table, focus: bool, nothing: &str) {
        match table.len() {
            0 => self.text(frame, area, 0, nothing, self.tone(Tone::Off)),
            _ => table.draw(frame, area, self, focus),
        }
    }

    /// Draws a line of an area, cut at its width. Lines below the area are not drawn.
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
