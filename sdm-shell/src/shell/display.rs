//! `display`: values that are shown after each stop; `list`: lines of source, with the tasks at each.
use sdm_debug::reply::SourceText;
use sdm_debug::{Command, Reply};
use sdm_idset::IdSet;
use sdm_view::item::{Happening, Item, Listing};

use super::invocation::Invocation;
use super::model::dialogue::ListFrom;
use super::model::displays::{DISPLAYS_MAX, question, words};
use super::{SessionHandle, Verdict, ask};
use crate::commands::Displayed;

/// Carries out `display[/FORMAT] [EXPR]`.
pub(super) async fn display(
    session: &SessionHandle,
    said: &Invocation<'_>,
    display: Option<Displayed>,
) -> Verdict {
    let Some(display) = display else {
        return show_some(session, said.line, &said.to, None).await.0;
    };
    if session.read(|model| model.displays.is_full()) {
        return session.complain(
            format!("display: {DISPLAYS_MAX} expressions are displayed, no more are allowed"),
            "`undisplay N` removes an expression",
        );
    }
    let number = session.edit(|model| model.displays.add(display));
    let (verdict, is_shown) = show_some(session, said.line, &said.to, Some(number)).await;
    if verdict == Verdict::Failed && !is_shown {
        session.edit(|model| model.displays.withdraw(number));
    }
    verdict
}

/// Carries out `undisplay [N...]`.
pub(super) fn undisplay(
    session: &SessionHandle,
    said: &Invocation<'_>,
    numbers: &[u32],
) -> Verdict {
    if numbers.is_empty() {
        let text = "Delete all auto-display expressions";
        let has_some = session.read(|model| !model.displays.all().is_empty());
        if has_some && ask::confirm(session, said, text, "not deleted") {
            return Verdict::Done;
        }
        session.edit(|model| model.displays.clear());
        return Verdict::Done;
    }
    let mut verdict = Verdict::Done;
    for number in numbers {
        if !session.edit(|model| model.displays.remove(*number)) {
            verdict = session.complain(format!("no display has the number {number}"), "");
        }
    }
    verdict
}

/// Carries out `info display`.
pub(super) fn show_all_displays(session: &SessionHandle) -> Verdict {
    let all = session.read(|model| model.displays.all());
    let rows: Vec<_> = all
        .iter()
        .map(|(number, it)| format!("{number}: {}", words(it)))
        .collect();
    let text = match rows.is_empty() {
        true => "There are no auto-display expressions now.".to_owned(),
        false => rows.join("\n"),
    };
    session.show(&Item::Text(text));
    Verdict::Done
}

/// Shows all displays for the tasks that have stopped.
pub(super) async fn show_displays(session: &SessionHandle, ran: &IdSet) {
    if !session.read(|model| model.displays.is_empty()) && !session.is_over() {
        show_some(session, "display", ran, None).await;
    }
}

/// Shows one display with the reasons of the tasks that have no value, or all displays. True if there is a value. An
/// expression that cannot be evaluated at a task's position is not a failure of the run.
async fn show_some(
    session: &SessionHandle,
    line: &str,
    to: &IdSet,
    only: Option<u32>,
) -> (Verdict, bool) {
    let to = session.standing().intersection(to);
    let (mut verdict, mut is_shown) = (Verdict::Done, false);
    if to.is_empty() {
        return (verdict, is_shown);
    }
    for (number, display) in session.read(|model| model.displays.all()) {
        if only.is_some_and(|only| only != number) {
            continue;
        }
        let command = question(&display);
        let (one, open) = session.ask_quietly(line, &to, &command).await;
        if one != Verdict::Done {
            verdict = one;
        }
        let mut rest = open.map(|open| open.gathered).unwrap_or_default();
        let answers = std::mem::take(&mut rest.ok);
        let mut values: Vec<_> = answers
            .into_iter()
            .filter_map(|(tasks, reply)| match reply {
                Reply::Value(value) => Some((tasks, sdm_view::render::value_text(&value))),
                Reply::Text(text) => Some((tasks, text.trim_end().to_owned())),
                _ => None,
            })
            .collect();
        values.sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then(a.first().cmp(&b.first())));
        if values.is_empty() && only.is_some() {
            let expression = words(&display);
            let text = format!("display: `{expression}` has no value in the selected frame");
            ask::show_rest(session, rest);
            return (session.complain(text, ""), false);
        }
        if !values.is_empty() {
            session.show_quietly(&Item::Display {
                number,
                expression: words(&display),
                values,
            });
            is_shown = true;
        }
        if only.is_some() {
            ask::show_rest(session, rest);
        }
    }
    (verdict, is_shown)
}

/// Carries out `list [WHAT]`.
pub(super) async fn list(session: &SessionHandle, said: &Invocation<'_>, what: &str) -> Verdict {
    // gdb lists around the line that it has shown last: the selected frame's, so that it is shown.
    let from = session.read(|model| model.dialogue.list_from);
    if what.is_empty() && from == ListFrom::Selected {
        let line = "frame".to_owned();
        session
            .ask_quietly(said.line, &said.to, &Command::Console { line })
            .await;
    }
    let list = Command::List {
        what: what.to_owned(),
    };
    let (verdict, open) = session.ask_quietly(said.line, &said.to, &list).await;
    let Some(mut open) = open else {
        return verdict;
    };
    for (tasks, reply) in std::mem::take(&mut open.gathered.ok) {
        match reply {
            Reply::Source(source) => {
                let listing = listing(session, tasks, source);
                session.show(&Item::Listing(listing));
            }
            other => open.gathered.ok.push((tasks, other)),
        }
    }
    session.show(&Item::Answer(open.gathered));
    verdict
}

/// Lines of source, with the tasks at each.
fn listing(session: &SessionHandle, tasks: IdSet, source: SourceText) -> Listing {
    let SourceText {
        path, first, lines, ..
    } = source;
    let lines = lines.into_iter().zip(first..).map(|(text, number)| {
        let here = standing_at(session, &path, number);
        (number, text, here)
    });
    Listing {
        tasks,
        lines: lines.collect(),
        file: path,
    }
}

fn standing_at(session: &SessionHandle, path: &str, line: u32) -> IdSet {
    session.read(|model| {
        model.tasks.where_last(|last| match last {
            Happening::Stopped(stop) => stop
                .frame
                .as_ref()
                .is_some_and(|frame| frame.line == line && frame.path == path),
            _ => false,
        })
    })
}
