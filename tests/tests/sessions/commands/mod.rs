//! Every command of the protocol on real gdb, through the tree: on one task alone and on four, with common mistakes
//! of users. Equal tasks answer alike, so that each answer is one class.

mod rows;

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Stdio};

use sdm_core::CommandId;
use sdm_debug::command::{AttachSpec, CoreSpec, StartSpec};
use sdm_debug::reply::StopReason;
use sdm_debug::{Command, Reply};
use sdm_idset::IdSet;
use sdm_session::{ClassAnswer, SendOptions, SessionConfig};
use sdm_tests::binaries;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::run::Run;
use sdm_tests::sdm::command;

/// A session, with the names of the commands that it has received.
struct Tour {
    run: Run,
    to: IdSet,
    given: BTreeSet<&'static str>,
}

/// True if tasks that do the same have answered the same. Answers about memory usage always count as equal, as the
/// kernel decides it.
fn is_alike(one: &ClassAnswer, other: &ClassAnswer) -> bool {
    match (one, other) {
        (ClassAnswer::Reply(Reply::Usage(_)), ClassAnswer::Reply(Reply::Usage(_))) => true,
        _ => one == other,
    }
}

impl Tour {
    fn start(tasks: u32) -> Self {
        let mut config = SessionConfig::local(tasks);
        config.binaries = Some(binaries::folder());
        let run = Run::start(&config);
        let to = run.all();
        let given = BTreeSet::new();
        Self { run, to, given }
    }

    fn send(&mut self, command: &Command) -> CommandId {
        self.given.insert(command.name());
        self.run.send(&self.to, command, &SendOptions::default())
    }

    /// Waits for the answer, which must be equal for all tasks; returns it as text.
    fn answer(&mut self, id: CommandId, what: &str) -> String {
        let ledger = self.run.finish(id);
        // The first finished task may be reported first; all answers are equal.
        let mut classes = ledger.classes.iter();
        let class = classes
            .next()
            .unwrap_or_else(|| panic!("{what}: {ledger:?}"));
        let alike = classes.all(|other| is_alike(&other.answer, &class.answer));
        let answered = ledger.answered.union(&ledger.failed);
        assert!(alike && answered == self.to, "{what}: {ledger:?}");
        match &class.answer {
            ClassAnswer::Reply(reply) => format!("{reply:?}"),
            ClassAnswer::Failed(failure) => format!("{}: {}", failure.code.name(), failure.text),
            other => panic!("{what}: {other:?}"),
        }
    }

    fn ask(&mut self, command: &Command) -> String {
        let id = self.send(command);
        self.answer(id, command.name())
    }

    /// Sends each command, and checks that its answer contains the text of the row.
    fn rows(&mut self, rows: Vec<(Command, &str)>) {
        for (command, part) in rows {
            let answer = self.ask(&command);
            assert!(answer.contains(part), "{command:?}: {part:?} in {answer}");
        }
    }

    /// Sends a command that makes the tasks run, and checks the rows while they run. Returns the command's answer.
    fn during(&mut self, run: &Command, rows: Vec<(Command, &str)>) -> String {
        let id = self.send(run);
        // This answer comes after gdb has let the tasks run.
        self.ask(&Command::Breakpoints);
        self.rows(vec![(Command::Status, "Status(Running)")]);
        self.rows(rows);
        self.answer(id, run.name())
    }
}

fn spec(program: &Path) -> StartSpec {
    StartSpec {
        program: program.as_os_str().as_bytes().to_vec(),
        stdin_tasks: "0-3".parse().expect("a set"),
        ..StartSpec::default()
    }
}

fn start(program: &Path) -> Command {
    Command::Start(spec(program))
}

/// Runs all rows with `tasks` tasks. Returns the names of the commands that were given.
fn tour(place: &Place, tasks: u32) -> BTreeSet<&'static str> {
    let program = place.compile("tour", Compiler::C);
    let mut tour = Tour::start(tasks);
    tour.rows(rows::before_the_start());
    let nosuch = Path::new("/nosuch");
    // The amount of free memory can change between two queries.
    let id = tour.send(&Command::Room(spec(&program)));
    assert_eq!(tour.run.finish(id).answered, tour.to);
    tour.rows(vec![
        (Command::Room(spec(nosuch)), "not_found: /nosuch: no such"),
        (start(nosuch), "not_found: /nosuch: no such"),
        (start(&program), "reason: AtMain"),
        (start(&program), "already_running: already running"),
    ]);
    tour.rows(rows::breakpoints());
    tour.rows(rows::changed_breakpoints());
    tour.rows(rows::stacks());
    tour.rows(rows::values());
    tour.rows(rows::memory());
    tour.rows(rows::source());
    tour.rows(rows::objects());
    tour.rows(rows::watched());
    tour.rows(rows::runs());
    tour.rows(rows::odd_runs());
    let stopped = tour.during(&Command::Continue, rows::while_it_runs());
    assert!(stopped.contains("reason: Interrupted"), "{stopped}");
    tour.rows(rows::ends());
    // Started again it has its breakpoints; left, it goes on by itself.
    tour.rows(vec![(start(&program), "reason: AtMain")]);
    tour.rows(rows::again());
    let given = std::mem::take(&mut tour.given);
    tour.run.close();
    given
}

/// Sends commands to processes that run already, and to their core files. Returns the names of the commands.
fn found(place: &Place, tasks: u32) -> BTreeSet<&'static str> {
    let program = place.compile("tour", Compiler::C);
    let mut processes: Vec<Child> = (0..tasks)
        .map(|_| {
            let mut command = command(place, &program);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            command.spawn().expect("the program starts")
        })
        .collect();
    let pids = (0..).zip(processes.iter().map(|process| process.id().cast_signed()));
    let mut tour = Tour::start(tasks);
    let nobody = Command::Attach(AttachSpec::default());
    tour.rows(vec![(nobody, "attach_failed: no process was given")]);
    let attach = Command::Attach(AttachSpec {
        pids: pids.collect(),
        ..AttachSpec::default()
    });
    let id = tour.send(&attach);
    let ledger = tour.run.finish(id);
    for class in &ledger.classes {
        // Where each was found differs.
        let ClassAnswer::Reply(Reply::Stopped(stop)) = &class.answer else {
            panic!("{class:?}");
        };
        assert_eq!(stop.reason, StopReason::Attached);
    }
    let core = |task: u32| place.path().join(format!("core.{task}"));
    for task in 0..tasks {
        let line = format!("gcore {}", core(task).display());
        let one = IdSet::from_range(task..=task);
        let done = tour.run.ask(&one, &Command::Console { line });
        assert_eq!(done.answered, one, "{done:?}");
    }
    tour.rows(vec![
        (rows::set("leave = 1"), "Done"),
        (Command::Detach, "Done"),
        (Command::Status, "Status(Detached)"),
    ]);
    for process in &mut processes {
        let status = process.wait().expect("it is a child of this process");
        assert!(status.code().is_some(), "{status}");
    }
    let load = Command::LoadCore(CoreSpec {
        cores: (0..tasks)
            .map(|task| (task, core(task).as_os_str().as_bytes().to_vec()))
            .collect(),
        program: program.as_os_str().as_bytes().to_vec(),
        gdb: None,
    });
    let id = tour.send(&load);
    assert_eq!(tour.run.finish(id).answered, tour.to);
    tour.rows(rows::of_a_core_file());
    let given = std::mem::take(&mut tour.given);
    tour.run.close();
    given
}

/// The names of all commands, as the protocol's source has them.
fn all_names() -> BTreeSet<&'static str> {
    let source = include_str!("../../../../sdm-debug/src/command.rs");
    let names = source.lines().filter_map(|line| {
        let (_, name) = line.trim().split_once("=> \"")?;
        name.strip_suffix("\",")
    });
    names.collect()
}

#[test]
fn every_protocol_command_answers_alike_on_one_and_four_tasks() {
    let place = Place::new();
    for tasks in [1, 4] {
        let mut given = tour(&place, tasks);
        given.extend(found(&place, tasks));
        let missing: Vec<_> = all_names().difference(&given).copied().collect();
        assert!(missing.is_empty(), "never given: {missing:?}");
    }
}
