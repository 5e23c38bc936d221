//! One line is carried out.

use std::time::Duration;

use sdm_core::CommandId;
use sdm_debug::rules::rule_of;
use sdm_debug::{Command, EndPolicy};
use sdm_idset::IdSet;
use sdm_session::Debug;
use sdm_view::item::{Gathered, Happening, Item, Problem};

use super::again::Question;
use super::wait::{Goal, Waited};
use super::{Over, Shell, Verdict};
use crate::commands::{self, CommandError, SetExpr, UserCommand as C};

/// How long interrupted tasks are given to say where they stopped.
const INTERRUPT_WAIT: Duration = Duration::from_secs(10);

/// To whom a line goes, and how it was written.
pub(super) struct Said<'a> {
    pub(super) line: &'a str,
    /// Those in front of the command, or those in focus.
    pub(super) to: IdSet,
    /// True where they stood in front of the command.
    pub(super) named: bool,
}

impl<D: Debug> Shell<D> {
    /// Carries out one line.
    pub fn execute(&mut self, line: &str) -> Verdict {
        match self.asking.take() {
            Some(Question::Quit) => return self.answer_quit(line.trim()),
            Some(Question::Again(again)) => return self.answer_again(again, line.trim()),
            Some(Question::Delete(all)) => return self.answer_delete(&all, line.trim()),
            Some(Question::Pending(asked)) => return self.answer_pending(asked, line.trim()),
            None => {}
        }
        if self.collecting.is_some() {
            return self.collect(line.trim());
        }
        if let Some(verdict) = self.execute_defined(line) {
            return verdict;
        }
        let parsed = match commands::parse(line) {
            Ok(parsed) => parsed,
            Err(error) => return self.refuse(line, &error),
        };
        if parsed.command == (C::Nothing { comment: false }) {
            return match self.last.clone() {
                Some(last) => self.execute(&last),
                None => Verdict::Done,
            };
        }
        if let Some(verdict) = self.refuse_jobless(&parsed.command) {
            return verdict;
        }
        let to = match &parsed.to {
            None => Ok(self.focus.clone()),
            Some(set) => self.resolve(set),
        };
        let to = match to {
            Ok(to) => to,
            Err(error) => return self.refuse(line, &error),
        };
        if !matches!(parsed.command, C::Nothing { .. }) {
            self.last = parsed.repeats.then(|| line.to_owned());
        }
        if let Some(set) = parsed.to.as_ref().filter(|_| to.is_empty()) {
            self.say(&format!("nobody is in `{}`", set.text()));
            return Verdict::Done;
        }
        let said = Said {
            line: line.trim(),
            to,
            named: parsed.to.is_some(),
        };
        self.sets.happened.clear();
        let lists = matches!(parsed.command, C::List(_));
        let thread = parsed.to.as_ref().and_then(SetExpr::thread);
        let verdict = match thread {
            None => self.carry_out(&said, parsed.command),
            Some(thread) => self.with_thread(&said, thread, |shell, said| {
                shell.carry_out(said, parsed.command)
            }),
        };
        self.show_held();
        self.lists_on = lists;
        // The stops that a run ended with are what it answered.
        let happened = std::mem::take(&mut self.sets.happened);
        self.note_classes(happened);
        verdict
    }

    pub(super) fn carry_out(&mut self, said: &Said<'_>, command: C) -> Verdict {
        match command {
            C::Nothing { .. } => Verdict::Done,
            C::Point(point) => self.insert_point(said, point),
            C::Condition { number, condition } => self.set_condition(said, number, condition),
            C::Ignore { number, count } => self.set_ignore(said, number, count),
            C::Commands(numbers) => self.begin_commands(&numbers),
            C::Delete(numbers) => self.delete_breakpoints(said, &numbers),
            C::Enable { numbers, enabled } => self.enable_breakpoints(said, &numbers, enabled),
            C::Breakpoints { watchpoints } => self.show_breakpoints(watchpoints),
            C::SetPending(on) => {
                self.breaks.pending = on;
                Verdict::Done
            }
            C::Ask(command) => self.ask_of_user(said, &command),
            C::Run {
                command,
                background,
            } => self.run(said, &command, background),
            C::Interrupt => self.interrupt(said),
            C::Kill => self.end_tasks(said, &Command::Kill),
            C::Attach(set) => self.attach_more(said, &set),
            C::Detach(set) => self.detach(said, set.as_ref()),
            C::Quit => self.quit(),
            C::Focus(set) => self.set_focus(said, set.as_ref()),
            C::Ranks(set) => self.show_ranks(said, set.as_ref()),
            C::DefineSet { name, set } => self.define_set(said, name, &set),
            C::ForgetSet(name) => self.forget_set(&name),
            C::Hold { to, on } => self.hold(said, to.as_ref(), on),
            C::About(topic) => self.show_topic(topic),
            C::Stacks { full } => self.stacks(said, full),
            C::More => self.more(),
            C::List(what) => self.list(said, &what),
            C::Outliers(expression) => self.outliers(said, expression),
            C::Stats(expression) => self.stats(said, expression),
            C::Compare(expression) => self.compare(said, expression),
            C::Diagnose(samples) => self.diagnose(said, samples),
            C::Display(display) => self.display(said, display),
            C::Displays => self.show_all_displays(),
            C::ThreadApply { threads, command } => self.thread_apply(said, &threads, *command),
            C::Define(name) => self.define(&name),
            C::ShowDefined(name) => self.show_defined(name.as_deref()),
            C::System(command) => self.system(&command),
            C::Echo(text) => {
                self.show(&Item::Text(text));
                Verdict::Done
            }
            C::Undisplay(numbers) => self.undisplay(&numbers),
            C::Report(file) => self.write_report_to(&file),
            C::Save(file) => self.save(&file),
            C::Load(file) => self.source(&file),
            C::Dump(file) => self.dump(said, &file),
            C::Job(command) => self.about_the_job(said, command),
            C::Outside(command) => self.outside(&command),
            C::Send { to, text, eof } => self.send_input(said, &to, &text, eof),
            C::Output(on) => self.switch_output(on),
            C::Wait { to, seconds } => self.wait_command(said, to.as_ref(), seconds),
            C::Source(file) => self.source(&file),
            C::Help(word) => match commands::help(word.as_deref()) {
                Ok(text) => {
                    self.show(&Item::Text(text));
                    Verdict::Done
                }
                Err(error) => self.complain(error.message, ""),
            },
        }
    }

    /// Shows why a line is no command.
    pub(super) fn refuse(&mut self, line: &str, error: &CommandError) -> Verdict {
        self.show(&Item::Error(Problem {
            message: error.message.clone(),
            line: error.at.map(|_| line.to_owned()),
            at: error.at,
            hint: String::new(),
        }));
        Verdict::Failed
    }

    /// Lets tasks run and, unless told otherwise, waits for the end of the run.
    pub(super) fn run(&mut self, said: &Said<'_>, command: &Command, background: bool) -> Verdict {
        let to = self.not_held(said);
        if to.is_empty() {
            return Verdict::Done;
        }
        let id = self.send(said.line, &to, command);
        self.await_run(said.line, &to, &[id], background)
    }

    /// Waits for the end of runs, unless it is not to be waited for, and shows what came of them.
    pub(super) fn await_run(
        &mut self,
        line: &str,
        to: &IdSet,
        ids: &[CommandId],
        background: bool,
    ) -> Verdict {
        let given_up = if background {
            Some(Verdict::Done)
        } else {
            let waited = self.wait_for(&Goal::Run(ids.to_vec()), line, None);
            self.not_reached(waited)
        };
        if let Some(verdict) = given_up {
            for id in ids {
                if let Some(open) = self.open.find(*id) {
                    open.unattended = true;
                }
            }
            return verdict;
        }
        let open = ids.iter().filter_map(|id| self.open.get(*id));
        let stopped = IdSet::union_all(open.map(|open| &open.stopped));
        let ended = self.ended_among(&stopped);
        self.settle(&ended);
        self.show_held();
        let mut verdict = Verdict::Done;
        for id in ids {
            let one = self.verdict_of(*id);
            if one != Verdict::Done {
                verdict = one;
            }
        }
        self.show_displays(to);
        verdict
    }

    /// What it means that waiting did not come to its end.
    fn not_reached(&mut self, waited: Waited) -> Option<Verdict> {
        match waited {
            Waited::Reached | Waited::TimedOut => None,
            Waited::GivenUp => {
                self.show_held();
                Some(Verdict::GivenUp)
            }
            Waited::Over => {
                self.show_held();
                Some(Verdict::Failed)
            }
        }
    }

    /// Shows what came of a command that is over, and whether that is a failure.
    fn verdict_of(&mut self, id: CommandId) -> Verdict {
        match self.conclude(id) {
            Some(open) if open.has_failed() => Verdict::Failed,
            _ => Verdict::Done,
        }
    }

    /// Asks a question, waits for the answers and shows them; gives who answered.
    pub(super) fn ask(&mut self, said: &str, to: &IdSet, command: &Command) -> (Verdict, IdSet) {
        let (verdict, open) = self.ask_quietly(said, to, command);
        let Some(open) = open else {
            return (verdict, IdSet::new());
        };
        self.show(&Item::Answer(open.gathered.clone()));
        (verdict, open.done())
    }

    /// The same without showing the answers.
    pub(super) fn ask_quietly(
        &mut self,
        said: &str,
        to: &IdSet,
        command: &Command,
    ) -> (Verdict, Option<super::open::Open>) {
        self.ask_merged(said, to, command, (rule_of(command), Vec::new()))
    }

    /// The same, the answers merged by a rule with its parameters.
    pub(super) fn ask_merged(
        &mut self,
        said: &str,
        to: &IdSet,
        command: &Command,
        rule: (u16, Vec<u8>),
    ) -> (Verdict, Option<super::open::Open>) {
        let id = self.send_merged(said, to, command, rule);
        let goal = match command {
            Command::Detach => Goal::Left(id),
            _ => Goal::Answered(id),
        };
        let waited = self.wait_for(&goal, said, None);
        let Some(mut open) = self.open.remove(id) else {
            return (Verdict::Failed, None);
        };
        match waited {
            Waited::Reached => {}
            Waited::TimedOut => open.give_up("the tree gave no answer"),
            Waited::GivenUp => open.give_up("given up"),
            Waited::Over => open.give_up("the session is over"),
        }
        let verdict = match (waited, open.has_failed()) {
            (Waited::GivenUp, _) => Verdict::GivenUp,
            (_, true) => Verdict::Failed,
            (_, false) => Verdict::Done,
        };
        (verdict, Some(open))
    }

    /// `stacks [--full]`: all of them where it is full.
    fn stacks(&mut self, said: &Said<'_>, full: bool) -> Verdict {
        let (verdict, open) = self.ask_quietly(said.line, &said.to, &Command::Stacks { full });
        if let Some(open) = open {
            self.show(&answer(open.gathered, full));
        }
        verdict
    }

    /// `more`: the last answer, as a whole.
    fn more(&mut self) -> Verdict {
        match self.foldable.clone() {
            Some(item) => {
                self.show(&Item::Whole(Box::new(item)));
                Verdict::Done
            }
            None => self.complain("more: there is no answer yet", ""),
        }
    }

    fn interrupt(&mut self, said: &Said<'_>) -> Verdict {
        let running = self.tasks.running().intersection(&said.to);
        let to = if said.named || running.is_empty() {
            said.to.clone()
        } else {
            running
        };
        let (verdict, done) = self.ask(said.line, &to, &Command::Interrupt);
        let until = Some(self.now() + INTERRUPT_WAIT);
        let waited = self.wait_for(&Goal::Still(done), said.line, until);
        self.settle(&IdSet::new());
        self.not_reached(waited).unwrap_or(verdict)
    }

    /// `kill` and `detach`.
    pub(super) fn end_tasks(&mut self, said: &Said<'_>, command: &Command) -> Verdict {
        let live = self.tasks.live().intersection(&said.to);
        let to = if said.named || live.is_empty() {
            said.to.clone()
        } else {
            live
        };
        let (verdict, open) = self.ask_quietly(said.line, &to, command);
        let Some(open) = open else {
            return verdict;
        };
        let done = open.plainly_done();
        let killed = *command == Command::Kill;
        let what = if killed {
            Happening::Signalled("SIGKILL".to_owned())
        } else {
            Happening::Detached
        };
        let known = self.tasks.in_state(|state| !state.is_live());
        self.happened(&done.difference(&known), what, false);
        if killed {
            self.settle(&done);
        }
        self.show_held();
        self.show(&Item::Answer(open.gathered));
        verdict
    }

    fn quit(&mut self) -> Verdict {
        let live = self.tasks.live();
        if self.asks() && self.options.is_ours() && !live.is_empty() {
            self.asking = Some(Question::Quit);
        } else {
            self.over.get_or_insert(Over::Quit(EndPolicy::KillStarted));
        }
        Verdict::Done
    }

    /// The end of input asks like `quit`; a second one is the answer.
    pub(super) fn end_of_input(&mut self) {
        match self.asking.take() {
            Some(Question::Quit) => {
                self.over.get_or_insert(Over::Quit(EndPolicy::KillStarted));
            }
            Some(Question::Again(_)) => self.say("not started anew"),
            Some(Question::Delete(_)) => self.say("not deleted"),
            Some(Question::Pending(_)) => {}
            None => {
                self.quit();
            }
        }
    }

    fn show_ranks(&mut self, said: &Said<'_>, set: Option<&SetExpr>) -> Verdict {
        let to = match self.whom(said, set) {
            Ok(to) => to,
            Err(verdict) => return verdict,
        };
        self.show_held();
        let rows = self.rank_rows(&to);
        self.show(&Item::Ranks(rows));
        Verdict::Done
    }

    fn switch_output(&mut self, on: Option<bool>) -> Verdict {
        match on {
            Some(on) => {
                self.show_held();
                self.output.on = on;
            }
            None => {
                let word = if self.output.on { "on" } else { "off" };
                self.show(&Item::Notice(format!("output is {word}")));
            }
        }
        Verdict::Done
    }

    fn wait_command(
        &mut self,
        said: &Said<'_>,
        set: Option<&SetExpr>,
        seconds: Option<u32>,
    ) -> Verdict {
        let to = match self.whom(said, set) {
            Ok(to) => to,
            Err(verdict) => return verdict,
        };
        let until = seconds.map(|s| self.now() + Duration::from_secs(s.into()));
        let waited = self.wait_for(&Goal::Still(to.clone()), said.line, until);
        if let Some(verdict) = self.not_reached(waited) {
            return verdict;
        }
        let ended = self.ended_among(&to);
        if waited == Waited::Reached {
            self.settle(&ended);
        }
        self.show_held();
        let running = to.intersection(&self.tasks.running());
        if !running.is_empty() {
            let text = sdm_view::render::set_text(&running, 60);
            self.show(&Item::Notice(format!(
                "still running: {text} ({})",
                running.len()
            )));
        }
        Verdict::Done
    }
}

/// An answer as an item; `whole` where it is not to be folded.
pub(super) fn answer(gathered: Gathered, whole: bool) -> Item {
    let item = Item::Answer(gathered);
    if whole {
        Item::Whole(Box::new(item))
    } else {
        item
    }
}
