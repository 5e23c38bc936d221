//! `display`: values after each stop; `list`: lines of source with who stands there.

use std::collections::BTreeMap;

use sdm_debug::reply::SourceText;
use sdm_debug::{Command, Reply, TaskState};
use sdm_idset::IdSet;
use sdm_session::Debug;
use sdm_view::item::{Happening, Item, Listing};

use super::run::Said;
use super::{Shell, Verdict};
use crate::commands::Displayed;

/// The most expressions that are displayed.
const DISPLAYS_MAX: usize = 32;

/// The expressions of `display`, by number.
#[derive(Debug, Default)]
pub(super) struct Displays {
    expressions: BTreeMap<u32, Displayed>,
    last: u32,
}

impl<D: Debug> Shell<D> {
    /// `display[/FORMAT] [EXPR]`.
    pub(super) fn display(&mut self, said: &Said<'_>, display: Option<Displayed>) -> Verdict {
        let Some(display) = display else {
            return self.show_some(said.line, &said.to, None);
        };
        if self.displays.expressions.len() == DISPLAYS_MAX {
            return self.complain(format!("display: {DISPLAYS_MAX} are displayed already"), "");
        }
        let number = self.displays.last + 1;
        self.displays.last = number;
        self.displays.expressions.insert(number, display);
        let verdict = self.show_some(said.line, &said.to, Some(number));
        if verdict == Verdict::Failed {
            self.displays.expressions.remove(&number);
            self.displays.last = number - 1;
        }
        verdict
    }

    /// `undisplay [N...]`.
    pub(super) fn undisplay(&mut self, numbers: &[u32]) -> Verdict {
        if numbers.is_empty() {
            self.displays.expressions.clear();
            return Verdict::Done;
        }
        let mut verdict = Verdict::Done;
        for number in numbers {
            if self.displays.expressions.remove(number).is_none() {
                verdict = self.complain(format!("there is no display {number}"), "");
            }
        }
        verdict
    }

    /// `info display`.
    pub(super) fn show_all_displays(&mut self) -> Verdict {
        let rows = self.displays.expressions.iter();
        let rows: Vec<_> = rows
            .map(|(number, it)| format!("{number}: {}", words(it)))
            .collect();
        let text = match rows.is_empty() {
            true => "There are no auto-display expressions now.".to_owned(),
            false => rows.join("\n"),
        };
        self.show(&Item::Text(text));
        Verdict::Done
    }

    /// All displays of those that have stopped.
    pub(super) fn show_displays(&mut self, ran: &IdSet) {
        if !self.displays.expressions.is_empty() && self.over.is_none() {
            self.show_some("display", ran, None);
        }
    }

    /// One display, or all. What cannot be evaluated where a task stands is no failure of the run.
    fn show_some(&mut self, line: &str, to: &IdSet, only: Option<u32>) -> Verdict {
        let standing = self.tasks.in_state(|state| *state == TaskState::Stopped);
        let to = standing.intersection(to).difference(self.tasks.lost());
        let mut verdict = Verdict::Done;
        if to.is_empty() {
            return verdict;
        }
        for (number, display) in self.displays.expressions.clone() {
            if only.is_some_and(|only| only != number) {
                continue;
            }
            let command = asked(&display);
            let (one, open) = self.ask_quietly(line, &to, &command);
            if one != Verdict::Done {
                verdict = one;
            }
            let answers = open.map(|open| open.gathered.ok).unwrap_or_default();
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
                return self.complain(format!("display: `{expression}` has no value here"), "");
            }
            if !values.is_empty() {
                self.show_quietly(&Item::Display {
                    number,
                    expression: words(&display),
                    values,
                });
            }
        }
        verdict
    }

    /// `list [WHAT]`.
    pub(super) fn list(&mut self, said: &Said<'_>, what: &str) -> Verdict {
        // gdb lists around the line that it has shown last: the selected frame's, so that it is shown.
        if what.is_empty() && !self.lists_on {
            let line = "frame".to_owned();
            self.ask_quietly(said.line, &said.to, &Command::Console { line });
        }
        let list = Command::List {
            what: what.to_owned(),
        };
        let (verdict, open) = self.ask_quietly(said.line, &said.to, &list);
        let Some(mut open) = open else {
            return verdict;
        };
        for (tasks, reply) in std::mem::take(&mut open.gathered.ok) {
            match reply {
                Reply::Source(source) => {
                    let listing = self.listing(tasks, source);
                    self.show(&Item::Listing(listing));
                }
                other => open.gathered.ok.push((tasks, other)),
            }
        }
        self.show(&Item::Answer(open.gathered));
        verdict
    }

    /// Lines of source, with who stands at each.
    fn listing(&self, tasks: IdSet, source: SourceText) -> Listing {
        let SourceText {
            path, first, lines, ..
        } = source;
        let lines = lines.into_iter().zip(first..).map(|(text, number)| {
            let here = self.standing_at(&path, number);
            (number, text, here)
        });
        Listing {
            tasks,
            lines: lines.collect(),
            file: path,
        }
    }

    fn standing_at(&self, path: &str, line: u32) -> IdSet {
        self.tasks.where_last(|last| match last {
            Happening::Stopped(stop) => stop
                .frame
                .as_ref()
                .is_some_and(|frame| frame.line == line && frame.path == path),
            _ => false,
        })
    }
}

/// How it was written: `step`, `/x step`.
fn words(display: &Displayed) -> String {
    match display.format.as_str() {
        "" => display.expression.clone(),
        format => format!("/{format} {}", display.expression),
    }
}

/// Instructions and strings are what stands at an address, all else are values.
fn asked(display: &Displayed) -> Command {
    let Displayed { format, expression } = display;
    if format.is_empty() {
        let expression = expression.clone();
        return Command::Evaluate { expression };
    }
    let word = if format.contains(['i', 's']) {
        "x"
    } else {
        "output"
    };
    Command::Console {
        line: format!("{word}/{format} {expression}"),
    }
}
