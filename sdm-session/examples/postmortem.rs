//! A front-end of its own, as small as one can be: runs a program as so many processes, and shows where all of them
//! stand when the first one crashes.
//!
//! usage: `postmortem COUNT PROGRAM [ARGUMENT...]`; it exits with 0 where all end well, with 1 where one does not.
//!
//! It sends commands of the debug protocol to sets of tasks by [`sdm_session`], and has what comes back made into text by
//! `sdm_view`. Nothing of the shell's language is needed.

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
use sdm_view::item::{Gathered, Item, View};
use sdm_view::render::{Names, Screen, Style, TextView};

/// How long those that have not crashed are given to stop, and then to say where they stand.
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
    let id = session.send(&all, &start, &SendOptions::default());
    let crashed =
        |answer: &ClassAnswer| matches!(answer, ClassAnswer::Reply(reply) if is_crash(reply));
    let answers = hear(&mut session, id, None, |class| crashed(&class.answer))?;
    if answers.iter().any(|class| crashed(&class.answer)) {
        show_stacks(&mut session, &all)?;
    }
    hear_the_rest(&mut session);
    session.close(EndPolicy::KillStarted)?;
    let well = |class: &Class| {
        matches!(
            class.answer,
            ClassAnswer::Reply(Reply::Exited { code: 0, .. })
        )
    };
    let ended_well = IdSet::union_all(
        answers
            .iter()
            .filter(|class| well(class))
            .map(|class| &class.tasks),
    );
    Ok(ExitCode::from(u8::from(ended_well != all)))
}

/// The folder with `sdm-master` and `sdm-server`: this program's own, or, for an example, the one above it.
fn binaries() -> Result<PathBuf> {
    let program = std::env::current_exe().context("find this program")?;
    let folders = program.ancestors().skip(1);
    let found = folders
        .take(2)
        .find(|folder| folder.join("sdm-server").exists());
    let found = found.with_context(|| format!("no sdm-server beside {}", program.display()))?;
    Ok(found.to_owned())
}

/// True of an answer to `Start` that ends the run and not the program as it was meant.
fn is_crash(reply: &Reply) -> bool {
    let by_signal = |stop: &Stop| matches!(stop.reason, StopReason::Signal { .. });
    match reply {
        Reply::Stopped(stop) => by_signal(stop),
        Reply::Signalled { .. } => true,
        _ => false,
    }
}

/// The answers to a command until everybody has answered, one of them is what is looked for, or `wait` is over; prints
/// meanwhile what the program prints.
///
/// # Errors
/// The session has ended.
fn hear(
    session: &mut Session,
    id: CommandId,
    wait: Option<Duration>,
    is_enough: impl Fn(&Class) -> bool,
) -> Result<Vec<Class>> {
    let deadline = wait.map(|wait| Instant::now() + wait);
    let mut answers = Vec::new();
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        match session.next_event(left) {
            Some(SessionEvent::Answer {
                id: of, classes, ..
            }) if of == id => {
                let enough = classes.iter().any(&is_enough);
                answers.extend(classes);
                if enough {
                    return Ok(answers);
                }
            }
            Some(SessionEvent::Complete { id: of }) if of == id => return Ok(answers),
            Some(SessionEvent::Events(events)) => {
                events.iter().for_each(|(tasks, event)| print(tasks, event))
            }
            Some(SessionEvent::Ended(why)) => bail!("the session ended: {why}"),
            Some(_) => {}
            None => return Ok(answers),
        }
    }
}

/// Prints what is still on its way: output travels on a lane of its own, and may come behind the end of the run.
fn hear_the_rest(session: &mut Session) {
    const QUIET: Duration = Duration::from_secs(1);
    while let Some(event) = session.next_event(Some(QUIET)) {
        match event {
            SessionEvent::Events(events) => {
                events.iter().for_each(|(tasks, event)| print(tasks, event))
            }
            SessionEvent::Ended(_) => return,
            _ => {}
        }
    }
}

/// Prints what tasks printed, once where several printed the same; what nobody reads is no loss.
fn print(tasks: &IdSet, event: &Event) {
    let Event::Output { stream, bytes } = event else {
        return;
    };
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let text = [format!("[{tasks}] ").as_bytes(), line].concat();
        let _ = match stream {
            Stream::Stdout => std::io::stdout().write_all(&text),
            Stream::Stderr => std::io::stderr().write_all(&text),
        };
    }
}

/// Stops all who still run, and shows where everybody stands: one tree, merged on its way up.
fn show_stacks(session: &mut Session, all: &IdSet) -> Result<()> {
    let options = SendOptions {
        timeout: Some(ANSWER_WAIT),
        ..SendOptions::default()
    };
    let id = session.send(all, &Command::Interrupt, &options);
    hear(session, id, Some(ANSWER_WAIT), |_| false)?;
    let question = Command::Stacks { full: false };
    let options = SendOptions {
        rule: rule_of(&question),
        ..options
    };
    let id = session.send(all, &question, &options);
    let mut gathered = Gathered {
        command: question.name().to_owned(),
        to: all.clone(),
        ..Gathered::default()
    };
    for Class { tasks, answer } in hear(session, id, Some(ANSWER_WAIT), |_| false)? {
        match answer {
            ClassAnswer::Reply(reply) => gathered.ok.push((tasks, reply)),
            ClassAnswer::Merged(bytes) => gathered.merged.push((tasks, bytes)),
            ClassAnswer::Failed(failure) => gathered.failed.push((tasks, failure)),
            ClassAnswer::Others => gathered.others.union_with(&tasks),
        }
    }
    let mut view = TextView::new(Plain, Names::ranks());
    view.show(Duration::ZERO, &Item::Answer(gathered));
    Ok(())
}

/// Standard output as a screen without colours.
struct Plain;

impl Screen for Plain {
    fn write(&mut self, text: &str) {
        // Nobody may read it any more.
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
