//! One connection with an editor, as a machine.
//!
//! Methods are of four kinds. `handle_*` take in what has happened: bytes, events of the session, time; time never goes
//! backward. `poll_output` and `poll_action` give what is to be done, and are to be called until they have nothing more after
//! every `handle_*`. `poll_timeout` says when [`Adapter::handle_timeout`] is to be called at the latest. `is_over` ends it.

mod begin;
mod end;
mod heard;
mod jobs;
mod looking;
mod moving;
mod pointing;
mod requests;
mod stopping;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use sdm_debug::reply::Backtrace;
use sdm_idset::IdSet;
use sdm_session::SendOptions;
use serde_json::{Value, json};

use crate::action::Action;
use crate::arguments::InitializeArguments;
use crate::frame::{Framed, Framer, framed};
use crate::launch::{Scope, Threads};
use crate::message::{self, Request, Said, event};
use crate::output::Output;
use crate::points::Points;
use crate::references::References;
use crate::rows::Rows;
use crate::tasks::Tasks;
use jobs::Jobs;
use stopping::Settling;

/// How long a question to tasks may take.
const QUERY_WAIT: Duration = Duration::from_secs(60);
/// The most messages that wait for the client.
const OUTPUT_MAX: usize = 1 << 16;

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// Nothing was said.
    New,
    /// `initialize` was answered.
    Initialized,
    /// A session is being opened, or its programs are on their way to `main`.
    Beginning,
    /// The client says its breakpoints.
    Configuring,
    /// The programs are the client's.
    Live,
    /// All have ended, or the session has; the client knows.
    Ended,
    /// The session is being closed.
    Closing,
    /// Nothing more will come.
    Over,
}

/// What was said of the session in launch.json.
#[derive(Clone, Copy, Debug)]
struct Manner {
    attached: bool,
    stop_at_entry: bool,
    no_debug: bool,
    threads: Option<Threads>,
    scope: Scope,
}

/// What is on its way to the client, and what is to be done.
#[derive(Debug, Default)]
struct Outbox {
    output: VecDeque<Vec<u8>>,
    actions: VecDeque<Action>,
    /// The number of the last message of ours.
    seq: i64,
}

/// The debug adapter of one client.
#[derive(Debug)]
pub struct Adapter {
    framer: Framer,
    now: Instant,
    phase: Phase,
    client: InitializeArguments,
    manner: Manner,
    outbox: Outbox,
    /// The request to launch, attach or disconnect that is answered later.
    pending: Option<Request>,
    tasks: Tasks,
    rows: Rows,
    /// The stacks of those that stand, as far as they were asked for.
    stacks: Vec<(IdSet, Backtrace)>,
    settling: Settling,
    points: Points,
    references: References,
    jobs: Jobs,
    output: Output,
    ending: end::Ending,
}

impl Adapter {
    /// A connection on which nothing was said.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self {
            framer: Framer::default(),
            now,
            phase: Phase::New,
            client: InitializeArguments::default(),
            manner: Manner {
                attached: false,
                stop_at_entry: false,
                no_debug: false,
                threads: None,
                scope: Scope::All,
            },
            outbox: Outbox::default(),
            pending: None,
            tasks: Tasks::default(),
            rows: Rows::default(),
            stacks: Vec::new(),
            settling: Settling::default(),
            points: Points::default(),
            references: References::default(),
            jobs: Jobs::default(),
            output: Output::default(),
            ending: end::Ending::default(),
        }
    }

    /// Takes in bytes of the client's, in pieces of any size.
    pub fn handle_bytes(&mut self, now: Instant, bytes: &[u8]) {
        self.now = now;
        let mut framer = std::mem::take(&mut self.framer);
        framer.handle_bytes(bytes, &mut |framed| match framed {
            Framed::Body(body) => match message::read(&body) {
                Said::Request(request) => self.handle_request(request),
                Said::Other => {}
                Said::Nothing(why) => {
                    self.say("important", &format!("sdm: not understood: {why}\n"))
                }
            },
            Framed::Bad(why) => self.say("important", &format!("sdm: not understood: {why}\n")),
        });
        self.framer = framer;
        self.settle();
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        self.settle();
    }

    /// When [`Adapter::handle_timeout`] is wanted at the latest; absent: when something else happens.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let times = [
            self.output.due(),
            self.settling.due(&self.tasks),
            self.ending.due(),
        ];
        times.into_iter().flatten().min()
    }

    /// The next bytes for the client.
    pub fn poll_output(&mut self) -> Option<Vec<u8>> {
        self.outbox.output.pop_front()
    }

    /// The next thing to be done with the session.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.outbox.actions.pop_front()
    }

    /// True once nothing more can come of it.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// What is due by now, after anything has happened.
    fn settle(&mut self) {
        self.flush_output(false);
        self.settle_stops();
        self.settle_end();
    }

    fn write(&mut self, mut message: Value) {
        // A client that does not read costs the session nothing but what it does not see.
        if self.outbox.output.len() >= OUTPUT_MAX {
            return;
        }
        self.outbox.seq += 1;
        message["seq"] = json!(self.outbox.seq);
        let body = message.to_string();
        self.outbox.output.push_back(framed(body.as_bytes()));
    }

    fn event(&mut self, name: &str, body: Value) {
        self.write(event(name, body));
    }

    /// Says something to the person: category `console`, or `important`.
    fn say(&mut self, category: &str, text: &str) {
        self.event("output", json!({"category": category, "output": text}));
    }

    fn act(&mut self, action: Action) {
        self.outbox.actions.push_back(action);
    }

    /// The client's number of a file's first line.
    fn line_base(&self) -> i64 {
        i64::from(self.client.lines_start_at1)
    }

    fn is_by_rank(&self) -> bool {
        match self.manner.threads {
            Some(threads) => threads == Threads::Ranks,
            None => self.tasks.all().len() <= crate::launch::RANKS_MAX,
        }
    }
}

/// How questions are sent.
fn query() -> SendOptions {
    SendOptions {
        timeout: Some(QUERY_WAIT),
        ..SendOptions::default()
    }
}
