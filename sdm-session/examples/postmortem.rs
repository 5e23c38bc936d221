//! A minimal front-end: it runs a program as a number of processes, and shows the stacks of all when the
//! first one crashes.
//!
//! usage: `postmortem COUNT PROGRAM [ARGUMENT...]`. The exit code is 0 if all processes exit with 0, and 1
//! otherwise.
//!
//! Commands of the debug protocol are sent to sets of tasks by [`sdm_session`], and `sdm_view` converts the
//! answers into text. The shell's language is not needed.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use sdm_core::CommandId;
use sdm_debug::command::{StartSpec, StopAt};
use sdm_debug::event::Stream;
use sdm_debug::reply::{Stop, StopReason};
use sdm_debug::rules::rule_of;
use sdm_debug::{Command, EndPolicy, Event, Reply};
use sdm_idset::IdSet;
use sdm_session::{
    Class, ClassAnswer, DebugSession, SendOptions, Session, SessionConfig, SessionEvent,
};
use sdm_view::coalesce::Distinct;
use sdm_view::item::{Gathered, Item, View};
use sdm_view::render::{Names, Screen, Style, TextView};

/// Time limit for the other processes to stop, then for all to report their stacks, then for the end of
/// their output.
const ANSWER_WAIT: Duration = Duration::from_secs(10);

fn main() -> Result<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    let count = words.next().and_then(|word| word.to_str()?.parse().ok());
    let (Some(count @ 1..), Some(program)) = (count, words.next()) else {
        bail!("usage: postmortem COUNT PROGRAM [ARGUMENT...]");
    };
    let start = Command::Start(StartSpec {
        program: program.into_vec(),
        args: words.map(OsStringExt::into_vec).collect(),
        stop: StopAt::Nowhere,
        ..StartSpec::default()
    });
    let config = SessionConfig {
        binaries: Some(binaries()?),
        ..SessionConfig::local(count)
    };
    let mut session = Session::start(&config, &mut |_| {}).context("start the servers")?;
    let all = session.tasks().clone();
    let start = session.send(&all, &start, &SendOptions::default());
    let mut heard = Heard::default();
    heard.listen(&mut session, None, |heard| {
        heard.is_over(start) || heard.answers(start).any(is_crash)
    })?;
    if heard.answers(start).any(is_crash) {
        show_stacks(&mut session, &mut heard, start, &all)?;
    }
    heard.listen(&mut session, Some(ANSWER_WAIT), |heard| {
        heard.is_all_printed(start)
    })?;
    session.close(EndPolicy::KillStarted)?;
    let ended_well = heard.answered(start, |reply| {
        matches!(reply, Reply::Exited { code: 0, .. })
    });
    Ok(ExitCode::from(u8::from(ended_well != all)))
}

/// The directory of `sdm-master` and `sdm-server`: this program's own or, for an example, its parent.
fn binaries() -> Result<PathBuf> {
    let program = std::env::current_exe().context("find this program")?;
    let folders = program.ancestors().skip(1);
    let found = folders
        .take(2)
        .find(|folder| folder.join("sdm-server").exists());
    let found = found.with_context(|| format!("no sdm-server beside {}", program.display()))?;
    Ok(found.to_owned())
}

/// True for an answer to `Start` that is a crash and not a normal exit.
fn is_crash(reply: &Reply) -> bool {
    let by_signal = |stop: &Stop| matches!(stop.reason, StopReason::Signal { .. });
    match reply {
        Reply::Stopped(stop) => by_signal(stop),
        Reply::Signalled { .. } => true,
        _ => false,
    }
}

/// The events of the session so far.
#[derive(Default)]
struct Heard {
    /// The answers to each command, in the order of their arrival.
    classes: HashMap<CommandId, Vec<Class>>,
    /// Completed commands.
    over: HashSet<CommandId>,
    /// The tasks whose stream has ended, by stream.
    streams_ended: HashMap<Stream, IdSet>,
    /// The tasks whose output before a stop has arrived in full, by the command that the stop answered.
    printed: HashMap<CommandId, IdSet>,
}

impl Heard {
    /// Handles events until the condition holds, or `wait` is over. No other function takes events.
    ///
    /// # Errors
    /// The session is over.
    fn listen(
        &mut self,
        session: &mut Session,
        wait: Option<Duration>,
        is_enough: impl Fn(&Self) -> bool,
    ) -> Result<()> {
        let deadline = wait.map(|wait| Instant::now() + wait);
        while !is_enough(self) {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            match session.next_event(left) {
                Some(SessionEvent::Answer { id, classes, .. }) => {
                    self.classes.entry(id).or_default().extend(classes);
                }
                Some(SessionEvent::Complete { id }) => {
                    self.over.insert(id);
                }
                Some(SessionEvent::Events(events)) => {
                    for (tasks, event) in &events {
                        self.take(tasks, event);
                    }
                }
                Some(SessionEvent::Ended(why)) => bail!("the session ended: {why}"),
                Some(_) => {}
                None => return Ok(()),
            }
        }
        Ok(())
    }

    fn take(&mut self, tasks: &IdSet, event: &Event) {
        let known = match event {
            Event::Output { stream, bytes } => return print(tasks, *stream, bytes),
            Event::OutputEnd { stream } => self.streams_ended.entry(*stream).or_default(),
            Event::OutputComplete { command } => {
                self.printed.entry(CommandId(*command)).or_default()
            }
            _ => return,
        };
        known.union_with(tasks);
    }

    fn is_over(&self, id: CommandId) -> bool {
        self.over.contains(&id)
    }

    fn classes(&self, id: CommandId) -> &[Class] {
        self.classes.get(&id).map_or(&[], Vec::as_slice)
    }

    fn answers(&self, id: CommandId) -> impl Iterator<Item = &Reply> {
        let classes = self.classes(id).iter();
        classes.filter_map(|class| match &class.answer {
            ClassAnswer::Reply(reply) => Some(reply),
            _ => None,
        })
    }

    /// The tasks that have answered with a matching reply.
    fn answered(&self, id: CommandId, is_meant: impl Fn(&Reply) -> bool) -> IdSet {
        let meant = self.classes(id).iter().filter(|class| match &class.answer {
            ClassAnswer::Reply(reply) => is_meant(reply),
            _ => false,
        });
        IdSet::union_all(meant.map(|class| &class.tasks))
    }

    /// True once all output of the tasks whose run has ended has arrived. Output travels on a lane of its
    /// own and can follow the end of a run. For an ended program both streams end; a stopped one has an
    /// event that follows its output.
    fn is_all_printed(&self, start: CommandId) -> bool {
        let stand = self.answered(start, |reply| matches!(reply, Reply::Stopped(_)));
        let gone = self.answered(start, |reply| {
            matches!(reply, Reply::Exited { .. } | Reply::Signalled { .. })
        });
        let has = |known: Option<&IdSet>, tasks: &IdSet| {
            tasks.is_empty() || known.is_some_and(|known| tasks.is_subset(known))
        };
        let ended = |stream| has(self.streams_ended.get(&stream), &gone);
        has(self.printed.get(&start), &stand) && ended(Stream::Stdout) && ended(Stream::Stderr)
    }
}

/// Prints each line of output with its tasks in front; equal output is merged already. Write errors are ignored.
fn print(tasks: &IdSet, stream: Stream, bytes: &[u8]) {
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let text = [format!("[{tasks}] ").as_bytes(), line].concat();
        let _ = match stream {
            Stream::Stdout => std::io::stdout().write_all(&text),
            Stream::Stderr => std::io::stderr().write_all(&text),
        };
    }
}

/// Stops all running tasks, which ends their runs, and shows the stacks of all as one tree, merged by the
/// servers.
fn show_stacks(
    session: &mut Session,
    heard: &mut Heard,
    start: CommandId,
    all: &IdSet,
) -> Result<()> {
    let options = SendOptions {
        timeout: Some(ANSWER_WAIT),
        ..SendOptions::default()
    };
    session.send(all, &Command::Interrupt, &options);
    heard.listen(session, Some(ANSWER_WAIT), |heard| heard.is_over(start))?;
    let question = Command::Stacks { full: false };
    let options = SendOptions {
        rule: rule_of(&question),
        ..options
    };
    let id = session.send(all, &question, &options);
    heard.listen(session, Some(ANSWER_WAIT), |heard| heard.is_over(id))?;
    let mut gathered = Gathered {
        command: question.name().to_owned(),
        to: all.clone(),
        ..Gathered::default()
    };
    let mut replies = Distinct::default();
    for class in heard.classes.remove(&id).unwrap_or_default() {
        gathered.add(class, &mut replies);
    }
    let mut view = TextView::new(Plain, Names::ranks());
    view.show(Duration::ZERO, &Item::Answer(gathered));
    Ok(())
}

/// Standard output as a screen without colours.
struct Plain;

impl Screen for Plain {
    fn write(&mut self, text: &str) {
        // A failed write is ignored: the output is not read any more.
        let _ = std::io::stdout().write_all(text.as_bytes());
    }

    fn status(&mut self, _line: Option<&str>) {}

    fn pass(&mut self, _stderr: bool, bytes: &[u8]) {
        let _ = std::io::stdout().write_all(bytes);
    }

    fn style(&self) -> Style {
        Style::PLAIN
    }
}
