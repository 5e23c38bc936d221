//! Sample results of the merge rules, and the parameters that a command gives them.

use sdm_debug::queues::TaskQueues;
use sdm_debug::reply::{StackFrame, TaskSamples, TaskStacks, Usage, Value};
use sdm_debug::rules::{
    Bins, RULE_LINES, RULE_PROBE, RULE_QUEUES, RULE_SAMPLES, RULE_STACK_TREE, RULE_STATS,
    RULE_USAGE, rule,
};
use sdm_debug::{Reply, wire};

use super::kept::Entry;
use super::replies::{probe, queues, samples, stack_frame};
use super::set;

pub(super) fn entries() -> Vec<Entry> {
    let bins = Bins {
        low: -1.0,
        high: 5.0,
        count: 3,
    }
    .encode();
    let value = |text: &str| {
        Reply::Value(Value {
            text: text.to_owned(),
            cut: None,
        })
    };
    let numbers = ["3", "2.5", "nan", "inf", "-inf", "900"].map(value);
    let stacks = [
        vec![StackFrame::own("main", "heat.c", 12), stack_frame()],
        vec![StackFrame::own("main", "heat.c", 12)],
        Vec::new(),
    ];
    let stacks = stacks.map(|frames| Reply::Stacks(TaskStacks::of_main(frames, 2)));
    let lines = ["one\ntwo\n", "two\n", "three\n"].map(|text| Reply::Text(text.to_owned()));
    let runs = Reply::Probe(Box::new(sdm_debug::probe::TaskProbe {
        process: probe().process,
        ..Default::default()
    }));
    let probes = [Reply::Probe(Box::new(probe())), runs];
    let usage = [3_u64 << 30, 5 << 20].map(|resident_bytes| {
        Reply::Usage(Usage {
            resident_bytes,
            peak_bytes: 4 << 30,
        })
    });
    let none = TaskQueues::default();
    let queues = [Reply::Queues(queues()), Reply::Queues(none)];
    let still = TaskSamples {
        moves: 0,
        ..samples()
    };
    let seen = [samples(), still].map(|own| Reply::Samples(Box::new(own)));
    vec![
        entry("rule 1: stacks", &merged(RULE_STACK_TREE, &[], &stacks)),
        entry("rule 2: numbers", &merged(RULE_STATS, &[], &numbers)),
        entry(
            "rule 2: numbers in bins",
            &merged(RULE_STATS, &bins, &numbers),
        ),
        entry("rule 2: the bins of a command", &bins),
        entry("rule 3: lines", &merged(RULE_LINES, &[], &lines)),
        entry("rule 4: probes", &merged(RULE_PROBE, &[], &probes)),
        entry("rule 5: memory", &merged(RULE_USAGE, &[], &usage)),
        entry("rule 6: queues", &merged(RULE_QUEUES, &[], &queues)),
        entry("rule 7: samples", &merged(RULE_SAMPLES, &[], &seen)),
    ]
}

fn entry(name: &str, bytes: &[u8]) -> Entry {
    Entry {
        name: name.to_owned(),
        bytes: bytes.to_vec(),
    }
}

/// The bytes of a merge by rule `number`, where each reply came from ten other tasks.
fn merged(number: u16, params: &[u8], replies: &[Reply]) -> Vec<u8> {
    let rule = rule(number, params).expect("a rule");
    let mut acc = rule.start();
    for (index, reply) in replies.iter().enumerate() {
        let sources = set(&format!("1{index}0-1{index}9"));
        let taken = rule.merge(&mut acc, &sources, &wire::encode(reply));
        taken.expect("an answer that the rule takes");
    }
    rule.finish(acc, 1 << 20).to_vec()
}
