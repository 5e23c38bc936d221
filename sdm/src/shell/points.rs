//! Breakpoints: one number per command, with its set.

use sdm_debug::command::BreakSpec;
use sdm_debug::{Command, FailureCode, Reply};
use sdm_idset::IdSet;

use super::run::Said;
use super::{Shell, Verdict};
use crate::commands::BreakRequest;
use crate::session::Debug;
use crate::view::{BreakRow, Item};

impl<D: Debug> Shell<D> {
    /// `break`, `tbreak`, `hbreak`.
    pub(super) fn insert_breakpoint(&mut self, said: &Said<'_>, asked: BreakRequest) -> Verdict {
        let number = self.breaks.next_number();
        let spec = BreakSpec {
            number,
            location: asked.location.clone(),
            condition: asked.condition.clone(),
            temporary: asked.temporary,
            pending: self.breaks.pending,
            ignore: 0,
            hardware: asked.hardware,
            ..BreakSpec::default()
        };
        let (verdict, open) = self.ask_quietly(said.line, &said.to, &Command::BreakInsert(spec));
        let Some(open) = open else {
            return verdict;
        };
        let done = open.done();
        if !done.is_empty() {
            self.breaks.add(BreakRow {
                number,
                tasks: done,
                location: asked.location,
                condition: asked.condition,
                temporary: asked.temporary,
                enabled: true,
                pending: IdSet::new(),
                places: Vec::new(),
                hits: 0,
            });
        }
        for (tasks, reply) in &open.gathered.ok {
            if let Reply::Breakpoint(place) = reply {
                self.breaks.placed(place, tasks);
            }
        }
        self.show(&Item::Answer(open.gathered));
        verdict
    }

    /// `delete [N...]`.
    pub(super) fn delete_breakpoints(&mut self, said: &Said<'_>, numbers: &[u32]) -> Verdict {
        let mut verdict = Verdict::Done;
        for number in self.numbers_or_all(numbers) {
            let Some(to) = self.tasks_of(said, number) else {
                verdict = self.no_such_breakpoint(number);
                continue;
            };
            let (one, open) = self.ask_quietly(said.line, &to, &Command::BreakDelete { number });
            let Some(mut open) = open else {
                return one;
            };
            // Where the task or its gdb is gone, so is the breakpoint.
            let gone = |code| {
                matches!(
                    code,
                    FailureCode::NoSuchThing | FailureCode::NotRunning | FailureCode::GdbDead
                )
            };
            let (gone, failed): (Vec<_>, Vec<_>) = std::mem::take(&mut open.gathered.failed)
                .into_iter()
                .partition(|(_, failure)| gone(failure.code));
            open.gathered.failed = failed;
            let gone = IdSet::union_all(gone.iter().map(|(tasks, _)| tasks));
            self.breaks.remove(number, &gone.union(&open.done()));
            if open.gathered.failed.is_empty() && open.gathered.missing.is_empty() {
                continue;
            }
            verdict = one;
            self.show(&Item::Answer(open.gathered));
        }
        verdict
    }

    /// `enable [N...]`, `disable [N...]`.
    pub(super) fn enable_breakpoints(
        &mut self,
        said: &Said<'_>,
        numbers: &[u32],
        enabled: bool,
    ) -> Verdict {
        let mut verdict = Verdict::Done;
        for number in self.numbers_or_all(numbers) {
            let Some(to) = self.tasks_of(said, number) else {
                verdict = self.no_such_breakpoint(number);
                continue;
            };
            let command = Command::BreakEnable { number, enabled };
            let (one, done) = self.ask(said.line, &to, &command);
            if one != Verdict::Done {
                verdict = one;
            }
            if let Some(row) = self.breaks.find(number)
                && row.tasks.is_subset(&done)
            {
                row.enabled = enabled;
            }
        }
        verdict
    }

    /// `info breakpoints`.
    pub(super) fn show_breakpoints(&mut self) -> Verdict {
        let rows = self.breaks.rows().to_vec();
        self.show(&Item::Breakpoints(rows));
        Verdict::Done
    }

    fn numbers_or_all(&self, numbers: &[u32]) -> Vec<u32> {
        if numbers.is_empty() {
            return self.breaks.rows().iter().map(|row| row.number).collect();
        }
        numbers.to_vec()
    }

    /// Whom a command about a breakpoint goes to: all who have it, or those of them named.
    fn tasks_of(&mut self, said: &Said<'_>, number: u32) -> Option<IdSet> {
        let row = self.breaks.find(number)?;
        let tasks = if said.named {
            row.tasks.intersection(&said.to)
        } else {
            row.tasks.clone()
        };
        Some(tasks).filter(|tasks| !tasks.is_empty())
    }

    fn no_such_breakpoint(&mut self, number: u32) -> Verdict {
        self.complain(format!("No breakpoint number {number}."), "")
    }
}
