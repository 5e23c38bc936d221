//! `sdm` on a terminal of its own, as a user has it.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, PtySize, native_pty_system};

use crate::binaries;
use crate::place::{MARK_VARIABLE, Place};
use crate::questions::Questions;
use crate::run::BOUND;
use crate::screen::Screen;
use crate::united::united;

/// A terminal with `sdm` in it.
pub struct Terminal<'a> {
    place: &'a Place,
    child: Box<dyn Child + Send + Sync>,
    to: Box<dyn Write + Send>,
    screen: Screen,
    seen: usize,
    size: PtySize,
    questions: Questions,
    // The terminal hangs up when this is dropped.
    master: Box<dyn portable_pty::MasterPty + Send>,
}

impl<'a> Terminal<'a> {
    /// Starts `sdm ARGS` in a place, on a terminal of `columns`.
    ///
    /// # Panics
    /// If there is no terminal or `sdm` does not start.
    #[must_use]
    pub fn start(place: &'a Place, args: &[&str], columns: u16) -> Self {
        Self::run(place, &binaries::folder().join("sdm"), args, columns)
    }

    /// Starts another program in the same way, such as a shell, which finds `sdm` on `PATH`.
    ///
    /// # Panics
    /// If there is no terminal or it does not start.
    #[must_use]
    pub fn run(place: &'a Place, program: &Path, args: &[&str], columns: u16) -> Self {
        let size = PtySize {
            rows: 40,
            cols: columns,
            pixel_width: 0,
            pixel_height: 0,
        };
        let pair = native_pty_system().openpty(size).expect("a terminal");
        let mut command = CommandBuilder::new(program);
        command.args(args);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = [binaries::folder()].into_iter();
        let folders = folders.chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(folders).expect("as they came"));
        command.cwd(place.path());
        command.env(MARK_VARIABLE, place.mark());
        command.env("TERM", "xterm");
        command.env("XDG_STATE_HOME", place.path().join("state"));
        command.env("XDG_RUNTIME_DIR", place.runtime());
        let child = pair.slave.spawn_command(command).expect("it starts");
        drop(pair.slave);
        let to = pair.master.take_writer().expect("the terminal's input");
        let output = pair.master.try_clone_reader().expect("its output");
        Self {
            place,
            child,
            to,
            screen: Screen::read(output).0,
            seen: 0,
            size,
            questions: Questions::default(),
            master: pair.master,
        }
    }

    /// Types some keys.
    ///
    /// # Panics
    /// If the terminal is gone.
    pub fn keys(&mut self, keys: &str) {
        match keys {
            "\x03" => self.questions.interrupted(),
            _ => self.questions.changed(),
        }
        self.type_in(keys);
    }

    fn type_in(&mut self, keys: &str) {
        self.to.write_all(keys.as_bytes()).expect("it is there");
        self.to.flush().expect("it is there");
    }

    /// Waits until `wanted` is on the screen after the text waited for before; returns the text up to it.
    ///
    /// # Panics
    /// If it does not appear.
    pub fn wait(&mut self, wanted: &str) -> String {
        let mut came = self.screen.wait(self.seen, wanted);
        let found = came.find(wanted).expect("it was waited for");
        came.truncate(found + wanted.len());
        self.seen += came.len();
        came
    }

    /// The text that the terminal displays now, by a terminal emulator. Lines have no blanks at their ends.
    ///
    /// # Panics
    /// If it has no size.
    #[must_use]
    pub fn displayed(&self) -> String {
        let mut parser = vt100::Parser::new(self.size.rows, self.size.cols, 0);
        parser.process(self.screen.raw().as_bytes());
        parser.screen().contents()
    }

    /// Waits until the terminal displays all these texts; returns the displayed text.
    ///
    /// # Panics
    /// If that does not happen within [`BOUND`].
    pub fn wait_displayed(&self, wanted: &[&str]) -> String {
        let deadline = Instant::now() + BOUND;
        loop {
            let text = self.displayed();
            if wanted.iter().all(|part| text.contains(part)) {
                return text;
            }
            let missing: Vec<_> = wanted.iter().filter(|it| !text.contains(**it)).collect();
            assert!(Instant::now() < deadline, "no {missing:?} on:\n{text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Changes the size of the terminal.
    ///
    /// # Panics
    /// If it is gone.
    pub fn resize(&mut self, columns: u16, lines: u16) {
        (self.size.cols, self.size.rows) = (columns, lines);
        self.master.resize(self.size).expect("it is there");
    }

    /// The pid of `sdm`.
    ///
    /// # Panics
    /// If it has none.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.process_id().expect("a pid")
    }

    /// All received bytes so far.
    #[must_use]
    pub fn raw(&self) -> String {
        self.screen.raw()
    }

    /// Clicks on the first occurrence of this text.
    ///
    /// # Panics
    /// If the text is not displayed.
    pub fn click(&mut self, wanted: &str) {
        let text = self.wait_displayed(&[wanted]);
        let found = text.lines().zip(1..).find_map(|(line, row)| {
            let column = line[..line.find(wanted)?].chars().count() + 1;
            Some((column, row))
        });
        let (column, row): (usize, usize) = found.expect("it stands there");
        self.keys(&format!("\x1b[<0;{column};{row}M\x1b[<0;{column};{row}m"));
    }

    /// All output so far, without escape sequences.
    #[must_use]
    pub fn text(&self) -> String {
        self.screen.text()
    }

    /// Allows the next question to repeat an earlier one. `tests/ask-again.md` lists the `reason` as well.
    pub fn ask_again(&mut self, reason: &str) -> &mut Self {
        self.questions.ask_again(reason);
        self
    }

    /// Types a line and waits for `wanted` and then the next prompt; returns the text up to it.
    ///
    /// # Panics
    /// If they do not come, or the line is a question that was asked before.
    pub fn ask(&mut self, line: &str, wanted: &str) -> String {
        self.questions.enter(line);
        self.type_in(&format!("{line}\n"));
        self.wait(wanted) + &self.wait("(sdm) ")
    }

    /// The visible text, with the lines that have scrolled off the screen.
    #[must_use]
    pub fn shown(&self) -> String {
        self.screen.shown()
    }

    /// Text on the screen and above it, with equal lines of several tasks joined: see [`united`].
    #[must_use]
    pub fn united(&self) -> String {
        united(&self.shown())
    }

    /// Waits for the end of `sdm` and checks that no process of it is left. Returns its exit code and all text of
    /// the screen.
    ///
    /// # Panics
    /// If it does not end, or leaves processes.
    pub fn finish(self) -> (u32, String) {
        let place = self.place;
        let ended = self.leave();
        place.assert_gone();
        ended
    }

    /// Kills `sdm` on this terminal, as a broken connection does.
    ///
    /// # Panics
    /// If it has ended before.
    pub fn kill(&mut self) {
        self.child.kill().expect("it is there");
    }

    /// As [`Terminal::leave`], but returns all received bytes, escape sequences included.
    ///
    /// # Panics
    /// If it does not end.
    pub fn leave_raw(self) -> (u32, String) {
        let screen = self.screen.clone();
        let (code, _) = self.leave();
        (code, screen.raw())
    }

    /// Waits for the end of `sdm` on this terminal; its session may continue elsewhere. Returns the exit code and
    /// all text of the screen.
    ///
    /// # Panics
    /// If it does not end.
    pub fn leave(mut self) -> (u32, String) {
        if !self.screen.wait_end() {
            let _ = self.child.kill();
            panic!("sdm does not end: {}", self.screen.text());
        }
        let status = self.child.wait().expect("it is a child of this process");
        (status.exit_code(), self.screen.text())
    }
}
