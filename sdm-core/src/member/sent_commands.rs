//! At the root: detection of commands whose bytes have left, and are not only queued.

use super::{Member, Output};
use crate::ids::CommandId;
use crate::message::Lane;
use crate::node::Delivery;

/// A command whose bytes have not left yet: some link still queues them, or no link is up. The number of open commands
/// bounds the number of these.
pub(super) struct Unsent {
    pub(super) id: CommandId,
    pub(super) lane: Lane,
}

impl Member {
    /// Reports the commands that have left since the last call.
    pub(super) fn tell_sent(&mut self) {
        if self.unsent.is_empty() {
            return;
        }
        let (node, peers, outputs) = (&self.node, &self.peers, &mut self.outputs);
        self.unsent.retain(|unsent| {
            let waited_for = node.waited_for(unsent.id);
            if waited_for.is_none_or(sdm_idset::IdSet::is_empty) {
                // No answer is outstanding, so the command needs no report.
                return false;
            }
            let mut links = peers.values().filter(|peer| peer.link.is_up()).peekable();
            let waits =
                links.peek().is_none() || links.any(|peer| peer.link.has_queued(unsent.lane));
            if !waits {
                outputs.push_back(Output::Deliver(Delivery::Sent(unsent.id)));
            }
            waits
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use bytes::Bytes;
    use sdm_idset::{IdSet, TaskId};

    use super::*;
    use crate::config::Config;
    use crate::ids::ServerId;
    use crate::link::LinkConfig;
    use crate::message::{Addresses, PlanEntry, Slice, SyncPolicy};
    use crate::node::{LinkId, Node, Submission};
    use crate::secure::{SessionKey, draw_session_id};

    fn sent(root: &mut Member) -> Vec<CommandId> {
        let outputs = std::iter::from_fn(|| root.poll_output());
        outputs
            .filter_map(|output| match output {
                Output::Deliver(Delivery::Sent(id)) => Some(id),
                _ => None,
            })
            .collect()
    }

    /// Moves bytes between the two members until none are left.
    fn pump(now: Instant, root: (&mut Member, LinkId), master: (&mut Member, LinkId)) {
        let ends = [root, master];
        let mut moved = true;
        while moved {
            moved = false;
            for [from, to] in [[0, 1], [1, 0]] {
                let mut bytes = Vec::new();
                let link = ends[from].1;
                while ends[from].0.poll_transmit(now, link, &mut bytes) {}
                moved |= !bytes.is_empty();
                let link = ends[to].1;
                ends[to].0.handle_bytes(now, link, &mut bytes, None);
            }
        }
    }

    fn submission(lane: Lane) -> Submission {
        Submission {
            destination: IdSet::single(TaskId(0)),
            lane,
            sync: SyncPolicy::WaitForAll,
            rule: 0,
            rule_params: Bytes::new(),
            payload: Bytes::from_static(b"where are you?"),
        }
    }

    #[test]
    fn command_counts_as_sent_when_its_bytes_are_taken() {
        let now = Instant::now();
        let config = LinkConfig::new(SessionKey::draw().unwrap(), draw_session_id().unwrap());
        let config = Arc::new(config);
        let mut root = Member::new(Node::root(now, |_, _| None), Arc::clone(&config));
        let node = Node::new(ServerId::MASTER, |_, _| None, now);
        let mut master = Member::new(node, config);
        let entry = PlanEntry {
            server: ServerId::MASTER,
            subtree_count: 1,
            tasks: IdSet::single(TaskId(0)),
            host: "here".into(),
            addresses: Addresses::default(),
        };
        root.start(now, Config::default(), Slice::new(vec![entry]))
            .unwrap();
        let early = root.submit(now, submission(Lane::Control));
        assert_eq!(sent(&mut root), [], "there is no link yet");
        let up = master.connect_front_end(now);
        let down = root.accept(now).unwrap();
        pump(now, (&mut root, down), (&mut master, up));
        assert_eq!(sent(&mut root), [early]);
        for lane in [Lane::Control, Lane::Bulk] {
            let id = root.submit(now, submission(lane));
            assert_eq!(sent(&mut root), [], "it is only queued");
            assert!(root.poll_transmit(now, down, &mut Vec::new()));
            assert_eq!(sent(&mut root), [id]);
        }
        // The destination is empty, so no message is sent.
        let nobody = Submission {
            destination: IdSet::new(),
            ..submission(Lane::Control)
        };
        root.submit(now, nobody);
        assert_eq!(sent(&mut root), []);
    }
}
