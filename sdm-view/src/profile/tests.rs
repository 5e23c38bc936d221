//! Tests of profiles of tasks with known stacks.

use sdm_debug::reply::{Cost, TaskSamples};
use sdm_idset::TaskId;

use super::*;
use crate::render::Names;

/// Stacks in `solver.c`, outermost frame first, each with the number of its samples: `main:80 relax:12`.
pub(crate) fn samples(looks: u32, moves: u32, stacks: &[(u64, &str)]) -> TaskSamples {
    let frame = |text: &str| {
        let (function, line) = text.split_once(':').unwrap();
        StackFrame::own(function, "solver.c", line.parse().unwrap())
    };
    let stacks = stacks.iter().map(|(times, text)| {
        let frames = text.split(' ').map(frame);
        (*times, frames.collect())
    });
    TaskSamples {
        looks,
        moves,
        stacks: stacks.collect(),
        helpers: 0,
        cost: Cost {
            stood_us: 200 * u64::from(looks),
            longest_us: 900,
            processor_us: 30_000,
        },
    }
}

/// Four tasks: two wait for the other two, of which one moves and one stays in one place.
pub(crate) fn four() -> Profile {
    let mut profile = Profile {
        elapsed: Duration::from_secs(2),
        ..Profile::default()
    };
    let waits = samples(10, 0, &[(10, "main:80 exchange:44 MPI_Recv:44")]);
    let moves = samples(
        10,
        4,
        &[
            (3, "main:80 relax:12"),
            (4, "main:80 relax:15"),
            (3, "main:82 dump:9"),
        ],
    );
    let stays = samples(10, 0, &[(10, "main:80 relax:15")]);
    let mut found = Samples::default();
    for (set, own) in [("0-1", &waits), ("2", &moves), ("3", &stays)] {
        found.absorb(Samples::of(&set.parse().unwrap(), own).unwrap());
    }
    for _ in 0..2 {
        profile.absorb(&"0-3".parse().unwrap(), &found);
    }
    profile
}

#[test]
fn call_tree_merges_lines_of_a_function() {
    let profile = four();
    let mut found = Vec::new();
    ProfileNode::walk(&profile.tree(&profile.tasks), &mut |depth, node| {
        found.push(format!(
            "{depth} {} {} {} {} {:?}",
            node.place(),
            node.tasks,
            node.times,
            node.here,
            node.parts
        ));
    });
    assert_eq!(
        found,
        [
            "0 main () at solver.c:80-82 0-3 80 0 [40, 40]",
            "1 exchange () at solver.c:44 0-1 40 0 [20, 20]",
            "2 MPI_Recv () at solver.c:44 0-1 40 40 [20, 20]",
            "1 relax () at solver.c:12-15 2-3 34 34 [17, 17]",
            "1 dump () at solver.c:9 2 6 6 [3, 3]",
        ]
    );
}

#[test]
fn classes_split_by_most_frequent_place_and_movement() {
    let profile = four();
    let classes = profile.classes();
    let found = classes.iter().map(|class| {
        let place = class.place.last().unwrap();
        let line = place.line;
        let function = &place.function;
        let ProfileClass {
            tasks,
            moved,
            times,
            all,
            places,
            ..
        } = class;
        format!("{tasks} {function}:{line} {moved} {times}/{all} {places}")
    });
    assert_eq!(
        found.collect::<Vec<_>>(),
        [
            "0-1 MPI_Recv:44 false 40/40 1",
            "2 relax:0 true 14/20 3",
            "3 relax:15 false 20/20 1",
        ]
    );
}

#[test]
fn small_classes_are_merged() {
    let mut profile = Profile::default();
    for task in 0..40 {
        let own = samples(3, 1, &[(3, &format!("main:80 f{task}:1"))]);
        let tasks = IdSet::single(TaskId(task));
        let found = Samples::of(&tasks, &own).unwrap();
        profile.absorb(&tasks, &found);
    }
    let classes = profile.classes();
    assert_eq!(classes.len(), CLASSES_MAX);
    let rest = classes.last().unwrap();
    assert!(rest.place.is_empty() && rest.tasks.len() == 25 && rest.all == 75);
}

#[test]
fn stacks_beyond_the_bound_are_counted() {
    let mut profile = Profile::default();
    let tasks = IdSet::single(TaskId(7));
    let lines = u64::try_from(STACKS_MAX).unwrap() + 5;
    for line in 0..lines {
        let own = samples(1, 0, &[(2, &format!("main:{line}"))]);
        profile.absorb(&tasks, &Samples::of(&tasks, &own).unwrap());
    }
    assert_eq!(profile.times(&tasks), 2 * (lines - 5));
    assert_eq!((&profile.others, profile.others_times), (&tasks, 10));
}

#[test]
fn flame_graph_is_self_contained() {
    let svg = flame(&four(), &Names::ranks());
    let document = roxmltree::Document::parse(&svg).unwrap();
    for node in document.descendants().filter(roxmltree::Node::is_element) {
        let name = node.tag_name().name();
        assert!(
            ["svg", "style", "g", "rect", "text", "title"].contains(&name),
            "{name}"
        );
        assert!(node.attributes().all(|it| !it.name().contains("href")));
    }
    assert!(!svg.contains("url(") && !svg.contains("@import"));
    let titles = document
        .descendants()
        .filter(|node| node.has_tag_name("title"));
    let titles: Vec<_> = titles.filter_map(|node| node.text()).collect();
    let (all, classes) = titles.split_at(5);
    assert_eq!(all[0], "main () at solver.c:80-82: 100.0 %, ranks 0-3 (4)");
    assert_eq!(
        all[3],
        "relax () at solver.c:12-15: 42.5 %, 42.5 % itself, ranks 2-3 (2)"
    );
    assert_eq!(classes.len(), 3 + 3 + 2);
}

#[test]
fn speedscope_file_has_all_classes() {
    let file = speedscope(&four(), &Names::ranks());
    let file: serde_json::Value = serde_json::from_str(&file).unwrap();
    let profiles = file["profiles"].as_array().unwrap();
    let names: Vec<_> = profiles
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["all", "ranks 0-1 (2)", "rank 2", "rank 3"]);
    let frames = file["shared"]["frames"].as_array().unwrap();
    assert_eq!(frames.len(), 5);
    for profile in profiles {
        let numbers = |name: &str| {
            let list = profile[name].as_array().unwrap();
            list.iter()
                .filter_map(serde_json::Value::as_u64)
                .collect::<Vec<_>>()
        };
        let weights = numbers("weights");
        let samples = profile["samples"].as_array().unwrap();
        assert_eq!(weights.len(), samples.len());
        assert_eq!(profile["endValue"], weights.iter().sum::<u64>());
        let mut indices = samples.iter().flat_map(|it| it.as_array().unwrap());
        assert!(indices.all(|it| it.as_u64().unwrap() < 5));
    }
}

#[test]
fn long_profile_has_a_limited_number_of_parts() {
    let mut profile = Profile::default();
    let stays = samples(10, 0, &[(10, "main:80 relax:15")]);
    let mut found = Samples::default();
    found.absorb(Samples::of(&"3".parse().unwrap(), &stays).unwrap());
    for _ in 0..=PARTS_MAX {
        profile.absorb(&"3".parse().unwrap(), &found);
    }
    let parts = &profile.tree(&profile.tasks)[0].parts;
    assert_eq!(profile.parts(), PARTS_MAX / 2 + 1);
    assert_eq!((parts.len(), parts[0]), (profile.parts(), 20));
    assert_eq!(parts.iter().sum::<u64>(), profile.times(&profile.tasks));
}
