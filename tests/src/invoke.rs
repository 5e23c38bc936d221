//! A GridRPC client's side of an invoke server: its three pipes, and the rules of order and time that clients depend
//! on.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use crate::binaries;
use crate::clusters::Shell;
use crate::run::BOUND;

/// A reply or notification of the server, or the end of its replies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A line of standard output.
    Reply(String),
    /// A line of standard error.
    Notify(String),
    /// The end of standard output.
    End,
}

/// A job, as its client knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// All reported states, in order.
    pub states: Vec<String>,
    /// Time at which the job's number arrived; `None` before.
    created: Option<Instant>,
}

/// A client with its server.
pub struct Client {
    /// The server.
    pub child: Child,
    input: Option<ChildStdin>,
    said: Receiver<Heard>,
    /// The jobs by their numbers.
    pub jobs: BTreeMap<String, Known>,
    requests: u32,
}

impl Client {
    /// Starts a server of a type, as the shell's user.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn start(shell: &Shell, server_type: &str) -> Self {
        let path = shell
            .place
            .path()
            .join(format!("ng_invoke_server.{server_type}"));
        if !path.exists() {
            symlink(binaries::folder().join("sdm-agent"), &path).expect("a link");
        }
        Self::run(shell, &path)
    }

    fn run(shell: &Shell, path: &Path) -> Self {
        let mut command = shell.program(path, &["-l", "invoke.log", "--no-such-option"]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let (sender, said) = channel();
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let replies = sender.clone();
        std::thread::spawn(move || {
            for line in lines(out.expect("piped")) {
                let _ = replies.send(Heard::Reply(line));
            }
            let _ = replies.send(Heard::End);
        });
        std::thread::spawn(move || {
            for line in lines(err.expect("piped")) {
                let _ = sender.send(Heard::Notify(line));
            }
        });
        let input = child.stdin.take();
        Self {
            child,
            input,
            said,
            jobs: BTreeMap::new(),
            requests: 0,
        }
    }

    /// Writes lines, each with its own call, as a client of Ninf-G 5 does.
    ///
    /// # Panics
    /// If the server has closed.
    pub fn write(&mut self, lines: &[String]) {
        let input = self.input.as_mut().expect("it is open");
        for line in lines {
            input
                .write_all(format!("{line}\r\n").as_bytes())
                .expect("it reads");
        }
    }

    /// Closes the server's standard input.
    pub fn close(&mut self) {
        self.input = None;
    }

    /// The next reply or notification; states of jobs are recorded.
    ///
    /// # Panics
    /// If none comes within [`BOUND`], or a rule is broken.
    pub fn hear(&mut self) -> Heard {
        let said = self.said.recv_timeout(BOUND).expect("it says something");
        if let Heard::Notify(line) = &said {
            self.take(line);
        }
        said
    }

    fn take(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["CREATE_NOTIFY", request, "S", job] => {
                assert_eq!(request, self.requests.to_string(), "{line}");
                let known = Known {
                    created: Some(Instant::now()),
                    ..Known::default()
                };
                assert_eq!(self.jobs.insert(job.to_owned(), known), None, "{line}");
            }
            ["STATUS_NOTIFY", job, state] => {
                let known = self.jobs.get_mut(job).expect("its number came before");
                let is_end = |state: &str| ["DONE", "FAILED"].contains(&state);
                let had_ended = known.states.iter().any(|state| is_end(state));
                assert!(!had_ended, "{line} behind {:?}", known.states);
                known.states.push(state.to_owned());
            }
            _ => panic!("no notify: {line:?}"),
        }
    }

    /// Returns the reply to the last request.
    ///
    /// # Panics
    /// If the server ends instead.
    pub fn reply(&mut self) -> String {
        loop {
            match self.hear() {
                Heard::Reply(line) => return line,
                Heard::Notify(_) => {}
                Heard::End => panic!("the server has ended"),
            }
        }
    }

    /// Creates a job; `more` are attributes in addition to the usual ones. Returns the job's number.
    ///
    /// # Panics
    /// If it is refused.
    pub fn create(&mut self, program: &str, arguments: &[&str], more: &[String]) -> String {
        let known = self.jobs.len();
        let reply = self.try_create(program, arguments, more);
        assert_eq!(reply, "S");
        let request = self.requests;
        while self.jobs.len() == known {
            self.hear();
        }
        let newest = self.jobs.iter().max_by_key(|(_, job)| job.created);
        let (job, _) = newest.unwrap_or_else(|| panic!("no job of {request}"));
        job.clone()
    }

    /// Requests a job, which the server may refuse; returns the reply. A notification may arrive before the reply.
    pub fn try_create(&mut self, program: &str, arguments: &[&str], more: &[String]) -> String {
        self.requests += 1;
        let mut lines = vec![format!("JOB_CREATE {}", self.requests)];
        lines.extend(more.iter().cloned());
        lines.extend(
            [
                "hostname localhost",
                "port 0",
                "client_name 127.0.0.1",
                "backend NORMAL",
                "count 1",
                "staging false",
            ]
            .map(str::to_owned),
        );
        lines.push(format!("executable_path {program}"));
        lines.extend(arguments.iter().map(|it| format!("argument {it}")));
        if arguments.is_empty() {
            lines.push("argument_optional true".to_owned());
        }
        lines.extend(
            [
                "redirect_enable false",
                "status_polling 0",
                "refresh_credential 0",
                "JOB_CREATE_END",
            ]
            .map(str::to_owned),
        );
        self.write(&lines);
        self.reply()
    }

    /// Waits until a job has reached a state.
    ///
    /// # Panics
    /// If the job ends in another state, or never reaches this one.
    pub fn wait(&mut self, job: &str, state: &str) {
        loop {
            let states = &self.jobs[job].states;
            if states.iter().any(|known| known == state) {
                return;
            }
            let ended = states
                .iter()
                .any(|it| ["DONE", "FAILED"].contains(&it.as_str()));
            assert!(!ended, "{job}: {states:?} and never {state}");
            self.hear();
        }
    }

    /// Sends the line `REQUEST JOB`; returns the reply.
    pub fn ask(&mut self, request: &str, job: &str) -> String {
        self.write(&[format!("{request} {job}")]);
        self.reply()
    }

    /// Sends `EXIT`. After the reply the server must be silent and end by itself.
    ///
    /// # Panics
    /// If the server sends more, or does not end.
    pub fn exit(mut self) {
        self.write(&["EXIT".to_owned()]);
        assert_eq!(self.reply(), "S");
        assert_eq!(self.hear(), Heard::End);
        assert!(self.child.wait().expect("a child").success());
    }
}

fn lines(from: impl std::io::Read) -> impl Iterator<Item = String> {
    let lines = BufReader::new(from).split(b'\n');
    lines.map_while(Result::ok).map(|line| {
        let line = String::from_utf8(line).expect("text");
        let text = line.strip_suffix('\r');
        text.unwrap_or_else(|| panic!("{line:?} does not end in CR LF"))
            .to_owned()
    })
}
