//! Ids of attributes and words of states are written in `sdm-runtime` alone; others take its constants and types.

use sdm_runtime::{attribute, states};

use crate::sources;

/// Files in which a word of an attribute or a state means something else.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("sdm-agent/src/slurm/states.rs", "Slurm's own words"),
    ("sdm-agent/src/invoke/", "GridRPC's own words"),
    ("sdm/src/cluster/list.rs", "heads of columns"),
    ("sdm/src/doctor/machine.rs", "what `ip` says of a network"),
    (
        "sdm-dap/src/adapter/disconnect.rs",
        "the Debug Adapter Protocol's own word",
    ),
];

/// The quoted texts of a line; texts must not contain quotes themselves.
fn texts(line: &str) -> impl Iterator<Item = &str> {
    line.split('"').skip(1).step_by(2)
}

#[test]
fn attribute_ids_and_states_are_defined_in_one_crate() {
    // `name` and `debug` are words of many things.
    let ids = attribute::ids().filter(|id| id.chars().any(char::is_uppercase));
    let ids: Vec<&str> = ids.collect();
    let words: Vec<&str> = states::ALL
        .iter()
        .flat_map(|it| it.words)
        .copied()
        .collect();
    let mut found = Vec::new();
    let mut used = vec![false; EXCEPTIONS.len()];
    let all = sources::all();
    for source in all.iter().filter(|source| !source.is_test) {
        let is_product = !["sdm-runtime", "tests", "benches"].contains(&&*source.member);
        if !is_product || !source.path.contains("/src/") {
            continue;
        }
        let exception = EXCEPTIONS
            .iter()
            .position(|(path, _)| source.path.starts_with(path));
        for (index, line) in source.shipped().lines().enumerate() {
            let is_code = !line.trim_start().starts_with("//");
            let is_it = |text: &str| words.contains(&text) || ids.contains(&text);
            let is_word = is_code && texts(line).any(is_it);
            if let Some(at) = exception.filter(|_| is_word) {
                used[at] = true;
            } else if is_word {
                found.push(format!("{}:{}: {}", source.path, index + 1, line.trim()));
            }
        }
    }
    let found = found.join("\n");
    assert!(found.is_empty(), "use sdm_runtime's constants:\n{found}");
    let unused = EXCEPTIONS.iter().zip(&used).filter(|(_, used)| !**used);
    let unused: Vec<_> = unused.map(|(exception, _)| exception).collect();
    assert!(unused.is_empty(), "no exceptions any more: {unused:?}");
}
