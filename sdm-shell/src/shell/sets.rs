//! Who is meant: focus, named sets, sets that depend on what tasks do, tasks that are held.

use std::collections::BTreeMap;

use sdm_debug::command::{FrameSelect, StartSpec};
use sdm_debug::reply::{Stop, StopReason};
use sdm_debug::{Command, Reply, TaskState};
use sdm_idset::IdSet;
use sdm_session::{Debug, Member};
use sdm_view::item::{Happening, Item, SetRow};
use sdm_view::render::set_text;

use super::programs::program_called;
use super::run::Said;
use super::tasks::TaskTable;
use super::{Shell, Verdict};
use crate::commands::{self, CommandError, PREDEFINED, Scope, SetExpr, SetName};

/// The most sets that have a name.
const NAMED_MAX: usize = 1024;

/// The sets of a session.
#[derive(Debug, Default)]
pub(super) struct Sets {
    /// Those of `defset`.
    pub(super) named: BTreeMap<String, IdSet>,
    /// The focus before this one.
    pub(super) previous: IdSet,
    /// The classes of the last answer, in the order in which they were shown.
    pub(super) classes: Vec<IdSet>,
    /// To whom something happened since the last command, in the order in which it was shown.
    pub(super) happened: Vec<IdSet>,
    /// Those that no command lets run.
    pub(super) held: IdSet,
}

/// What names mean now.
struct Now<'a> {
    tasks: &'a IdSet,
    focus: &'a IdSet,
    table: &'a TaskTable,
    sets: &'a Sets,
    members: &'a [Member],
    conditions: &'a [(String, IdSet)],
    programs: &'a [(IdSet, StartSpec)],
}

impl Scope for Now<'_> {
    fn tasks(&self) -> &IdSet {
        self.tasks
    }

    fn named(&self, name: &SetName) -> Result<IdSet, String> {
        Ok(match name {
            SetName::Word(word) => return self.word(word),
            SetName::Class(number) => {
                let index = *number as usize - 1;
                let found = self.sets.classes.get(index);
                return found.cloned().ok_or_else(|| match self.sets.classes.len() {
                    0 => "there is no answer with classes yet".to_owned(),
                    1 => "the last answer has one class only: @1".to_owned(),
                    count => format!("the last answer has the classes @1 to @{count}"),
                });
            }
            SetName::Host(pattern) => {
                let matching = self.members.iter().filter(|m| pattern.matches(&m.host));
                let found = IdSet::union_all(matching.map(|member| &member.tasks));
                if found.is_empty() {
                    return Err("no task is on such a host; `info nodes` shows all".to_owned());
                }
                found
            }
            SetName::At(function) => self.stopped_where(|stop| is_in(stop, function)),
            SetName::Place { file, line } => self.stopped_where(|stop| is_at(stop, file, *line)),
            SetName::Breakpoint(number) => self.stopped_where(
                |stop| matches!(stop.reason, StopReason::Breakpoint { number: n } if n == *number),
            ),
            SetName::If(expression) => {
                let mut known = self.conditions.iter();
                let found = known.find(|(text, _)| text == expression);
                found.map(|(_, set)| set.clone()).unwrap_or_default()
            }
        })
    }
}

impl Now<'_> {
    fn word(&self, word: &str) -> Result<IdSet, String> {
        Ok(match word {
            "stopped" => self.table.in_state(|state| *state == TaskState::Stopped),
            "running" => self.table.running(),
            "exited" => self
                .table
                .in_state(|state| matches!(state, TaskState::Exited(_))),
            "crashed" => self.crashed(),
            "lost" => self.table.lost().clone(),
            "silent" => self.table.silent().clone(),
            "focus" => self.focus.clone(),
            "prev" => self.sets.previous.clone(),
            word => {
                let found = self.sets.named.get(word).cloned();
                let found = found.or_else(|| program_called(self.programs, word));
                return found
                    .ok_or_else(|| format!("no set is called `@{word}`; `info sets` shows all"));
            }
        })
    }

    fn crashed(&self) -> IdSet {
        let killed = self
            .table
            .in_state(|state| matches!(state, TaskState::Signalled(_)));
        killed.union(&self.stopped_where(|stop| stop.reason.is_crash()))
    }

    fn stopped_where(&self, is: impl Fn(&Stop) -> bool) -> IdSet {
        self.table.where_last(|last| match last {
            Happening::Stopped(stop) => is(stop),
            _ => false,
        })
    }
}

/// By its whole name, by the part behind the last `::`, or as the runtime function that it is in.
fn is_in(stop: &Stop, function: &str) -> bool {
    let called = |name: &str| {
        let name = name.split('(').next().unwrap_or(name).trim();
        name == function || name.rsplit("::").next() == Some(function)
    };
    stop.inside.as_deref().is_some_and(called)
        || stop.frame.as_ref().is_some_and(|f| called(&f.function))
}

/// By its name or by a whole tail of its path.
fn is_at(stop: &Stop, file: &str, line: u32) -> bool {
    stop.frame.as_ref().is_some_and(|frame| {
        let tail = frame.path.strip_suffix(file);
        let by_path = tail.is_some_and(|head| head.is_empty() || head.ends_with('/'));
        frame.line == line && (frame.file == file || by_path)
    })
}

/// True where a value is what a program takes for true.
fn is_true(text: &str) -> bool {
    let text = text.trim().to_ascii_lowercase();
    let last = text.split_whitespace().next_back().unwrap_or("");
    if text.starts_with('<') || text.is_empty() {
        return false;
    }
    !matches!(
        text.as_str(),
        "false" | ".false." | "0 '\\000'" | "null" | "nullptr" | "nil" | "none"
    ) && !matches!(last, "0" | "0x0" | "-0")
        && text.parse::<f64>().ok().is_none_or(|number| number != 0.0)
}

impl<D: Debug> Shell<D> {
    /// The tasks that a set means now; tasks are asked where it depends on them.
    pub(super) fn resolve(&mut self, set: &SetExpr) -> Result<IdSet, CommandError> {
        self.resolve_among(set, &self.debug.tasks().clone())
    }

    /// The same where others than the session's tasks may be meant.
    pub(super) fn resolve_among(
        &mut self,
        set: &SetExpr,
        all: &IdSet,
    ) -> Result<IdSet, CommandError> {
        let mut conditions: Vec<(String, IdSet)> = Vec::new();
        for expression in set.conditions() {
            if conditions.iter().all(|(known, _)| known != expression) {
                let holds = self.where_it_holds(expression)?;
                conditions.push((expression.to_owned(), holds));
            }
        }
        let scope = Now {
            tasks: all,
            focus: &self.focus,
            table: &self.tasks,
            sets: &self.sets,
            members: self.debug.members(),
            conditions: &conditions,
            programs: &self.programs,
        };
        commands::resolve(set, &scope)
    }

    /// Asks every task that stands; who cannot say is named.
    fn where_it_holds(&mut self, expression: &str) -> Result<IdSet, CommandError> {
        let standing = self.tasks.in_state(|state| *state == TaskState::Stopped);
        let standing = standing.difference(self.tasks.lost());
        if standing.is_empty() {
            return Err(CommandError::new(format!(
                "@if:({expression}): no task stands that could be asked"
            )));
        }
        let running = self.tasks.running();
        if !running.is_empty() {
            let who = set_text(&running, 60);
            self.say(&format!("@if:({expression}): running, not asked: {who}"));
        }
        let command = Command::Evaluate {
            expression: expression.to_owned(),
        };
        let (_, open) = self.ask_quietly("@if", &standing, &command);
        let Some(mut open) = open else {
            return Err(CommandError::new("@if: no answer"));
        };
        let answers = std::mem::take(&mut open.gathered.ok);
        let mut holds = IdSet::new();
        for (tasks, reply) in &answers {
            if matches!(reply, Reply::Value(value) if is_true(&value.text)) {
                holds.union_with(tasks);
            }
        }
        let silent = open.gathered.failed.is_empty()
            && open.gathered.missing.is_empty()
            && open.gathered.lost.is_empty()
            && open.gathered.others.is_empty();
        if answers.is_empty() && !silent {
            let why = open.gathered.failed.first();
            let why = why.map_or("no answer in time", |(_, failure)| failure.text.trim_end());
            return Err(CommandError::new(format!("@if:({expression}): {why}")));
        }
        if !silent {
            self.show(&Item::Answer(open.gathered));
        }
        Ok(holds)
    }

    /// `focus [SET]`.
    pub(super) fn set_focus(&mut self, said: &Said<'_>, set: Option<&SetExpr>) -> Verdict {
        let Some(set) = set else {
            let text = set_text(&self.focus, 60);
            self.say(&format!("focus: {text} ({})", self.focus.len()));
            return Verdict::Done;
        };
        let focus = match self.resolve(set) {
            Ok(focus) => focus,
            Err(error) => return self.refuse(said.line, &error),
        };
        if focus.is_empty() {
            return self.complain(format!("focus: nobody is in `{}`", set.text()), "");
        }
        self.sets.previous = std::mem::replace(&mut self.focus, focus);
        if let Some(number) = set.thread() {
            let to = self.focus.clone();
            return self
                .ask(said.line, &to, &Command::SelectThread { number })
                .0;
        }
        Verdict::Done
    }

    /// `defset NAME SET`.
    pub(super) fn define_set(&mut self, said: &Said<'_>, name: String, set: &SetExpr) -> Verdict {
        let tasks = match self.resolve(set) {
            Ok(tasks) => tasks,
            Err(error) => return self.refuse(said.line, &error),
        };
        if self.sets.named.len() == NAMED_MAX && !self.sets.named.contains_key(&name) {
            return self.complain(format!("defset: {NAMED_MAX} sets have a name already"), "");
        }
        if tasks.is_empty() {
            self.say(&format!("@{name} is nobody"));
        }
        self.sets.named.insert(name, tasks);
        Verdict::Done
    }

    /// `undefset NAME`.
    pub(super) fn forget_set(&mut self, name: &str) -> Verdict {
        match self.sets.named.remove(name) {
            Some(_) => Verdict::Done,
            None => self.complain(format!("no set is called `@{name}`"), ""),
        }
    }

    /// `info sets`.
    pub(super) fn show_sets(&mut self) -> Verdict {
        let named = self.sets.named.iter();
        let mut rows: Vec<_> = named
            .map(|(name, tasks)| SetRow {
                name: name.clone(),
                tasks: tasks.clone(),
                what: String::new(),
            })
            .collect();
        for (name, what) in PREDEFINED {
            let set = SetExpr::parse(&format!("@{name}"), 0).expect("it is one of the list");
            rows.push(SetRow {
                name: (*name).to_owned(),
                tasks: self.resolve(&set).unwrap_or_default(),
                what: (*what).to_owned(),
            });
        }
        for (program, tasks) in self.several_programs() {
            rows.push(SetRow {
                name: program,
                tasks,
                what: "by program".to_owned(),
            });
        }
        for (number, tasks) in (1..).zip(self.sets.classes.iter().take(16)) {
            rows.push(SetRow {
                name: format!("{number}"),
                tasks: tasks.clone(),
                what: "a class of the last answer".to_owned(),
            });
        }
        if !self.sets.held.is_empty() {
            rows.push(SetRow {
                name: String::new(),
                tasks: self.sets.held.clone(),
                what: "held: no command lets them run".to_owned(),
            });
        }
        self.show(&Item::Sets(rows));
        Verdict::Done
    }

    /// Those of a set, or else those whom the line is for.
    pub(super) fn whom(
        &mut self,
        said: &Said<'_>,
        set: Option<&SetExpr>,
    ) -> Result<IdSet, Verdict> {
        match set.map(|set| self.resolve(set)) {
            None => Ok(said.to.clone()),
            Some(Ok(to)) => Ok(to),
            Some(Err(error)) => Err(self.refuse(said.line, &error)),
        }
    }

    /// `hold [SET]`, `release [SET]`.
    pub(super) fn hold(&mut self, said: &Said<'_>, set: Option<&SetExpr>, on: bool) -> Verdict {
        let to = match self.whom(said, set) {
            Ok(to) => to,
            Err(verdict) => return verdict,
        };
        if on {
            self.sets.held.union_with(&to);
        } else {
            self.sets.held.subtract(&to);
        }
        let running = self.tasks.running().intersection(&to);
        if on && !running.is_empty() {
            let who = set_text(&running, 60);
            self.say(&format!("held from their next stop on: {who}"));
        }
        Verdict::Done
    }

    /// Those of a run that are not held; who is held back is said.
    pub(super) fn not_held(&mut self, said: &Said<'_>) -> IdSet {
        let held = said.to.intersection(&self.sets.held);
        if held.is_empty() {
            return said.to.clone();
        }
        let who = set_text(&held, 60);
        self.say(&format!("held, not let run: {who} (`release` ends it)"));
        said.to.difference(&held)
    }

    /// Carries out one line with a thread of each task selected, and selects the one before again.
    pub(super) fn with_thread(
        &mut self,
        said: &Said<'_>,
        thread: u32,
        line: impl FnOnce(&mut Self, &Said<'_>) -> Verdict,
    ) -> Verdict {
        let before = self.selected_threads(said);
        let there = before.iter().filter(|(number, ..)| *number == thread);
        let mut done = IdSet::union_all(there.map(|(.., tasks)| tasks));
        let others = said.to.difference(&done);
        let mut verdict = Verdict::Done;
        if !others.is_empty() {
            let select = Command::SelectThread { number: thread };
            let (one, open) = self.ask_quietly(said.line, &others, &select);
            verdict = one;
            let Some(mut open) = open else {
                return verdict;
            };
            done.union_with(&open.done());
            open.gathered.ok.clear();
            self.show(&Item::Answer(open.gathered));
        }
        if done.is_empty() {
            return verdict;
        }
        let narrowed = Said {
            line: said.line,
            to: done.clone(),
            named: true,
        };
        let carried_out = line(self, &narrowed);
        let standing = self.tasks.in_state(|state| *state == TaskState::Stopped);
        for (number, level, tasks) in before {
            let tasks = tasks.intersection(&done).intersection(&standing);
            if number == thread || tasks.is_empty() || self.over.is_some() {
                continue;
            }
            self.ask_quietly(said.line, &tasks, &Command::SelectThread { number });
            if level > 0 {
                let frame = Command::SelectFrame(FrameSelect::Level(level));
                self.ask_quietly(said.line, &tasks, &frame);
            }
        }
        match carried_out {
            Verdict::Done => verdict,
            other => other,
        }
    }

    /// Which thread and frame of which tasks are selected.
    fn selected_threads(&mut self, said: &Said<'_>) -> Vec<(u32, u32, IdSet)> {
        let (_, open) = self.ask_quietly(said.line, &said.to, &Command::Threads);
        let answers = open.map(|open| open.gathered.ok).unwrap_or_default();
        let mut selected: Vec<(u32, u32, IdSet)> = Vec::new();
        for (tasks, reply) in answers {
            let Reply::Threads(threads) = reply else {
                continue;
            };
            let Some(current) = threads.iter().find(|thread| thread.current) else {
                continue;
            };
            let level = current.frame.as_ref().map_or(0, |frame| frame.level);
            let same = |(number, at, _): &&mut (u32, u32, IdSet)| {
                *number == current.number && *at == level
            };
            match selected.iter_mut().find(same) {
                Some((_, _, known)) => known.union_with(&tasks),
                None => selected.push((current.number, level, tasks)),
            }
        }
        selected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_true_as_the_program_takes_them() {
        for (text, expect) in [
            ("1", true),
            ("0", false),
            ("-3", true),
            ("true", true),
            ("false", false),
            (".TRUE.", true),
            (".FALSE.", false),
            ("0 '\\000'", false),
            ("97 'a'", true),
            ("(int *) 0x0", false),
            ("(int *) 0x7ffe", true),
            ("0x0", false),
            ("0.0", false),
            ("-0", false),
            ("0.5", true),
            ("nan(0x8)", true),
            ("<optimized out>", false),
        ] {
            assert_eq!(is_true(text), expect, "{text}");
        }
    }
}
