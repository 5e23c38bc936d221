//! Plays a session with a real gdb, or with its recorded lines.
//!
//! A transcript has one line for each input and output of the driver, in order: `$` a front-end command, `>` a line
//! to gdb, `<` a line from gdb, `=` an answer, `!` an event, `*` any other action. Only the `<` lines come from
//! outside, so that the same ones give the same transcript.

use std::collections::{BTreeSet, VecDeque};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command as Process, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use sdm_core::CommandId;
use sdm_debug::command::{AttachSpec, StopAt};
use sdm_debug::fold::FoldRules;
use sdm_debug::{Command, GdbOptions};

use super::{Beginning, Story, StoryStep};
use crate::fake_host::FakeHost;
use crate::{Action, AttachTarget, CoreFile, Driver, DriverConfig, StartInput};
use sdm_child::{Launch, gdb_arguments};
use sdm_mi::{LineReader, Record};

/// Directory of the debugged programs during a recording.
const FOLDER: &str = "/tmp/sdm-stories";

/// The source of gdb's lines.
pub(super) enum Source {
    /// A running gdb.
    Gdb(Box<LiveGdb>),
    /// The lines of a transcript.
    Lines(VecDeque<String>),
}

pub(super) struct LiveGdb {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<std::process::ChildStdout>,
}

/// Plays one story, with a gdb or from a transcript.
pub(super) struct Player {
    driver: Driver,
    reader: LineReader,
    source: Source,
    /// Number of gdb's bytes passed to the reader at once.
    cut: usize,
    now: Instant,
    next_id: u64,
    open: BTreeSet<CommandId>,
    log: Vec<String>,
    ended: bool,
}

impl Player {
    /// Plays `story` to its end; returns the transcript. `pid` is the process to attach to.
    pub(super) fn play(story: &Story, source: Source, pid: i32, cut: usize) -> Vec<String> {
        let now = Instant::now();
        let minutes = Duration::from_secs(600);
        // The answers must not depend on processes of this machine.
        let host = FakeHost {
            held: true,
            blind: true,
            ..FakeHost::default()
        };
        let config = DriverConfig {
            command_wait: minutes,
            symbols_wait: minutes,
            interrupt_wait: minutes,
            internal_breakpoints: false,
            registers_unknown: false,
            handles: Vec::new(),
            fold: FoldRules::default(),
        };
        let mut player = Self {
            driver: Driver::new(now, Rc::new(config), Box::new(host)),
            reader: LineReader::default(),
            source,
            cut,
            now,
            next_id: 1,
            open: BTreeSet::new(),
            log: Vec::new(),
            ended: false,
        };
        player.begin(story, pid);
        for step in &story.steps {
            player.step(step);
        }
        player.driver.shut_down(player.now, true);
        player.drain();
        while !player.ended {
            player.feed();
        }
        player.log
    }

    fn id(&mut self) -> CommandId {
        let id = CommandId(self.next_id);
        self.next_id += 1;
        self.open.insert(id);
        id
    }

    fn begin(&mut self, story: &Story, pid: i32) {
        let program = program(story.fixture);
        let id = self.id();
        match story.beginning {
            Beginning::Start(args) => {
                let shown = program.display();
                self.log.push(format!("$ start {shown} {args}"));
                let launch = Launch {
                    program,
                    wrapper: Vec::new(),
                    args: format!("{args} >/dev/null").into_bytes(),
                    wrapped: None,
                    reached_by: None,
                };
                let driver = &mut self.driver;
                driver.start(self.now, id, launch, StopAt::Main, StartInput::default());
            }
            Beginning::Attach => {
                self.log.push(format!("$ attach {pid}"));
                let process = AttachTarget::new(pid, &AttachSpec::default());
                self.driver.attach(self.now, id, process);
            }
            Beginning::Core => {
                let core = core();
                self.log.push(format!("$ core {}", core.display()));
                let file = CoreFile { core, program };
                self.driver.open_core(self.now, id, file);
            }
        }
        self.drain();
        self.wait(id);
    }

    fn step(&mut self, step: &StoryStep) {
        match step {
            StoryStep::Ask(command) => {
                let id = self.send(command);
                self.wait(id);
            }
            StoryStep::Send(command) => {
                self.send(command);
            }
            StoryStep::Until(beginning) => {
                let wanted = format!("< {beginning}");
                let from = self.log.len();
                while !self.log[from..].iter().any(|l| l.starts_with(&wanted)) {
                    self.feed();
                }
            }
            StoryStep::Answers => {
                for id in self.open.clone() {
                    self.wait(id);
                }
            }
        }
    }

    fn send(&mut self, command: &Command) -> CommandId {
        self.log.push(format!("$ {command:?}"));
        let id = self.id();
        self.driver.handle_command(self.now, id, command.clone());
        self.drain();
        id
    }

    fn wait(&mut self, id: CommandId) {
        while self.open.contains(&id) {
            assert!(!self.ended, "gdb has ended: {}", self.log.join("\n"));
            self.feed();
        }
    }

    /// Feeds one line of gdb's output.
    fn feed(&mut self) {
        let line = match &mut self.source {
            Source::Lines(lines) => lines.pop_front(),
            Source::Gdb(gdb) => gdb.line(),
        };
        let Some(line) = line else {
            self.ended = true;
            self.log.push("< end".to_owned());
            self.driver
                .handle_gdb_end(self.now, "gdb closed its output");
            self.drain();
            return;
        };
        self.log.push(format!("< {line}"));
        for piece in format!("{line}\n").as_bytes().chunks(self.cut) {
            self.reader.push(piece);
            while let Some(record) = self.reader.next_record() {
                let strange = matches!(record, Record::Unknown(_));
                assert!(!strange, "not understood: {record:?}");
                self.driver.handle_record(self.now, record);
                self.drain();
            }
        }
    }

    fn drain(&mut self) {
        while let Some(action) = self.driver.poll_action() {
            match action {
                Action::Send(line) => {
                    self.log.push(format!("> {}", line.trim_end()));
                    if let Source::Gdb(gdb) = &mut self.source {
                        gdb.send(&line);
                    }
                }
                Action::Answer { id, result } => {
                    assert!(self.open.remove(&id), "{id} was answered twice");
                    self.log.push(format!("= {result:?}"));
                }
                Action::Event(event) => self.log.push(format!("! {event:?}")),
                Action::CloseGdb => {
                    self.log.push("* CloseGdb".to_owned());
                    if let Source::Gdb(gdb) = &mut self.source {
                        gdb.input = None;
                    }
                }
                other => self.log.push(format!("* {other:?}")),
            }
        }
    }
}

impl LiveGdb {
    pub(super) fn start(gdb: &Path) -> Self {
        let mut child = Process::new(gdb)
            .args(gdb_arguments(&GdbOptions::default()))
            .current_dir(FOLDER)
            .env("LC_ALL", "C")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    fn send(&mut self, line: &str) {
        let input = self.input.as_mut().expect("it was not closed");
        input.write_all(line.as_bytes()).unwrap();
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let count = self.output.read_line(&mut line).unwrap();
        (count > 0).then(|| line.trim_end_matches('\n').to_owned())
    }
}

impl Drop for LiveGdb {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}

/// Plays a story with a gdb, and returns the transcript.
pub(super) fn record(story: &Story, gdb: &Path) -> Vec<String> {
    std::fs::create_dir_all(FOLDER).unwrap();
    compile(story.fixture);
    let mut target = None;
    match story.beginning {
        Beginning::Start(_) => {}
        Beginning::Attach => {
            let mut child = Process::new(program(story.fixture))
                .arg("threads")
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut line = String::new();
            let output = child.stdout.take().unwrap();
            BufReader::new(output).read_line(&mut line).unwrap();
            target = Some(child);
        }
        Beginning::Core => dump(gdb, &program(story.fixture)),
    }
    let pid = target.as_ref().map_or(0, |child| child.id().cast_signed());
    let source = Source::Gdb(Box::new(LiveGdb::start(gdb)));
    let log = Player::play(story, source, pid, usize::MAX);
    if let Some(mut child) = target {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    log
}

fn program(fixture: &str) -> PathBuf {
    Path::new(FOLDER).join(fixture.split('.').next().unwrap())
}

fn core() -> PathBuf {
    Path::new(FOLDER).join("core")
}

fn compile(fixture: &str) {
    let fixtures =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdm-backend-gdbmi/tests/fixtures");
    let source = Path::new(FOLDER).join(fixture);
    std::fs::copy(fixtures.join(fixture), &source).unwrap();
    let compiler = if fixture.ends_with(".cc") {
        "c++"
    } else {
        "cc"
    };
    let status = Process::new(compiler)
        .args(["-g", "-O0", "-pthread", "-o"])
        .args([&program(fixture), &source])
        .status()
        .unwrap();
    assert!(status.success(), "{compiler} {fixture}");
}

/// Makes the core file of a program that aborts.
fn dump(gdb: &Path, program: &Path) {
    let write = format!("generate-core-file {}", core().display());
    let status = Process::new(gdb)
        .args([
            "-nx", "-q", "--batch", "-ex", "run", "-ex", &write, "--args",
        ])
        .arg(program)
        .arg("abort")
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "{write}");
}
