//! Every topology with real processes: it starts, answers, and ends.

use std::collections::BTreeMap;

use sdm_core::topology::Topology;
use sdm_session::DebugSession;
use sdm_tests::run::{Run, evaluate, fake};

const _: () = sdm_tests::run::test_group("crowded", "a tree for each topology");

const SERVERS: u32 = 21;

/// Number of children of each member: the master's first, then the others in falling order.
fn children(run: &Run) -> Vec<usize> {
    let members = run.session.members();
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for parent in members.iter().filter_map(|member| member.parent) {
        *counts.entry(parent).or_default() += 1;
    }
    let master = counts.remove(&0).unwrap_or(0);
    let mut others: Vec<usize> = counts.into_values().collect();
    others.sort_unstable_by(|a, b| b.cmp(a));
    others.insert(0, master);
    others
}

fn check(topology: Topology, shape: &[usize]) {
    let mut config = fake(SERVERS, "value n = {rank%2}\n");
    config.topology = topology;
    let mut run = Run::start(&config);
    assert_eq!(children(&run), shape, "{topology}");
    run.start_tasks();
    let all = run.all();
    let ledger = run.ask(&all, &evaluate("n"));
    assert_eq!(ledger.answered, all, "{topology}");
    for (task, value) in ledger.values() {
        assert_eq!(value, (task.0 % 2).to_string(), "{topology}");
    }
    let some = "3,7-9,20".parse().expect("a set");
    assert_eq!(
        run.ask(&some, &evaluate("rank")).answered,
        some,
        "{topology}"
    );
    run.close();
}

#[test]
fn every_topology_starts_answers_and_ends() {
    // 22 members: the master's subtrees begin at 1, 2, 4, 8 and 16.
    check(Topology::Binomial, &[5, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1]);
    check(Topology::Kary(3), &[3, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
    check(Topology::Kary(1), &[1; SERVERS as usize]);
    check(Topology::Flat, &[SERVERS as usize]);
    // All are on the master's host.
    check(
        Topology::ByHost(3),
        &[3, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1],
    );
    check(Topology::default(), &[SERVERS as usize]);
}
