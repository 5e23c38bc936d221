//! The real tree under a bench: a session of processes whose tasks follow a script.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use sdm::session::{
    Class, ClassAnswer, Debug as _, SendOptions, Session, SessionConfig, SessionEvent,
};
use sdm_core::frame;
use sdm_core::ids::{Attempt, CommandId};
use sdm_core::message::{self, Answer, Block, EndPolicy, Lane, Message, Status, SyncPolicy};
use sdm_debug::reply::Value;
use sdm_debug::{BackendSettings, Command, Reply, wire};
use sdm_idset::IdSet;

/// Longer than anything here takes.
const WAIT: Duration = Duration::from_secs(120);
/// What a Noise record adds to what is in it: its length and the tag.
const RECORD_BYTES: usize = 18;

/// The folder with this build's binaries.
///
/// # Errors
/// This program's path is not known.
pub fn binaries() -> Result<PathBuf> {
    let own = std::env::current_exe().context("this program's path")?;
    Ok(own.parent().context("its folder")?.to_owned())
}

/// A session with scripted tasks, one per server, all started.
pub struct Tree {
    session: Session,
    all: IdSet,
    query: Command,
    answer_bytes: usize,
}

impl Tree {
    /// Starts `servers` servers. [`Tree::round`] sends a command of `payload_bytes` bytes, and
    /// its one distinct answer is as long.
    ///
    /// # Errors
    /// The session cannot be started.
    pub fn start(servers: u32, payload_bytes: usize) -> Result<Self> {
        let name = "x".repeat(payload_bytes.saturating_sub(3).max(1));
        let text = "1".repeat(payload_bytes.saturating_sub(4).max(1));
        let config = SessionConfig {
            backend: BackendSettings::Fake {
                scenario: format!("[all]\nvalue {name} = {text}\n"),
            },
            binaries: Some(binaries()?),
            ..SessionConfig::local(servers)
        };
        let session = Session::start(&config, &mut |_| {})
            .with_context(|| format!("start {servers} servers"))?;
        let value = Value { text, cut: None };
        let mut tree = Self {
            session,
            all: IdSet::all_below(servers),
            query: Command::Evaluate { expression: name },
            answer_bytes: wire::encode(&Reply::Value(value)).len(),
        };
        let begin = Command::Start(sdm_debug::command::StartSpec::default());
        let id = tree
            .session
            .send(&tree.all, &begin, &SendOptions::default());
        tree.finish(id)?;
        Ok(tree)
    }

    /// Sends the command to all.
    pub fn send(&mut self) -> CommandId {
        let options = SendOptions {
            timeout: Some(WAIT),
            ..SendOptions::default()
        };
        self.session.send(&self.all, &self.query, &options)
    }

    /// One command to all and its merged answer.
    ///
    /// # Errors
    /// Not everybody gave the same answer.
    pub fn round(&mut self) -> Result<()> {
        let id = self.send();
        let classes = self.finish(id)?;
        ensure!(
            classes.len() == 1 && matches!(classes[0].answer, ClassAnswer::Reply(Reply::Value(_))),
            "not one value from all: {classes:?}"
        );
        Ok(())
    }

    /// Waits for the end of whatever command ends next.
    ///
    /// # Errors
    /// Nothing came in time, or the session is over.
    pub fn receive(&mut self) -> Result<CommandId> {
        loop {
            match self.session.next_event(Some(WAIT)) {
                Some(SessionEvent::Complete { id }) => return Ok(id),
                Some(SessionEvent::Ended(why)) => bail!("the session is over: {why}"),
                Some(_) => {}
                None => bail!("no answer within {WAIT:?}"),
            }
        }
    }

    fn finish(&mut self, wanted: CommandId) -> Result<Vec<Class>> {
        let mut answers = Vec::new();
        loop {
            match self.session.next_event(Some(WAIT)) {
                Some(SessionEvent::Answer { id, classes, .. }) if id == wanted => {
                    answers.extend(classes);
                }
                Some(SessionEvent::Complete { id }) if id == wanted => return Ok(answers),
                Some(SessionEvent::Ended(why)) => bail!("the session is over: {why}"),
                Some(_) => {}
                None => bail!("no answer within {WAIT:?}"),
            }
        }
    }

    /// How many bytes the command and its merged answer take on a link to all, encryption included.
    ///
    /// # Errors
    /// The command is longer than any may be.
    pub fn wire_bytes(&self) -> Result<(usize, usize)> {
        let payload = wire::encode(&self.query).into();
        let command = message::Command {
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
            payload: vec![0; self.answer_bytes].into(),
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
