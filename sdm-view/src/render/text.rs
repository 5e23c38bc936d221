//! Conversion of items into lines on a screen.

use std::time::Duration;

use sdm_debug::event::Stream;
use sdm_idset::IdSet;
use sdm_text::{beginning, columns, counted, printable, without_numbers};

use super::label::Names;
use super::page::Page;
use super::style::Style;
use super::{answer, diagnosis, event, highlight, numbers, plot, profile, queues, table, topics};
use crate::item::{Happening, Item, Problem, View};
use crate::overview::{Overview, Printed};
use crate::readable;

/// Maximum number of simultaneous events that only report a new state and are shown.
const HAPPENED_MAX: usize = 16;

/// An output for text: a terminal, a file, a test.
pub trait Screen {
    /// Writes whole lines, above the line at the bottom.
    fn write(&mut self, text: &str);

    /// Shows, changes or removes the status line at the bottom.
    fn status(&mut self, line: Option<&str>);

    /// Writes foreign bytes, unchanged if no line is being edited.
    fn pass(&mut self, stderr: bool, bytes: &[u8]);

    /// Enables or disables paging of long output.
    fn set_pagination(&mut self, _on: bool) {}

    /// True if the screen shows the whole state of the session.
    fn wants_board(&self) -> bool {
        false
    }

    /// Shows the current state of the session.
    fn show_board(&mut self, _board: &Overview) {}

    /// Adds a line of program output, whose text is also written by `write`.
    fn printed(&mut self, _printed: Printed) {}

    /// Enters or leaves full-screen mode. Returns false if the terminal does not support it.
    fn set_full_screen(&mut self, _on: bool) -> bool {
        false
    }

    /// The current colours and size.
    fn style(&self) -> Style;

    /// True once the output is not read any more.
    fn is_gone(&self) -> bool {
        false
    }
}

/// A view that writes items as text for a person.
pub struct TextView<S> {
    screen: S,
    names: Names,
    /// Number of events of the current group so far that only report a new state, including those not shown. None
    /// outside a group.
    in_group: Option<usize>,
    /// The tasks of those events of the group that were not shown.
    folded: Vec<IdSet>,
}

impl<S: Screen> TextView<S> {
    /// A view on this screen, with names for tasks.
    pub fn new(screen: S, names: Names) -> Self {
        Self {
            screen,
            names,
            in_group: None,
            folded: Vec::new(),
        }
    }

    /// True for an event beyond the maximum number of a group that only reports a new state. Such events are counted,
    /// and `ranks` shows the state. Other events are shown nowhere else, so that none of them is left out.
    fn is_beyond(&mut self, item: &Item) -> bool {
        use Happening as H;
        let (Item::Happened { tasks, what }, Some(shown)) = (item, &mut self.in_group) else {
            return false;
        };
        let is_state = matches!(
            what,
            H::Stopped(_) | H::Exited { .. } | H::Signalled(_) | H::Detached | H::Progress(_)
        );
        if !is_state {
            return false;
        }
        *shown += 1;
        let beyond = *shown > HAPPENED_MAX;
        if beyond {
            self.folded.push(tasks.clone());
        }
        beyond
    }
}

impl<S: Screen> View for TextView<S> {
    fn show(&mut self, _at: Duration, item: &Item) {
        if let Item::Output {
            tasks,
            stream,
            line,
            ..
        } = item
        {
            self.screen.printed(Printed {
                tasks: tasks.clone(),
                stream: *stream,
                line: line.clone(),
            });
        }
        let style = self.screen.style();
        if self.is_beyond(item) {
            return;
        }
        let mut lines = item_lines(item, &self.names, style);
        if is_foldable(item) {
            let whole = Style {
                rows: usize::MAX,
                ..style
            };
            if item_lines(item, &self.names, whole) != lines {
                let hint = "(folded; `more` at the prompt or the option --json shows all of it)";
                lines.push(style.faint(hint));
            }
        }
        let mut text = lines.join("\n");
        if !text.is_empty() {
            text.push('\n');
            self.screen.write(&text);
        }
    }

    fn pass(&mut self, stderr: bool, bytes: &[u8]) {
        self.screen.pass(stderr, bytes);
    }

    fn status(&mut self, line: Option<&str>) {
        match (line, self.screen.style().width) {
            (Some(line), Some(width)) => {
                let line = status_in(line, width.saturating_sub(1));
                self.screen.status(Some(&line));
            }
            (line, _) => self.screen.status(line),
        }
    }

    fn joins_alike(&self) -> bool {
        true
    }

    fn group(&mut self, begins: bool) {
        let folded = std::mem::take(&mut self.folded);
        self.in_group = begins.then_some(0);
        if folded.is_empty() {
            return;
        }
        let tasks = IdSet::union_all(&folded);
        let page = Page {
            names: &self.names,
            style: self.screen.style(),
        };
        let places = counted(folded.len(), "more place");
        let text = format!("in {places}; `ranks` shows all");
        let line = page.said(&tasks, &text, false);
        self.screen.write(&format!("{line}\n"));
    }

    fn set_pagination(&mut self, on: bool) {
        self.screen.set_pagination(on);
    }

    fn wants_board(&self) -> bool {
        self.screen.wants_board()
    }

    fn show_board(&mut self, board: &Overview) {
        self.screen.show_board(board);
    }

    fn set_full_screen(&mut self, on: bool) -> bool {
        self.screen.set_full_screen(on)
    }

    fn is_gone(&self) -> bool {
        self.screen.is_gone()
    }
}

/// Shortens a status line to a number of columns. The hint after the last semicolon is kept longest. The tasks that are
/// waited for are dropped first, then the end of the command.
#[must_use]
pub fn status_in(line: &str, room: usize) -> String {
    const LEAST: usize = 8;
    if columns(line) <= room {
        return line.to_owned();
    }
    let Some((what, hint)) = line.rsplit_once("; ") else {
        return beginning(line, room).to_owned();
    };
    let without_whom = what.rsplit_once(" (").and_then(|(before, time)| {
        let (before, _) = before.rsplit_once(", ")?;
        Some(format!("{before} ({time}; {hint}"))
    });
    if let Some(line) = without_whom.filter(|line| columns(line) <= room) {
        return line;
    }
    match room.checked_sub(columns(hint) + "...; ".len()) {
        Some(left) if left >= LEAST => format!("{}...; {hint}", beginning(what, left)),
        _ => beginning(what, room).to_owned(),
    }
}

/// True for items that are folded where they are longer than a screen.
fn is_foldable(item: &Item) -> bool {
    matches!(item, Item::Answer(_) | Item::Ranks(_))
}

/// The lines of an item on a screen.
pub(crate) fn item_lines(item: &Item, names: &Names, style: Style) -> Vec<String> {
    let page = Page { names, style };
    match item {
        Item::Start { .. } => Vec::new(),
        Item::Echo { line } => vec![style.faint(&format!("(sdm) {}", printable(line.as_bytes())))],
        Item::Answer(gathered) => answer::lines(&page, gathered),
        Item::Whole(item) => {
            let style = Style {
                rows: usize::MAX,
                ..style
            };
            item_lines(item, names, style)
        }
        Item::Happened { tasks, what } => happened(&page, tasks, what),
        Item::Output {
            tasks,
            stream,
            line,
            complete,
        } => vec![output(&page, tasks, *stream, line, *complete)],
        Item::Ranks(rows) => table::ranks(&page, rows),
        Item::Breakpoints(rows) => table::breakpoints(&page, rows),
        Item::Sets(rows) => topics::sets(&page, rows),
        Item::Nodes(rows) => topics::nodes(&page, rows),
        Item::Tree(rows) => topics::tree(&page, rows),
        Item::Links(rows) => topics::links(&page, rows),
        Item::Values { expression, values } => numbers::values(&page, expression, values),
        Item::Display {
            number,
            expression,
            values,
        } => numbers::display(&page, *number, expression, values),
        Item::Diagnosis(found) => diagnosis::lines(&page, found),
        Item::Listing(listing) => table::listing(&page, listing),
        Item::Stats {
            expression,
            tasks,
            stats,
        } => numbers::stats(&page, expression, tasks, stats),
        Item::Plot(plot) => plot::lines(&page, plot),
        Item::Comparison(found) => numbers::comparison(&page, found),
        Item::Usage { tasks, usage } => topics::usage(&page, tasks, usage),
        Item::Queues(table) => queues::lines(&page, table),
        Item::Profile(found) => profile::lines(&page, found),
        Item::Lost { tasks, why } => vec![page.said(tasks, &format!("lost: {why}"), true)],
        Item::Silent { tasks, why } => {
            vec![page.said(tasks, &format!("not answering: {why}"), true)]
        }
        Item::Reachable { tasks } => vec![page.said(tasks, "heard again", false)],
        Item::LauncherLine(line) => vec![format!(
            "{} {}",
            style.faint("[launcher]"),
            printable(line.as_bytes())
        )],
        Item::LauncherEnded {
            status,
            last_words,
            lost,
        } => launcher_ended(&page, status, last_words, lost),
        Item::Notice(text) => {
            vec![style.wrap(&printable(without_numbers(text).as_bytes()), 2)]
        }
        Item::Text(text) => text.lines().map(|line| in_columns(&style, line)).collect(),
        Item::Error(problem) => error(&style, problem),
        Item::End { reason, .. } => reason
            .iter()
            .map(|reason| sdm_text::printable_lines(reason).replace('\n', "\n  "))
            .map(|reason| style.bad(&format!("session ended: {reason}")))
            .collect(),
    }
}

/// Breaks a long line at words. Continuation lines are indented to its second column, if it has one.
fn in_columns(style: &Style, line: &str) -> String {
    let text = line.trim_start_matches(' ');
    let lead = line.len() - text.len();
    let column = text.find("  ").map(|at| {
        let behind = &text[at..];
        lead + columns(&text[..at]) + behind.len() - behind.trim_start_matches(' ').len()
    });
    let room = style.width.unwrap_or(usize::MAX) / 2;
    style.wrap(
        line,
        column.filter(|column| *column <= room).unwrap_or(lead),
    )
}

fn happened(page: &Page<'_>, tasks: &IdSet, what: &Happening) -> Vec<String> {
    let sentence = event::sentence(what);
    let frame = match what {
        Happening::Stopped(stop) => stop.frame.as_ref(),
        _ => None,
    };
    let name = |text: &str| printable(text.as_bytes());
    let first = page.said(tasks, &sentence.line, sentence.bad);
    let first = match frame.filter(|_| !sentence.bad) {
        Some(frame) => highlight::place(
            &page.style,
            &name(&readable::function(&frame.function)),
            &name(&frame.file),
            first,
        ),
        None => first,
    };
    let file = frame.map_or("", |frame| &frame.file);
    let mut lines = vec![first];
    for line in &sentence.below {
        let line = page.style.wrap(line, 4);
        let is_numbered = |number: &str| number.bytes().all(|byte| byte.is_ascii_digit());
        lines.push(match line.split_once('\t') {
            Some((number, text)) if is_numbered(number) => {
                format!("{number}\t{}", highlight::source(&page.style, file, text))
            }
            _ => line,
        });
    }
    lines
}

fn output(page: &Page<'_>, tasks: &IdSet, stream: Stream, line: &[u8], complete: bool) -> String {
    let who = page.names.text(tasks, page.style.set_width());
    let label = match stream {
        Stream::Stdout => format!("[{who}]"),
        Stream::Stderr => format!("[{who} err]"),
    };
    let more = if complete { "" } else { "\\" };
    let text = printable(line);
    format!(
        "{} {text}{}",
        page.style.faint(&label),
        page.style.faint(more)
    )
}

fn launcher_ended(
    page: &Page<'_>,
    status: &str,
    last_words: &[String],
    lost: &IdSet,
) -> Vec<String> {
    let mut text = format!("the launcher ended: {}", printable(status.as_bytes()));
    if !lost.is_empty() {
        text.push_str(&format!("; lost with the launcher: {}", page.label(lost)));
    }
    let mut lines = vec![page.style.bad(&page.style.wrap(&text, 4))];
    let words = last_words.iter();
    lines.extend(words.map(|word| format!("  | {}", printable(word.as_bytes()))));
    lines
}

fn error(style: &Style, problem: &Problem) -> Vec<String> {
    let message = sdm_text::printable_lines(&without_numbers(&problem.message));
    let mut lines = vec![style.bad(&style.wrap(&message, 2))];
    if let (Some(line), Some(at)) = (&problem.line, problem.at) {
        let before = columns(line.get(..at).unwrap_or(line));
        lines.push(format!("  {}", printable(line.as_bytes())));
        lines.push(format!("  {}^", " ".repeat(before)));
    }
    if !problem.hint.is_empty() {
        lines.push(style.wrap(&format!("  {}", problem.hint), 2));
    }
    lines
}

pub(super) mod recorded_screen;

#[cfg(test)]
mod tests;
