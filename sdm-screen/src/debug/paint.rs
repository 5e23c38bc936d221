//! Drawing of the debugger's screen.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style as Cells};
use ratatui::widgets::Paragraph;
use sdm_debug::event::Stream;
use sdm_text::{beginning, columns, counted, printable, span};
use sdm_view::overview::SourceSight;

use super::layout::{COLUMNS_MIN, LINES_MIN, body, places};
use super::values::{self, ValueRow};
use super::{Debugger, Panel, source};
use crate::style::Tone;

/// Maximum length of a set's text, in bytes.
const SET_WIDTH: usize = 24;

/// Number of bins of a histogram.
const PARTS: usize = 24;
/// Number of bins on a terminal of less than [`COLUMNS_OF_PARTS`] columns.
const PARTS_MIN: usize = 8;
const COLUMNS_OF_PARTS: u16 = 110;

const HELP: &[&str] = &[
    "c F5  continue        n F10 next       s F11 step",
    "f S-F11 finish        o nexti          i stepi",
    "u up   d down         r run            p F6 stop running ranks",
    "D     diagnose a hang",
    "b F9  set or remove a breakpoint here   t  run to this line",
    "1 source 2 stacks 3 ranks 4 values 5 output 6 prompt",
    "Tab   next panel      z  zoom this panel, and back",
    "arrows h j k l PgUp PgDn g G  move; in stacks: set the focus",
    "Enter on ranks: set focus; on a value: compare    a  all ranks",
    ":     type a command; Esc: back to the keys",
    "w     watch an expression    y  copy the line    P  next colours",
    "/     search a text in the panel (/ Enter: the next)",
    "Ctrl-C stop   Ctrl-Z suspend   Ctrl-L redraw",
    "Ctrl-X A  the prompt alone, and back    q  quit",
    "ranks: a b c .. stopped (place), > running, ! crashed,",
    "       X exited with a code other than 0, - ended, ? lost,",
    "       ~ silent, ^ starting, = detached",
];

impl Debugger {
    /// Draws the frame.
    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        if area.width < COLUMNS_MIN || area.height < LINES_MIN {
            let text = format!("sdm's full screen needs {COLUMNS_MIN}x{LINES_MIN} characters");
            frame.render_widget(Paragraph::new(text), area);
            return;
        }
        self.area = area;
        let [head, body, foot] = body(area);
        self.draw_head(frame, head);
        for (panel, place) in self.places(body) {
            let title = self.title(panel);
            let inner = self.style.boxed(frame, place, &title, panel == self.panel);
            match panel {
                Panel::Source => self.draw_source(frame, inner),
                Panel::Stacks => self.draw_stacks(frame, inner),
                Panel::Ranks => self.draw_ranks(frame, inner),
                Panel::Values => self.draw_values(frame, inner),
                Panel::Output => self.draw_output(frame, inner),
                Panel::Prompt => self.draw_prompt(frame, inner),
            }
        }
        let (text, tone) = match (self.helps, self.hint.is_empty()) {
            (true, _) => ("press any key to close this help".to_owned(), Tone::Good),
            (_, false) => (self.hint.clone(), Tone::Wait),
            _ => (self.foot(), Tone::Off),
        };
        self.style
            .text(frame, foot, 0, &text, self.style.tone(tone));
        if self.helps {
            self.draw_help(frame, body);
        }
    }

    /// The lines of the values panel, fitted to its width.
    pub(super) fn value_rows(&self) -> Vec<ValueRow> {
        let parts = match self.area.width < COLUMNS_OF_PARTS {
            true => PARTS_MIN,
            false => PARTS,
        };
        values::rows(&self.board.sight, &self.names, self.style, parts)
    }

    /// The visible panels with their areas. In the linear style, or while a panel is zoomed, only one is visible.
    pub(super) fn places(&self, body: Rect) -> Vec<(Panel, Rect)> {
        places(body, self.panel, self.zoomed || self.style.linear)
    }

    fn draw_head(&self, frame: &mut Frame<'_>, area: Rect) {
        let prompt = self.board.prompt.trim_end();
        let states = prompt.strip_suffix("(sdm)").unwrap_or(prompt).trim();
        let mut text = match (&self.asked, states.is_empty()) {
            (Some((_, true)), _) | (_, true) => "sdm".to_owned(),
            _ => format!("sdm {}", printable(states.as_bytes())),
        };
        if let Some(status) = &self.status {
            text.push_str(&format!("  {}", printable(status.as_bytes())));
        } else if self.is_aging() {
            text.push_str("  (shown: the previous stop");
            if self.age > 0 {
                text.push_str(&format!(", {} ago", span(self.age)));
            }
            text.push(')');
        }
        self.style.text(frame, area, 0, &text, self.style.head());
    }

    fn title(&self, panel: Panel) -> String {
        let sight = &self.board.sight;
        let what = match panel {
            Panel::Source => match &sight.source {
                None => "source".to_owned(),
                Some(source) => {
                    let file = source.path.rsplit('/').next().unwrap_or(&source.path);
                    let caller = if source.is_caller {
                        ", the nearest caller with source"
                    } else {
                        ""
                    };
                    let (file, function) = (
                        printable(file.as_bytes()),
                        printable(source.function.as_bytes()),
                    );
                    format!("{file}: {function}{caller}")
                }
            },
            Panel::Stacks => "stacks".to_owned(),
            Panel::Ranks => format!("ranks ({})", self.board.all.len()),
            Panel::Values => "values".to_owned(),
            Panel::Output => "output".to_owned(),
            Panel::Prompt => "prompt".to_owned(),
        };
        format!("{} {what}", panel.number())
    }

    fn draw_source(&self, frame: &mut Frame<'_>, area: Rect) {
        let sight = &self.board.sight;
        let Some(source) = &sight.source else {
            let why = match sight.missing.is_empty() {
                true if self.board.running.is_empty() => {
                    "no rank in focus is stopped at a source line"
                }
                true => "ranks are running; press p to stop them",
                false => &sight.missing,
            };
            return self.style.text(
                frame,
                area,
                0,
                &printable(why.as_bytes()),
                self.style.tone(Tone::Off),
            );
        };
        let standing = source::standing(&self.board, &source.path);
        let shown = self.source_first(source, area.height);
        let digits = source
            .first
            .saturating_add(u32::try_from(source.lines.len()).unwrap_or(0));
        let digits = digits.to_string().len();
        for y in 0..area.height {
            let number = shown + u32::from(y);
            let at = number
                .checked_sub(source.first)
                .and_then(|at| usize::try_from(at).ok());
            let Some(text) = at.and_then(|at| source.lines.get(at)) else {
                break;
            };
            let text = printable(text.replace('\t', "    ").as_bytes());
            let is_here = number == source.line;
            let arrow = if is_here { '>' } else { ' ' };
            let point = match source::breakpoint(&self.board, &source.path, number) {
                Some(row) if row.enabled => 'B',
                Some(_) => 'b',
                None => ' ',
            };
            let mut line = format!("{point}{arrow}{number:>digits$} {text}");
            let here = standing.iter().find(|(at, _)| *at == number);
            let who = here.map(|(_, tasks)| format!(" {} ", self.names.label(tasks, SET_WIDTH)));
            let who = printable(who.unwrap_or_default().as_bytes());
            let room = usize::from(area.width).saturating_sub(columns(&who));
            line = crate::table::shortened(&line, room, self.style);
            let mut cells = match is_here {
                true => Cells::new().add_modifier(Modifier::BOLD),
                false => Cells::new(),
            };
            if number == self.source.at {
                cells = cells.patch(self.style.selected(self.panel == Panel::Source));
                self.style.point(frame, area, y, true);
            }
            self.style.text(frame, area, y, &line, cells);
            if !who.is_empty() {
                let left = u16::try_from(room).unwrap_or(0);
                let place = Rect::new(area.x + left, area.y + y, area.width - left, 1);
                let tone = if is_here { Tone::Good } else { Tone::Wait };
                self.style
                    .text(frame, place, 0, &who, self.style.tone(tone));
            }
        }
    }

    /// The first visible line. The selected one is in the middle, except near the file's ends.
    pub(super) fn source_first(&self, source: &SourceSight, height: u16) -> u32 {
        let count = u32::try_from(source.lines.len()).unwrap_or(u32::MAX);
        let end = source.first.saturating_add(count);
        let first = self.source.at.saturating_sub(u32::from(height / 2));
        let last_first = end.saturating_sub(height.into());
        first.min(last_first).max(source.first)
    }

    fn draw_stacks(&self, frame: &mut Frame<'_>, area: Rect) {
        let rows = &self.stacks.rows;
        if rows.is_empty() {
            return self.style.text(
                frame,
                area,
                0,
                "no rank is stopped",
                self.style.tone(Tone::Off),
            );
        }
        let first = first_shown(self.stacks.at, rows.len(), area.height);
        for (y, (at, row)) in (0..area.height).zip(rows.iter().enumerate().skip(first)) {
            let guide = match (self.style.linear, self.style.ascii) {
                (true, _) => " ".repeat(row.guide.chars().count()),
                (false, true) => row
                    .guide
                    .replace('\u{251c}', "+")
                    .replace('\u{2514}', "`")
                    .replace('\u{2502}', "|"),
                (false, false) => row.guide.clone(),
            };
            let sign = row.here.first().and_then(|id| self.ranks.class_of(id));
            let sign = sign
                .filter(|_| !self.board.is_stale && !self.style.linear)
                .map_or(String::new(), |class| format!(" {}", class.sign));
            let who = match row.who.is_empty() {
                true => String::new(),
                false => format!("{}: ", row.who),
            };
            let line = format!("{guide}{who}{}{sign}", row.place);
            let mut cells = match row.is_odd {
                true => self.style.tone(Tone::Wait),
                false => Cells::new(),
            };
            let in_focus = row.tasks == self.board.focus;
            if at == self.stacks.at {
                cells = cells.patch(self.style.selected(self.panel == Panel::Stacks));
                self.style.point(frame, area, y, true);
            } else if in_focus {
                cells = cells.add_modifier(Modifier::BOLD);
            }
            self.style.text(frame, area, y, &line, cells);
        }
    }

    fn draw_ranks(&mut self, frame: &mut Frame<'_>, area: Rect) {
        if area.height < 2 {
            return;
        }
        let legend = u16::try_from(self.ranks.classes.len()).unwrap_or(u16::MAX);
        // In linear mode only words are drawn, and no map.
        let legend = match self.style.linear {
            true => area.height,
            // The map needs no more lines than it has cells for.
            false => {
                let cells = self.board.all.len().div_ceil(area.width.max(1).into());
                let cells = u16::try_from(cells).unwrap_or(u16::MAX).max(1);
                legend.min(area.height - cells.min(area.height.div_ceil(2)))
            }
        };
        let cells = Rect::new(area.x, area.y, area.width, area.height - legend);
        self.ranks.lay_out(cells);
        let (across, block) = (self.ranks.across, self.ranks.block);
        let selected = self.ranks.at / block;
        for y in 0..cells.height {
            for x in 0..cells.width {
                let at = u64::from(y) * across + u64::from(x);
                let Some(class) = self.ranks.cell(at) else {
                    break;
                };
                let mut look = self.style.tone(class.tone);
                if at == selected && self.panel == Panel::Ranks {
                    look = look.patch(self.style.selected(true));
                }
                let cell = &mut frame.buffer_mut()[(cells.x + x, cells.y + y)];
                cell.set_char(class.sign).set_style(look);
            }
        }
        // The smallest class comes first: the others are expected.
        for (y, class) in (0..legend).zip(self.ranks.classes.iter().rev()) {
            let who = self.names.label(&class.tasks, SET_WIDTH);
            let line = match self.style.linear {
                true => format!("{who}: {}", class.what),
                false => format!("{} {who}: {}", class.sign, class.what),
            };
            let line = printable(line.as_bytes());
            let place = Rect::new(area.x, cells.bottom() + y, area.width, 1);
            self.style
                .text(frame, place, 0, &line, self.style.tone(class.tone));
        }
        self.style.point(frame, area, 0, self.style.linear);
    }

    fn draw_values(&self, frame: &mut Frame<'_>, area: Rect) {
        let rows = self.value_rows();
        if rows.is_empty() {
            return self.style.text(
                frame,
                area,
                0,
                "no variables here; press w to watch an expression",
                self.style.tone(Tone::Off),
            );
        }
        let at = self.values_at.min(rows.len() - 1);
        let first = first_shown(at, rows.len(), area.height);
        for (y, (row_at, row)) in (0..area.height).zip(rows.iter().enumerate().skip(first)) {
            let mut cells = row.tone.map_or(Cells::new(), |tone| self.style.tone(tone));
            if row_at == at && self.panel == Panel::Values {
                cells = cells.patch(self.style.selected(true));
                self.style.point(frame, area, y, true);
            }
            self.style.text(frame, area, y, &row.text, cells);
        }
    }

    fn draw_output(&self, frame: &mut Frame<'_>, area: Rect) {
        if self.printed.is_empty() {
            return self
                .style
                .text(frame, area, 0, "no output yet", self.style.tone(Tone::Off));
        }
        let shown = self.printed.len() - self.output_below.min(self.printed.len());
        let hidden = shown.saturating_sub(usize::from(area.height));
        for (y, it) in (0..area.height).zip(self.printed.iter().skip(hidden)) {
            let who = self.names.text(&it.tasks, SET_WIDTH);
            let text = String::from_utf8_lossy(&it.line).replace('\t', "    ");
            let line = printable(format!("[{who}] {text}").as_bytes());
            let cells = match it.stream {
                Stream::Stderr => self.style.tone(Tone::Wait),
                _ => Cells::new(),
            };
            self.style.text(frame, area, y, &line, cells);
        }
    }

    fn draw_prompt(&self, frame: &mut Frame<'_>, area: Rect) {
        let room = usize::from(area.height.saturating_sub(1));
        let (said, below) = self.console.shown(room);
        let said: Vec<_> = said.collect();
        for (y, said) in (0..area.height).zip(&said) {
            let cells = match said.is_own {
                true => self.style.head(),
                false => Cells::new(),
            };
            self.style.text(frame, area, y, &said.text, cells);
        }
        let mut y = u16::try_from(said.len()).unwrap_or(0);
        if below > 0 {
            let more = format!(
                "({}: {}PgDn)",
                counted(below, "more line"),
                match self.panel {
                    Panel::Prompt => "",
                    _ => "6 ",
                }
            );
            self.style
                .text(frame, area, y, &more, self.style.tone(Tone::Off));
            y += 1;
        }
        let y = y.min(area.height.saturating_sub(1));
        let Some((prompt, is_question)) = &self.asked else {
            let text = if self.line.text().is_empty() {
                "..."
            } else {
                self.line.text()
            };
            return self.style.text(
                frame,
                area,
                y,
                &printable(text.as_bytes()),
                self.style.tone(Tone::Off),
            );
        };
        let prompt = match is_question {
            true => prompt.as_str(),
            // The top of the screen already shows the selected tasks and their state.
            false => "(sdm) ",
        };
        let before = printable(format!("{prompt}{}", self.line.before()).as_bytes());
        let whole = printable(format!("{prompt}{}", self.line.text()).as_bytes());
        let width = usize::from(area.width).saturating_sub(1);
        // The line is scrolled so that the cursor is visible.
        let mut hidden = columns(&before).saturating_sub(width);
        let shown = whole.char_indices().find(|(at, _)| {
            let is_left = columns(&whole[..*at]) < hidden;
            !is_left
        });
        let shown = shown.map_or("", |(at, _)| {
            hidden = columns(&whole[..at]);
            &whole[at..]
        });
        self.style
            .text(frame, area, y, beginning(shown, width + 1), Cells::new());
        if self.panel == Panel::Prompt && !self.helps {
            let x = u16::try_from(columns(&before).saturating_sub(hidden)).unwrap_or(0);
            frame.set_cursor_position(Position::new(area.x + x.min(area.width - 1), area.y + y));
        }
    }

    fn draw_help(&self, frame: &mut Frame<'_>, area: Rect) {
        let bound = self.bindings.lines();
        let lines: Vec<&str> = HELP
            .iter()
            .copied()
            .chain(bound.iter().map(|it| &**it))
            .collect();
        let width = lines.iter().map(|line| columns(line)).max().unwrap_or(0) + 2;
        let width = u16::try_from(width).unwrap_or(u16::MAX).min(area.width);
        let height = u16::try_from(lines.len() + 2)
            .unwrap_or(u16::MAX)
            .min(area.height);
        let place = Rect::new(
            area.x + (area.width - width) / 2,
            area.y + (area.height - height) / 2,
            width,
            height,
        );
        self.style.clear(frame, place);
        let inner = self.style.boxed(frame, place, "keys", true);
        for (y, line) in (0..inner.height).zip(lines) {
            self.style.text(frame, inner, y, line, Cells::new());
        }
    }
}

/// The first visible row such that row `at` is visible.
pub(super) fn first_shown(at: usize, count: usize, height: u16) -> usize {
    let height = usize::from(height).max(1);
    let last_first = count.saturating_sub(height);
    at.saturating_sub(height / 2).min(last_first)
}
