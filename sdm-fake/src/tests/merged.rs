//! Answers of scripted tasks merge like those of real ones.

use bytes::Bytes;
use sdm_debug::rules::{RULE_STACK_TREE, RULE_STATS, StackTree, Stats, rule};
use sdm_debug::wire;

use super::*;

fn merged(number: u16, answers: &[(IdSet, Bytes)]) -> (IdSet, Bytes) {
    let rule = rule(number, &[]).unwrap();
    let mut acc = rule.start();
    for (sources, payload) in answers {
        rule.merge(&mut acc, sources, payload).unwrap();
    }
    let sources = IdSet::union_all(answers.iter().map(|(sources, _)| sources));
    (sources, rule.finish(acc, 4 << 20))
}

#[test]
fn fake_gdb_answers_merge_to_a_stack_tree_and_statistics() {
    let script = "stack = main m.c:9 > a a.c:1\nstack = main m.c:9 > b b.c:2\nhelpers = 3";
    let scenario = Arc::new(Scenario::parse(script).unwrap());
    let tasks = IdSet::all_below(10);
    let mut backend = FakeBackend::new(scenario, &tasks);
    let now = Instant::now();
    let mut ask = |id, command| {
        backend.execute(now, CommandId(id), &tasks, command);
        let mut answers = Vec::new();
        while let Some(output) = backend.poll_output() {
            if let BackendOutput::Answer { task, result, .. } = output {
                let payload = wire::encode(&result.unwrap());
                answers.push((IdSet::single(task), Bytes::from(payload)));
            }
        }
        answers
    };
    ask(1, Command::Start(StartSpec::default()));
    let answers = ask(2, Command::Stacks { full: false });
    let (sources, payload) = merged(RULE_STACK_TREE, &answers);
    let tree = StackTree::decode(&sources, &payload).unwrap();
    let mut nodes = Vec::new();
    tree.walk(|depth, node| {
        let function = &node.frame.function;
        nodes.push(format!(
            "{depth} {function} [{}] here [{}]",
            node.tasks, node.here
        ));
    });
    let expect = [
        "0 main [0-9] here []",
        "1 a [0-8/2] here [0-8/2]",
        "1 b [1-9/2] here [1-9/2]",
    ];
    assert_eq!(nodes, expect);
    assert_eq!(tree.helpers, 30);
    let expression = "rank".to_owned();
    let answers = ask(3, Command::Evaluate { expression });
    let (sources, payload) = merged(RULE_STATS, &answers);
    let stats = Stats::decode(&sources, &payload).unwrap();
    assert_eq!((stats.count, stats.int_sum), (10, 45));
}
