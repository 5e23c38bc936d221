//! The program's standard streams: output for the front-end, and input from it.

use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use sdm_core::CommandId;
use sdm_debug::event::Stream;
use sdm_debug::{BackendOutput, Event, Failure, FailureCode, Reply};

use super::Task;
use sdm_child::{InputStream, OutputStream, ReadMore, StdinError};

/// Time after the program's end for which output of its remaining children is awaited.
pub(super) const LINGER: Duration = Duration::from_millis(300);

impl Task {
    /// Accepts input for the program, and answers when there is room for more.
    pub(super) fn feed(&mut self, id: CommandId, offset: u64, bytes: &[u8], eof: bool) {
        match self.take_stdin(offset, bytes, eof) {
            Ok(()) => {
                self.fed.push(id);
                self.write_stdin();
            }
            Err(failure) => self.answer(id, Err(failure)),
        }
    }

    fn take_stdin(&mut self, offset: u64, bytes: &[u8], eof: bool) -> Result<(), Failure> {
        if let Some(failure) = self.driver.why_not_live().filter(|_| self.left.is_none()) {
            return Err(failure);
        }
        let Some(input) = &mut self.streams.input else {
            let text = "this rank does not read standard input from sdm (see --stdin)";
            return Err(Failure::new(FailureCode::Unsupported, text));
        };
        input.take(offset, bytes, eof).map_err(|error| match error {
            StdinError::Gap { at } => {
                let text = format!(
                    "input at byte {offset} arrived, but only {at} bytes were received before it"
                );
                Failure::new(FailureCode::BadCommand, text)
            }
            StdinError::Full => {
                let max = sdm_child::STDIN_BUFFER_BYTES_MAX;
                let text = format!("the program has not read the last {max} bytes of input");
                Failure::new(FailureCode::Limit, text)
            }
            StdinError::Closed => {
                Failure::new(FailureCode::NotRunning, "the program's input is closed")
            }
        })
    }

    pub(super) fn write_stdin(&mut self) {
        if let Some(input) = &mut self.streams.input {
            self.closing.extend(input.write());
        }
        let input = self.streams.input.as_ref();
        if input.is_none_or(InputStream::has_room) {
            for id in std::mem::take(&mut self.fed) {
                self.answer(id, Ok(Reply::Done));
            }
        }
    }

    /// Handles the program's end: its input is closed, and its output will end soon.
    pub(super) fn end_streams(&mut self, now: Instant) {
        self.streams.theirs = None;
        self.close_stdin();
        if std::mem::take(&mut self.streams.elsewhere) {
            for stream in [Stream::Stdout, Stream::Stderr] {
                self.push_event(Event::OutputEnd { stream });
            }
        }
        self.linger_until.get_or_insert(now + LINGER);
        self.read_output(now, None);
    }

    fn close_stdin(&mut self) {
        if let Some(mut input) = self.streams.input.take() {
            self.closing.extend(input.close());
        }
        // The open commands for input are answered, as no program will read the input.
        self.write_stdin();
    }

    /// Reads the output stream with descriptor `only`, or all of them.
    pub(super) fn read_output(&mut self, now: Instant, only: Option<RawFd>) {
        if self.paused {
            return;
        }
        let task = self.id;
        let mut all = only.is_none();
        let mut at = 0;
        while let Some(output) = self.streams.outputs.get_mut(at) {
            if only.is_some_and(|fd| fd != output.fd()) {
                at += 1;
                continue;
            }
            let stream = output.stream;
            let outputs = &mut self.outputs;
            let more = output.read(now, |bytes| {
                let event = Event::Output { stream, bytes };
                outputs.push(BackendOutput::Event { task, event });
            });
            self.read_more |= more == ReadMore::Now;
            all &= more != ReadMore::Now;
            if more == ReadMore::Ended {
                self.end_output(at);
            } else {
                at += 1;
            }
        }
        if all {
            self.tell_complete();
        }
    }

    /// Reports the output of ended runs as complete, once no output is left to read. Before the kernel reports that
    /// there is none, it moves data that is in transit through a pseudo-terminal.
    fn tell_complete(&mut self) {
        let owed = std::mem::take(&mut self.streams.owed);
        if owed.is_empty() {
            return;
        }
        self.flush_outputs(|_| true);
        for id in owed {
            self.push_event(Event::OutputComplete { command: id.0 });
        }
    }

    /// Passes on the incomplete last lines of the streams for which `which` is true.
    fn flush_outputs(&mut self, which: impl Fn(&OutputStream) -> bool) {
        let task = self.id;
        for output in self.streams.outputs.iter_mut().filter(|it| which(it)) {
            let stream = output.stream;
            let outputs = &mut self.outputs;
            output.flush(|bytes| {
                let event = Event::Output { stream, bytes };
                outputs.push(BackendOutput::Event { task, event });
            });
        }
    }

    fn end_output(&mut self, at: usize) {
        let output = self.streams.outputs.remove(at);
        let stream = output.stream;
        self.closing.push(output.into_fd());
        self.push_event(Event::OutputEnd { stream });
    }

    pub(super) fn handle_output_timeout(&mut self, now: Instant) {
        if self.paused {
            // Unread output still has to be read, so no deadline applies meanwhile.
            return;
        }
        self.flush_outputs(|output| output.flush_at().is_some_and(|at| at <= now));
        if std::mem::take(&mut self.read_more) {
            self.read_output(now, None);
        }
        if self.linger_until.is_some_and(|at| at <= now) && !self.read_more {
            // A process that the program has left behind still has the streams open.
            self.read_output(now, None);
            self.flush_outputs(|_| true);
            while !self.read_more && !self.streams.outputs.is_empty() {
                self.end_output(0);
            }
        }
    }
}
