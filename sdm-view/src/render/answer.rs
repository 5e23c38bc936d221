//! Answers to a command as text: one block per distinct answer, largest class first.

use sdm_debug::reply::{Backtrace, Frame, FrameView, ThreadView, Value};
use sdm_debug::{Failure, FailureCode, Reply};
use sdm_idset::IdSet;
use sdm_text::{counted, printable, printable_lines, without_numbers};

use super::page::Page;
use super::style::Style;
use super::{data, event, highlight, place, stacks, values};
use crate::item::{Gathered, Happening};
use crate::normalise::{DIFFERS, arguments, biggest_first};
use crate::readable;

/// Maximum number of distinct answers that are shown.
const CLASSES_SHOWN_MAX: usize = 24;

/// The lines of the answers to a command.
pub(super) fn lines(page: &Page<'_>, gathered: &Gathered) -> Vec<String> {
    let (own, gathered) = (&gathered.ok, &gathered.alike());
    let mut lines = Vec::new();
    if gathered.late {
        lines.push(page.style.odd(&format!(
            "late, to `{}`:",
            printable(gathered.command.as_bytes())
        )));
    }
    answers(page, gathered, own, &mut lines);
    if !gathered.others.is_empty() {
        let text = "answers not shown, because too many differ; select fewer ranks";
        lines.push(page.said(&gathered.others, text, false));
    }
    failures(page, &gathered.failed, &mut lines);
    let missing = gathered.missing.len().min(shown_max(page));
    for (tasks, why) in &gathered.missing[..missing] {
        let why = if why.is_empty() {
            "reason unknown"
        } else {
            why
        };
        let text = format!("no answer in time ({})", printable(why.as_bytes()));
        lines.push(page.said(tasks, &text, true));
    }
    if let rest @ [_, ..] = &gathered.missing[missing..] {
        let tasks = IdSet::union_all(rest.iter().map(|(tasks, _)| tasks));
        let reasons = counted(rest.len(), "more reason");
        let text = format!("no answer in time, for {reasons}");
        lines.push(page.said(&tasks, &text, true));
    }
    if !gathered.lost.is_empty() {
        lines.push(page.said(&gathered.lost, "no answer: sdm-server was lost", true));
    }
    lines
}

/// Appends the answers. `own` are the answers before merging.
fn answers(page: &Page<'_>, gathered: &Gathered, own: &[(IdSet, Reply)], lines: &mut Vec<String>) {
    let mut classes: Vec<_> = gathered
        .ok
        .iter()
        .filter(|(_, reply)| *reply != Reply::Done)
        .collect();
    classes.sort_by(|(a, _), (b, _)| biggest_first(a, b));
    if let Some(merged) = gathered.stacks() {
        lines.extend(stacks::lines(&merged, page.names, &page.style));
    }
    let mut variables = Vec::new();
    values::variables(page, &classes, &mut variables);
    lines.extend(page.style.folded(variables));
    classes.retain(|(_, reply)| !matches!(reply, Reply::Stacks(_) | Reply::Variables(_)));
    let mut count = 0;
    for (tasks, reply) in classes.iter().take(shown_max(page)) {
        let mut more = Vec::new();
        match (reply, &gathered.made) {
            (Reply::Breakpoint(_), Some(made)) => {
                more.push(page.said(tasks, &printable(made.as_bytes()), false));
            }
            _ => block(page, (tasks, own), reply, &mut more),
        }
        // The biggest class is shown, its beginning and its end where it is longer than a screen.
        if count == 0 {
            more = page.style.folded(more);
        }
        if count > 0 && Style::height(lines) + Style::height(&more) > page.style.room() {
            break;
        }
        lines.extend(more);
        count += 1;
    }
    let rest = &classes[count..];
    if !rest.is_empty() {
        let tasks = IdSet::union_all(rest.iter().map(|(tasks, _)| tasks));
        let text = format!(
            "{}, not shown",
            counted(rest.len(), "more different answer")
        );
        lines.push(page.said(&tasks, &text, false));
    }
}

/// Maximum number of distinct answers that are shown, unless all are requested.
fn shown_max(page: &Page<'_>) -> usize {
    match page.style.rows {
        usize::MAX => usize::MAX,
        _ => CLASSES_SHOWN_MAX,
    }
}

/// Appends one answer. `own` are the answers before merging.
fn block(
    page: &Page<'_>,
    (tasks, own): (&IdSet, &[(IdSet, Reply)]),
    reply: &Reply,
    lines: &mut Vec<String>,
) {
    let happened = |what: Happening| event::sentence(&what);
    let sentence = match reply {
        Reply::Done | Reply::Stacks(_) | Reply::Variables(_) => return,
        Reply::Value(value) => {
            let text = printable_lines(&place::value(value));
            return one_or_more_lines(page, tasks, &text, lines);
        }
        Reply::Text(text) => {
            let text = printable_lines(text.trim_end_matches('\n'));
            return one_or_more_lines(page, tasks, &text, lines);
        }
        Reply::Backtrace(backtrace) => return frames(page, (tasks, own), backtrace, lines),
        Reply::Frame(view) => return frame(page, (tasks, own), view, lines),
        Reply::Threads(threads) => return list_threads(page, tasks, threads, lines),
        Reply::Status(state) => {
            return lines.push(page.said(tasks, state.name(), false));
        }
        Reply::Breakpoint(at) => {
            let places = event::places(&at.places);
            let text = if at.pending {
                format!(
                    "breakpoint {} is pending until its location is loaded",
                    at.number
                )
            } else if at.places.is_empty() {
                format!("{} is set", at.number)
            } else {
                format!("breakpoint {} {places}", at.number)
            };
            return lines.push(page.said(tasks, &text, false));
        }
        Reply::Stopped(stop) => happened(Happening::Stopped(stop.clone())),
        Reply::Exited {
            code,
            before_finalize,
        } => happened(Happening::Exited {
            code: *code,
            before_finalize: *before_finalize,
        }),
        Reply::Signalled { signal } => happened(Happening::Signalled(signal.clone())),
        Reply::Detached => happened(Happening::Detached),
        other => {
            let text = printable_lines(&data::text(other));
            return one_or_more_lines(page, tasks, &text, lines);
        }
    };
    lines.push(page.said(tasks, &sentence.line, sentence.bad));
    lines.extend(sentence.below);
}

fn one_or_more_lines(page: &Page<'_>, tasks: &IdSet, text: &str, lines: &mut Vec<String>) {
    if text.is_empty() {
        return;
    }
    let text = &untabbed(text);
    let style = page.style;
    let columns = text.contains("  ")
        && style.width.is_some_and(|width| {
            sdm_text::columns(&page.over(tasks)) + 1 + sdm_text::columns(text) > width
        });
    // Columns are not broken in the middle where a line of their own holds them.
    if !text.contains('\n') && !columns {
        return lines.push(page.said(tasks, text, false));
    }
    lines.push(page.over(tasks));
    lines.extend(text.lines().map(|line| style.wrap(&format!("  {line}"), 6)));
}

/// Replaces tabs by the blanks that a terminal shows for them, so that the width of a line can be measured.
fn untabbed(text: &str) -> String {
    const TAB: usize = 8;
    let mut plain = String::with_capacity(text.len());
    let mut column = 0;
    for c in text.chars() {
        match c {
            '\t' => {
                let blanks = TAB - column % TAB;
                plain.extend(std::iter::repeat_n(' ', blanks));
                column += blanks;
            }
            c => {
                plain.push(c);
                column = if c == '\n' { 0 } else { column + 1 };
            }
        }
    }
    plain
}

/// Appends the frames of a stack. Arguments that differ among these tasks are listed below their frame.
fn frames(
    page: &Page<'_>,
    (tasks, own): (&IdSet, &[(IdSet, Reply)]),
    backtrace: &Backtrace,
    lines: &mut Vec<String>,
) {
    let members = members(tasks, own);
    lines.push(page.over(tasks));
    let mut first = 0;
    for frame in &backtrace.frames {
        let text = format!("#{:<2} {}", frame.level, place::frame(frame));
        lines.push(in_colours(page, frame, page.style.wrap(&text, 6)));
        differing(page, &members, (first, frame), lines);
        first += frame.args.len();
    }
    if backtrace.frames.is_empty() {
        lines.push("No stack.".to_owned());
    }
    if backtrace.more {
        lines.push("(More stack frames follow...)".to_owned());
    }
    if backtrace.folded > 0 {
        let frames = counted(backtrace.folded, "frame");
        let text = format!("({frames} of runtimes not shown; `bt --full` shows all)");
        lines.push(page.style.faint(&text));
    }
}

/// The arguments in each of these answers that are from these tasks.
fn members<'a>(tasks: &IdSet, own: &'a [(IdSet, Reply)]) -> Vec<(&'a IdSet, Vec<&'a Value>)> {
    let own = own.iter().filter(|(set, _)| set.is_subset(tasks));
    own.map(|(set, reply)| (set, arguments(reply))).collect()
}

/// Appends the arguments of a frame that differ. `first` is the place of its first one among all of the members.
fn differing(
    page: &Page<'_>,
    members: &[(&IdSet, Vec<&Value>)],
    (first, frame): (usize, &Frame),
    lines: &mut Vec<String>,
) {
    for (index, argument) in frame.args.iter().enumerate() {
        if argument.value.text == DIFFERS {
            let values = members
                .iter()
                .filter_map(|(set, all)| Some((*set, *all.get(first + index)?)));
            let text = values::by_class(page, &argument.name, values);
            let wrapped = text.map(|text| page.style.wrap(&format!("      {text}"), 8));
            lines.extend(wrapped);
        }
    }
}

fn frame(
    page: &Page<'_>,
    (tasks, own): (&IdSet, &[(IdSet, Reply)]),
    view: &FrameView,
    lines: &mut Vec<String>,
) {
    let text = format!("#{:<2} {}", view.frame.level, place::frame(&view.frame));
    lines.push(in_colours(
        page,
        &view.frame,
        page.said(tasks, &text, false),
    ));
    differing(page, &members(tasks, own), (0, &view.frame), lines);
    if let Some(source) = &view.source {
        let text = printable(source.trim_end().as_bytes());
        let text = highlight::source(&page.style, &view.frame.file, &text);
        lines.push(format!("{}\t{text}", view.frame.line));
    }
}

/// Highlights the function and file of a frame within a text.
fn in_colours(page: &Page<'_>, frame: &Frame, text: String) -> String {
    let name = |text: &str| printable(text.as_bytes());
    highlight::place(
        &page.style,
        &name(&readable::function(&frame.function)),
        &name(&frame.file),
        text,
    )
}

fn list_threads(page: &Page<'_>, tasks: &IdSet, threads: &[ThreadView], lines: &mut Vec<String>) {
    lines.push(page.over(tasks));
    for thread in threads {
        let place = thread
            .frame
            .as_ref()
            .map_or("(running)".to_owned(), place::frame);
        let mark = if thread.current { '*' } else { ' ' };
        let name = printable(thread.name.as_bytes());
        let text = format!("{mark} {:<3} \"{name}\" {place}", thread.number);
        let wrapped = page.style.wrap(&text, 6);
        lines.push(match &thread.frame {
            Some(frame) => in_colours(page, frame, wrapped),
            None => wrapped,
        });
    }
}

fn failures(page: &Page<'_>, failed: &[(IdSet, Failure)], lines: &mut Vec<String>) {
    let is_running = |code| matches!(code, FailureCode::Running | FailureCode::AlreadyRunning);
    let running = failed
        .iter()
        .filter(|(_, failure)| is_running(failure.code));
    let running = IdSet::union_all(running.map(|(tasks, _)| tasks));
    if !running.is_empty() {
        let who = page.label(&running);
        lines.push(page.labelled("running", &format!("{who} (interrupt first)"), false));
    }
    let mut classes: Vec<_> = failed
        .iter()
        .filter(|(_, failure)| !is_running(failure.code))
        .collect();
    classes.sort_by(|(a, _), (b, _)| biggest_first(a, b));
    let (shown, rest) = classes.split_at(classes.len().min(shown_max(page)));
    for (at, (tasks, failure)) in shown.iter().enumerate() {
        let text = printable_lines(&without_numbers(failure.text.trim_end()));
        lines.push(page.said(tasks, &text, true));
        // Advice on several failures is said once, below the last of them.
        let mut later = shown[at + 1..].iter();
        if !failure.hint.is_empty() && later.all(|(_, later)| later.hint != failure.hint) {
            let hint = printable_lines(&failure.hint);
            lines.push(page.style.wrap(&format!("  {hint}"), 2));
        }
    }
    if !rest.is_empty() {
        let tasks = IdSet::union_all(rest.iter().map(|(tasks, _)| tasks));
        let text = format!("{}, not shown", counted(rest.len(), "more different error"));
        lines.push(page.said(&tasks, &text, true));
    }
}
