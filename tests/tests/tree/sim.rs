//! The whole tree under a virtual clock, with faults drawn from a fixed list of seeds. `scripts/sim` runs any number of
//! others.

use std::sync::atomic::{AtomicUsize, Ordering};

use sdm_sim::{Options, Report, run};
use sdm_tests::run::is_full;

/// Seeds that once violated an invariant, each with the fault that it found.
const SEEDS: [(u64, &str); 17] = [
    (28, "a task was told to be missing and to be lost"),
    (41, "an event came a second way, behind newer ones"),
    (56, "a slow child's old words moved tasks in the books"),
    (130, "a settled command was done again"),
    (240, "the first server died before it was ever reached"),
    (302, "who was never reached waits for its time, then ends"),
    (317, "an answer overtook an event of its task"),
    (345, "a command asked again was never answered"),
    (408, "a process that refused was called for a minute"),
    (540, "a question was ignored for its number"),
    (
        547,
        "a host died without a word, and its last bytes were under way",
    ),
    (1047, "a question asked again was taken for the first one"),
    (
        1199,
        "nobody asked a child that had its plan for the end of the start",
    ),
    (1271, "the master never came"),
    (
        246_190_037_770_380,
        "a handshake that was changed on its way ruled a living server out",
    ),
    (
        221_362_733_984_257,
        "a server that was cut off all through the start waits for its time",
    ),
    (
        166_289_223_274_879,
        "a record whose length was changed swallowed all that came behind it",
    ),
];

/// Seeds of large trees, which take five times as long as all above. Only the part `tree` runs them.
const LARGE: [(u64, &str); 2] = [
    (
        210_618_569_074_050,
        "a living server was never told to be back after a link above it was lost",
    ),
    (
        217_153_945_188_522,
        "the master gave up on a front-end that it never reached",
    ),
];

fn check(seed: u64, what: &str) -> Report {
    let options = Options {
        log_lines: 200,
        ..Options::default()
    };
    match run(seed, options) {
        Ok(report) => report,
        Err(broken) => panic!(
            "{}\n{}: {}\nseed {seed} ({what}); replay: scripts/sim --seed {seed} --log",
            broken.lines.join("\n"),
            broken.violation.check,
            broken.violation.text
        ),
    }
}

#[test]
fn simulator_laws_hold_under_every_fault() {
    let large: &[_] = if is_full() { &LARGE } else { &[] };
    let seeds: Vec<_> = large.iter().chain(&SEEDS).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some((seed, what)) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
            check(*seed, what);
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let (seed, what) = SEEDS[0];
    assert_eq!(check(seed, what), check(seed, what));
    assert_ne!(check(seed, what).hash, check(SEEDS[4].0, SEEDS[4].1).hash);
}

/// The patches of `scripts/sim-mutants` still apply.
#[test]
fn every_mutant_patch_applies() {
    let top = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut patches = 0;
    for entry in std::fs::read_dir(top.join("sdm-sim/mutants")).expect("the mutants") {
        let patch = entry.expect("a file").path();
        let output = std::process::Command::new("git")
            .args(["apply", "--check"])
            .arg(&patch)
            .current_dir(&top)
            .output()
            .expect("git runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}", patch.display());
        patches += 1;
    }
    assert!(patches >= 8, "{patches} mutants");
}
