//! Tests of exchanges and datagrams. An exchange delivers the data of its tasks to each of them exactly once, also if a
//! server is adopted meanwhile; it fails if a task is lost. A datagram is delivered or returned.

use bytes::Bytes;
use sdm_idset::{IdSet, TaskId};

use super::net::Net;
use crate::ids::ServerId;
use crate::limits::EXCHANGE_CHUNK_BYTES;
use crate::message::{Datagram, ExchangeId};
use crate::topology::Topology;

fn id(tasks: &str, number: u32) -> ExchangeId {
    let tasks = tasks.parse().expect("tasks");
    ExchangeId { tasks, number }
}

/// Data of a task: its number as a byte, `length` times.
fn gift(task: u32, length: usize) -> Vec<u8> {
    vec![u8::try_from(task).expect("few tasks"); length]
}

fn give(net: &mut Net, id: &ExchangeId, task: u32, length: usize) {
    let server = ServerId(task);
    let bytes = Bytes::from(gift(task, length));
    net.node(server).exchange(id, &[bytes]);
    net.drain(server);
}

/// The data that a server received from an exchange, split by task, in the order of their first bytes.
fn got(net: &Net, id: &ExchangeId, task: u32) -> Option<Vec<Vec<u8>>> {
    let told = |(server, it, _): &&(ServerId, ExchangeId, _)| *server == ServerId(task) && it == id;
    let mut found = net.exchanged.iter().filter(told);
    let (_, _, outcome) = found.next()?;
    assert!(found.next().is_none(), "told twice");
    let whole = outcome.as_ref().expect("it can be").concat();
    let mut gifts: Vec<Vec<u8>> = whole.chunk_by(|a, b| a == b).map(<[u8]>::to_vec).collect();
    gifts.sort();
    Some(gifts)
}

/// Steps until all of these have an outcome.
fn run(net: &mut Net, id: &ExchangeId) {
    let told = |net: &Net| net.exchanged.iter().filter(|(_, it, _)| it == id).count();
    while told(net) < usize::try_from(id.tasks.len()).expect("few tasks") {
        assert!(net.step(), "nothing happens any more");
    }
}

fn assert_forgotten(net: &mut Net) {
    while net.nodes.values().any(super::super::Node::has_exchanges) {
        assert!(net.step(), "an exchange stays");
    }
}

#[test]
fn every_task_receives_all_contributions() {
    for (count, topology) in [
        (1, Topology::Flat),
        (9, Topology::Binomial),
        (40, Topology::Kary(3)),
    ] {
        let mut net = Net::new(count, topology, 5);
        net.init();
        for number in 0..3 {
            let id = id(&format!("0-{}", count - 1), number);
            // Nothing at all in the first one, nothing of most in the second, and much of some in the third.
            let length = |task: u32| match (number, task % 3) {
                (0, _) | (1, 1..) => 0,
                (2, 0) => 3 * EXCHANGE_CHUNK_BYTES + 7,
                _ => 5,
            };
            (0..count).for_each(|task| give(&mut net, &id, task, length(task)));
            run(&mut net, &id);
            let gifts: Vec<_> = (0..count)
                .filter(|task| length(*task) > 0)
                .map(|task| gift(task, length(task)))
                .collect();
            for task in 0..count {
                assert_eq!(got(&net, &id, task).as_ref(), Some(&gifts), "{task}");
            }
            assert_forgotten(&mut net);
        }
    }
}

#[test]
fn exchange_waits_for_and_answers_only_participants() {
    let mut net = Net::new(12, Topology::Binomial, 2);
    net.init();
    let (some, others) = (id("1,5,11", 0), id("2-4", 0));
    for task in [1, 5, 11, 2, 3] {
        let id = if matches!(task, 2 | 3) {
            &others
        } else {
            &some
        };
        give(&mut net, id, task, 4);
    }
    run(&mut net, &some);
    let gifts = vec![gift(1, 4), gift(5, 4), gift(11, 4)];
    assert_eq!(got(&net, &some, 11), Some(gifts));
    assert_eq!(net.exchanged.len(), 3);
    give(&mut net, &others, 4, 4);
    run(&mut net, &others);
    assert_forgotten(&mut net);
}

#[test]
fn server_adopted_during_an_exchange_still_takes_part() {
    // Server 8 leads others; it is stopped at each of many moments, and continues.
    for moment in (0..400).step_by(23) {
        let mut net = Net::new(16, Topology::Binomial, moment + 1);
        net.init();
        let id = id("0-15", 0);
        let length = |task: u32| if task.is_multiple_of(2) { 70_000 } else { 0 };
        (0..16).for_each(|task| give(&mut net, &id, task, length(task)));
        for _ in 0..moment {
            net.step();
        }
        net.cut_links_of(ServerId(8));
        run(&mut net, &id);
        let gifts: Vec<_> = (0..16).step_by(2).map(|task| gift(task, 70_000)).collect();
        for task in 0..16 {
            assert_eq!(got(&net, &id, task).as_ref(), Some(&gifts), "{moment}");
        }
        // A confirmation of this exchange's end that was not sent is superseded at the latest by the end of the one
        // after the next.
        for number in 1..3 {
            let id = ExchangeId {
                number,
                ..id.clone()
            };
            (0..16).for_each(|task| give(&mut net, &id, task, 0));
            run(&mut net, &id);
        }
    }
}

#[test]
fn failed_exchange_is_reported_to_early_and_late_tasks() {
    let mut net = Net::new(10, Topology::Binomial, 3);
    net.init();
    let all = id("0-9", 0);
    (0..9)
        .filter(|task| *task != 4)
        .for_each(|task| give(&mut net, &all, task, 10));
    net.kill(ServerId(9));
    let told = |net: &Net| net.exchanged.len();
    while told(&net) < 8 {
        assert!(net.step(), "nobody is told");
    }
    give(&mut net, &all, 4, 10);
    while told(&net) < 9 {
        assert!(net.step(), "who comes late is not told");
    }
    for (_, it, outcome) in &net.exchanged {
        let failure = outcome.as_ref().expect_err("task 9 is lost");
        assert_eq!((it, failure.lost.to_string()), (&all, "9".to_owned()));
        assert!(failure.why.contains("task 9"), "{failure}");
    }
    assert_forgotten(&mut net);
}

#[test]
fn datagram_is_delivered_or_returned() {
    let mut net = Net::new(12, Topology::Binomial, 7);
    net.init();
    let mut post = |from: u32, to: u32| {
        let letter = Datagram {
            to: IdSet::single(TaskId(to)),
            from: TaskId(from),
            number: 3,
            is_brought: true,
            bytes: Bytes::from_static(b"hello"),
        };
        let before = net.letters.len();
        net.node(ServerId(from)).post(letter);
        net.drain(ServerId(from));
        while net.letters.len() == before {
            assert!(net.step(), "it is lost");
        }
        let (at, letter) = net.letters.pop().expect("one");
        (at, letter.from.0, letter.is_brought, letter.bytes)
    };
    for from in 0..12 {
        for to in 0..12 {
            let hello = Bytes::from_static(b"hello");
            assert_eq!(post(from, to), (ServerId(to), from, true, hello));
        }
        assert_eq!(post(from, 99), (ServerId(from), 99, false, Bytes::new()));
    }
}

#[test]
fn datagram_to_many_tasks_reaches_each_once() {
    let mut net = Net::new(20, Topology::Kary(3), 4);
    net.init();
    let to: IdSet = "0-30".parse().expect("tasks");
    net.node(ServerId(7)).post(Datagram {
        to,
        from: TaskId(7),
        number: 1,
        is_brought: true,
        bytes: Bytes::from_static(b"all"),
    });
    net.drain(ServerId(7));
    // Each datagram arrives once. One returns undelivered, as there is no task above 19.
    while net.letters.len() < 21 {
        assert!(net.step(), "it is lost: {:?}", net.letters);
    }
    let brought = net.letters.iter().filter(|(_, it)| it.is_brought);
    let mut got: Vec<u32> = brought.map(|(server, _)| server.0).collect();
    got.sort_unstable();
    assert_eq!(got, (0..20).collect::<Vec<_>>());
    let back = net.letters.iter().find(|(_, it)| !it.is_brought);
    let (server, letter) = back.expect("one");
    assert_eq!((server.0, letter.from.0), (7, 20));
}
