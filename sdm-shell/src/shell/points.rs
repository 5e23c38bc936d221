//! Breakpoints: one number per command, with its set.

use sdm_debug::command::BreakSpec;
use sdm_debug::{Command, FailureCode, Reply};
use sdm_idset::IdSet;
use sdm_session::Debug;
use sdm_view::item::{Gathered, Item};

use super::again::{DeleteAll, Pending, Question, is_yes};
use super::run::Said;
use super::{Shell, Verdict};
use crate::commands::Point;

/// The most lines that are done at one breakpoint.
const COMMANDS_MAX: usize = 100;

impl<D: Debug> Shell<D> {
    /// `break`, `watch`, `catch` and their kin.
    pub(super) fn insert_point(&mut self, said: &Said<'_>, point: Point) -> Verdict {
        let point = match point {
            Point::Break(spec) => Point::Break(BreakSpec {
                pending: spec.pending || self.breaks.pending == Some(true),
                ..spec
            }),
            point => point,
        };
        let asked = point.clone();
        let number = self.breaks.next_number();
        let (verdict, open) = self.ask_quietly(said.line, &said.to, &point.command(number));
        let Some(mut open) = open else {
            return verdict;
        };
        open.gathered.made = point.made(number);
        let done = open.done();
        if !done.is_empty() {
            self.breaks.add(number, point, done);
        }
        for (tasks, reply) in &open.gathered.ok {
            if let Reply::Breakpoint(place) = reply {
                self.breaks.placed(place, tasks);
            }
        }
        let differ = self.only_programs_differ(&open);
        if let Point::Break(spec) = asked
            && self.asks()
            && self.breaks.pending.is_none()
            && is_nowhere(&open.gathered)
        {
            let (line, to) = (said.line.to_owned(), said.to.clone());
            self.asking = Some(Question::Pending(Pending { line, to, spec }));
        }
        self.show(&Item::Answer(open.gathered));
        if differ { Verdict::Done } else { verdict }
    }

    /// The answer to the question whether a breakpoint waits for its place.
    pub(super) fn answer_pending(&mut self, asked: Pending, answer: &str) -> Verdict {
        if !is_yes(answer) {
            return Verdict::Done;
        }
        let said = Said {
            line: &asked.line,
            to: asked.to,
            named: false,
        };
        let spec = BreakSpec {
            pending: true,
            ..asked.spec
        };
        self.insert_point(&said, Point::Break(spec))
    }

    /// `condition N [COND]`.
    pub(super) fn set_condition(
        &mut self,
        said: &Said<'_>,
        number: u32,
        condition: Option<String>,
    ) -> Verdict {
        let command = |number| Command::BreakCondition {
            number,
            condition: condition.clone(),
        };
        let verdict = self.change_point(said, number, command, |point| {
            point.set_condition(condition.clone());
        });
        if condition.is_none() && verdict == Verdict::Done {
            let number = self.number_meant(number);
            self.say(&format!("breakpoint {number} now unconditional"));
        }
        verdict
    }

    /// `ignore N COUNT`.
    pub(super) fn set_ignore(&mut self, said: &Said<'_>, number: u32, count: u32) -> Verdict {
        let command = |number| Command::BreakIgnore { number, count };
        let verdict = self.change_point(said, number, command, |point| match point {
            Point::Break(spec) => spec.ignore = count,
            Point::Watch(spec) => spec.ignore = count,
            Point::Catch(_) => {}
        });
        if verdict == Verdict::Done {
            let number = self.number_meant(number);
            let crossings = match count {
                0 => "stops at the next crossing".to_owned(),
                1 => "passed by at the next crossing".to_owned(),
                count => format!("passed by at the next {count} crossings"),
            };
            self.say(&format!("breakpoint {number}: {crossings}, on each task"));
        }
        verdict
    }

    /// `commands [N...]`: what follows up to `end` is done there.
    pub(super) fn begin_commands(&mut self, numbers: &[u32]) -> Verdict {
        let last = self.breaks.last_number();
        let numbers = if numbers.is_empty() { &[0] } else { numbers };
        let mut known = Vec::new();
        for number in numbers {
            let number = if *number == 0 { last } else { *number };
            if self.breaks.find(number).is_none() {
                return self.no_such_breakpoint(number);
            }
            known.push(number);
        }
        self.collect_for(known);
        Verdict::Done
    }

    /// The lines between `commands` and `end` are there.
    pub(super) fn set_commands(&mut self, numbers: &[u32], lines: &[String]) -> Verdict {
        if lines.len() > COMMANDS_MAX {
            return self.complain(format!("commands: more than {COMMANDS_MAX} lines"), "");
        }
        let said = Said {
            line: "commands",
            to: self.focus.clone(),
            named: false,
        };
        let mut verdict = Verdict::Done;
        for number in numbers {
            let command = |number| Command::BreakCommands {
                number,
                lines: lines.to_vec(),
            };
            let one = self.change_point(&said, *number, command, |point| {
                if let Point::Break(spec) = point {
                    spec.commands = lines.to_vec();
                }
            });
            if one != Verdict::Done {
                verdict = one;
            }
        }
        verdict
    }

    fn change_point(
        &mut self,
        said: &Said<'_>,
        number: u32,
        command: impl Fn(u32) -> Command,
        change: impl Fn(&mut Point),
    ) -> Verdict {
        let number = self.number_meant(number);
        let Some(to) = self.tasks_of(said, number) else {
            return self.no_such_breakpoint(number);
        };
        let (verdict, done) = self.ask(said.line, &to, &command(number));
        if !done.is_empty() {
            self.breaks.change(number, change);
        }
        verdict
    }

    /// `$bpnum`, which is 0 here, is the last one made.
    fn number_meant(&self, number: u32) -> u32 {
        match number {
            0 => self.breaks.last_number(),
            number => number,
        }
    }

    /// `delete [N...]`; a person is asked before all of them go.
    pub(super) fn delete_breakpoints(&mut self, said: &Said<'_>, numbers: &[u32]) -> Verdict {
        if numbers.is_empty() && self.asks() && !self.breaks.rows().is_empty() {
            self.asking = Some(Question::Delete(DeleteAll {
                line: said.line.to_owned(),
                to: said.to.clone(),
                named: said.named,
            }));
            return Verdict::Done;
        }
        self.delete_now(said, numbers)
    }

    /// The answer to the question whether all breakpoints may go.
    pub(super) fn answer_delete(&mut self, all: &DeleteAll, answer: &str) -> Verdict {
        if !is_yes(answer) {
            self.say("not deleted");
            return Verdict::Done;
        }
        let said = Said {
            line: &all.line,
            to: all.to.clone(),
            named: all.named,
        };
        self.delete_now(&said, &[])
    }

    fn delete_now(&mut self, said: &Said<'_>, numbers: &[u32]) -> Verdict {
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
            self.breaks.enable(number, &done, enabled);
        }
        verdict
    }

    /// `info breakpoints`, `info watchpoints`.
    pub(super) fn show_breakpoints(&mut self, watchpoints: bool) -> Verdict {
        let rows = self.breaks.rows().iter();
        let rows = rows.filter(|row| !watchpoints || self.breaks.is_watchpoint(row.number));
        let rows: Vec<_> = rows.cloned().collect();
        if watchpoints && rows.is_empty() {
            self.show(&Item::Text("No watchpoints.".to_owned()));
            return Verdict::Done;
        }
        self.show(&Item::Breakpoints(rows));
        Verdict::Done
    }

    fn numbers_or_all(&self, numbers: &[u32]) -> Vec<u32> {
        if numbers.is_empty() {
            return self.breaks.rows().iter().map(|row| row.number).collect();
        }
        let meant = numbers.iter().map(|number| self.number_meant(*number));
        meant.collect()
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

/// True where nobody has the place of a breakpoint: where gdb asks whether it is to wait for one. Known by gdb's words,
/// as its records have nothing else for it.
fn is_nowhere(gathered: &Gathered) -> bool {
    const BEGINNINGS: [&str; 4] = [
        "No source file named ",
        "No line ",
        "No compiled code for line ",
        "No symbol table is loaded",
    ];
    let is_about_the_place = |text: &str| {
        let no_function = text.starts_with("Function \"") && text.contains(" not defined");
        no_function || BEGINNINGS.iter().any(|words| text.starts_with(words))
    };
    gathered.ok.is_empty()
        && !gathered.failed.is_empty()
        && gathered.failed.iter().all(|(_, failure)| {
            failure.code == FailureCode::Gdb && is_about_the_place(&failure.text)
        })
}
