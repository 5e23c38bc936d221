//! Whole trees of nodes in memory, with seeded delays and killed members. Each task is counted once per command: as
//! answered, missing or lost.

mod exchange;
mod net;

use std::time::Duration;

use bytes::Bytes;
use sdm_idset::{IdSet, TaskId};

use super::Delivery;
use crate::config::Config;
use crate::ids::{CommandId, ServerId};
use crate::message::{Block, EndPolicy, Health, Lane, Status, SyncPolicy};
use crate::topology::Topology;
pub(super) use net::Net;
use net::answer_all;

const QUERY: SyncPolicy = SyncPolicy::TimeOut { ms: 30_000 };

#[test]
fn tree_of_every_size_starts_answers_and_ends() {
    for count in 1..=64 {
        for topology in [Topology::Binomial, Topology::Kary(3), Topology::Flat] {
            let mut net = Net::new(count, topology, u64::from(count));
            let all = IdSet::all_below(count);
            assert_eq!(net.init().answered, all);
            for (nth, sync) in [SyncPolicy::WaitForAll, QUERY, SyncPolicy::DontWait]
                .into_iter()
                .enumerate()
            {
                let tally = net.run_command(&all.to_string(), sync, "hello");
                assert_eq!(tally.answered, all);
                let one_block = sync != SyncPolicy::DontWait;
                assert!(
                    !one_block || tally.blocks.len() == 1,
                    "equal answers come as one"
                );
                let runs = net
                    .executed
                    .iter()
                    .filter(|((id, _), _)| id.0 == nth as u64 + 1);
                assert!(runs.clone().all(|(_, times)| *times == 1));
                assert_eq!(runs.count(), count as usize);
            }
            let part = format!("0-{}/2", count - 1);
            let tally = net.run_command(&part, QUERY, "some");
            assert_eq!(tally.answered, part.parse().unwrap());
            let now = net.now;
            net.node(ServerId::FRONT_END)
                .finish(now, EndPolicy::KillStarted);
            net.drain(ServerId::FRONT_END);
            while net.nodes.len() > 1 {
                assert!(net.step(), "everything ends");
            }
        }
    }
}

#[test]
fn options_of_the_front_end_apply_at_every_member() {
    let config = Config {
        grace: Duration::from_millis(17),
        classes_max: 3,
        on_lost: EndPolicy::Detach,
        backend: Bytes::from_static(b"options of the backend"),
        ..Config::default()
    };
    let mut net = Net::with(20, Topology::Kary(3), 7, config.clone());
    net.init();
    assert_eq!(net.nodes.len(), 22);
    for node in net.nodes.values() {
        assert_eq!(node.config.as_deref(), Some(&config), "{}", node.id());
    }
    // At most three distinct answers of a command are kept apart.
    net.answer = |_, task| Some(task.to_string());
    let tally = net.run_command("0-19", QUERY, "x");
    let is_other = |block: &&Block| block.status == Status::Others;
    let others = tally.blocks.iter().filter(is_other).count();
    assert_eq!((tally.blocks.len(), others), (4, 1));
}

#[test]
fn silent_task_is_named_and_may_answer_late() {
    let mut net = Net::new(16, Topology::Binomial, 5);
    net.init();
    net.answer = |payload, task| (task != 11).then(|| answer_all(payload, task)).flatten();
    let tally = net.run_command("0-15", SyncPolicy::TimeOut { ms: 100 }, "x");
    assert_eq!(
        (tally.missing.to_string(), tally.lost.len()),
        ("11".to_owned(), 0)
    );
    let now = net.now;
    let late = IdSet::single(TaskId(11));
    let id = CommandId(1);
    net.node(ServerId(11))
        .handle_local(now, id, &late, Status::Ok, Bytes::from_static(b"x"));
    net.drain(ServerId(11));
    net.run_until(|deliveries| {
        let is_late = |d: &Delivery| matches!(d, Delivery::Answer { late, .. } if !late.is_empty());
        deliveries.iter().any(is_late)
    });
    assert_eq!(net.tally(id).answered, IdSet::all_below(16));
}

#[test]
fn tasks_outside_the_tree_are_lost_at_once() {
    let mut net = Net::new(4, Topology::Binomial, 1);
    net.init();
    let tally = net.run_command("2-9", QUERY, "x");
    assert_eq!(
        (tally.answered.to_string(), tally.lost.to_string()),
        ("2-3".into(), "4-9".into())
    );
}

#[test]
fn dead_server_loses_only_its_own_task() {
    for seed in 0..300 {
        let mut net = Net::new(24, Topology::Binomial, seed);
        let steps = net.random(400);
        for _ in 0..steps {
            net.step();
        }
        let id = net.submit("0-23", QUERY, "x");
        let steps = net.random(200);
        for _ in 0..steps {
            net.step();
        }
        let dead = u32::try_from(net.random(24)).unwrap();
        net.kill(ServerId(dead));
        net.run_until(|deliveries| deliveries.contains(&Delivery::Complete(id)));
        let tally = net.tally(id);
        let mut expected = IdSet::all_below(24);
        expected.remove(TaskId(dead));
        assert!(
            expected.is_subset(&tally.answered),
            "seed {seed}: {tally:?}"
        );
        assert!(
            net.executed.values().all(|times| *times == 1),
            "seed {seed}: executed twice"
        );
        let tally = net.run_command("0-23", QUERY, "after");
        assert_eq!(tally.answered, expected, "seed {seed}");
        assert_eq!(tally.lost, IdSet::single(TaskId(dead)), "seed {seed}");
        let told = net.deliveries.iter().any(|delivery| {
            matches!(delivery, Delivery::Reach(change)
                if change.health == Health::Lost && change.tasks.contains(TaskId(dead)))
        });
        assert!(told, "seed {seed}");
    }
}

#[test]
fn stopped_parent_and_child_both_rejoin() {
    let mut net = Net::new(16, Topology::Binomial, 11);
    net.init();
    // Of the tree below server 7, which has servers 8 to 14 below it.
    let (parent, child) = (ServerId(7), ServerId(8));
    net.still = [parent, child].into();
    let to_parent = net.links.iter().find_map(|((who, link), peer)| {
        (*who == ServerId::MASTER && *peer == parent).then_some(*link)
    });
    let (link, now) = (to_parent.unwrap(), net.now);
    net.node(ServerId::MASTER).handle_link_silent(now, link);
    net.drain(ServerId::MASTER);
    let told = |wanted: Health, of: u32| {
        move |deliveries: &[Delivery]| {
            let mut reached = deliveries.iter().filter_map(|delivery| match delivery {
                Delivery::Reach(change) if change.tasks.contains(TaskId(of)) => Some(change.health),
                _ => None,
            });
            reached.next_back() == Some(wanted)
        }
    };
    net.run_until(told(Health::Silent, 7));
    net.run_until(told(Health::Silent, 8));
    net.still.clear();
    let now = net.now;
    net.node(ServerId::MASTER).handle_link_alive(now, link);
    net.drain(ServerId::MASTER);
    net.run_until(told(Health::Reachable, 7));
    net.run_until(told(Health::Reachable, 8));
    let tally = net.run_command("0-15", QUERY, "after");
    assert_eq!(tally.answered, IdSet::all_below(16));
}

#[test]
fn all_members_end_without_a_front_end() {
    let mut net = Net::new(16, Topology::Binomial, 9);
    net.init();
    net.kill(ServerId::FRONT_END);
    while !net.nodes.is_empty() {
        assert!(net.step(), "everything ends");
    }
}

#[test]
fn leaving_member_sends_its_last_events() {
    for lane in [Lane::Control, Lane::Bulk] {
        let config = Config {
            event_window: Duration::from_secs(1),
            ..Config::default()
        };
        let mut net = Net::with(16, Topology::Binomial, 5, config);
        net.init();
        // Others are below it, so that it waits whether they say the same.
        let (now, server, task) = (net.now, ServerId(7), IdSet::single(TaskId(7)));
        let words = Bytes::from_static(b"last words");
        net.node(server)
            .handle_local_event(now, lane, &task, words.clone());
        net.node(server).leave(now, EndPolicy::KillStarted);
        net.drain(server);
        net.run_until(|deliveries| {
            let mut lost = deliveries.iter();
            lost.any(|it| matches!(it, Delivery::Reach(change) if change.health == Health::Lost))
        });
        let after = net.now + Duration::from_secs(5);
        while net.now < after && net.step() {}
        let told = net.deliveries.iter().any(|delivery| match delivery {
            Delivery::Events(blocks) => blocks.iter().any(|block| block.payload == words),
            _ => false,
        });
        assert!(told, "{lane:?}");
    }
}
