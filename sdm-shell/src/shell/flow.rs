//! Whole sessions: start, lines, end; and the one that only shows stacks.

use sdm_core::CommandId;
use sdm_debug::command::{AttachSpec, StartSpec, StopAt};
use sdm_debug::{Command, EndPolicy};
use sdm_idset::IdSet;
use sdm_session::Debug;
use sdm_view::item::Item;

use super::gather::join;
use super::input::{Control, LineSource, ScriptLine};
use super::run::answer;
use super::wait::{Goal, Waited};
use super::{Over, Shell, Verdict};

/// How deep files may name files.
pub(super) const SOURCE_DEPTH_MAX: u32 = 16;

/// Why a look at a job came to nothing, where a person did not wait for it.
const INTERRUPTED: &str = "interrupted; every process was left as it was";

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The exit code of `sdm`.
    pub code: u8,
    /// What becomes of the tasks.
    pub policy: EndPolicy,
    /// Why, where it was not asked for.
    pub reason: Option<String>,
}

/// What `sdm stacks` found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StacksCode {
    /// All are in the same place.
    Agree = 0,
    /// Some differ.
    Differ = 1,
    /// Not all could be looked at.
    Error = 2,
    /// A person has given it up.
    Interrupted = 130,
}

impl StacksCode {
    /// Why it is so, where that was not asked for.
    #[must_use]
    pub fn reason(self) -> Option<String> {
        (self == Self::Interrupted).then(|| INTERRUPTED.to_owned())
    }
}

impl<D: Debug> Shell<D> {
    /// Starts programs, each on its tasks, and brings them to `main`; false where that failed.
    pub fn start(&mut self, programs: Vec<(IdSet, StartSpec)>) -> bool {
        self.programs.clone_from(&programs);
        self.show_start(&programs);
        if let Some(lack) = self.lack_of_room(&programs) {
            self.complain(lack, "`sdm run --force` starts them all the same");
            return false;
        }
        let held = programs.iter().any(|(_, spec)| spec.stop == StopAt::Main);
        let ids = self.send_starts(programs);
        let goal = if held {
            Goal::Held(ids.clone())
        } else {
            Goal::Started(ids.clone())
        };
        let waited = self.wait_for(&goal, "start", None);
        self.finish_start(&ids, waited)
    }

    pub(super) fn show_start(&mut self, programs: &[(IdSet, StartSpec)]) {
        let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
        let words = |spec: &StartSpec| {
            let words = std::iter::once(&spec.program).chain(&spec.args);
            words.map(text).collect::<Vec<_>>()
        };
        let mut shown = Vec::new();
        for (tasks, spec) in programs {
            join(&mut shown, tasks, words(spec));
        }
        let item = Item::Start {
            session: self.debug.id().to_string(),
            tasks: self.debug.tasks().clone(),
            programs: shown,
            pids: Vec::new(),
        };
        self.show(&item);
    }

    pub(super) fn send_starts(&mut self, programs: Vec<(IdSet, StartSpec)>) -> Vec<CommandId> {
        let all = self.debug.tasks().clone();
        let programs = programs.into_iter();
        let programs = programs.map(|(tasks, spec)| (tasks.intersection(&all), spec));
        let ids = programs
            .filter(|(tasks, _)| !tasks.is_empty())
            .map(|(tasks, spec)| self.send("start", &tasks, &Command::Start(spec)))
            .collect();
        self.begin_input();
        ids
    }

    pub(super) fn finish_start(&mut self, ids: &[CommandId], waited: Waited) -> bool {
        self.show_held();
        if waited == Waited::Over {
            return false;
        }
        let mut well = !ids.is_empty();
        let mut all_stand = well;
        for id in ids {
            if let Some(open) = self.open.find(*id)
                && !open.complete
            {
                open.unattended = true;
                well &= waited == Waited::Reached;
                all_stand = false;
                continue;
            }
            well &= self.conclude(*id).is_some_and(|open| !open.has_failed());
        }
        self.fresh = well && all_stand;
        well
    }

    /// Carries out lines until there are none left or the session is over. A script ends at its
    /// first line that fails.
    pub fn run_lines(&mut self, source: &mut dyn LineSource) -> Ending {
        while self.over.is_none() && !self.warned {
            let prompt = self.prompt();
            source.request(&prompt, self.asking.is_some());
            let line = match self.next_line(prompt, source) {
                Some(Control::Line(line)) => line,
                Some(Control::Cleared) => {
                    self.abandon_input();
                    continue;
                }
                Some(Control::Eof) if self.collecting.is_some() => ScriptLine {
                    text: "end".to_owned(),
                    ..ScriptLine::default()
                },
                Some(Control::Eof) if self.options.interactive => {
                    self.end_of_input();
                    continue;
                }
                Some(Control::Eof) => break,
                _ => continue,
            };
            let verdict = self.carry_out_line(&line);
            if verdict != Verdict::Done && !self.options.interactive && self.over.is_none() {
                return self.ending_of_failure(verdict, &line);
            }
        }
        self.show_held();
        self.show_gone();
        self.ending()
    }

    pub(super) fn carry_out_line(&mut self, line: &ScriptLine) -> Verdict {
        let text = line.text.trim();
        if self.options.echo && !line.origin.is_empty() && !text.is_empty() {
            let line = text.to_owned();
            self.show(&Item::Echo { line });
        }
        // In a script an empty line is nothing: only a person repeats by it.
        if !line.origin.is_empty() && text.is_empty() {
            return Verdict::Done;
        }
        self.execute(&line.text)
    }

    fn ending_of_failure(&mut self, verdict: Verdict, line: &ScriptLine) -> Ending {
        self.show_gone();
        let (code, what) = match verdict {
            Verdict::GivenUp => (130, "given up"),
            _ => (123, "failed"),
        };
        let reason = format!("`{}` {what} ({})", line.text.trim(), line.origin);
        Ending {
            code,
            policy: EndPolicy::KillStarted,
            reason: Some(reason),
        }
    }

    pub(super) fn ending(&self) -> Ending {
        let (code, policy, reason) = match &self.over {
            None => (0, EndPolicy::KillStarted, None),
            Some(Over::Quit(policy)) => (0, *policy, None),
            Some(Over::Ended(why)) => (122, EndPolicy::KillStarted, Some(why.clone())),
            Some(Over::Terminated(signal)) => {
                let reason = format!("signal {signal}");
                (128 + signal, EndPolicy::KillStarted, Some(reason))
            }
            Some(Over::Unread) => (1, EndPolicy::KillStarted, None),
        };
        Ending {
            code,
            policy,
            reason,
        }
    }

    /// How a session ends whose start failed.
    #[must_use]
    pub fn failed_start(&self) -> Ending {
        match &self.over {
            Some(Over::Terminated(_) | Over::Quit(_)) => self.ending(),
            Some(Over::Ended(why)) => Ending {
                code: 124,
                policy: EndPolicy::KillStarted,
                reason: Some(why.clone()),
            },
            _ => Ending {
                code: 124,
                policy: EndPolicy::KillStarted,
                reason: Some("the program could not be started".to_owned()),
            },
        }
    }

    /// `source FILE`.
    pub(super) fn source(&mut self, file: &str) -> Verdict {
        if self.source_depth == SOURCE_DEPTH_MAX {
            return self.complain(format!("{file}: files name files too deep"), "");
        }
        let text = match sdm_core::files::read_text(file.as_ref()) {
            Ok(text) => text,
            Err(error) => return self.complain(format!("{file}: {error}"), ""),
        };
        self.source_depth += 1;
        let mut verdict = Verdict::Done;
        for line in ScriptLine::of_file(file, &text) {
            verdict = self.carry_out_line(&line);
            if self.over.is_some() {
                break;
            }
            if verdict != Verdict::Done {
                let said = format!("{}: `{}` failed", line.origin, line.text.trim());
                self.complain(said, "");
                break;
            }
        }
        self.source_depth -= 1;
        verdict
    }

    /// Attaches; says who could not be attached to, and gives those who could.
    pub(super) fn attach_quietly(&mut self, spec: AttachSpec, to: &IdSet) -> (Verdict, IdSet) {
        let item = Item::Start {
            session: self.debug.id().to_string(),
            tasks: to.clone(),
            programs: Vec::new(),
            pids: spec.pids.clone(),
        };
        self.show(&item);
        if let Some(lack) = self.lack_of_room_to_attach(&spec, to) {
            let verdict = self.complain(lack, "`--force` attaches to them all the same");
            return (verdict, IdSet::new());
        }
        let (verdict, open) = self.ask_quietly("attach", to, &Command::Attach(spec));
        let attached = match open {
            Some(open) => {
                let attached = open.done();
                self.show_unless_all_well(open);
                attached
            }
            None => IdSet::new(),
        };
        (verdict, attached)
    }

    /// Attaches to processes without changing them, shows their merged stacks, and leaves them.
    pub fn show_stacks_of(&mut self, spec: AttachSpec, full: bool) -> StacksCode {
        let all = self.debug.tasks().clone();
        self.interrupted = false;
        let (verdict, attached) = self.attach_quietly(spec, &all);
        let mut code = if verdict == Verdict::Done {
            StacksCode::Agree
        } else {
            StacksCode::Error
        };
        if attached.is_empty() || self.over.is_some() {
            return self.code_of_nothing();
        }
        if !self.interrupted {
            let (verdict, open) = self.ask_quietly("stacks", &attached, &Command::Stacks { full });
            if verdict != Verdict::Done {
                code = StacksCode::Error;
            }
            if let Some(open) = open {
                let stacks = open.gathered.stacks();
                if stacks.is_some_and(|stacks| !stacks.agree()) && code == StacksCode::Agree {
                    code = StacksCode::Differ;
                }
                self.show(&answer(open.gathered, full));
            }
        }
        let whole = !self.interrupted;
        let (verdict, open) = self.ask_quietly("detach", &attached, &Command::Detach);
        if verdict != Verdict::Done {
            code = StacksCode::Error;
        }
        if let Some(open) = open {
            self.show_unless_all_well(open);
        }
        if whole { code } else { StacksCode::Interrupted }
    }

    /// The exit code where there are no stacks.
    pub(super) fn code_of_nothing(&self) -> StacksCode {
        if self.interrupted && self.over.is_none() {
            StacksCode::Interrupted
        } else {
            StacksCode::Error
        }
    }

    pub(super) fn show_unless_all_well(&mut self, open: super::open::Open) {
        if open.has_failed() {
            self.show(&Item::Answer(open.gathered));
        }
    }
}
