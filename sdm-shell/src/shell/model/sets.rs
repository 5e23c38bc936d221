//! Sets of tasks at the prompt: the focus, the named sets, and the current meaning of a name.
use std::collections::BTreeMap;

use sdm_debug::TaskState;
use sdm_debug::command::StartSpec;
use sdm_debug::reply::{Stop, StopReason};
use sdm_idset::IdSet;
use sdm_session::SessionMember;
use sdm_view::item::Happening;

use super::Model;
use super::job::program_called;
use super::tasks::TaskTable;
use crate::commands::{self, CommandError, NameError, Scope, SetExpr, SetName};

/// The sets of a session.
#[derive(Debug, Default)]
pub(crate) struct Sets {
    /// The tasks of a line without a set in front.
    pub(crate) focus: IdSet,
    /// The sets defined by `defset`.
    pub(crate) named: BTreeMap<String, IdSet>,
    /// The focus before this one.
    pub(crate) previous: IdSet,
    /// The classes of the last answer, in the displayed order.
    pub(crate) classes: Vec<IdSet>,
    /// The sets of tasks with an event since the last command, in display order.
    pub(crate) happened: Vec<IdSet>,
    /// The tasks under `freeze`, which no command resumes.
    pub(crate) held: IdSet,
}

impl Sets {
    /// Sets the meaning of `@1`, `@2`, .... An answer without classes changes nothing.
    pub(crate) fn note_classes(&mut self, classes: Vec<IdSet>) {
        if !classes.is_empty() {
            self.classes = classes;
        }
    }

    /// Resets the sets for another job with these tasks.
    pub(super) fn forget_job(&mut self, tasks: &IdSet) {
        self.classes.clear();
        self.happened.clear();
        // Tasks that the new job does not have leave the focus.
        for set in [&mut self.focus, &mut self.previous] {
            let left = set.intersection(tasks);
            *set = if left.is_empty() { tasks.clone() } else { left };
        }
    }
}

impl Model {
    /// Resolves a set to its current tasks. `all` are the allowed tasks, `conditions` the tasks for which
    /// each condition holds, `members` the servers of the session.
    ///
    /// # Errors
    /// A [`CommandError`] that marks the part of the set that cannot be resolved.
    pub(crate) fn resolve(
        &self,
        set: &SetExpr,
        all: &IdSet,
        conditions: &[(String, IdSet)],
        members: &[SessionMember],
    ) -> Result<IdSet, CommandError> {
        let scope = Now {
            tasks: all,
            focus: &self.sets.focus,
            table: &self.tasks,
            sets: &self.sets,
            members,
            conditions,
            programs: &self.job.programs,
            in_place_of_stops: &self.job.looked_at,
        };
        commands::resolve(set, &scope)
    }
}

/// The current meaning of set names.
struct Now<'a> {
    tasks: &'a IdSet,
    focus: &'a IdSet,
    table: &'a TaskTable,
    sets: &'a Sets,
    members: &'a [SessionMember],
    conditions: &'a [(String, IdSet)],
    programs: &'a [(IdSet, StartSpec)],
    in_place_of_stops: &'a IdSet,
}

impl Scope for Now<'_> {
    fn tasks(&self) -> &IdSet {
        self.tasks
    }

    fn named(&self, name: &SetName) -> Result<IdSet, NameError> {
        Ok(match name {
            SetName::Word(word) => return self.word(word),
            SetName::Class(number) => {
                let index = *number as usize - 1;
                let found = self.sets.classes.get(index);
                let none = NameError::NoClass(self.sets.classes.len());
                return found.cloned().ok_or(none);
            }
            SetName::Host(pattern) => {
                let matching = self.members.iter().filter(|m| pattern.matches(&m.host));
                let found = IdSet::union_all(matching.map(|member| &member.tasks));
                if found.is_empty() {
                    return Err(NameError::NoHost);
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
    fn word(&self, word: &str) -> Result<IdSet, NameError> {
        Ok(match word {
            "stopped" => {
                let looked_at = self.in_place_of_stops.intersection(&self.table.running());
                let standing = self.table.in_state(|state| *state == TaskState::Stopped);
                standing.union(&looked_at)
            }
            "running" => self.table.running(),
            "exited" => self
                .table
                .in_state(|state| matches!(state, TaskState::Exited(_))),
            "crashed" => self.crashed(),
            "lost" => self.table.lost(),
            "silent" => self.table.silent().clone(),
            "focus" => self.focus.clone(),
            "prev" => self.sets.previous.clone(),
            word => {
                let found = self.sets.named.get(word).cloned();
                let found = found.or_else(|| program_called(self.programs, word));
                return found.ok_or_else(|| NameError::Unknown(word.to_owned()));
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

/// True for a stop in this function: by its full name, by the part after the last `::`, or as the called runtime
/// function.
fn is_in(stop: &Stop, function: &str) -> bool {
    let called = |name: &str| {
        let name = name.split('(').next().unwrap_or(name).trim();
        name == function || name.rsplit("::").next() == Some(function)
    };
    stop.inside.as_deref().is_some_and(called)
        || stop.frame.as_ref().is_some_and(|f| called(&f.function))
}

/// True for a stop at this line of a file, named by its name or a tail of its path.
fn is_at(stop: &Stop, file: &str, line: u32) -> bool {
    stop.frame.as_ref().is_some_and(|frame| {
        let tail = frame.path.strip_suffix(file);
        let by_path = tail.is_some_and(|head| head.is_empty() || head.ends_with('/'));
        frame.line == line && (frame.file == file || by_path)
    })
}
