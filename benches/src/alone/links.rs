//! Benchmark parts: links alone, with both ends in memory.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use sdm_core::ids::{Attempt, Epoch};
use sdm_core::link::{Link, LinkConfig, LinkEvent};
use sdm_core::message::Message;
use sdm_core::secure::{Hello, Role, SessionKey, draw_session_id};
use sdm_core::{CommandId, ServerId};
use sdm_idset::IdSet;

use super::messages::{ME, answer, command};
use crate::meter::{Round, metered};

/// A link configuration with a new session key.
pub(super) fn link_config() -> Result<LinkConfig> {
    Ok(LinkConfig::new(SessionKey::draw()?, draw_session_id()?))
}

/// One end of a link.
pub(super) struct End {
    pub(super) link: Link,
}

fn hello(role: Role, id: ServerId, expect: Option<ServerId>) -> Hello {
    Hello {
        role,
        id,
        expect,
        // A child has had no earlier parent, so its epoch is 0.
        epoch: Epoch(u32::from(role == Role::Parent)),
        incarnation: 0,
        build: String::new(),
        features: 0,
    }
}

impl End {
    pub(super) fn initiate(
        now: Instant,
        config: &LinkConfig,
        role: Role,
        id: ServerId,
        other: ServerId,
    ) -> Self {
        let link = Link::initiate(now, config, hello(role, id, Some(other)));
        Self { link }
    }

    pub(super) fn respond(now: Instant, config: &LinkConfig, role: Role, id: ServerId) -> Self {
        let link = Link::respond(now, config, hello(role, id, None));
        Self { link }
    }

    /// The bytes that this end of the link has to send.
    pub(super) fn bytes(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        bytes
    }

    fn write(&mut self, out: &mut Vec<u8>) {
        while self.link.poll_transmit(out) {}
    }

    fn say(&mut self, message: &Message, out: &mut Vec<u8>) -> Result<()> {
        self.link.send(message)?;
        self.write(out);
        Ok(())
    }

    /// Processes bytes that the other end has sent.
    pub(super) fn take(&mut self, now: Instant, bytes: &mut [u8]) -> Result<()> {
        Ok(self.link.handle_bytes(now, bytes)?)
    }

    /// The next received message.
    pub(super) fn message(&mut self) -> Option<Message> {
        loop {
            match self.link.poll_event()? {
                LinkEvent::Message { message, .. } => return Some(message),
                _ => continue,
            }
        }
    }
}

/// Both ends of an established link.
fn pair(now: Instant, config: &LinkConfig) -> Result<[End; 2]> {
    let mut above = End::initiate(now, config, Role::Parent, ServerId::MASTER, ME);
    let mut below = End::respond(now, config, Role::Child, ME);
    while !(above.link.is_up() && below.link.is_up()) {
        below.take(now, &mut above.bytes())?;
        above.take(now, &mut below.bytes())?;
    }
    while below.link.poll_event().is_some() || above.link.poll_event().is_some() {}
    Ok([above, below])
}

/// A round of the links of a member with a number of children: one command and its answer pass them.
pub(super) fn links(children: u32) -> Result<Round> {
    let now = Instant::now();
    let config = link_config()?;
    let [mut parent, mut above] = pair(now, &config)?;
    let below: Result<Vec<_>> = (0..children).map(|_| pair(now, &config)).collect();
    let mut below = below?;
    let mut out = Vec::new();
    let mut id = 0;
    Ok(Box::new(move || {
        id += 1;
        parent.link.send(&command(id, children))?;
        let mut bytes = parent.bytes();
        let down = metered(|| -> Result<_> {
            above.take(now, &mut bytes)?;
            above.message().context("a command")
        })?;
        for [own, child] in &mut below {
            out.clear();
            metered(|| own.say(&down, &mut out))?;
            child.take(now, &mut out)?;
            ensure!(child.message().is_some(), "no command came");
            let sources = IdSet::single(sdm_idset::TaskId(1));
            let reply = answer(CommandId(id.into()), Attempt(id), sources);
            child.link.send(&reply)?;
            let mut bytes = child.bytes();
            metered(|| own.take(now, &mut bytes).map(|()| own.message()))?;
        }
        let sources = IdSet::all_below(children + 1);
        let up = answer(CommandId(id.into()), Attempt(id), sources);
        out.clear();
        metered(|| above.say(&up, &mut out))?;
        parent.take(now, &mut out)?;
        ensure!(parent.message().is_some(), "no answer came");
        Ok(())
    }))
}

/// A round that carries one command over a link. `seals` measures its encryption, otherwise its decryption.
pub(super) fn one_way(seals: bool) -> Result<Round> {
    let now = Instant::now();
    let [mut from, mut to] = pair(now, &link_config()?)?;
    let message = command(1, 1023);
    let mut out = Vec::new();
    Ok(Box::new(move || {
        out.clear();
        let mut seal = || from.say(&message, &mut out);
        if seals {
            metered(seal)?;
        } else {
            seal()?;
        }
        let mut open = || to.take(now, &mut out).map(|()| to.message());
        let opened = if seals { open()? } else { metered(open)? };
        ensure!(opened.is_some(), "no message came");
        Ok(())
    }))
}
