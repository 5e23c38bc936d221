//! The end: of the programs, of the session, of the connection.

use std::time::{Duration, Instant};

use sdm_debug::event::Stream;
use sdm_debug::{Command, EndPolicy, Reply};
use sdm_idset::IdSet;
use serde_json::{Value, json};

use super::jobs::Purpose;
use super::requests::Handled;
use super::{Adapter, Phase};
use crate::action::Action;
use crate::answers::Answers;
use crate::arguments::DisconnectArguments;
use crate::error::RequestError;
use crate::message::Request;
use crate::tasks::Condition;

/// How long output may still come of programs that have ended.
const OUTPUT_WAIT: Duration = Duration::from_secs(3);

/// The exit code of what was killed.
const KILLED: i64 = 137;

/// The end of the programs.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// Whose standard output has ended, and whose standard error.
    ended: [IdSet; 2],
    /// Until when the rest of the output is waited for.
    until: Option<Instant>,
}

impl Ending {
    pub(super) fn note_end(&mut self, tasks: &IdSet, stream: Stream) {
        self.ended[usize::from(stream == Stream::Stderr)].union_with(tasks);
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.until
    }
}

impl Adapter {
    /// Tells the client of the programs' end, behind all that they have printed.
    pub(super) fn settle_end(&mut self) {
        let is_begun = matches!(self.phase, Phase::Configuring | Phase::Live);
        if !is_begun || !self.tasks.live().is_empty() || self.jobs.is_asking_for_stacks() {
            return;
        }
        let until = *self.ending.until.get_or_insert(self.now + OUTPUT_WAIT);
        let all = self.tasks.all();
        let has_come = self.ending.ended.iter().all(|ended| all.is_subset(ended));
        if !has_come && !self.manner.attached && self.now < until {
            return;
        }
        self.ending.until = None;
        self.flush_output(true);
        self.phase = Phase::Ended;
        let code = self.tasks.exit_code();
        self.event("exited", json!({"exitCode": code}));
        self.event("terminated", Value::Null);
    }

    /// Shows what programs have printed, as far as it is time; all of it where `all`.
    pub(super) fn flush_output(&mut self, all: bool) {
        let mut joined: Vec<(Stream, String)> = Vec::new();
        for (stream, text) in self.output.poll(self.now, all) {
            match joined.last_mut() {
                Some((last, before)) if *last == stream => before.push_str(&text),
                _ => joined.push((stream, text)),
            }
        }
        for (stream, text) in joined {
            let category = match stream {
                Stream::Stdout => "stdout",
                Stream::Stderr => "stderr",
            };
            self.event("output", json!({"category": category, "output": text}));
        }
    }

    /// The session is over by itself.
    pub(super) fn session_ended(&mut self, why: &str) {
        if self.phase >= Phase::Ended || self.phase < Phase::Beginning {
            return;
        }
        self.flush_output(true);
        self.jobs.clear();
        if let Some(request) = self.pending.take() {
            let why = RequestError::Opening(why.to_owned());
            self.write(request.refusal(&why));
        } else {
            self.say("important", &format!("sdm: the session is over: {why}\n"));
        }
        self.phase = Phase::Ended;
        self.event("terminated", Value::Null);
    }

    pub(super) fn terminate(&mut self) -> Handled {
        Ok(Some(Value::Null))
    }

    /// Ends the programs; that they have ended is told as always.
    pub(super) fn end_tasks(&mut self) {
        let live = self.tasks.live();
        if !live.is_empty() && self.phase < Phase::Ended {
            self.begin_job(Purpose::Kill, vec![(live, Command::Kill)]);
        }
    }

    pub(super) fn finish_kill(&mut self, answers: &[Answers]) {
        for answers in answers {
            let done = answers.replies();
            let done = done.filter(|(_, reply)| **reply == Reply::Done);
            let done = IdSet::union_all(done.map(|(tasks, _)| tasks));
            self.ended(&done, Condition::Ended(KILLED));
            if let Some(complaint) = answers
                .complaint()
                .filter(|_| !self.tasks.live().is_empty())
            {
                self.say("important", &format!("terminate: {complaint}\n"));
            }
        }
    }

    pub(super) fn disconnect(&mut self, request: &Request) -> Handled {
        let arguments: DisconnectArguments = request.read()?;
        if self.phase < Phase::Beginning {
            return Ok(Some(Value::Null));
        }
        self.flush_output(true);
        let ends = arguments
            .terminate_debuggee
            .unwrap_or(!self.manner.attached);
        if let Some(earlier) = self.pending.replace(request.clone()) {
            self.write(earlier.refusal(&RequestError::Cancelled));
        }
        self.close(ends);
        Ok(None)
    }

    fn close(&mut self, ends: bool) {
        // What was attached to is not of the session, and no policy of a session's end kills it.
        if ends && self.manner.attached {
            self.end_tasks();
        }
        self.phase = Phase::Closing;
        self.act(Action::Close(match ends {
            true => EndPolicy::KillStarted,
            false => EndPolicy::Detach,
        }));
    }

    /// The session has been ended; why not, where something of it is left.
    pub fn handle_closed(&mut self, closed: Result<(), RequestError>) {
        self.jobs.clear();
        if let Err(why) = closed {
            self.say("important", &format!("sdm: {why}\n"));
        }
        if let Some(request) = self.pending.take() {
            self.write(request.response(Value::Null));
        }
        self.leave();
    }

    pub(super) fn leave(&mut self) {
        self.phase = Phase::Over;
        self.act(Action::Leave);
    }

    /// The client is gone without a word: what was started is ended, what was attached to is let go.
    pub fn handle_gone(&mut self) {
        match self.phase {
            Phase::Closing | Phase::Over => {}
            Phase::New | Phase::Initialized => self.leave(),
            _ => self.close(!self.manner.attached),
        }
    }
}
