//! Tests of the merge rule for probes, with the probes of many tasks.

use bytes::Bytes;

use super::super::plain::{self, Plain};
use super::*;
use crate::reply::StackFrame;

fn set(text: &str) -> IdSet {
    text.parse().unwrap()
}

fn stacks(line: u32) -> TaskStacks {
    TaskStacks::of_main(vec![StackFrame::own("main", "a.c", line)], 0)
}

/// A task at a line, with this processor time, and with changed or unchanged variables.
fn probe(line: u32, cpu_ms: u64, changed: bool) -> TaskProbe {
    TaskProbe {
        stacks: Some(stacks(line)),
        inner_changed: Some(changed),
        outer_changed: Some(false),
        cpu_ms: Some(cpu_ms),
        ..TaskProbe::default()
    }
}

/// Merges the answers; returns all their tasks, and the merged payload.
fn merged(answers: &[(&str, TaskProbe)], bytes_max: usize) -> (IdSet, Bytes) {
    let own = |(tasks, probe): &(&str, TaskProbe)| {
        let reply = Reply::Probe(Box::new(probe.clone()));
        (set(tasks), wire::encode(&reply))
    };
    let own: Vec<_> = answers.iter().map(own).collect();
    plain::merged::<Parts>(&own, bytes_max)
}

#[test]
fn tasks_differing_in_one_field_share_the_others() {
    let mut answers = vec![
        ("0-2,4-7", probe(9, 500, false)),
        ("3", probe(9, 0, true)),
        ("8", probe(12, 0, false)),
        ("9", TaskProbe::default()),
    ];
    let (sources, payload) = merged(&answers, 1 << 20);
    let probes = Probes::decode(&sources, &payload).unwrap();
    let expect = Probes {
        stacks: vec![(set("0-7"), stacks(9)), (set("8"), stacks(12))],
        marks: Marks {
            inner_changed: set("3"),
            ..Marks::default()
        },
        cpu_ms: vec![(set("0-2,4-7"), 500), (set("3,8"), 0)],
        ..Probes::default()
    };
    assert_eq!(probes, expect);
    answers.reverse();
    assert_eq!(merged(&answers, 1 << 20), (sources, payload));
}

#[test]
fn probe_of_a_million_tasks_takes_few_bytes() {
    let all = format!("0-{}", (1 << 20) - 1);
    let (_, payload) = merged(&[(&all, probe(9, 500, false))], 4 << 20);
    assert!(payload.len() < 100, "{} bytes", payload.len());
}

#[test]
fn stacks_beyond_the_bound_are_cut_and_tasks_named() {
    let rule = Plain::<Parts>::rule();
    let mut acc = rule.start();
    let mut all = IdSet::new();
    for line in 0..5000 {
        let tasks = set(&line.to_string());
        let own = wire::encode(&Reply::Probe(Box::new(probe(line, 0, false))));
        rule.merge(&mut acc, &tasks, &own).unwrap();
        all.union_with(&tasks);
    }
    let payload = rule.finish(acc, 16 << 10);
    assert!(payload.len() <= 16 << 10);
    let probes = Probes::decode(&all, &payload).unwrap();
    let kept = IdSet::union_all(probes.stacks.iter().map(|(tasks, _)| tasks));
    assert!(!kept.is_empty() && kept.is_disjoint(&probes.cut));
    assert_eq!(kept.union(&probes.cut), all);
}

#[test]
fn truncated_probe_reports_all_sources_as_changed() {
    let scattered: IdSet = (0..90_000_u32)
        .filter(|id| id.wrapping_mul(0x9e37_79b9) >> 30 == 0)
        .map(sdm_idset::TaskId)
        .collect();
    let rule = Plain::<Parts>::rule();
    let mut acc = rule.start();
    let own = |changed| wire::encode(&Reply::Probe(Box::new(probe(9, 0, changed))));
    let all = IdSet::all_below(90_000);
    rule.merge(&mut acc, &scattered, &own(true)).unwrap();
    let rest = all.difference(&scattered);
    rule.merge(&mut acc, &rest, &own(false)).unwrap();
    let payload = rule.finish(acc, 1 << 10);
    assert!(payload.len() <= 1 << 10);
    let probes = Probes::decode(&all, &payload).unwrap();
    assert_eq!(probes.marks.inner_changed, all);
}

#[test]
fn malformed_probe_is_refused() {
    let sources = set("0-3");
    let (_, payload) = merged(&[("0-3", probe(9, 500, true))], 1 << 20);
    for end in 0..payload.len() {
        assert!(Probes::decode(&sources, &payload[..end]).is_err());
    }
    assert!(Probes::decode(&set("0"), &payload).is_err());
    let text = wire::encode(&Reply::Text("x".to_owned()));
    assert!(Probes::decode(&sources, &text).is_err());
}
