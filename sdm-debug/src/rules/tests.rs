//! Tests that every rule gives the same result in any order and any tree, within its bounds.

use bytes::Bytes;
use proptest::prelude::*;
use sdm_idset::{IdSet, TaskId};

use super::*;
use crate::reply::{Reply, StackFrame, TaskSamples, TaskStacks, ThreadStack, Usage, Value};
use crate::wire;

/// Merges payloads with their sources in pairs, in the order of `picks`, through bytes every time.
fn merge_in_order(
    number: u16,
    params: &[u8],
    payloads: &[Vec<u8>],
    picks: &[(u16, u16)],
    bytes_max: usize,
) -> (IdSet, Bytes) {
    let rule = rule(number, params).unwrap();
    let join = |parts: &[&(IdSet, Bytes)]| {
        let mut acc = rule.start();
        for (sources, payload) in parts {
            rule.merge(&mut acc, sources, payload).unwrap();
        }
        let sources = IdSet::union_all(parts.iter().map(|(sources, _)| sources));
        (sources, rule.finish(acc, bytes_max))
    };
    let single = |(task, payload): (u32, &Vec<u8>)| {
        (IdSet::single(TaskId(task)), Bytes::copy_from_slice(payload))
    };
    let mut parts: Vec<(IdSet, Bytes)> = (0..).zip(payloads).map(single).collect();
    for (a, b) in picks {
        if parts.len() > 1 {
            let from = parts.swap_remove(usize::from(*a) % parts.len());
            let into = usize::from(*b) % parts.len();
            parts[into] = join(&[&from, &parts[into]]);
        }
    }
    join(&parts.iter().collect::<Vec<_>>())
}

/// Merges everything at once.
fn merge_flat(number: u16, params: &[u8], payloads: &[Vec<u8>]) -> (IdSet, Bytes) {
    merge_in_order(number, params, payloads, &[], 4 << 20)
}

fn set(text: &str) -> IdSet {
    text.parse().unwrap()
}

fn text(text: &str) -> Vec<u8> {
    wire::encode(&Reply::Text(text.to_owned()))
}

fn value(text: &str) -> Vec<u8> {
    wire::encode(&Reply::Value(Value {
        text: text.to_owned(),
        cut: None,
    }))
}

fn frame(function: &str, line: u32) -> StackFrame {
    StackFrame::own(function, "a.c", line)
}

/// Parses a stack such as `main:9 solve:3`.
fn frames(text: &str) -> Vec<StackFrame> {
    let frames = text.split_whitespace().map(|part| {
        let (function, line) = part.split_once(':').unwrap();
        frame(function, line.parse().unwrap())
    });
    frames.collect()
}

fn stacks(threads: &[(u32, &str)], helpers: u32) -> Vec<u8> {
    let threads = threads
        .iter()
        .enumerate()
        .map(|(index, (count, text))| ThreadStack {
            count: *count,
            main: index == 0,
            frames: frames(text),
        });
    wire::encode(&Reply::Stacks(TaskStacks {
        threads: threads.collect(),
        helpers,
    }))
}

/// A short form of a tree, a line per node: depth, function, line, tasks, threads, tasks with this innermost frame.
fn show(tree: &StackTree) -> Vec<String> {
    let mut lines = vec![];
    tree.walk(|depth, node| {
        let StackNode {
            frame,
            tasks,
            threads,
            here,
            ..
        } = node;
        let indent = " ".repeat(depth);
        lines.push(format!(
            "{indent}{}:{} [{tasks}] x{threads} here [{here}]",
            frame.function, frame.line
        ));
    });
    lines
}

#[test]
fn stacks_merge_into_a_tree() {
    let payloads = [
        stacks(&[(1, "main:9 solve:3 MPI_Allreduce:3")], 2),
        stacks(&[(1, "main:9 solve:3 MPI_Allreduce:3")], 2),
        stacks(&[(1, "main:9 halo:44"), (3, "worker:7")], 2),
        stacks(&[(1, "main:9 solve:3")], 0),
        stacks(&[(1, "")], 0),
    ];
    let (sources, merged) = merge_flat(RULE_STACK_TREE, &[], &payloads);
    let tree = StackTree::decode(&sources, &merged).unwrap();
    let expect = [
        "main:9 [0-3] x4 here []",
        " solve:3 [0-1,3] x3 here [3]",
        "  MPI_Allreduce:3 [0-1] x2 here [0-1]",
        " halo:44 [2] x1 here [2]",
        "worker:7 [2] x3 here [2]",
    ];
    assert_eq!(show(&tree), expect);
    assert_eq!((tree.helpers, tree.bare), (6, set("4")));
    assert_eq!((tree.others.len(), tree.others_threads), (0, 0));
}

#[test]
fn front_end_builds_stack_tree_from_any_merge() {
    let payloads = [
        stacks(&[(1, "main:9 solve:3")], 1),
        stacks(&[(1, "main:9 halo:44")], 1),
    ];
    let (sources, merged) = merge_flat(RULE_STACK_TREE, &[], &payloads);
    let mut stacks_of_all = Merged::decode(&sources, &merged).unwrap();
    let own = wire::decode(&stacks(&[(1, "main:9 solve:3")], 1)).unwrap();
    let rest = Merged::of(&set("2-9"), &own).unwrap();
    stacks_of_all.absorb(rest).unwrap();
    let Merged::Stacks(stacks) = stacks_of_all else {
        panic!("{stacks_of_all:?}");
    };
    let tree = stacks.tree();
    let expect = [
        "main:9 [0-9] x10 here []",
        " solve:3 [0,2-9] x9 here [0,2-9]",
        " halo:44 [1] x1 here [1]",
    ];
    assert_eq!(show(&tree), expect);
    assert_eq!((tree.others.len(), tree.helpers), (0, 10));
}

#[test]
fn stack_tree_of_a_million_tasks_takes_few_bytes() {
    let rule = rule(RULE_STACK_TREE, &[]).unwrap();
    let mut acc = rule.start();
    let waiting = stacks(&[(1, "main:9 solve:3 MPI_Allreduce:3")], 2);
    let odd_one = stacks(&[(1, "main:9 halo:44 MPI_Recv:44")], 2);
    let all = IdSet::all_below(1 << 20);
    let one = set("63");
    rule.merge(&mut acc, &all.difference(&one), &waiting)
        .unwrap();
    rule.merge(&mut acc, &one, &odd_one).unwrap();
    let merged = rule.finish(acc, 4 << 20);
    assert!(merged.len() < 160, "{} bytes", merged.len());
    let tree = StackTree::decode(&all, &merged).unwrap();
    assert_eq!(tree.roots[0].children[1].tasks, one);
}

#[test]
fn equal_lines_merge_into_one_with_tasks_and_count() {
    let payloads = [text("a\nb\nb\n"), text("a\nc"), value("a"), text("")];
    let (sources, merged) = merge_flat(RULE_LINES, &[], &payloads);
    let lines = Lines::decode(&sources, &merged).unwrap();
    let shown: Vec<String> = lines
        .lines
        .iter()
        .map(|l| format!("{} [{}] x{}", l.text, l.tasks, l.count))
        .collect();
    assert_eq!(shown, ["a [0-2] x3", "b [0] x2", "c [1] x1"]);
    assert!(lines.others.is_empty());
}

#[test]
fn statistics_are_computed_from_gdb_values() {
    let texts = [
        "3",
        "-1",
        "3",
        "2.5",
        "nan(0x8000000000000)",
        "-inf",
        "3.5",
        "10",
    ];
    let payloads = texts.map(value);
    let bins = Bins {
        low: 0.0,
        high: 4.0,
        count: 4,
    };
    let (sources, merged) = merge_flat(RULE_STATS, &bins.encode(), &payloads);
    let stats = Stats::decode(&sources, &merged).unwrap();
    assert_eq!((stats.count, stats.int_sum, stats.float_sum), (6, 15, 6.0));
    assert!((stats.sum() - 21.0).abs() < 1e-12);
    assert!((stats.mean - 3.5).abs() < 1e-12);
    let variance = stats.variance().unwrap();
    assert!((variance - 64.0 / 6.0).abs() < 1e-9, "{variance}");
    let show = |extreme: &Option<Extreme>| {
        let extreme = extreme.as_ref().unwrap();
        format!("{} {:?}", extreme.value, extreme.who.tasks)
    };
    assert_eq!(show(&stats.min), "-1 Some({1})");
    assert_eq!(show(&stats.max), "10 Some({7})");
    assert_eq!(stats.not_a_number.tasks, Some(set("4")));
    assert_eq!(stats.infinite_down.tasks, Some(set("5")));
    assert_eq!(stats.infinite_up.count, 0);
    let histogram = stats.histogram.unwrap();
    assert_eq!(histogram.counts, [0, 0, 1, 3]);
    assert_eq!((histogram.below, histogram.above), (1, 1));
    assert_eq!([0, 3, 4].map(|i| bins.edge(i)), [0.0, 3.0, 4.0]);
}

#[test]
fn unmergeable_payload_is_rejected_without_effect() {
    let check = |number, params: &[u8], payload: &[u8], why: &str| {
        let rule = rule(number, params).unwrap();
        let mut acc = rule.start();
        let rejected = rule.merge(&mut acc, &set("0-3"), payload).unwrap_err();
        assert_eq!(rejected.0, why);
        let empty = rule.finish(rule.start(), 1 << 16);
        assert_eq!(rule.finish(acc, 1 << 16), empty);
    };
    check(RULE_STATS, &[], &value("maybe"), "no number");
    check(RULE_STATS, &[], &text("three"), "no numbers");
    check(RULE_STATS, &[], &wire::encode(&Reply::Done), "no value");
    check(RULE_LINES, &[], &value("x")[..1], "no text");
    check(RULE_STACK_TREE, &[], &text("x"), "no stacks");
    let deep = "f:1 ".repeat(300);
    check(
        RULE_STACK_TREE,
        &[],
        &stacks(&[(1, &deep)], 0),
        "a stack has more frames than the maximum",
    );
    // Payloads of another rule, of other bins, and of tasks that are not among the sources.
    let (_, lines) = merge_flat(RULE_LINES, &[], &[text("a")]);
    let other_rule = "the answer was merged by another rule than that of the command";
    check(RULE_STATS, &[], &lines, other_rule);
    let (low, high, count) = (0.0, 1.0, 2);
    let bins = Bins { low, high, count }.encode();
    let (_, stats) = merge_flat(RULE_STATS, &[], &[value("1")]);
    let other_bins = "the answers have statistics with different histogram bins";
    check(RULE_STATS, &bins, &stats, other_bins);
    let rule = rule(RULE_LINES, &[]).unwrap();
    let mut acc = rule.start();
    rule.merge(&mut acc, &set("9"), &text("a")).unwrap();
    let foreign = rule.finish(acc, 1 << 16);
    check(
        RULE_LINES,
        &[],
        &foreign,
        "a set has tasks to which the command was not sent",
    );
}

#[test]
fn unknown_merge_rules_and_parameters_are_refused() {
    let known = |number, params: &[u8]| rule(number, params).is_some();
    assert!(!known(RULE_HASH, &[]));
    assert!(!known(99, &[]));
    assert!(!known(RULE_LINES, &[1]));
    assert!(!known(RULE_STACK_TREE, &[1]));
    assert!(!known(RULE_STATS, &[1]));
    let bins = |low, high, count| Bins { low, high, count }.encode();
    assert!(known(RULE_STATS, &bins(0.0, 1.0, BINS_MAX)));
    for bad in [
        bins(0.0, 1.0, 0),
        bins(0.0, 1.0, BINS_MAX + 1),
        bins(1.0, 1.0, 2),
        bins(f64::NAN, 1.0, 2),
        bins(f64::MIN, f64::MAX, 2),
    ] {
        assert!(!known(RULE_STATS, &bad));
    }
}

#[test]
fn merged_answer_never_exceeds_its_size_bound() {
    let rows: Vec<Vec<u8>> = (0..500)
        .map(|n| text(&format!("{n} {}", "x".repeat(200))))
        .collect();
    let trees: Vec<Vec<u8>> = (0..500)
        .map(|n| stacks(&[(1, &format!("main:9 f{n}:{n} g{n}:{n}"))], 1))
        .collect();
    let numbers: Vec<Vec<u8>> = (0..500).map(|n| value(&(n % 2).to_string())).collect();
    for (number, payloads) in [
        (RULE_LINES, &rows),
        (RULE_STACK_TREE, &trees),
        (RULE_STATS, &numbers),
    ] {
        let whole = merge_flat(number, &[], payloads).1.len();
        for bytes_max in [128, 1000, whole - 1, whole] {
            let (sources, merged) = merge_in_order(number, &[], payloads, &[], bytes_max);
            assert!(merged.len() <= bytes_max, "{number} {bytes_max}");
            // The result can be merged again, and no task is lost.
            let again = merge_in_order(number, &[], payloads, &[(7, 3); 400], bytes_max).1;
            assert!(again.len() <= bytes_max);
            let said = match number {
                RULE_LINES => {
                    let lines = Lines::decode(&sources, &merged).unwrap();
                    let kept = lines.lines.iter().map(|l| &l.tasks);
                    IdSet::union_all(kept.chain([&lines.others]))
                }
                RULE_STACK_TREE => {
                    let tree = StackTree::decode(&sources, &merged).unwrap();
                    let kept = tree.roots.iter().map(|root| &root.tasks);
                    IdSet::union_all(kept.chain([&tree.others]))
                }
                _ => sources.clone(),
            };
            assert_eq!(said, sources, "{number} {bytes_max}");
        }
    }
}

fn picks() -> impl Strategy<Value = Vec<(u16, u16)>> {
    proptest::collection::vec((any::<u16>(), any::<u16>()), 0..40)
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
}

proptest! {
    #[test]
    fn stacks_merge_equally_in_any_tree(
        tasks in proptest::collection::vec(
            (proptest::collection::vec((1u32..4, "([abc]:[12] ){0,5}"), 0..4), 0u32..3), 1..30),
        order in picks(),
    ) {
        let payload = |(threads, helpers): &(Vec<(u32, String)>, u32)| {
            let threads: Vec<_> = threads.iter().map(|(n, text)| (*n, text.as_str())).collect();
            stacks(&threads, *helpers)
        };
        let payloads: Vec<_> = tasks.iter().map(payload).collect();
        let (sources, flat) = merge_flat(RULE_STACK_TREE, &[], &payloads);
        let (_, deep) = merge_in_order(RULE_STACK_TREE, &[], &payloads, &order, 4 << 20);
        let flat = StackTree::decode(&sources, &flat).unwrap();
        prop_assert_eq!(&StackTree::decode(&sources, &deep).unwrap(), &flat);
        // Every node's set is the union of its children's sets and of the tasks that end in it.
        flat.walk(|_, node| {
            let below = node.children.iter().map(|child| &child.tasks);
            assert_eq!(IdSet::union_all(below.chain([&node.here])), node.tasks);
        });
    }

    #[test]
    fn lines_merge_equally_in_any_tree(
        texts in proptest::collection::vec("([ab]{0,2}\n){0,5}", 1..30),
        order in picks(),
    ) {
        let payloads: Vec<_> = texts.iter().map(|t| text(t)).collect();
        let (sources, flat) = merge_flat(RULE_LINES, &[], &payloads);
        let (_, deep) = merge_in_order(RULE_LINES, &[], &payloads, &order, 4 << 20);
        let flat = Lines::decode(&sources, &flat).unwrap();
        prop_assert_eq!(&Lines::decode(&sources, &deep).unwrap(), &flat);
        let said: usize = texts.iter().map(|t| t.lines().count()).sum();
        prop_assert_eq!(flat.lines.iter().map(|l| l.count).sum::<u64>(), said as u64);
    }

    #[test]
    fn samples_merge_equally_in_any_tree(
        tasks in proptest::collection::vec(
            (proptest::collection::vec("([abc]:[12] ){0,4}", 0..6), any::<bool>()), 1..30),
        order in picks(),
    ) {
        let own: Vec<_> = tasks.iter().map(|(looks, moves)| {
            let mut own = TaskSamples::default();
            for look in looks {
                own.add(TaskStacks::of_main(frames(look), 1), *moves, 7);
            }
            own
        }).collect();
        let payloads: Vec<_> = own.iter().map(|own| wire::encode(&Reply::Samples(Box::new(own.clone())))).collect();
        let (sources, flat) = merge_flat(RULE_SAMPLES, &[], &payloads);
        let (_, deep) = merge_in_order(RULE_SAMPLES, &[], &payloads, &order, 4 << 20);
        let decoded = Merged::decode(&sources, &flat).unwrap();
        prop_assert_eq!(&Merged::decode(&sources, &deep).unwrap(), &decoded);
        let Merged::Samples(merged) = decoded else {
            panic!("samples");
        };
        let moved: Vec<bool> = sources.iter().map(|task| merged.moved.contains(task)).collect();
        let expect: Vec<bool> = own.iter().map(|own| own.moves > 0).collect();
        prop_assert_eq!(moved, expect);
        for (task, own) in sources.iter().zip(&own) {
            let mut seen: Vec<_> = merged.seen()
                .filter(|(_, who)| who.contains(task))
                .map(|(seen, _)| (seen.times, seen.frames.clone()))
                .collect();
            let mut expect = own.stacks.clone();
            seen.sort();
            expect.sort();
            prop_assert_eq!(seen, expect);
        }
    }

    #[test]
    fn memory_sums_equally_in_any_tree(
        sizes in proptest::collection::vec(0..9_u64, 1..30),
        order in picks(),
    ) {
        let usage = |bytes: &u64| wire::encode(&Reply::Usage(Usage { resident_bytes: *bytes, peak_bytes: bytes + 1 }));
        let payloads: Vec<_> = sizes.iter().map(usage).collect();
        let (sources, flat) = merge_flat(RULE_USAGE, &[], &payloads);
        let (_, deep) = merge_in_order(RULE_USAGE, &[], &payloads, &order, 4 << 20);
        prop_assert_eq!(&deep, &flat);
        let total = TotalUsage::decode(&sources, &flat).unwrap();
        let mut ranked: Vec<_> = sizes.iter().copied().zip(sources.iter()).collect();
        ranked.sort_by_key(|(bytes, task)| (std::cmp::Reverse(*bytes), *task));
        ranked.truncate(LARGEST_MAX);
        prop_assert_eq!(total, TotalUsage {
            count: sizes.len() as u64,
            resident_bytes: sizes.iter().sum(),
            peak_bytes: sizes.iter().max().unwrap() + 1,
            largest: ranked,
        });
    }

    #[test]
    fn numbers_merge_equally_in_any_tree(
        numbers in proptest::collection::vec(prop_oneof![
            any::<i64>().prop_map(|n| n.to_string()),
            (-1e6..1e6f64).prop_map(|n| n.to_string()),
            (0..4u8).prop_map(|n| n.to_string()),
            Just("inf".to_owned()), Just("-inf".to_owned()), Just("nan(0x1)".to_owned()),
        ], 1..30),
        order in picks(),
    ) {
        let payloads: Vec<_> = numbers.iter().map(|n| value(n)).collect();
        let bins = Bins { low: -1e6, high: 1e6, count: 7 };
        let (sources, flat) = merge_flat(RULE_STATS, &bins.encode(), &payloads);
        let (_, deep) = merge_in_order(RULE_STATS, &bins.encode(), &payloads, &order, 4 << 20);
        let mut flat = Stats::decode(&sources, &flat).unwrap();
        let deep = Stats::decode(&sources, &deep).unwrap();
        prop_assert!(close(flat.mean, deep.mean), "{} {}", flat.mean, deep.mean);
        prop_assert!(close(flat.squares, deep.squares), "{} {}", flat.squares, deep.squares);
        prop_assert!(close(flat.float_sum, deep.float_sum));
        (flat.mean, flat.squares, flat.float_sum) = (deep.mean, deep.squares, deep.float_sum);
        prop_assert_eq!(&flat, &deep);
        let sized = flat.histogram.as_ref().unwrap();
        prop_assert_eq!(sized.counts.iter().sum::<u64>() + sized.below + sized.above, flat.count);
        let not = flat.not_a_number.count + flat.infinite_up.count + flat.infinite_down.count;
        prop_assert_eq!(not + flat.count, numbers.len() as u64);
    }

    #[test]
    fn two_payloads_merge_bitwise_equally_in_either_order(a in any::<f64>(), b in any::<f64>()) {
        let payloads = [value(&a.to_string()), value(&b.to_string())];
        let rule = rule(RULE_STATS, &[]).unwrap();
        let both = |first: usize, second: usize| {
            let mut acc = rule.start();
            let ok = [first, second].map(|at| rule.merge(&mut acc, &set("0-1"), &payloads[at]));
            (ok.iter().filter(|ok| ok.is_ok()).count(), rule.finish(acc, 1 << 16))
        };
        prop_assert_eq!(both(0, 1), both(1, 0));
    }

    #[test]
    fn merge_rules_never_panic_on_any_bytes(payload in proptest::collection::vec(any::<u8>(), 0..300)) {
        fuzz_rules(&payload);
    }

    #[test]
    fn merge_rules_never_panic_on_damaged_payloads(
        at in any::<prop::sample::Index>(), byte in any::<u8>(), end in any::<prop::sample::Index>(),
    ) {
        let rows: Vec<_> = (0..20).map(|n| text(&format!("{}\nx", n % 7))).collect();
        let trees: Vec<_> = (0..20)
            .map(|n| stacks(&[(1, &format!("main:9 f:{} g:{n}", n % 3))], 1))
            .collect();
        let numbers: Vec<_> = (0..20).map(|n| value(&(n % 5).to_string())).collect();
        for (number, payloads) in
            [(RULE_LINES, rows), (RULE_STACK_TREE, trees), (RULE_STATS, numbers)]
        {
            let mut merged = merge_flat(number, &[], &payloads).1.to_vec();
            let at = at.index(merged.len());
            merged[at] = byte;
            fuzz_rules(&merged);
            merged.truncate(end.index(merged.len()));
            fuzz_rules(&merged);
        }
    }
}
