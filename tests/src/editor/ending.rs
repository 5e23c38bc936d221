//! Ways to end an editor's session and its adapter: by a request, by the end of the input, or by a kill.

use std::sync::mpsc::RecvTimeoutError;

use serde_json::{Value, json};

use super::Editor;
use crate::run::BOUND;

impl Editor<'_> {
    /// Waits until the adapter has answered a request. What it sends before that has come then.
    ///
    /// # Panics
    /// If the adapter does not answer.
    pub fn settle(&mut self) {
        let seq = self.send_uncounted("threads", &Value::Null);
        self.response(seq);
    }

    /// Continues all ranks by a request on this thread, and waits until the job has exited with code 0.
    ///
    /// # Panics
    /// If the job ends with another exit code.
    pub fn run_to_end(&mut self, thread: &Value) {
        self.ask("continue", &json!({"threadId": thread}));
        assert_eq!(self.event("exited")["exitCode"], 0);
        self.event("terminated");
    }

    /// Sends `disconnect`, waits for the adapter's end, and checks that no process is left. Returns all received
    /// messages.
    ///
    /// # Panics
    /// If something of it is left.
    pub fn disconnect(mut self) -> Vec<Value> {
        self.ask("disconnect", &json!({}));
        self.finish()
    }

    /// Sends `disconnect`, and waits for the adapter's end. The session continues in another editor.
    ///
    /// # Panics
    /// If it does not end.
    pub fn leave(mut self) {
        self.ask("disconnect", &json!({}));
        self.end();
    }

    /// Closes the adapter's input, and waits for its end. Another editor has ended the session before.
    ///
    /// # Panics
    /// If it does not end.
    pub fn end(mut self) {
        self.input = None;
        self.wait();
    }

    /// Closes the adapter's input, as the death of an editor does, and waits for the adapter's end.
    ///
    /// # Panics
    /// If the adapter does not end.
    pub fn hang_up(&mut self) {
        self.input = None;
        self.wait();
    }

    /// Kills the adapter by SIGKILL, so that it cannot clean up.
    ///
    /// # Panics
    /// If the adapter has ended before.
    pub fn kill(mut self) {
        let mut child = self.child.take().expect("this editor has started it");
        child.kill().expect("it runs");
        let status = child.wait().expect("it is a child of this process");
        assert_eq!(status.code(), None, "{status}");
    }

    fn wait(&mut self) {
        if let Some(child) = &mut self.child {
            let status = child.wait().expect("it is a child of this process");
            assert!(status.success(), "{status}; what came:\n{}", self.told());
        }
    }

    /// Closes the adapter's input, as the death of an editor does, and checks that no process is left. Returns all
    /// received messages.
    ///
    /// # Panics
    /// If something of it is left.
    pub fn finish(mut self) -> Vec<Value> {
        self.input = None;
        loop {
            match self.messages.recv_timeout(BOUND) {
                Ok(message) => {
                    self.schema.check(&message);
                    self.transcript.push(message);
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(error) => panic!("its output does not end: {error}"),
            }
        }
        self.wait();
        self.place.assert_gone();
        self.transcript
    }
}
