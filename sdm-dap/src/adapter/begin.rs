//! The beginning: launch or attach, the session that is opened for it, and the client's word that all is said.

use sdm_debug::Command;
use sdm_idset::IdSet;
use serde_json::{Value, json};

use super::jobs::Purpose;
use super::requests::{Handled, early};
use super::{Adapter, Manner, Phase};
use crate::action::{Action, Opened, Opening};
use crate::answers::Answers;
use crate::error::RequestError;
use crate::launch::Configuration;
use crate::message::Request;
use crate::output::Output;
use crate::rows::Rows;
use crate::tasks::{Condition, Tasks};

impl Adapter {
    pub(super) fn launch(&mut self, request: &Request) -> Handled {
        self.open(request, false)
    }

    pub(super) fn attach(&mut self, request: &Request) -> Handled {
        self.open(request, true)
    }

    fn open(&mut self, request: &Request, attached: bool) -> Handled {
        if self.phase != Phase::Initialized {
            return Err(early(&request.command, "the session has begun already"));
        }
        let configuration: Configuration = request.read()?;
        self.manner = Manner {
            attached,
            // Who attaches to a job wants to see where it is.
            stop_at_entry: configuration.stop_at_entry.unwrap_or(attached),
            no_debug: configuration.no_debug,
            threads: configuration.threads,
            scope: configuration.scope,
        };
        let words = match attached {
            true => configuration.attach_words()?,
            false => configuration.launch_words()?,
        };
        self.phase = Phase::Beginning;
        self.pending = Some(request.clone());
        self.act(Action::Open(Opening { words }));
        Ok(None)
    }

    /// The session that was asked for stands, or there is none; why.
    pub fn handle_opened(&mut self, opened: Result<Opened, RequestError>) {
        match opened {
            Ok(opened) => self.begin(opened),
            Err(why) => self.refuse_begin(&why),
        }
        self.settle();
    }

    /// How far the opening is, a line for a person.
    pub fn handle_progress(&mut self, text: &str) {
        self.say("console", &format!("{text}\n"));
    }

    fn begin(&mut self, opened: Opened) {
        for note in &opened.notes {
            self.say("important", &format!("sdm: {note}\n"));
        }
        self.tasks = Tasks::new(opened.tasks);
        self.rows = Rows::new(self.is_by_rank());
        self.output = Output::new(self.tasks.all().len() > 1);
        self.begin_job(Purpose::Begin, opened.begin);
    }

    /// The launch or attach comes to nothing: the client can but disconnect.
    fn refuse_begin(&mut self, why: &RequestError) {
        self.phase = Phase::Ended;
        if let Some(request) = self.pending.take() {
            self.write(request.refusal(why));
        }
        self.event("terminated", Value::Null);
    }

    /// All who were to be started or attached to have answered.
    pub(super) fn finish_begin(&mut self, answers: &[Answers]) {
        let complaints = answers.iter().filter_map(Answers::complaint);
        let complaints: Vec<String> = complaints.collect();
        let standing = self.tasks.standing();
        let starting = self.tasks.running();
        self.tasks.set(&starting, Condition::Gone);
        if standing.is_empty() && !complaints.is_empty() {
            self.refuse_begin(&RequestError::Opening(complaints.join("; ")));
            return;
        }
        for complaint in complaints {
            self.say("important", &format!("sdm: {complaint}\n"));
        }
        // What stands at `main` is no stop that the client knows of.
        self.settling.fresh = IdSet::new();
        self.regroup_quietly();
        self.phase = Phase::Configuring;
        if let Some(request) = self.pending.take() {
            self.write(request.response(Value::Null));
        }
        let count = self.tasks.all().len();
        let name = match self.manner.attached {
            true => "job".to_owned(),
            false => format!("{count} ranks"),
        };
        let method = if self.manner.attached {
            "attach"
        } else {
            "launch"
        };
        self.event(
            "process",
            json!({"name": name, "startMethod": method, "isLocalProcess": false}),
        );
        self.event("initialized", Value::Null);
    }

    pub(super) fn configuration_done(&mut self, request: &Request) -> Handled {
        if self.phase != Phase::Configuring {
            return Err(early(
                &request.command,
                "it comes once, after `initialized`",
            ));
        }
        self.phase = Phase::Live;
        Ok(Some(Value::Null))
    }

    /// The client has said all: the programs run, or stand where they are.
    pub(super) fn set_off(&mut self) {
        let standing = self.tasks.standing();
        if self.manner.stop_at_entry && !self.manner.no_debug {
            self.note_stops(&standing);
        } else {
            self.run("continue", &standing, &Command::Continue);
        }
    }
}
