//! Benchmark part: a node with its links, without I/O: bytes in, bytes out.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use sdm_core::ServerId;
use sdm_core::link::LinkConfig;
use sdm_core::member::{Member, Output};
use sdm_core::message::{Message, Status};
use sdm_core::node::LinkId;
use sdm_core::secure::Role;
use sdm_idset::IdSet;

use super::links::{End, link_config};
use super::messages::{ME, answered, command, fresh, init, reply};
use crate::meter::{Round, metered};
use crate::threads::Repeating;

struct AloneMember {
    member: Member,
    config: Arc<LinkConfig>,
    now: Instant,
    /// The other ends of the member's links, the parent first, each with the bytes that the member has for it.
    ends: Vec<(LinkId, End, Vec<u8>)>,
    /// Links with output of the member.
    flush: Vec<LinkId>,
}

/// A round of a member with `children` children: one command to all and its merged answer.
pub(super) fn member(children: u32) -> Result<Round> {
    let now = Instant::now();
    let config = Arc::new(link_config()?);
    let mut alone = AloneMember {
        member: Member::new(fresh(now), Arc::clone(&config)),
        config,
        now,
        ends: Vec::new(),
        flush: Vec::new(),
    };
    let link = alone.member.accept(now).context("a parent is welcome")?;
    let above = End::initiate(now, &alone.config, Role::Parent, ServerId::MASTER, ME);
    alone.ends.push((link, above, Vec::new()));
    let up = alone.exchange(&init(children))?;
    ensure!(up.len() == u64::from(children) + 1, "{up} are ready");
    let mut id = 0;
    Ok(Box::new(move || {
        id += 1;
        let up = alone.exchange(&command(id, children))?;
        ensure!(up.len() == u64::from(children) + 1, "{up} have answered");
        Ok(())
    }))
}

impl AloneMember {
    /// Sends a message from the parent, lets all ends answer until they are done, and returns the tasks that answered.
    fn exchange(&mut self, message: &Message) -> Result<IdSet> {
        self.ends[0].1.link.send(message)?;
        let mut up = None;
        loop {
            let mut quiet = true;
            for at in 0..self.ends.len() {
                let (link, end, bytes) = &mut self.ends[at];
                let link = *link;
                end.take(self.now, bytes)?;
                bytes.clear();
                while let Some(message) = end.message() {
                    match at {
                        0 => up = Some(message),
                        _ => end.link.send(&reply(&message)?)?,
                    }
                }
                let mut bytes = end.bytes();
                if !bytes.is_empty() {
                    quiet = false;
                    metered(|| {
                        let (now, tasks) = (self.now, &mut Repeating);
                        self.member.handle_bytes(now, link, &mut bytes, Some(tasks));
                        self.drain()
                    })?;
                }
            }
            quiet &= self.ends.iter().all(|(_, _, bytes)| bytes.is_empty());
            if quiet {
                return answered(up);
            }
        }
    }

    /// Drains the member's outputs, as the driver of a process does after each call.
    fn drain(&mut self) -> Result<()> {
        loop {
            while let Some(output) = self.member.poll_output() {
                match output {
                    Output::Write(link) if self.flush.contains(&link) => {}
                    Output::Write(link) => self.flush.push(link),
                    Output::Execute { id, tasks, payload } => {
                        self.member
                            .handle_local(self.now, id, &tasks, Status::Ok, payload);
                    }
                    Output::Dial { link, address } => {
                        let child = ServerId(address.port().into());
                        let end = End::respond(self.now, &self.config, Role::Child, child);
                        self.ends.push((link, end, Vec::new()));
                        self.member.handle_connected(self.now, link);
                    }
                    Output::Close { .. } | Output::Refused { .. } => bail!("{output:?}"),
                    _ => {}
                }
            }
            let Some(link) = self.flush.pop() else {
                return Ok(());
            };
            let end = self.ends.iter_mut().find(|(id, _, _)| *id == link);
            let (_, _, out) = end.context("a link that nobody knows")?;
            while self.member.poll_transmit(self.now, link, out) {}
        }
    }
}
