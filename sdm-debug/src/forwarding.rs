//! Handlers that see and change the input and output of programs, over any backend ("PTP new SDM, I/O Forwarding").

use std::os::fd::RawFd;
use std::time::Instant;

use sdm_core::CommandId;
use sdm_core::message::EndPolicy;
use sdm_idset::{IdSet, TaskId};

use crate::event::Stream;
use crate::{
    Backend, BackendOutput, Command, Event, Failure, InterestChange, LauncherDuties, Program, Reply,
};

/// Receives input on its way to the programs of some tasks, and may change the bytes but not their number. The stream
/// is numbered by bytes, which prevents that a program receives a byte twice.
pub type InputHandler = Box<dyn FnMut(&IdSet, &mut [u8])>;

/// Receives a task's output: whole lines, if the task prints lines. Returns the output to show in its place; for an
/// empty one nothing is shown.
pub type OutputHandler = Box<dyn FnMut(TaskId, Vec<u8>) -> Vec<u8>>;

/// A backend whose programs' streams pass through handlers; a stream without a handler passes unchanged.
///
/// The handlers of PTP's SDM move bytes between descriptors. Here the backend reads and writes the descriptors, and
/// calls a handler in between.
pub struct Forwarding<B> {
    backend: B,
    stdin: Option<InputHandler>,
    stdout: Option<OutputHandler>,
    stderr: Option<OutputHandler>,
}

impl<B> Forwarding<B> {
    /// A wrapper without handlers.
    #[must_use]
    pub fn new(backend: B) -> Self {
        Self {
            backend,
            stdin: None,
            stdout: None,
            stderr: None,
        }
    }

    /// Sets the handler of the programs' standard input (`sdm_iof_set_stdin_handler`). A later call replaces the
    /// handler.
    pub fn set_stdin_handler(&mut self, handler: InputHandler) {
        self.stdin = Some(handler);
    }

    /// Sets the handler of standard output (`sdm_iof_set_stdout_handler`). A later call replaces the handler.
    pub fn set_stdout_handler(&mut self, handler: OutputHandler) {
        self.stdout = Some(handler);
    }

    /// Sets the handler of standard error (`sdm_iof_set_stderr_handler`). A later call replaces the handler.
    pub fn set_stderr_handler(&mut self, handler: OutputHandler) {
        self.stderr = Some(handler);
    }

    fn handle_input(&mut self, tasks: &IdSet, command: &mut Command) {
        if let (Some(handler), Command::Stdin { bytes, .. }) = (&mut self.stdin, command) {
            handler(tasks, bytes);
        }
    }
}

impl<B: Backend> Backend for Forwarding<B> {
    fn execute(&mut self, now: Instant, id: CommandId, tasks: &IdSet, mut command: Command) {
        self.handle_input(tasks, &mut command);
        self.backend.execute(now, id, tasks, command);
    }

    fn execute_at_once(
        &mut self,
        now: Instant,
        id: CommandId,
        tasks: &IdSet,
        mut command: Command,
    ) -> Option<Result<Reply, Failure>> {
        self.handle_input(tasks, &mut command);
        self.backend.execute_at_once(now, id, tasks, command)
    }

    fn cancel(&mut self, now: Instant, id: CommandId) {
        self.backend.cancel(now, id);
    }

    fn poll_output(&mut self) -> Option<BackendOutput> {
        loop {
            let mut output = self.backend.poll_output()?;
            let BackendOutput::Event {
                task,
                event: Event::Output { stream, bytes },
            } = &mut output
            else {
                return Some(output);
            };
            let handler = match stream {
                Stream::Stdout => &mut self.stdout,
                Stream::Stderr => &mut self.stderr,
            };
            let Some(handler) = handler else {
                return Some(output);
            };
            *bytes = handler(*task, std::mem::take(bytes));
            if !bytes.is_empty() {
                return Some(output);
            }
        }
    }

    fn poll_interest(&mut self) -> Option<InterestChange> {
        self.backend.poll_interest()
    }

    fn handle_ready(&mut self, now: Instant, fd: RawFd) {
        self.backend.handle_ready(now, fd);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.backend.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.backend.handle_timeout(now);
    }

    fn set_output_paused(&mut self, now: Instant, paused: bool) {
        self.backend.set_output_paused(now, paused);
    }

    fn shut_down(&mut self, now: Instant, policy: EndPolicy) {
        self.backend.shut_down(now, policy);
    }

    fn is_down(&self) -> bool {
        self.backend.is_down()
    }
}

impl<B: LauncherDuties> LauncherDuties for Forwarding<B> {
    fn is_leaving(&self) -> bool {
        self.backend.is_leaving()
    }

    fn signal_left(&mut self, signal: i32) {
        self.backend.signal_left(signal);
    }

    fn signal_programs(&mut self, tasks: &IdSet, signal: i32, standing: bool) {
        self.backend.signal_programs(tasks, signal, standing);
    }

    fn programs(&self) -> Vec<Program> {
        self.backend.programs()
    }

    fn left_code(&self) -> Option<i32> {
        self.backend.left_code()
    }

    fn is_deserted(&self) -> bool {
        self.backend.is_deserted()
    }

    fn dismiss(&mut self) {
        self.backend.dismiss();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// A backend that prints the input that it is given.
    #[derive(Default)]
    struct Echo(VecDeque<BackendOutput>);

    impl Backend for Echo {
        fn execute(&mut self, _: Instant, _: CommandId, tasks: &IdSet, command: Command) {
            let Command::Stdin { bytes, .. } = command else {
                return;
            };
            for task in tasks {
                for stream in [Stream::Stdout, Stream::Stderr] {
                    let bytes = bytes.clone();
                    let event = Event::Output { stream, bytes };
                    self.0.push_back(BackendOutput::Event { task, event });
                }
            }
        }

        fn cancel(&mut self, _: Instant, _: CommandId) {}

        fn poll_output(&mut self) -> Option<BackendOutput> {
            self.0.pop_front()
        }

        fn shut_down(&mut self, _: Instant, _: EndPolicy) {}

        fn is_down(&self) -> bool {
            true
        }
    }

    fn printed(backend: &mut impl Backend) -> Vec<(u32, Stream, String)> {
        let bytes = b"one\n".to_vec();
        let line = Command::Stdin {
            offset: 0,
            bytes,
            eof: false,
        };
        backend.execute(Instant::now(), CommandId(1), &IdSet::all_below(2), line);
        let mut all = Vec::new();
        while let Some(output) = backend.poll_output() {
            let BackendOutput::Event {
                task,
                event: Event::Output { stream, bytes },
            } = output
            else {
                panic!("{output:?}");
            };
            all.push((task.0, stream, String::from_utf8(bytes).unwrap()));
        }
        all
    }

    #[test]
    fn streams_pass_through_handlers_or_unchanged() {
        let mut backend = Forwarding::new(Echo::default());
        let text = "one\n".to_owned();
        let (out, err) = (Stream::Stdout, Stream::Stderr);
        let all = [(0, out), (0, err), (1, out), (1, err)];
        assert_eq!(
            printed(&mut backend),
            all.map(|(task, stream)| (task, stream, text.clone()))
        );
        backend.set_stdin_handler(Box::new(|_, bytes| bytes.make_ascii_uppercase()));
        backend.set_stdout_handler(Box::new(|task, line| {
            [task.0.to_string().as_bytes(), b": ", &line].concat()
        }));
        backend.set_stderr_handler(Box::new(|_, _| Vec::new()));
        let lines = [0, 1].map(|task| (task, out, format!("{task}: ONE\n")));
        assert_eq!(printed(&mut backend), lines);
    }
}
