//! Ends of an editor and its adapter, orderly or not.

use serde_json::{Value, json};

use super::Editor;
use crate::run::BOUND;

impl Editor<'_> {
    /// All run on from a thread to their end, with code 0.
    ///
    /// # Panics
    /// If they end otherwise.
    pub fn run_to_end(&mut self, thread: &Value) {
        self.ask("continue", &json!({"threadId": thread}));
        assert_eq!(self.event("exited")["exitCode"], 0);
        self.event("terminated");
    }

    /// `disconnect`, and the end of everything.
    ///
    /// # Panics
    /// If something of it is left.
    pub fn disconnect(mut self) -> Vec<Value> {
        self.ask("disconnect", &json!({}));
        self.finish()
    }

    /// `disconnect`, and the end of the adapter, while its session continues elsewhere.
    ///
    /// # Panics
    /// If it does not end.
    pub fn leave(mut self) {
        self.ask("disconnect", &json!({}));
        self.end();
    }

    /// The end of the adapter, as its session has ended elsewhere.
    ///
    /// # Panics
    /// If it does not end.
    pub fn end(mut self) {
        self.input = None;
        self.wait();
    }

    /// The end of the input, as of an editor that was killed; the adapter ends.
    ///
    /// # Panics
    /// If it does not.
    pub fn hang_up(&mut self) {
        self.input = None;
        self.wait();
    }

    /// The adapter is killed, and can do nothing about it.
    ///
    /// # Panics
    /// If it has ended before.
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

    /// The end of the input, as of an editor that was killed, and the end of everything.
    ///
    /// # Panics
    /// If something of it is left.
    pub fn finish(mut self) -> Vec<Value> {
        self.input = None;
        while let Ok(message) = self.messages.recv_timeout(BOUND) {
            self.schema.check(&message);
            self.transcript.push(message);
        }
        self.wait();
        self.place.assert_gone();
        self.transcript
    }
}
