//! A session under test. Every event is entered into a ledger, which checks the accounting law (the module `ledger`).

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use sdm_core::CommandId;
use sdm_core::message::{EndPolicy, Health};
use sdm_debug::command::StartSpec;
use sdm_debug::{BackendSettings, Command, Event};
use sdm_idset::{IdSet, TaskId};
use sdm_session::{DebugSession, SendOptions, Session, SessionConfig, SessionError, SessionEvent};

use crate::ledger::Ledger;
use crate::{binaries, processes};

/// Time limit of every wait of the tests. No wait is as long on a loaded machine: only a hang reaches it.
pub const BOUND: Duration = Duration::from_secs(180);

/// True in the long run of `scripts/test --full`.
#[must_use]
pub fn is_full() -> bool {
    std::env::var_os("SDM_TEST_FULL").is_some_and(|full| full == "1")
}

/// Waits until `holds` returns true, at most [`BOUND`].
///
/// # Panics
/// If the condition does not hold in time.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < BOUND, "waited for: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Connects once there is a listener: the socket's file appears a moment earlier.
///
/// # Panics
/// If there is none within [`BOUND`].
#[must_use]
pub fn connect(path: &Path) -> UnixStream {
    let begin = Instant::now();
    loop {
        match UnixStream::connect(path) {
            Ok(stream) => return stream,
            Err(error) => assert!(begin.elapsed() < BOUND, "{}: {error}", path.display()),
        }
        std::thread::yield_now();
    }
}

/// Declares the group of `.config/nextest.toml` in which the tests of a file run, and the reason: `const _: () =
/// test_group(...);`. In `main.rs` it holds for the whole program. Each test is a process, so only the runner can
/// keep two of them apart; `house::groups` compares both lists.
pub const fn test_group(_group: &str, _reason: &str) {}

/// The configuration of a session of servers with scripted tasks. The heartbeat interval and the wait for servers that
/// rejoin are short.
#[must_use]
pub fn fake(servers: u32, scenario: &str) -> SessionConfig {
    let mut config = SessionConfig {
        backend: BackendSettings::Fake {
            scenario: scenario.to_owned(),
        },
        binaries: Some(binaries::folder()),
        ..SessionConfig::local(servers)
    };
    config.config.ping_after = Duration::from_millis(500);
    config.config.rejoin_wait = Duration::from_secs(2);
    config
}

/// A command that evaluates `expression`.
#[must_use]
pub fn evaluate(expression: &str) -> Command {
    Command::Evaluate {
        expression: expression.to_owned(),
    }
}

/// Options of a command that reports missing tasks after `wait`.
#[must_use]
pub fn within(wait: Duration) -> SendOptions {
    SendOptions {
        timeout: Some(wait),
        ..SendOptions::default()
    }
}

/// A session and all its events.
pub struct Run {
    /// The session.
    pub session: Session,
    /// State of every command's destinations.
    pub ledgers: BTreeMap<CommandId, Ledger>,
    /// The last reported reachability of each task, if any.
    pub health: BTreeMap<TaskId, Health>,
    /// Messages about reachability, in order.
    pub health_words: Vec<String>,
    /// Unsolicited events, output included, in order.
    pub events: Vec<(IdSet, Event)>,
    /// Why the session is over, once it is.
    pub ended: Option<String>,
    mark: String,
}

impl Run {
    /// Starts a session.
    ///
    /// # Panics
    /// If the session does not start.
    #[must_use]
    pub fn start(config: &SessionConfig) -> Self {
        Self::try_start(config).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Starts a session.
    ///
    /// # Errors
    /// Why it does not start.
    pub fn try_start(config: &SessionConfig) -> Result<Self, SessionError> {
        let begin = Instant::now();
        let session = Session::start(config, &mut |_| {})?;
        println!(
            "{} servers started in {:?}",
            config.servers,
            begin.elapsed()
        );
        Ok(Self::of(session))
    }

    /// Takes over a running session.
    #[must_use]
    pub fn of(session: Session) -> Self {
        Self {
            mark: format!("SDM_SESSION={}", session.id()),
            session,
            ledgers: BTreeMap::new(),
            health: BTreeMap::new(),
            health_words: Vec::new(),
            events: Vec::new(),
            ended: None,
        }
    }

    /// A text that every process of the session has in its initial environment.
    #[must_use]
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// All tasks.
    #[must_use]
    pub fn all(&self) -> IdSet {
        self.session.tasks().clone()
    }

    /// Pid of a server.
    ///
    /// # Panics
    /// If there is no such server.
    #[must_use]
    pub fn server(&self, number: u32) -> u32 {
        let servers = processes::servers(&self.mark);
        *servers
            .get(&number)
            .unwrap_or_else(|| panic!("no server {number} among {servers:?}"))
    }

    /// The TCP port at which a server listens.
    ///
    /// # Panics
    /// If the server listens at no TCP port.
    #[must_use]
    pub fn port(&self, number: u32) -> u16 {
        let members = self.session.members();
        let member = members.iter().find(|it| it.server == Some(number));
        let port = member.and_then(|it| it.addresses.last()?.rsplit(':').next()?.parse().ok());
        port.unwrap_or_else(|| panic!("no port of server {number}"))
    }

    /// Sends a command.
    pub fn send(&mut self, to: &IdSet, command: &Command, options: &SendOptions) -> CommandId {
        let id = self.session.send(to, command, options);
        self.ledgers.insert(id, Ledger::new(to));
        id
    }

    /// Takes one event and enters it into the ledgers.
    ///
    /// # Panics
    /// If no event arrives within the bound, or an event violates the accounting law.
    pub fn turn(&mut self, what_for: &str) {
        let event = self
            .session
            .next_event(Some(BOUND))
            .unwrap_or_else(|| panic!("nothing within {BOUND:?}; waited for {what_for}: {self}"));
        self.enter(event);
    }

    fn enter(&mut self, event: SessionEvent) {
        match event {
            SessionEvent::Answer {
                id,
                classes,
                missing,
                lost,
                late,
            } => {
                let ledger = self.ledgers.get_mut(&id).expect("the command was sent");
                ledger.answer(classes, &missing, &lost, late);
            }
            SessionEvent::Complete { id } => {
                let ledger = self.ledgers.get_mut(&id).expect("the command was sent");
                ledger.complete();
            }
            SessionEvent::Events(events) => self.events.extend(events),
            SessionEvent::Health { tasks, health, why } => {
                self.health_words.push(format!("{health:?} {tasks}: {why}"));
                self.health.extend(tasks.iter().map(|task| (task, health)));
            }
            SessionEvent::Ended(why) => self.ended = Some(why),
            _ => {}
        }
    }

    /// Waits for the end of a command; returns its results.
    ///
    /// # Panics
    /// If that takes longer than the bound.
    pub fn finish(&mut self, id: CommandId) -> Ledger {
        self.wait_until("the end of a command", |run| run.ledgers[&id].complete);
        self.ledgers[&id].clone()
    }

    /// Sends a command and waits until it is over.
    pub fn ask(&mut self, to: &IdSet, command: &Command) -> Ledger {
        let id = self.send(to, command, &SendOptions::default());
        self.finish(id)
    }

    /// Starts all tasks; they stop at `main`.
    pub fn start_tasks(&mut self) {
        let all = self.all();
        self.ask(&all, &Command::Start(StartSpec::default()));
    }

    /// Waits until `holds` returns true; returns the duration of the wait.
    ///
    /// # Panics
    /// If that takes longer than the bound.
    pub fn wait_until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) -> Duration {
        let begin = Instant::now();
        while !holds(self) {
            assert!(begin.elapsed() < BOUND, "waited for {what}: {self}");
            self.turn(what);
        }
        begin.elapsed()
    }

    /// Waits until `health` is the last report about each of these tasks; returns the time that took.
    pub fn wait_health(&mut self, tasks: &IdSet, health: Health) -> Duration {
        let what = format!("{health:?} of tasks {tasks}");
        self.wait_until(&what, |run| {
            tasks.iter().all(|t| run.health.get(&t) == Some(&health))
        })
    }

    /// Ends the session while another one of this test continues. The end of the other one checks that no process
    /// of both is left.
    ///
    /// # Panics
    /// If the session does not end without errors.
    pub fn close_beside_another(self) {
        let closed = self.session.close(EndPolicy::KillStarted);
        closed.unwrap_or_else(|error| panic!("{error}"));
    }

    /// Ends the session, and checks that no process of it is left.
    ///
    /// # Panics
    /// If a process is left.
    pub fn close(self) {
        let mark = self.mark.clone();
        let begin = Instant::now();
        let closed = self.session.close(EndPolicy::KillStarted);
        crate::leftovers::assert_gone(&mark);
        println!("ended in {:?}", begin.elapsed());
        closed.unwrap_or_else(|error| panic!("{error}"));
    }
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (id, ledger) in self.ledgers.iter().filter(|(_, ledger)| !ledger.complete) {
            writeln!(f, "command {id}: open {}", ledger.open)?;
        }
        for words in &self.health_words {
            writeln!(f, "{words}")?;
        }
        Ok(())
    }
}
