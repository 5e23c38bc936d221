//! The real tree for benches: a session whose members are processes.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use sdm_core::frame;
use sdm_core::ids::{Attempt, CommandId};
use sdm_core::message::{
    self, Answer, Block, EndPolicy, Health, Lane, Message, Status, SyncPolicy,
};
use sdm_core::topology::Topology;
use sdm_core::transport::HostTransport;
use sdm_debug::command::StartSpec;
use sdm_debug::event::Stream;
use sdm_debug::reply::Value;
use sdm_debug::{BackendSettings, Command, Event, Reply, wire};
use sdm_idset::{IdSet, TaskId};
use sdm_session::{
    Class, ClassAnswer, DebugSession as _, SendOptions, Session, SessionConfig, SessionEvent,
};

/// Time limit of each wait: longer than any operation here takes.
const WAIT: Duration = Duration::from_secs(120);
/// Overhead of a Noise record: its length and the tag; in bytes.
const RECORD_BYTES: usize = 18;

/// The folder with this build's binaries.
///
/// # Errors
/// This program's path is not known.
pub fn binaries() -> Result<PathBuf> {
    let own = std::env::current_exe().context("this program's path")?;
    Ok(own.parent().context("its folder")?.to_owned())
}

/// Arrangement and transport of a tree's members.
#[derive(Clone, Copy, Default, Debug)]
pub struct Kind {
    /// Arrangement of the members.
    pub topology: Topology,
    /// Transport of their links.
    pub transport: HostTransport,
}

impl From<Topology> for Kind {
    fn from(topology: Topology) -> Self {
        Self {
            topology,
            ..Self::default()
        }
    }
}

/// A session of servers, all started.
pub struct Tree {
    session: Session,
    all: IdSet,
}

/// A command whose one distinct answer is as long as the command.
pub struct Echo {
    /// The command, for all tasks.
    pub command: Command,
    answer_bytes: usize,
}

impl Tree {
    /// Starts `servers` servers whose tasks answer by a script; the echo is `payload_bytes` long.
    ///
    /// # Errors
    /// The session cannot be started.
    pub fn scripted(servers: u32, payload_bytes: usize) -> Result<(Self, Echo)> {
        Self::scripted_as(servers, Kind::default(), payload_bytes)
    }

    /// Like [`Tree::scripted`], with a given arrangement and transport of the members.
    ///
    /// # Errors
    /// The session cannot be started.
    pub fn scripted_as(
        servers: u32,
        kind: impl Into<Kind>,
        payload_bytes: usize,
    ) -> Result<(Self, Echo)> {
        let name = "x".repeat(payload_bytes.saturating_sub(3).max(1));
        let text = "1".repeat(payload_bytes.saturating_sub(4).max(1));
        let scenario = format!("[all]\nvalue {name} = {text}\n");
        let backend = BackendSettings::Fake { scenario };
        let mut tree = Self::start(servers, kind.into(), backend)?;
        tree.run(&Command::Start(StartSpec::default()))?;
        let value = Value { text, cut: None };
        let echo = Echo {
            command: Command::Evaluate { expression: name },
            answer_bytes: wire::encode(&Reply::Value(value)).len(),
        };
        Ok((tree, echo))
    }

    /// Starts servers for `tasks` tasks that gdb is to debug, `per_server` consecutive tasks each. No program is
    /// started yet.
    ///
    /// # Errors
    /// The session cannot be started.
    pub fn with_gdb(tasks: u32, per_server: u32) -> Result<Self> {
        let per_server = per_server.max(1);
        let first = (0..tasks).step_by(per_server as usize);
        let own = first.map(|first| {
            let last = first.saturating_add(per_server - 1).min(tasks - 1);
            IdSet::from_range(first..=last)
        });
        let config = SessionConfig {
            tasks: own.collect(),
            backend: BackendSettings::Gdb,
            binaries: Some(binaries()?),
            ..SessionConfig::local(tasks.div_ceil(per_server))
        };
        Self::begin(&config, tasks)
    }

    fn start(servers: u32, kind: Kind, backend: BackendSettings) -> Result<Self> {
        let config = SessionConfig {
            // As `sdm emulate` does.
            forks: matches!(backend, BackendSettings::Fake { .. }),
            topology: kind.topology,
            transport: kind.transport,
            backend,
            binaries: Some(binaries()?),
            ..SessionConfig::local(servers)
        };
        // An address has ports for only two such trees within a minute.
        let config = match servers {
            4097.. => config.over_loopback(8),
            _ => config,
        };
        Self::begin(&config, servers)
    }

    fn begin(config: &SessionConfig, tasks: u32) -> Result<Self> {
        let session = Session::start(config, &mut |_| {})
            .with_context(|| format!("start {} servers", config.servers))?;
        let all = IdSet::all_below(tasks);
        Ok(Self { session, all })
    }

    /// Sends a command to all.
    pub fn send(&mut self, command: &Command) -> CommandId {
        let options = SendOptions {
            timeout: Some(WAIT),
            ..SendOptions::default()
        };
        self.session.send(&self.all, command, &options)
    }

    /// Runs one command on all tasks; the merged answer must be one class.
    ///
    /// # Errors
    /// The answers differ, or one is a failure.
    pub fn run(&mut self, command: &Command) -> Result<()> {
        self.run_watching(command, |_| {})
    }

    /// As [`Tree::run`]; `watch` gets unsolicited events meanwhile.
    ///
    /// # Errors
    /// The answers differ, or one is a failure.
    pub fn run_watching(
        &mut self,
        command: &Command,
        mut watch: impl FnMut(&[(IdSet, Event)]),
    ) -> Result<()> {
        let wanted = self.send(command);
        let mut answers: Vec<Class> = Vec::new();
        loop {
            match self.next()? {
                SessionEvent::Answer { id, classes, .. } if id == wanted => answers.extend(classes),
                SessionEvent::Complete { id } if id == wanted => break,
                SessionEvent::Events(events) => watch(&events),
                _ => {}
            }
        }
        // Answers to run control arrive in several messages.
        let first = answers.first().map(|class| &class.answer);
        let same = answers.iter().all(|class| Some(&class.answer) == first);
        ensure!(
            same && matches!(first, Some(ClassAnswer::Reply(_))),
            "not one answer from all: {answers:?}"
        );
        Ok(())
    }

    /// Waits until the tree reports the loss of a task's server. The task then gets no further commands.
    ///
    /// # Errors
    /// The report did not arrive in time.
    pub fn wait_for_loss(&mut self, task: TaskId) -> Result<()> {
        while self.all.contains(task) {
            if let SessionEvent::Health {
                tasks,
                health: Health::Lost,
                ..
            } = self.next()?
            {
                self.all.subtract(&tasks);
            }
        }
        Ok(())
    }

    /// Lets all tasks run to their end. Returns the number of bytes that they have printed.
    ///
    /// # Errors
    /// The tasks did not end.
    pub fn read_output(&mut self) -> Result<u64> {
        let mut bytes = 0;
        let mut ended = 0;
        self.send(&Command::Continue);
        while ended < self.all.len() {
            let SessionEvent::Events(events) = self.next()? else {
                continue;
            };
            for (tasks, event) in events {
                match event {
                    Event::Output { bytes: part, .. } => bytes += part.len() as u64 * tasks.len(),
                    Event::OutputEnd {
                        stream: Stream::Stdout,
                    } => ended += tasks.len(),
                    _ => {}
                }
            }
        }
        Ok(bytes)
    }

    /// Duration of `count` commands to all tasks, of which `flight` are outstanding at a time.
    ///
    /// # Errors
    /// A command ended that was not sent here, none ended in time, or the session is over.
    pub fn flights(&mut self, echo: &Echo, count: usize, flight: usize) -> Result<Duration> {
        let began = Instant::now();
        let mut open: HashSet<_> = (0..flight).map(|_| self.send(&echo.command)).collect();
        for _ in flight..count {
            ensure!(open.remove(&self.receive()?), "an answer to nothing");
            open.insert(self.send(&echo.command));
        }
        while !open.is_empty() {
            open.remove(&self.receive()?);
        }
        Ok(began.elapsed())
    }

    /// Waits for the end of any one command.
    ///
    /// # Errors
    /// None ended in time, or the session is over.
    pub fn receive(&mut self) -> Result<CommandId> {
        loop {
            if let SessionEvent::Complete { id } = self.next()? {
                return Ok(id);
            }
        }
    }

    fn next(&mut self) -> Result<SessionEvent> {
        match self.session.next_event(Some(WAIT)) {
            Some(SessionEvent::Ended(why)) => bail!("the session is over: {why}"),
            Some(event) => Ok(event),
            None => bail!("nothing came within {WAIT:?}"),
        }
    }

    /// Size of a command to all tasks and of its merged answer on one link, in bytes, encryption included.
    ///
    /// # Errors
    /// The command is longer than the maximum.
    pub fn wire_bytes(&self, echo: &Echo) -> Result<(usize, usize)> {
        let payload = wire::encode(&echo.command).into();
        let command = message::CommandMessage {
            id: CommandId(1000),
            attempt: Attempt(0),
            destination: self.all.clone(),
            lane: Lane::Control,
            sync: SyncPolicy::TimeOut { ms: 120_000 },
            rule: 0,
            rule_params: Bytes::new(),
            settled_below: CommandId(1000),
            open: Vec::new(),
            payload,
        };
        let block = Block {
            status: Status::Ok,
            sources: self.all.clone(),
            payload: vec![0; echo.answer_bytes].into(),
        };
        let answer = Answer {
            id: CommandId(1000),
            attempt: Attempt(0),
            age_us: 1000,
            blocks: vec![block],
            missing: Vec::new(),
            lost: IdSet::new(),
        };
        let len = |message: &Message| -> Result<usize> {
            let mut bytes = Vec::new();
            frame::encode_message(message, &mut bytes).context("measure a message")?;
            Ok(bytes.len() + RECORD_BYTES)
        };
        Ok((
            len(&Message::Command(command))?,
            len(&Message::Answer(answer))?,
        ))
    }

    /// Ends the session.
    ///
    /// # Errors
    /// Something did not end in time.
    pub fn close(self) -> Result<()> {
        let closed = self.session.close(EndPolicy::KillStarted);
        closed.map_err(|error| anyhow::anyhow!("close: {error}"))
    }
}
