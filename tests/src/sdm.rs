//! The command `sdm`, run as a user or a script runs it.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use serde_json::Value;

use crate::binaries;
use crate::place::{MARK_VARIABLE, Place};
use crate::questions::{Questions, enter_look};
use crate::screen::Screen;
use crate::united::{all_told, united};

/// A command line of `sdm`.
pub struct Sdm<'a> {
    place: &'a Place,
    verb: String,
    command: Command,
    is_granted: bool,
}

/// A `sdm` that runs.
pub struct Running<'a> {
    place: &'a Place,
    child: Child,
    input: Option<ChildStdin>,
    /// Its standard output.
    pub out: Screen,
    /// Its standard error.
    pub err: Screen,
    /// The questions that it was asked.
    pub(crate) questions: Questions,
}

/// A `sdm` that has ended.
#[derive(Debug)]
pub struct Done {
    /// Its exit code; absent where a signal ended it.
    pub code: Option<i32>,
    /// The whole standard output.
    pub out: String,
    /// The whole standard error.
    pub err: String,
}

impl<'a> Sdm<'a> {
    /// `sdm VERB`.
    #[must_use]
    pub fn new(place: &'a Place, verb: &str) -> Self {
        // Tests run in the background are born deaf to SIGINT, and so would `sdm` be.
        let mut command = command(place, "/usr/bin/env");
        command.arg("--default-signal=INT");
        command.arg(binaries::folder().join("sdm")).arg(verb);
        Self::of(place, verb, command)
    }

    /// `PREFIX sdm run -n COUNT`.
    #[must_use]
    pub fn behind(prefix: &[&str], place: &'a Place, count: u32) -> Self {
        Self::wrapped(prefix, place, "run").args(["-n", &count.to_string()])
    }

    /// `PREFIX sdm VERB`.
    #[must_use]
    pub fn wrapped(prefix: &[&str], place: &'a Place, verb: &str) -> Self {
        let mut command = command(place, prefix[0]);
        command
            .args(&prefix[1..])
            .arg(binaries::folder().join("sdm"))
            .arg(verb);
        Self::of(place, verb, command)
    }

    fn of(place: &'a Place, verb: &str, command: Command) -> Self {
        Self {
            place,
            verb: verb.to_owned(),
            command,
            is_granted: false,
        }
    }

    /// Allows a question about a job that this test asked before. `reason` is in `tests/ask-again.md` as well.
    #[must_use]
    pub fn ask_again(mut self, _reason: &str) -> Self {
        self.is_granted = true;
        self
    }

    /// `sdm run -n COUNT`.
    #[must_use]
    pub fn run(place: &'a Place, count: u32) -> Self {
        Self::new(place, "run").args(["-n", &count.to_string()])
    }

    /// More arguments.
    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    /// `-c` for each line.
    #[must_use]
    pub fn lines(mut self, lines: &[&str]) -> Self {
        for line in lines {
            self.command.args(["-c", line]);
        }
        self
    }

    /// A variable of its environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// A variable that its environment lacks.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Adds `-- PROGRAM ARGS`, which must be the last arguments.
    #[must_use]
    pub fn program(mut self, program: &Path, args: &[&str]) -> Self {
        self.command.arg("--").arg(program).args(args);
        self
    }

    /// Makes `sdm` read its commands from [`Running::ask`].
    #[must_use]
    pub fn talk(mut self) -> Self {
        self.command.stdin(Stdio::piped());
        self
    }

    /// Sets its standard input to this file.
    ///
    /// # Panics
    /// If there is no such file.
    #[must_use]
    pub fn reads(mut self, path: &Path) -> Self {
        let file = std::fs::File::open(path).expect("a file");
        self.command.stdin(file);
        self
    }

    /// Sets its standard output to this file; [`Done::out`] is empty then.
    ///
    /// # Panics
    /// If the file cannot be opened.
    #[must_use]
    pub fn writes(mut self, path: &str) -> Self {
        let file = std::fs::File::create(path).expect("a file");
        self.command.stdout(file);
        self
    }

    /// Sets its standard output to a pipe without a reader; [`Done::out`] is empty then.
    ///
    /// # Panics
    /// If there can be no pipe.
    #[must_use]
    pub fn unread(mut self) -> Self {
        let (_, end) = std::io::pipe().expect("a pipe");
        self.command.stdout(end);
        self
    }

    /// Starts it.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn spawn(mut self) -> Running<'a> {
        enter_look(
            self.place.mark(),
            &self.verb,
            &self.command,
            self.is_granted,
        );
        let mut questions = Questions::default();
        questions.enter_given(&self.command);
        let mut child = self.command.spawn().expect("sdm starts");
        let out: Box<dyn std::io::Read + Send> = match child.stdout.take() {
            Some(out) => Box::new(out),
            None => Box::new(std::io::empty()),
        };
        let err = child.stderr.take().expect("it is a pipe");
        Running {
            place: self.place,
            input: child.stdin.take(),
            child,
            out: Screen::read(out).0,
            err: Screen::read(err).0,
            questions,
        }
    }

    /// Runs `sdm` to its end and checks that no process of it is left.
    ///
    /// # Panics
    /// If it does not end, or leaves processes.
    #[must_use]
    pub fn finish(self) -> Done {
        self.spawn().finish()
    }
}

/// A command in the place, bearing its mark, with an empty standard input.
pub fn command(place: &Place, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(place.path())
        .env(MARK_VARIABLE, place.mark())
        // No user's own settings.
        .env("SDM_CONFIG", "/dev/null")
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    crate::ordinary::lower(&mut command);
    command
}

impl Running<'_> {
    /// Its Unix process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Allows the next question to repeat an earlier one. `tests/ask-again.md` lists the `reason` as well.
    pub fn ask_again(&mut self, reason: &str) -> &mut Self {
        self.questions.ask_again(reason);
        self
    }

    /// Types a command and waits for `wanted` in the output from then on.
    ///
    /// # Panics
    /// If it does not come, or the command is a question that was asked before.
    pub fn ask(&mut self, line: &str, wanted: &str) -> String {
        self.questions.enter(line);
        let mark = self.out.mark();
        let input = self.input.as_mut().expect("made by `Sdm::talk`");
        writeln!(input, "{line}").expect("it reads its commands");
        self.out.wait(mark, wanted)
    }

    /// Waits for the end of `sdm` and checks that no process of it is left.
    ///
    /// # Panics
    /// If it does not end, or leaves processes.
    #[must_use]
    pub fn finish(mut self) -> Done {
        self.input = None;
        let ended = self.out.wait_end() && self.err.wait_end();
        if !ended {
            let _ = self.child.kill();
        }
        let status = self.child.wait().expect("it is a child of this process");
        let done = Done {
            code: status.code(),
            out: self.out.text(),
            err: self.err.text(),
        };
        assert!(ended, "sdm does not end: {done}");
        self.place.assert_gone();
        done
    }
}

impl Done {
    /// Checks the exit code.
    ///
    /// # Panics
    /// If the exit code differs; the screen is shown.
    #[must_use]
    pub fn code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self}");
        self
    }

    /// The answer to a command line: the text between the echo of that line and the next prompt.
    ///
    /// # Panics
    /// If there was no such command.
    #[must_use]
    pub fn answer(&self, line: &str) -> &str {
        self.answer_in(&self.out, line)
    }

    fn answer_in<'a>(&self, screen: &'a str, line: &str) -> &'a str {
        let echo = format!("(sdm) {line}\n");
        let Some((_, rest)) = screen.split_once(&echo) else {
            panic!("no `{line}` in {self}");
        };
        rest.split("(sdm) ").next().unwrap_or(rest)
    }

    /// Its standard output with equal lines of several tasks joined: see [`united`].
    #[must_use]
    pub fn united(&self) -> String {
        united(&self.out)
    }

    /// The text before the first command, joined as by [`Done::united`].
    #[must_use]
    pub fn beginning(&self) -> String {
        let united = self.united();
        united.split("(sdm) ").next().unwrap_or_default().to_owned()
    }

    /// Checks the whole answer to a command line, put together as by [`Done::united`].
    ///
    /// # Panics
    /// If the answer differs; the screen is shown.
    pub fn expect(&self, line: &str, answer: &str) {
        let united = self.united();
        let came = self.answer_in(&united, line);
        assert_eq!(came, answer, "`{line}` of {self}");
    }

    /// Checks that the answer to a command line, put together as by [`Done::united`], contains `part`.
    ///
    /// # Panics
    /// If the part is missing; the screen is shown.
    pub fn expect_part(&self, line: &str, part: &str) {
        let united = self.united();
        assert!(
            self.answer_in(&united, line).contains(part),
            "`{line}` without {part:?} in {self}"
        );
    }

    /// Checks that after a command line `what` was reported of each of `ranks`, at once or one after another.
    ///
    /// # Panics
    /// If it was not, or was reported of other ranks as well; the screen is shown.
    pub fn expect_each(&self, line: &str, ranks: &str, what: &str) {
        let told = all_told(self.answer(line), what);
        assert_eq!(told.to_string(), ranks, "{what:?}, `{line}` of {self}");
    }

    /// The records of `--json`.
    ///
    /// # Panics
    /// If a line is none.
    #[must_use]
    pub fn records(&self) -> Vec<Value> {
        let lines = self.out.lines();
        lines
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
            })
            .collect()
    }
}

impl std::fmt::Display for Done {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { code, out, err } = self;
        writeln!(f, "code {code:?}, output:\n{out}errors:\n{err}")
    }
}
