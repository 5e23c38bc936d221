//! Lines that are gathered up to `end`: what a breakpoint does, and commands of the user's own.

use std::collections::BTreeMap;

use sdm_session::Debug;
use sdm_view::item::Item;

use super::flow::SOURCE_DEPTH_MAX;
use super::{Shell, Verdict};
use crate::commands;

/// The most commands of the user's own.
const DEFINED_MAX: usize = 1024;
/// The most lines that one gathers.
const LINES_MAX: usize = 1000;

/// Commands of the user's own, by name.
pub(super) type Defined = BTreeMap<String, Vec<String>>;

/// Lines that are being gathered.
#[derive(Debug)]
pub(super) struct Collecting {
    purpose: Purpose,
    lines: Vec<String>,
    /// How many `end`s belong to lines that were gathered.
    inner: u32,
}

/// What lines are gathered for.
#[derive(Debug)]
enum Purpose {
    /// To be done at these breakpoints.
    Breakpoints(Vec<u32>),
    /// A command of this name.
    Command(String),
}

impl<D: Debug> Shell<D> {
    /// The lines that follow, up to `end`, are done at these breakpoints.
    pub(super) fn collect_for(&mut self, breakpoints: Vec<u32>) {
        self.begin_collecting(Purpose::Breakpoints(breakpoints));
    }

    /// `define NAME`: the lines that follow, up to `end`.
    pub(super) fn define(&mut self, name: &str) -> Verdict {
        let is_new = !self.defined.contains_key(name);
        if is_new && self.defined.len() == DEFINED_MAX {
            return self.complain(format!("define: {DEFINED_MAX} commands are defined"), "");
        }
        self.begin_collecting(Purpose::Command(name.to_owned()));
        Verdict::Done
    }

    fn begin_collecting(&mut self, purpose: Purpose) {
        self.collecting = Some(Collecting {
            purpose,
            lines: Vec::new(),
            inner: 0,
        });
    }

    /// A line that is gathered, or the `end` of them.
    pub(super) fn collect(&mut self, line: &str) -> Verdict {
        let Some(mut collecting) = self.collecting.take() else {
            return Verdict::Done;
        };
        let ends = |c: char| c.is_whitespace() || c == '(';
        let word = line.split(ends).next().unwrap_or("");
        if line == "end" && collecting.inner == 0 {
            return match collecting.purpose {
                Purpose::Breakpoints(numbers) => self.set_commands(&numbers, &collecting.lines),
                Purpose::Command(name) => {
                    self.defined.insert(name, collecting.lines);
                    Verdict::Done
                }
            };
        }
        if collecting.lines.len() == LINES_MAX {
            return self.complain(format!("more than {LINES_MAX} lines"), "");
        }
        if line == "end" {
            collecting.inner -= 1;
        } else if matches!(word, "commands" | "define" | "if" | "while") {
            collecting.inner += 1;
        }
        collecting.lines.push(line.to_owned());
        self.collecting = Some(collecting);
        Verdict::Done
    }

    /// Ctrl-C at a prompt: nothing is gathered, and nothing answered.
    pub(super) fn abandon_input(&mut self) {
        self.collecting = None;
        if self.asking.take().is_some() {
            self.say("nothing done");
        }
    }

    /// A line that calls a command of the user's own; nothing where it does not.
    pub(super) fn execute_defined(&mut self, line: &str) -> Option<Verdict> {
        if self.defined.is_empty() {
            return None;
        }
        let called = commands::called(line)?;
        let lines = self.defined.get(called.word)?.clone();
        if self.source_depth == SOURCE_DEPTH_MAX {
            let text = format!("{}: commands name commands too deep", called.word);
            return Some(self.complain(text, ""));
        }
        let to = match called.to.map(|set| self.resolve(&set)) {
            None => self.focus.clone(),
            Some(Ok(to)) => to,
            Some(Err(error)) => return Some(self.refuse(line, &error)),
        };
        if to.is_empty() {
            self.say("nobody is meant");
            return Some(Verdict::Done);
        }
        let before = std::mem::replace(&mut self.focus, to.clone());
        self.source_depth += 1;
        let mut verdict = Verdict::Done;
        for line in lines {
            verdict = self.execute(&with_arguments(&line, called.rest));
            if verdict != Verdict::Done || self.over.is_some() {
                break;
            }
        }
        self.source_depth -= 1;
        // A `focus` among the lines stays.
        if self.focus == to {
            self.focus = before;
        }
        self.last = Some(line.to_owned());
        Some(verdict)
    }

    /// `show user [NAME]`.
    pub(super) fn show_defined(&mut self, name: Option<&str>) -> Verdict {
        let meant = self.defined.iter();
        let meant = meant.filter(|(known, _)| name.is_none_or(|name| name == *known));
        let one = |(name, lines): (&String, &Vec<String>)| {
            let lines: String = lines.iter().map(|line| format!("\n  {line}")).collect();
            format!("User command \"{name}\":{lines}")
        };
        let text: Vec<_> = meant.map(one).collect();
        match (name, text.is_empty()) {
            (Some(name), true) => self.complain(format!("Not a user command: \"{name}\"."), ""),
            (None, true) => Verdict::Done,
            _ => {
                self.show(&Item::Text(text.join("\n")));
                Verdict::Done
            }
        }
    }
}

/// A line with gdb's `$argc`, `$arg0` to `$arg9` and `$argv`, which is all of them.
fn with_arguments(line: &str, rest: &str) -> String {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let mut line = line
        .replace("$argc", &words.len().to_string())
        .replace("$argv", rest);
    for (index, word) in words.iter().enumerate().take(10) {
        line = line.replace(&format!("$arg{index}"), word);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_take_their_places() {
        let line = with_arguments("print $arg0 + $arg1 * $argc, $arg2 ($argv)", "x y->z");
        assert_eq!(line, "print x + y->z * 2, $arg2 (x y->z)");
    }
}
