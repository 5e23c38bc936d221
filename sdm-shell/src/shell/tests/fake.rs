//! A session that follows a script, on a virtual clock.
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use sdm_core::CommandId;
use sdm_core::ids::SessionId;
use sdm_debug::reply::{Frame, Stop, StopReason, Value, Variable};
use sdm_debug::{Command, Event, Failure, FailureCode, Reply};
use sdm_idset::IdSet;
use sdm_session::{Class, ClassAnswer, DebugSession, SendOptions, SessionEvent};
use sdm_view::item::View;
use sdm_view::render::{Names, RecordedScreen, TextView};

use crate::{
    Application, Control, Ending, LocalMachine, LocalProcess, Options, Script, ScriptLine, Shell,
};

/// Scripted results of a command, each with its delay.
pub(in crate::shell) type Responder =
    Box<dyn FnMut(CommandId, &IdSet, &Command) -> Vec<(u64, Said)>>;

/// An event of the session, or an input of the user.
pub(in crate::shell) enum Said {
    Event(SessionEvent),
    Control(Control),
}

pub(in crate::shell) struct Fake {
    tasks: IdSet,
    now: Rc<Cell<Duration>>,
    next: u64,
    queue: VecDeque<(Duration, Said)>,
    respond: Responder,
    controls: Sender<Control>,
    pub(in crate::shell) sent: Rc<RefCell<Vec<String>>>,
}

impl DebugSession for Fake {
    fn id(&self) -> SessionId {
        SessionId([7; 8])
    }

    fn tasks(&self) -> &IdSet {
        &self.tasks
    }

    fn send(&mut self, to: &IdSet, command: &Command, _options: &SendOptions) -> CommandId {
        self.next += 1;
        let id = CommandId(self.next);
        self.sent
            .borrow_mut()
            .push(format!("{to} {}", command.name()));
        for (after, said) in with_output_complete((self.respond)(id, to, command)) {
            let at = self.now.get() + Duration::from_millis(after);
            let place = self.queue.iter().position(|(known, _)| *known > at);
            let place = place.unwrap_or(self.queue.len());
            self.queue.insert(place, (at, said));
        }
        id
    }

    fn cancel(&mut self, id: CommandId) {
        self.sent.borrow_mut().push(format!("cancel {id}"));
        let event = Said::Event(SessionEvent::Complete { id });
        self.queue.push_front((self.now.get(), event));
    }

    fn next_event(&mut self, wait: Option<Duration>) -> Option<SessionEvent> {
        let until = wait.map(|wait| self.now.get() + wait);
        let due = self.queue.front().map(|(at, _)| *at);
        match (due, until) {
            (None, None) => panic!("the shell would wait for ever"),
            (Some(at), until) if until.is_none_or(|until| at <= until) => {
                self.now.set(self.now.get().max(at));
                match self.queue.pop_front().map(|(_, said)| said) {
                    Some(Said::Event(event)) => Some(event),
                    Some(Said::Control(control)) => {
                        self.controls.send(control).unwrap();
                        Some(SessionEvent::Woken)
                    }
                    None => None,
                }
            }
            (_, until) => {
                self.now.set(until.unwrap());
                None
            }
        }
    }
}

/// A machine with files only.
struct OnlyFiles;

impl LocalMachine for OnlyFiles {
    fn read_text(&mut self, file: &Path) -> io::Result<String> {
        std::fs::read_to_string(file)
    }

    fn write_file(&mut self, file: &Path, contents: &[u8]) -> io::Result<()> {
        std::fs::write(file, contents)
    }

    fn without_links(&mut self, file: &Path) -> PathBuf {
        file.to_owned()
    }

    fn home(&mut self) -> PathBuf {
        "/home/user".into()
    }

    fn working_directory(&mut self) -> io::Result<PathBuf> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn change_directory(&mut self, _directory: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn start(&mut self, _line: &str) -> io::Result<Box<dyn LocalProcess>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The results of a shell's run.
pub(in crate::shell) struct Run {
    pub(in crate::shell) screen: String,
    pub(in crate::shell) sent: Vec<String>,
    pub(in crate::shell) ending: Ending,
}

/// Runs lines over a scripted session. `size` is its number of tasks, and the width of the screen.
pub(in crate::shell) fn run(
    size: (u32, usize),
    options: Options,
    lines: &[&str],
    respond: Responder,
) -> Run {
    let interactive = options.interactive;
    let lines = lines.iter().enumerate().map(|(index, line)| ScriptLine {
        text: (*line).to_owned(),
        origin: if interactive {
            String::new()
        } else {
            format!("-c {}", index + 1)
        },
    });
    let lines = lines.collect();
    act(size, options, respond, |shell, controls| {
        let all = IdSet::all_below(size.0);
        shell.start(vec![(all, sdm_debug::command::StartSpec::default())]);
        shell.run_lines(&mut Script::new(lines, controls))
    })
}

/// Runs `deed` on a shell over a scripted session of `count` tasks, on a screen of `width`.
pub(in crate::shell) fn act(
    (count, width): (u32, usize),
    options: Options,
    respond: Responder,
    deed: impl FnOnce(&mut Shell<Fake>, Sender<Control>) -> Ending,
) -> Run {
    let recorder = RecordedScreen::new(width);
    let view = Box::new(TextView::new(recorder.clone(), Names::ranks()));
    let (ending, sent) = act_in(view, count, options, respond, deed);
    let screen = recorder.text.borrow().clone();
    Run {
        screen,
        sent,
        ending,
    }
}

/// Runs `deed` on a shell over a scripted session of `count` tasks, shown in `view`; returns its end and what was sent.
pub(in crate::shell) fn act_in(
    view: Box<dyn View>,
    count: u32,
    options: Options,
    respond: Responder,
    deed: impl FnOnce(&mut Shell<Fake>, Sender<Control>) -> Ending,
) -> (Ending, Vec<String>) {
    let now = Rc::new(Cell::new(Duration::ZERO));
    let sent = Rc::default();
    let (to, controls) = channel();
    let fake = Fake {
        tasks: IdSet::all_below(count),
        now: Rc::clone(&now),
        next: 0,
        queue: VecDeque::new(),
        respond,
        controls: to.clone(),
        sent: Rc::clone(&sent),
    };
    let base = Instant::now();
    let mut shell = Shell::new(
        fake,
        Application {
            view,
            machine: Box::new(OnlyFiles),
            controls,
            clock: Box::new(move || base + now.get()),
        },
        options,
    );
    let ending = deed(&mut shell, to);
    let (_, ended) = shell.into_parts();
    ended.show(ending.code, ending.reason.clone());
    let sent = sent.borrow().clone();
    (ending, sent)
}

pub(in crate::shell) fn set(text: &str) -> IdSet {
    text.parse().unwrap()
}

pub(in crate::shell) fn class(tasks: &str, reply: Reply) -> Class {
    Class {
        tasks: set(tasks),
        answer: ClassAnswer::Reply(reply),
    }
}

pub(in crate::shell) fn failed(tasks: &str, code: FailureCode, text: &str) -> Class {
    Class {
        tasks: set(tasks),
        answer: ClassAnswer::Failed(Failure::new(code, text)),
    }
}

pub(in crate::shell) fn answer(id: CommandId, classes: Vec<Class>) -> Said {
    Said::Event(SessionEvent::Answer {
        id,
        classes,
        missing: Vec::new(),
        lost: IdSet::new(),
        late: false,
    })
}

/// Adds after each stop the event that all output before it has arrived, as servers do, unless the script
/// has it.
fn with_output_complete(said: Vec<(u64, Said)>) -> Vec<(u64, Said)> {
    let says = |(_, said): &(u64, Said)| match said {
        Said::Event(SessionEvent::Events(events)) => events
            .iter()
            .any(|(_, event)| matches!(event, Event::OutputComplete { .. })),
        _ => false,
    };
    if said.iter().any(says) {
        return said;
    }
    let mut all = Vec::new();
    for (at, said) in said {
        let word = stopped_by(&said).map(|event| (at, Said::Event(event)));
        all.push((at, said));
        all.extend(word);
    }
    all
}

fn stopped_by(said: &Said) -> Option<SessionEvent> {
    let Said::Event(SessionEvent::Answer { id, classes, .. }) = said else {
        return None;
    };
    let has_stopped =
        |class: &&Class| matches!(class.answer, ClassAnswer::Reply(Reply::Stopped(_)));
    let tasks = classes.iter().filter(has_stopped).map(|class| &class.tasks);
    let event = Event::OutputComplete { command: id.0 };
    let tasks = IdSet::union_all(tasks);
    (!tasks.is_empty()).then(|| SessionEvent::Events(vec![(tasks, event)]))
}

pub(in crate::shell) fn complete(id: CommandId) -> Said {
    Said::Event(SessionEvent::Complete { id })
}

/// All tasks answer at once, and the command is complete.
pub(in crate::shell) fn all(id: CommandId, classes: Vec<Class>) -> Vec<(u64, Said)> {
    vec![(1, answer(id, classes)), (1, complete(id))]
}

pub(in crate::shell) fn frame(function: &str, line: u32) -> Frame {
    Frame {
        level: 0,
        function: function.to_owned(),
        file: "halo.c".to_owned(),
        path: "/src/halo.c".to_owned(),
        line,
        module: String::new(),
        args: Vec::new(),
    }
}

pub(in crate::shell) fn stop(reason: StopReason, function: &str, line: u32, source: &str) -> Reply {
    Reply::Stopped(Stop {
        reason,
        frame: Some(frame(function, line)),
        inside: None,
        source: Some(source.to_owned()),
    })
}

pub(in crate::shell) fn value(text: &str) -> Value {
    Value {
        text: text.to_owned(),
        cut: None,
    }
}

pub(in crate::shell) fn variable(name: &str, text: &str) -> Variable {
    Variable {
        name: name.to_owned(),
        value: value(text),
    }
}

/// The first answer of every script: all tasks are held at `main`.
pub(in crate::shell) fn at_main(id: CommandId, to: &IdSet) -> Vec<(u64, Said)> {
    let reply = stop(StopReason::AtMain, "main", 62, "  int rank = 0, size = 0;");
    all(id, vec![class(&to.to_string(), reply)])
}
