//! A resource manager's agent as a process, and a client of the proxy protocol that stores the elements that the agent
//! reports.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command as Process, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Instant;

use sdm_runtime::ids::Ids;
use sdm_runtime::wire::Dialect;
use sdm_runtime::wire::client::{Client, Report};
use sdm_runtime::wire::command::Command;
use sdm_runtime::wire::event::Event;

use crate::binaries;
use crate::run::BOUND;

/// An agent process with a client connected to it.
pub struct Talk {
    /// The agent's process.
    pub child: Child,
    input: ChildStdin,
    /// Bytes that the agent writes, until it ends.
    output: Receiver<Vec<u8>>,
    client: Client,
    /// The attributes of elements by their ids.
    pub elements: BTreeMap<u32, BTreeMap<String, String>>,
}

impl Talk {
    /// Starts `sdm-agent --rm KIND`; `prepare` changes the command before the start.
    ///
    /// # Panics
    /// If the agent cannot be started.
    pub fn start(kind: &str, dialect: Dialect, prepare: impl FnOnce(&mut Process)) -> Self {
        let mut command = Process::new(binaries::folder().join("sdm-agent"));
        command.args(["--rm", kind]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        prepare(&mut command);
        let mut child = command.spawn().expect("an agent");
        Self {
            input: child.stdin.take().expect("piped"),
            output: read(child.stdout.take().expect("piped")),
            child,
            client: Client::new(dialect, "1000").expect("a short id"),
            elements: BTreeMap::new(),
        }
    }

    /// Reads reports until one matches.
    ///
    /// # Panics
    /// If none matches within [`BOUND`], the agent ends before, or sends something other than an event.
    pub fn until(&mut self, found: impl Fn(&Self, &Report) -> bool) -> Report {
        let deadline = Instant::now() + BOUND;
        loop {
            while let Some(report) = self.client.poll().expect("events") {
                if let Report::Event(_, Event::New(_, _, groups) | Event::Change(_, _, groups)) =
                    &report
                {
                    for group in groups {
                        let Ids::Numbers(ids) = group.ids.clone() else {
                            panic!("{group:?}");
                        };
                        for id in ids {
                            let element = self.elements.entry(id).or_default();
                            element.extend(group.attributes.iter().cloned());
                        }
                    }
                }
                if found(self, &report) {
                    return report;
                }
            }
            self.input
                .write_all(&self.client.take_output())
                .expect("the agent reads");
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.client.receive(&bytes),
                Err(RecvTimeoutError::Disconnected) => panic!("the agent has ended"),
                Err(RecvTimeoutError::Timeout) => {
                    panic!("it does not come; elements: {:?}", self.elements)
                }
            }
        }
    }

    /// Sends a command to the agent, and waits for its result.
    ///
    /// # Errors
    /// Why it was refused.
    pub fn ask(&mut self, command: Command) -> Result<(), String> {
        let wanted = self.client.send(command).expect("a short command");
        let done =
            self.until(|_, report| matches!(report, Report::Done(tid, ..) if *tid == wanted));
        let Report::Done(_, _, result) = done else {
            unreachable!()
        };
        result.map_err(|why| why.text)
    }

    /// Waits until an element's attribute `id` has this value. Returns the element's id.
    ///
    /// # Panics
    /// If the agent ends before.
    pub fn wait(&mut self, id: &str, value: &str) -> u32 {
        let has = |talk: &Self| {
            let mut all = talk.elements.iter();
            all.find(|(_, it)| it.get(id).is_some_and(|it| it == value))
                .map(|(id, _)| *id)
        };
        if has(self).is_none() {
            self.until(|talk, _| has(talk).is_some());
        }
        has(self).expect("it was just there")
    }

    /// Submits `/bin/sh -c SCRIPT` with two processes and these attributes.
    ///
    /// # Errors
    /// Why it was refused.
    pub fn submit(
        &mut self,
        submission: &str,
        script: &str,
        more: &[(&str, &str)],
    ) -> Result<(), String> {
        let pairs = [
            ("jobSubId", submission),
            ("execPath", "/bin"),
            ("execName", "sh"),
            ("progArgs", "-c"),
            ("progArgs", script),
            ("jobNumProcs", "2"),
        ];
        let pairs = pairs.iter().chain(more);
        let pairs = pairs.map(|(id, value)| ((*id).to_owned(), (*value).to_owned()));
        self.ask(Command::SubmitJob(pairs.collect()))
    }

    /// Asks the agent to shut down, and checks that it exits with code 0.
    ///
    /// # Panics
    /// If the agent does not end well.
    pub fn quit(mut self) {
        self.client.send(Command::Quit).expect("a short command");
        self.until(|_, report| *report == Report::Shutdown);
        assert!(self.child.wait().expect("a child").success());
    }
}

/// Reads `source` to its end in a separate thread.
fn read(mut source: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (send, received) = channel();
    std::thread::spawn(move || {
        let mut buffer = vec![0; 4096];
        while let Ok(count @ 1..) = source.read(&mut buffer) {
            if send.send(buffer[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    received
}

impl Drop for Talk {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
