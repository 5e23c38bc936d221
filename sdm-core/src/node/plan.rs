//! A plan on its way down: checked, sent in parts that fit into frames, and applied once all parts have arrived.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Action, LinkId, Node, ProtocolError};
use crate::codec;
use crate::config::Config;
use crate::limits::{
    PLAN_BYTES_MAX, PLAN_PART_BYTES, PLAN_TEXT_BYTES_MAX, SERVERS_MAX, SETS_BYTES_MAX,
};
use crate::message::{Init, Message, PlanEntry, Slice};

/// A plan that has arrived in part, from the present parent.
pub(super) struct PartialPlan {
    config: Arc<Config>,
    /// The entries received so far, as long as all parts lie in one piece of memory.
    whole: Slice,
    /// A copy of the entries received so far, once the parts do not lie in one piece of memory; empty before that.
    entries: Vec<PlanEntry>,
    /// Number of entries of the whole plan, as its first entry gives it.
    wanted: usize,
    text_bytes: usize,
    sets_bytes: u64,
}

impl PartialPlan {
    /// Adds a part.
    fn add(&mut self, part: &Slice) -> Result<(), &'static str> {
        self.text_bytes += part.iter().map(text_bytes).sum::<usize>();
        self.sets_bytes += part.iter().map(|it| it.tasks.memory_bytes()).sum::<u64>();
        if part.is_empty() || part.len() > self.wanted - self.len() {
            return Err("a part of the plan is empty or exceeds the announced number of entries");
        }
        if self.text_bytes > PLAN_TEXT_BYTES_MAX || self.sets_bytes > SETS_BYTES_MAX {
            return Err("the parts of the plan are too large together");
        }
        if self.entries.is_empty() && self.whole.append(part) {
            return Ok(());
        }
        if self.entries.is_empty() {
            self.entries.extend_from_slice(&self.whole);
        }
        self.entries.extend_from_slice(part);
        Ok(())
    }

    /// Number of entries received.
    fn len(&self) -> usize {
        self.whole.len().max(self.entries.len())
    }

    fn into_slice(self) -> Slice {
        match self.entries.is_empty() {
            true => self.whole,
            false => Slice::new(self.entries),
        }
    }

    /// Time for which this member waits for a new parent after it has lost one.
    pub(super) fn orphan_wait(&self) -> Duration {
        self.config.orphan_wait
    }
}

impl Node {
    /// Sends a child its plan, in parts.
    pub(super) fn send_plan(&mut self, link: LinkId, slice: &Slice) {
        let mut parts = parts(slice);
        let first = parts.next().unwrap_or_else(|| slice.clone());
        let init = Init {
            config: Arc::clone(self.config.as_ref().expect("it came before the plan")),
            slice: first,
        };
        let first = Message::Init(Box::new(init));
        let sent = std::iter::once(first).chain(parts.map(Message::Plan));
        let sent = sent.map(|message| Action::Send { link, message });
        self.actions.extend(sent);
    }

    /// Handles the first part of a plan from the parent, and discards an incomplete earlier plan.
    pub(super) fn handle_init(&mut self, now: Instant, init: Init) -> Result<(), ProtocolError> {
        let wanted = init.slice.first().map_or(0, |it| it.subtree_count) as usize;
        let parent = self.parent.as_mut().expect("it said this");
        parent.gathering = None;
        // A list that is too long is no valid tree, and is refused as such.
        if init.slice.len() >= wanted {
            return self.take_plan(now, init);
        }
        if wanted > SERVERS_MAX as usize + 1 {
            let me = self.me;
            return Err(ProtocolError(format!(
                "{me}: received a plan with {wanted} members: the maximum is {}",
                SERVERS_MAX + 1
            )));
        }
        parent.gathering = Some(Box::new(PartialPlan {
            config: init.config,
            whole: init.slice.run(0..0),
            entries: Vec::new(),
            wanted,
            text_bytes: 0,
            sets_bytes: 0,
        }));
        self.handle_plan_part(now, &init.slice)
    }

    /// Handles a further part of the plan from the parent.
    pub(super) fn handle_plan_part(
        &mut self,
        now: Instant,
        part: &Slice,
    ) -> Result<(), ProtocolError> {
        let me = self.me;
        let parent = self.parent.as_mut().expect("it said this");
        let gathering = parent.gathering.as_mut();
        let gathering = gathering.ok_or_else(|| {
            ProtocolError(format!(
                "{me}: received a part of a plan that was not announced"
            ))
        })?;
        gathering
            .add(part)
            .map_err(|why| ProtocolError(format!("{me}: {why}")))?;
        if gathering.len() < gathering.wanted {
            return Ok(());
        }
        let whole = *parent.gathering.take().expect("seen above");
        let init = Init {
            config: Arc::clone(&whole.config),
            slice: whole.into_slice(),
        };
        self.take_plan(now, init)
    }
}

/// Checks that a plan can be sent to its first member, and that the member would accept it.
pub(super) fn check(plan: &Slice) -> Result<(), ProtocolError> {
    let too_large = |what: &str, is: u64, max: u64| {
        let members = plan.len();
        Err(ProtocolError(format!(
            "the plan of {members} members is too large: {is} {what}, the maximum is {max}"
        )))
    };
    if plan.len() > SERVERS_MAX as usize + 1 {
        return too_large("members", plan.len() as u64, u64::from(SERVERS_MAX) + 1);
    }
    let text: usize = plan.iter().map(text_bytes).sum();
    if text > PLAN_TEXT_BYTES_MAX {
        return too_large(
            "bytes of host names",
            text as u64,
            PLAN_TEXT_BYTES_MAX as u64,
        );
    }
    let sets = plan.iter().map(|it| it.tasks.memory_bytes()).sum();
    if sets > SETS_BYTES_MAX {
        return too_large("bytes of task sets", sets, SETS_BYTES_MAX);
    }
    let (mut bytes, mut part_bytes) = (0, Vec::new());
    for part in parts(plan) {
        part_bytes.clear();
        codec::encode_slice(&part, &mut part_bytes)
            .map_err(|error| ProtocolError(format!("the plan cannot be sent: {error}")))?;
        bytes += part_bytes.len();
    }
    if bytes > PLAN_BYTES_MAX {
        return too_large("bytes", bytes as u64, PLAN_BYTES_MAX as u64);
    }
    Ok(())
}

/// Divides a slice into runs of entries of at most [`PLAN_PART_BYTES`] each. A larger entry is a run of its own.
fn parts(slice: &Slice) -> impl Iterator<Item = Slice> {
    let slice = slice.clone();
    let mut from = 0;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |entry: &&PlanEntry| {
            let begins = bytes == 0;
            bytes += entry_bytes_max(entry);
            begins || bytes <= PLAN_PART_BYTES
        };
        let count = slice[from..].iter().take_while(fits).count();
        let part = (count > 0).then(|| slice.run(from..from + count));
        from += count;
        part
    })
}

/// Upper bound of an entry's encoded size, in bytes.
fn entry_bytes_max(entry: &PlanEntry) -> usize {
    /// Room for the numbers, the lengths, and a set that owns no memory.
    const FIXED: usize = 48;
    let set = usize::try_from(entry.tasks.memory_bytes()).unwrap_or(usize::MAX);
    FIXED + set + text_bytes(entry) + 4 * entry.addresses.iter().count()
}

fn text_bytes(entry: &PlanEntry) -> usize {
    entry.host.len() + entry.addresses.iter().map(str::len).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use sdm_idset::{IdSet, TaskId};

    use super::*;
    use crate::ids::{Epoch, ServerId};
    use crate::topology::Topology;

    const PARENT: LinkId = LinkId(1);

    /// A plan with names so long that few entries are a part.
    fn plan(servers: u32) -> Slice {
        let entry = |server, tasks| PlanEntry {
            server,
            subtree_count: 0,
            tasks,
            host: format!("{server}{}", "h".repeat(400)).into(),
            addresses: (0..16)
                .map(|at| format!("tcp://{at}{}:1", "0".repeat(480)))
                .collect(),
        };
        let below = (1..=servers).map(|id| entry(ServerId(id), IdSet::single(TaskId(id))));
        let own = entry(ServerId(0), IdSet::single(TaskId(0)));
        Slice::new(Topology::Kary(2).plan(own, below.collect()))
    }

    /// The messages that a node sends for a plan.
    fn messages(plan: &Slice) -> Vec<Message> {
        let now = Instant::now();
        let mut node = Node::new(ServerId::MASTER, |_, _| None, now);
        node.config = Some(Arc::default());
        node.send_plan(PARENT, plan);
        let sent = std::iter::from_fn(|| node.poll_action());
        let message = |action| match action {
            Action::Send { message, .. } => message,
            other => panic!("{other:?}"),
        };
        sent.map(message).collect()
    }

    fn member(now: Instant) -> Node {
        let mut node = Node::new(ServerId(0), |_, _| None, now);
        node.handle_parent_up(PARENT, ServerId::MASTER, Epoch(1));
        node
    }

    #[test]
    fn plan_is_assembled_from_its_parts() {
        let now = Instant::now();
        let plan = plan(60);
        let messages = messages(&plan);
        assert!(messages.len() > 50, "{} parts", messages.len());
        let mut node = member(now);
        for (at, message) in messages.iter().enumerate() {
            assert!(
                node.local().is_empty(),
                "nothing is done before all is there: {at}"
            );
            let mut frame = Vec::new();
            crate::frame::encode_message(message, &mut frame).unwrap();
            assert!(
                frame.len() < PLAN_PART_BYTES + 1024,
                "{} bytes",
                frame.len()
            );
            node.handle_message(now, PARENT, message.clone()).unwrap();
        }
        assert_eq!(node.reach(), IdSet::all_below(61));
        assert_eq!(node.children.len(), 2);
        // A small one is one message, as ever.
        assert_eq!(super::tests::messages(&plan.run(60..61)).len(), 1);
    }

    #[test]
    fn plan_parts_of_a_former_parent_are_discarded() {
        let now = Instant::now();
        let plan = plan(60);
        let messages = messages(&plan);
        for came in 1..messages.len() {
            let mut node = member(now);
            for message in &messages[..came] {
                node.handle_message(now, PARENT, message.clone()).unwrap();
            }
            node.handle_link_down(now, PARENT, "reset");
            assert!(
                node.poll_timeout().is_some_and(|at| at > now),
                "it waits for whoever adopts it, as the plan said"
            );
            let adopter = LinkId(2);
            node.handle_parent_up(adopter, ServerId(9), Epoch(2));
            // Messages that were on their way still arrive, and have no effect any more.
            node.handle_message(now, PARENT, messages[came].clone())
                .unwrap();
            let stray = node.handle_message(now, adopter, Message::Plan(plan.run(1..2)));
            assert!(stray.is_err(), "a part without a beginning");
            for message in &messages {
                node.handle_message(now, adopter, message.clone()).unwrap();
            }
            assert_eq!(node.reach(), IdSet::all_below(61));
        }
    }

    #[test]
    fn restarted_plan_replaces_the_previous_one() {
        let now = Instant::now();
        let (first, second) = (messages(&plan(60)), messages(&plan(30)));
        let mut node = member(now);
        for message in first[..2].iter().chain(&second) {
            node.handle_message(now, PARENT, message.clone()).unwrap();
        }
        assert_eq!(node.reach(), IdSet::all_below(31));
    }

    #[test]
    fn plan_parts_beyond_the_announced_count_are_refused() {
        let now = Instant::now();
        let plan = plan(60);
        let mut node = member(now);
        for message in &messages(&plan)[..2] {
            node.handle_message(now, PARENT, message.clone()).unwrap();
        }
        let error = node.handle_message(now, PARENT, Message::Plan(plan.clone()));
        assert!(error.unwrap_err().0.contains("announced number"));
    }

    #[test]
    fn oversized_plan_is_an_error() {
        assert_eq!(check(&plan(60)), Ok(()));
        let entry = plan(0)[0].clone();
        let entries = vec![entry; 2 + PLAN_TEXT_BYTES_MAX / text_bytes(&plan(0)[0])];
        let error = check(&Slice::new(entries)).unwrap_err();
        assert!(
            error.0.contains("too large") && error.0.contains("bytes of host names"),
            "{error}"
        );
    }
}
