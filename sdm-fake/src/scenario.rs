//! Scenarios: the script of tasks in text form, and its values for each task.

use std::ops::RangeInclusive;
use std::time::Duration;

use sdm_debug::{Failure, TaskState};
use sdm_idset::{IdSet, TaskId};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::parse::{self, Wrong};

/// Maximum length of a scenario's text, in bytes.
pub const SCENARIO_BYTES_MAX: usize = 1 << 20;

/// The script for the tasks of a [`super::FakeBackend`].
///
/// The text form is lines `key = value` under sections `[all]` and `[tasks SET]`. Lines before the first section apply
/// to all tasks. Empty lines and those that begin with `#` are ignored. If several sections contain a task, the last
/// one that has the key counts.
///
/// ```text
/// seed = 7                          chooses within ranges of delays; the same seed, the same run
/// [all]
/// start = 5ms..20ms                 how long a start or an attach takes
/// answer = 0                        how long every query takes; also NAME as `answer evaluate`
/// step = 1ms                        how long a step or a finish takes
/// interrupt = 2ms                   how long an interrupt takes; `never` refuses
/// shut_down = 0                     how long the end takes
/// continue = 10ms breakpoint        what ends a run: breakpoint | exit N | signal NAME (ends by
/// continue = 5ms exit 0               it) | stop NAME (stopped by it) | never; the first
///                                     run takes the first line, the last line repeats
/// stack = main m.c:9 > solve s.c:3  the main thread, outermost first; several lines are classes:
///                                     task t takes line t % lines
/// thread = worker w.c:7             a thread more
/// helpers = 2                       threads without a user frame
/// value n = {rank%4}                evaluates to; {rank} is the task, {n} counts printed lines
/// local i = 3                       a local variable
/// arg level = 2                     an argument of the innermost function
/// fail locals = no frame            the command's name, and gdb's words
/// mute = evaluate,stacks            never answered; `all` for everything
/// output = 10ms it {n} of {rank}    a line on stdout while it runs; `stderr` likewise
/// output_lines = 1                  how many of them at once
/// stdin = echo                      or `ignore`
/// gdb_dies = 50ms                   after the start
/// ```
#[derive(Clone, Debug, Default)]
pub struct Scenario {
    pub(super) seed: u64,
    pub(super) sections: Vec<Section>,
}

/// The error for an invalid scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("scenario, line {line}: {what}")]
pub struct ScenarioError {
    /// The number of the line, from 1.
    pub line: usize,
    /// The error in the line.
    pub what: Wrong,
}

/// A duration, or a range from which one is chosen.
pub(super) type Delay = RangeInclusive<Duration>;

#[derive(Clone, Debug, Default)]
pub(super) struct Section {
    /// The tasks of the section; `None` for all tasks.
    pub(super) tasks: Option<IdSet>,
    pub(super) delays: Vec<(DelayKey, Delay)>,
    pub(super) refuses_interrupt: Option<bool>,
    pub(super) runs: Vec<RunEnd>,
    pub(super) stacks: Vec<Vec<Place>>,
    pub(super) threads: Vec<Vec<Place>>,
    pub(super) helpers: Option<u32>,
    pub(super) values: Vec<(String, String)>,
    pub(super) locals: Vec<(String, String)>,
    pub(super) args: Vec<(String, String)>,
    pub(super) fails: Vec<(String, Failure)>,
    pub(super) mute: Option<Vec<String>>,
    pub(super) outputs: [Option<(Delay, String)>; 2],
    pub(super) output_lines: Option<u32>,
    pub(super) stdin_echo: Option<bool>,
}

/// The operation that a delay of the script applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DelayKey {
    Start,
    Answer,
    /// The answer to a command with this name.
    AnswerTo(String),
    Step,
    Interrupt,
    ShutDown,
    GdbDies,
}

/// The end of a run, if any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RunEnd {
    Never,
    After(Delay, End),
}

/// The way in which a run ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    Breakpoint,
    Exit(i32),
    Signal(String),
    Stop(String),
}

/// A frame of a script: a place in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) function: String,
    pub(super) file: String,
    pub(super) line: u32,
}

impl Scenario {
    /// Parses a scenario; see [`Scenario`] for the text.
    ///
    /// # Errors
    /// [`ScenarioError`]: the first invalid line, and the reason.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        parse::parse(text)
    }

    /// The value of the last section that contains the task and has a value; `None` if none has.
    pub(super) fn pick<'a, T: 'a>(
        &'a self,
        task: TaskId,
        get: impl Fn(&'a Section) -> Option<T>,
    ) -> Option<T> {
        self.of(task).rev().find_map(get)
    }

    /// The sections that contain the task, in order.
    fn of(&self, task: TaskId) -> impl DoubleEndedIterator<Item = &Section> {
        self.sections
            .iter()
            .filter(move |s| s.tasks.as_ref().is_none_or(|tasks| tasks.contains(task)))
    }

    /// The delay of `key`, chosen by the seed, the task and `salt`; `None` if the script has none.
    pub(super) fn delay(&self, task: TaskId, key: &DelayKey, salt: u64) -> Option<Duration> {
        let delay = self.pick(task, |s| {
            let mut delays = s.delays.iter().rev();
            delays.find(|(k, _)| k == key).map(|(_, delay)| delay)
        })?;
        Some(self.choose(task, delay, salt))
    }

    /// Delay of the answer to a command of this name; 0 if the script has none.
    pub(super) fn answer_delay(&self, task: TaskId, name: &str, salt: u64) -> Duration {
        self.delay(task, &DelayKey::AnswerTo(name.to_owned()), salt)
            .or_else(|| self.delay(task, &DelayKey::Answer, salt))
            .unwrap_or_default()
    }

    /// Chooses a duration within a delay's range.
    pub(super) fn choose(&self, task: TaskId, delay: &Delay, salt: u64) -> Duration {
        let width = delay.end().saturating_sub(*delay.start());
        let width = u64::try_from(width.as_micros()).unwrap_or(u64::MAX);
        let mut key = [0; 12];
        key[..4].copy_from_slice(&task.0.to_le_bytes());
        key[4..].copy_from_slice(&salt.to_le_bytes());
        let hash = xxh3_64_with_seed(&key, self.seed);
        *delay.start() + Duration::from_micros(hash % width.saturating_add(1).max(1))
    }

    /// The end of the task's `index`th run.
    pub(super) fn run_end(&self, task: TaskId, index: usize) -> RunEnd {
        let runs = self.pick(task, |s| (!s.runs.is_empty()).then_some(&s.runs));
        match runs {
            Some(runs) => runs[index.min(runs.len() - 1)].clone(),
            None => RunEnd::After(Duration::ZERO..=Duration::ZERO, End::Exit(0)),
        }
    }

    /// The state in which the task's program ends by itself, from its run `index` on; `None` if it never ends.
    pub(super) fn own_end(&self, task: TaskId, index: usize) -> Option<TaskState> {
        let mut index = index;
        loop {
            match self.run_end(task, index) {
                RunEnd::Never => return None,
                RunEnd::After(_, End::Exit(code)) => return Some(TaskState::Exited(code)),
                RunEnd::After(_, End::Signal(name)) => return Some(TaskState::Signalled(name)),
                RunEnd::After(..) if self.is_last_run(task, index) => {
                    return Some(TaskState::Exited(0));
                }
                RunEnd::After(..) => index += 1,
            }
        }
    }

    /// True if the task's run `index` and all later ones end in the same way.
    pub(super) fn is_last_run(&self, task: TaskId, index: usize) -> bool {
        let runs = self.pick(task, |s| (!s.runs.is_empty()).then_some(&s.runs));
        runs.is_none_or(|runs| index + 1 >= runs.len())
    }

    /// The main thread's frames, outermost first; never empty.
    pub(super) fn stack(&self, task: TaskId) -> Vec<Place> {
        let stacks = self.pick(task, |s| (!s.stacks.is_empty()).then_some(&s.stacks));
        match stacks {
            Some(stacks) => {
                let classes = u32::try_from(stacks.len()).expect("bounded by the text");
                stacks[(task.0 % classes) as usize].clone()
            }
            None => vec![Place {
                function: "main".to_owned(),
                file: "main.c".to_owned(),
                line: 10,
            }],
        }
    }

    /// The other threads with a user frame.
    pub(super) fn threads(&self, task: TaskId) -> &[Vec<Place>] {
        self.pick(task, |s| (!s.threads.is_empty()).then_some(&s.threads[..]))
            .unwrap_or_default()
    }

    /// The last value of each name in a list of the script, with its placeholders filled in.
    pub(super) fn named(
        &self,
        task: TaskId,
        list: impl Fn(&Section) -> &[(String, String)],
    ) -> Vec<(String, String)> {
        let mut all: Vec<(String, String)> = Vec::new();
        for (name, text) in self.of(task).flat_map(list) {
            let text = fill(text, task, 0);
            match all.iter_mut().find(|(known, _)| known == name) {
                Some(known) => known.1 = text,
                None => all.push((name.clone(), text)),
            }
        }
        all
    }

    /// The scripted failure of the command of this name; `None` if it succeeds.
    pub(super) fn failure(&self, task: TaskId, name: &str) -> Option<Failure> {
        self.pick(task, |s| {
            let mut fails = s.fails.iter().rev();
            fails.find(|(n, _)| n == name).map(|(_, f)| f.clone())
        })
    }

    /// True if a command with this name is never answered.
    pub(super) fn is_mute(&self, task: TaskId, name: &str) -> bool {
        self.pick(task, |s| s.mute.as_ref())
            .is_some_and(|names| names.iter().any(|n| n == "all" || n == name))
    }
}

/// Replaces `{rank}`, `{rank%K}` and `{n}` in a text.
pub(super) fn fill(text: &str, task: TaskId, n: u64) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let Some((hole, after)) = after.split_once('}') else {
            out.push('{');
            rest = after;
            continue;
        };
        match hole.strip_prefix("rank%").map(str::parse::<u32>) {
            _ if hole == "rank" => out.push_str(&task.0.to_string()),
            _ if hole == "n" => out.push_str(&n.to_string()),
            Some(Ok(classes)) if classes > 0 => out.push_str(&(task.0 % classes).to_string()),
            _ => {
                out.push('{');
                out.push_str(hole);
                out.push('}');
            }
        }
        rest = after;
    }
    out.push_str(rest);
    out
}
