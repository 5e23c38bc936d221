//! The state of one client and its session: messages for the client, and actions for the session's owner.

use std::collections::VecDeque;
use std::time::Instant;

use sdm_debug::Command;
use sdm_debug::command::StartSpec;
use sdm_debug::reply::Backtrace;
use sdm_idset::{IdSet, TaskId};
use serde_json::{Value, json};

use crate::action::{Action, Opening};
use crate::arguments::InitializeArguments;
use crate::client_breakpoints::Points;
use crate::console::{Console, Machines};
use crate::deferred_requests::DeferredRequests;
use crate::error::RequestError;
use crate::exit_state::ExitState;
use crate::frame::framed;
use crate::jobs::{JOBS_MAX, Jobs, Purpose, Question};
use crate::launch::{Scope, Threads};
use crate::message::{Request, event};
use crate::os_threads::OsThreads;
use crate::output::Output;
use crate::pages::Pages;
use crate::references::References;
use crate::stop_coalescing::PendingStops;
use crate::tasks::Tasks;
use crate::thread_ids::{Row, Rows};

/// Maximum number of messages queued for the client.
const OUTPUT_MAX: usize = 1 << 16;
/// Bytes of waiting messages above which no more are added.
const OUTPUT_BYTES_MAX: usize = 64 << 20;

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// `initialize` was not answered yet.
    New,
    /// `initialize` was answered.
    Initialized,
    /// A session is being opened, or its programs run to `main`.
    Beginning,
    /// The client sets its breakpoints.
    Configuring,
    /// The programs are under the client's control.
    Live,
    /// All programs have ended, or the session has, or its start has failed; the client knows.
    Ended,
    /// The client has detached from programs that were started here. The session stays until they have ended.
    Leaving,
    /// The session is being closed.
    Closing,
    /// The connection has ended; no more output comes.
    Over,
}

/// The client's relation to the session that it debugs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Role {
    /// The client owns the session.
    #[default]
    Owner,
    /// The client debugs one task of another client's session. The text is the password that admits it.
    Beside(String),
    /// The client debugs a session of another process, to which everything is relayed.
    Relay,
}

/// A client's role among the clients of a session.
#[derive(Debug, Default)]
pub(crate) struct ClientGroup {
    /// The client's role in the session.
    pub(crate) role: Role,
    /// The client's `initialize` request, to be passed on. `None` before it has arrived.
    pub(crate) initialize: Option<Request>,
    /// Requests for an additional client, each with its task.
    pub(crate) inviting: VecDeque<(Request, TaskId)>,
}

/// The start of a session, also by a restart.
#[derive(Debug, Default)]
pub(crate) struct SessionStart {
    /// The opening of the session, which `restart` repeats. `None` before a launch or attach.
    pub(crate) opening: Option<Opening>,
    /// Commands for the gdbs of an attach, to be sent once the gdbs have attached.
    pub(crate) settings: Vec<String>,
    /// Requests that wait for the programs.
    pub(crate) beforehand: DeferredRequests,
    /// True while a session is closed in order to be opened again.
    pub(crate) restarting: bool,
    /// True once the client has cancelled the start.
    pub(crate) given_up: bool,
}

/// The debug console and its facilities.
#[derive(Debug, Default)]
pub(crate) struct Prompt {
    /// Executes lines; `None` until one is typed, or a page is shown.
    pub(crate) console: Option<Console>,
    /// The source of machine facilities for lines; `None` if the owner provides none.
    pub(crate) machines: Option<Machines>,
    /// The programs that were started, each with its tasks.
    pub(crate) programs: Vec<(IdSet, StartSpec)>,
    /// The live pages of the session.
    pub(crate) pages: Pages,
}

/// Settings of the session from launch.json.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    pub(crate) attached: bool,
    pub(crate) stop_at_entry: bool,
    pub(crate) no_debug: bool,
    pub(crate) threads: Option<Threads>,
    pub(crate) scope: Scope,
}

/// Messages for the client, and actions for the owner.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    output: VecDeque<Vec<u8>>,
    output_bytes: usize,
    /// True once output was left out, as the client does not read.
    pub(crate) overrun: bool,
    pub(crate) actions: VecDeque<Action>,
    /// Number of the adapter's last message.
    pub(crate) seq: i64,
}

impl Outbox {
    /// The next message for the client; `None` if there is none.
    pub(crate) fn pop(&mut self) -> Option<Vec<u8>> {
        let bytes = self.output.pop_front()?;
        self.output_bytes -= bytes.len();
        Some(bytes)
    }

    fn is_full(&self) -> bool {
        self.output.len() >= OUTPUT_MAX || self.output_bytes >= OUTPUT_BYTES_MAX
    }
}

/// The state of one client and its session.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) now: Instant,
    pub(crate) phase: Phase,
    pub(crate) client: InitializeArguments,
    pub(crate) manner: Manner,
    pub(crate) outbox: Outbox,
    /// The launch, attach, restart or disconnect request that is still to be answered. `None` if there is none.
    pub(crate) pending: Option<Request>,
    pub(crate) tasks: Tasks,
    pub(crate) rows: Rows,
    /// The stacks of stopped tasks, as far as they were requested.
    pub(crate) stacks: Vec<(IdSet, Backtrace)>,
    pub(crate) settling: PendingStops,
    pub(crate) points: Points,
    pub(crate) references: References,
    pub(crate) jobs: Jobs,
    pub(crate) output: Output,
    pub(crate) ending: ExitState,
    /// Progress of the start as last sent to the client, in percent. `None` while no progress is shown.
    pub(crate) progress: Option<u64>,
    /// The threads in the sense of the system, if the session has a single process.
    pub(crate) os_threads: OsThreads,
    /// The state of the session's start or restart.
    pub(crate) anew: SessionStart,
    /// The debug console and its facilities.
    pub(crate) prompt: Prompt,
    /// The client's role in the session, and its requests for additional clients.
    pub(crate) company: ClientGroup,
}

impl Connection {
    /// A new connection, without any message yet.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
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
            settling: PendingStops::default(),
            points: Points::default(),
            references: References::default(),
            jobs: Jobs::default(),
            output: Output::default(),
            ending: ExitState::default(),
            progress: None,
            os_threads: OsThreads::default(),
            anew: SessionStart::default(),
            prompt: Prompt::default(),
            company: ClientGroup::default(),
        }
    }

    /// The time at which a request that waits for the programs must be answered. `None` if none waits.
    pub(crate) fn beforehand_due(&self) -> Option<Instant> {
        let is_beginning = self.phase == Phase::Beginning;
        is_beginning.then(|| self.anew.beforehand.due()).flatten()
    }

    pub(crate) fn write(&mut self, mut message: Value) {
        // Messages to a client that does not read are dropped, so that the session is not affected.
        if self.outbox.is_full() {
            self.outbox.overrun = true;
            return;
        }
        self.outbox.seq += 1;
        message["seq"] = json!(self.outbox.seq);
        let body = message.to_string();
        let bytes = framed(body.as_bytes());
        self.outbox.output_bytes += bytes.len();
        self.outbox.output.push_back(bytes);
    }

    pub(crate) fn event(&mut self, name: &str, body: Value) {
        self.write(event(name, body));
    }

    /// Shows text to the user: category `console`, or `important`.
    pub(crate) fn say(&mut self, category: &str, text: &str) {
        let text = sdm_text::without_numbers(text);
        self.event("output", json!({"category": category, "output": text}));
    }

    pub(crate) fn act(&mut self, action: Action) {
        self.outbox.actions.push_back(action);
    }

    /// The client's number of a file's first line: 0 or 1.
    pub(crate) fn line_base(&self) -> i64 {
        i64::from(self.client.lines_start_at1)
    }

    /// The time at which the console's line needs attention. `None` if it needs none.
    pub(crate) fn console_due(&self) -> Option<Instant> {
        self.prompt
            .console
            .as_ref()
            .and_then(|it| it.shell.poll_timeout())
    }

    /// The row of the thread with this id. A session of one process has one row for all threads. An error if there is
    /// none.
    pub(crate) fn row(&self, id: i64) -> Result<&Row, RequestError> {
        let row = match self.os_threads.knows(id) {
            true => self.rows.iter().next(),
            false => self.rows.find(id),
        };
        row.ok_or(RequestError::Thread(id))
    }

    /// True if each rank is a thread of the client: by launch.json, or else by the number of ranks.
    pub(crate) fn is_by_rank(&self) -> bool {
        match self.manner.threads {
            Some(threads) => threads == Threads::Ranks,
            None => self.tasks.all().len() <= crate::launch::RANKS_MAX,
        }
    }

    /// The tasks of a request that names none: the stopped ones of the thread in focus, or else all stopped ones.
    pub(crate) fn focused(&self) -> IdSet {
        let standing = self.tasks.standing();
        let row = self.rows.find(self.rows.focused);
        let focused = row.map(|row| row.group.tasks.intersection(&standing));
        let focused = focused.filter(|focused| !focused.is_empty());
        focused.unwrap_or(standing)
    }

    /// One task of those in focus, for addresses, which belong to a single process.
    ///
    /// # Errors
    /// [`RequestError::Runs`]: no task is stopped.
    pub(crate) fn one(&self) -> Result<IdSet, RequestError> {
        let first = self.focused().first();
        let first = first.ok_or_else(|| RequestError::Runs("every rank".to_owned()))?;
        Ok(IdSet::single(first))
    }

    /// Sends commands to tasks. The request is answered once all of the commands are complete.
    pub(crate) fn ask(
        &mut self,
        request: &Request,
        question: Question,
        commands: Vec<(IdSet, Command)>,
    ) {
        let request = request.clone();
        self.begin_job(Purpose::Ask { request, question }, commands);
    }

    /// Closes the console, and refuses its open requests.
    pub(crate) fn close_console(&mut self) {
        let Some(console) = self.prompt.console.take() else {
            return;
        };
        for request in console.close() {
            self.write(request.refusal(&RequestError::Cancelled));
        }
    }

    /// True while a session is closed only to be opened again.
    pub(crate) fn is_restarting(&self) -> bool {
        self.anew.restarting && self.phase == Phase::Beginning
    }

    /// Begins a job: sends commands for one purpose, in this order.
    pub(crate) fn begin_job(&mut self, purpose: Purpose, commands: Vec<(IdSet, Command)>) {
        match self.jobs.begin(purpose, commands) {
            Ok(actions) => self.outbox.actions.extend(actions),
            Err(purpose) => {
                if let Some(request) = purpose.request() {
                    self.write(request.refusal(&RequestError::Busy(JOBS_MAX)));
                }
            }
        }
    }
}
