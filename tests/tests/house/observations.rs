//! Recorded observations of every way to hang, under each MPI, are judged again. A verdict that differs from the
//! recorded one fails the test. `UPDATE_GOLDEN=1` rewrites the verdicts.

use std::fs;
use std::path::Path;

use sdm_diagnose::Observations;
use sdm_tests::observations::{MPIS, differing, files, judged, kept, normalised, renew};
use sdm_tests::place::Place;
use sdm_tests::sdm::Sdm;
use sdm_tests::ways::{self, RANKS};

/// The fault of one job's record; `None` if it has none.
fn fault(text: &str, expect: ways::Expect) -> Option<String> {
    let before = match Observations::decode(text) {
        Ok(before) => before,
        Err(error) => return Some(error.to_string()),
    };
    if before.encode() != text {
        return Some("it is not as it is written: it was changed by hand".to_owned());
    }
    let after = judged(text);
    let differing = differing(&before.verdict, &after.verdict);
    let mut faults = Vec::new();
    if before.verdict != after.verdict {
        faults.push(format!(
            "the verdict is another one\n    {}",
            differing.join("\n    ")
        ));
    }
    if faults.is_empty() && normalised(text, Path::new("/job")) != text {
        faults.push("it holds what differs from run to run".to_owned());
    }
    let samples = before.observed.samples.iter();
    let counted = samples
        .clone()
        .all(|sample| sample.marks.unfollowed.is_empty());
    faults.extend(expect.fault(&after.verdict, counted));
    (!faults.is_empty()).then(|| faults.join("\n  "))
}

#[test]
fn recorded_observations_yield_the_recorded_verdicts() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut faults = Vec::new();
    let mut count = 0;
    for (compiler, mpi) in MPIS {
        let mut left = files(&kept().join(mpi));
        for expect in ways::all(compiler, RANKS) {
            let way = expect.way();
            let Some(path) = left.remove(way) else {
                faults.push(format!(
                    "{mpi}/{way}: nothing is kept of it: scripts/observations renew {mpi}"
                ));
                continue;
            };
            let mut text = fs::read_to_string(&path).expect("a file");
            if update {
                text = judged(&text).encode();
                fs::write(&path, &text).expect("a file");
            }
            count += 1;
            faults.extend(fault(&text, expect).map(|what| format!("{mpi}/{way}: {what}")));
        }
        faults.extend(
            left.keys()
                .map(|way| format!("{mpi}/{way}: there is no such way")),
        );
    }
    assert!(
        faults.is_empty(),
        "{} faults; {count} jobs are kept. Where the new verdict is right: UPDATE_GOLDEN=1 cargo nextest run \
         -p sdm-tests --test house observations, and the commit says why.\n{}",
        faults.len(),
        faults.join("\n")
    );
}

/// Jobs of PyTorch 2.15 from PyPI, which the tests cannot install: each is judged as when it was recorded, by
/// `sdm diagnose --observations`.
#[test]
fn recorded_torch_jobs_yield_the_recorded_verdicts() {
    let jobs = files(&kept().join("torch"));
    assert!(jobs.len() >= 8, "{} are kept", jobs.len());
    for (way, path) in jobs {
        let mut text = fs::read_to_string(&path).expect("a file");
        let after = judged(&text);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            text = after.encode();
            fs::write(&path, &text).expect("a file");
        }
        let before = Observations::decode(&text).expect("it is kept");
        let differing = differing(&before.verdict, &after.verdict);
        assert!(differing.is_empty(), "{way}: {}", differing.join("\n"));
    }
}

/// `sdm diagnose --replay` shows the recorded verdict, with the exit code of its step, and names the fault of a
/// malformed file.
#[test]
fn replay_shows_the_recorded_verdict() {
    let place = Place::new();
    let replay = |path: &Path| {
        Sdm::new(&place, "diagnose")
            .args(["--json", "--replay"])
            .args([path])
    };
    for (way, code) in [("ring", 1), ("tags", 3), ("loop", 4)] {
        let path = kept().join(format!("mpich/{way}.json"));
        let text = fs::read_to_string(&path).expect("it is kept");
        let verdict = Observations::decode(&text).expect("it is kept").verdict;
        let done = replay(&path).finish().code(code);
        let records = done.records();
        assert_eq!(records[0]["kind"], "diagnosis", "{done}");
        for (field, value) in verdict.as_object().expect("an object") {
            assert_eq!(&records[0][field], value, "{field}: {done}");
        }
        assert_eq!(records[1]["code"], code, "{done}");
    }
    let broken = place.path().join("broken.json");
    fs::write(
        &broken,
        "{\"observations\": 1, \"verdict\": {}, \"sample\": []}",
    )
    .expect("there is room");
    let done = Sdm::new(&place, "diagnose")
        .args(["--replay"])
        .args([&broken])
        .finish()
        .code(2);
    let expect = format!(
        "sdm: {}: observations: the field `sample` is unknown",
        broken.display()
    );
    assert!(done.err.contains(&expect), "{done}");
    let both = Sdm::new(&place, "diagnose")
        .args(["--replay", "x", "123"])
        .finish();
    assert!(both.err.contains("cannot be used with"), "{both}");
    let none = Sdm::new(&place, "diagnose").finish();
    assert!(none.err.contains("TARGET"), "{none}");
}

/// `scripts/observations renew` lists what differs from the kept files, and keeps what was recorded.
#[test]
fn observations_renew_lists_each_changed_verdict() {
    let place = Place::new();
    let [from, into] = ["from", "into"].map(|name| place.path().join(name));
    let text = |way: &str| fs::read_to_string(kept().join(format!("mpich/{way}.json")));
    let put = |folder: &Path, way: &str, of: &str| {
        let folder = folder.join("mpich");
        fs::create_dir_all(&folder).expect("a folder");
        let text = text(of).expect("it is kept");
        fs::write(folder.join(format!("{way}.json")), text).expect("there is room");
    };
    for way in ["ring", "tags", "loop"] {
        put(&into, way, way);
    }
    // One as before, one with another verdict, a new one, and none of `loop`.
    put(&from, "ring", "ring");
    put(&from, "tags", "ring");
    put(&from, "other", "tags");
    let mpis = ["mpich".to_owned()];
    let said = renew(&from, &into, &mpis).expect("it is renewed");
    let kept_one = into.join("mpich/loop.json");
    let stays = format!("mpich/loop: was not recorded, {} stays", kept_one.display());
    let verdict = |way: &str| Observations::decode(&text(way)?).map_err(std::io::Error::other);
    let verdict = |way: &str| verdict(way).expect("it is kept").verdict;
    let changed = differing(&verdict("tags"), &verdict("ring")).join("\n    ");
    let expect = [
        stays,
        format!("mpich/other: new, {}", verdict("tags")["step"]),
        format!("mpich/tags: the verdict is another one\n    {changed}"),
    ];
    assert_eq!(said, expect);
    let now = files(&into.join("mpich"));
    let now = |way: &str| fs::read_to_string(&now[way]).expect("it is kept");
    for (way, of) in [
        ("ring", "ring"),
        ("tags", "ring"),
        ("other", "tags"),
        ("loop", "loop"),
    ] {
        assert_eq!(now(way), text(of).expect("it is kept"), "{way}");
    }
    assert_eq!(
        renew(&from, &into, &mpis).expect("it is renewed"),
        expect[..1]
    );
    let error = renew(&place.path().join("none"), &into, &mpis).expect_err("nothing was recorded");
    assert!(
        error
            .to_string()
            .ends_with("none/mpich: nothing was recorded"),
        "{error}"
    );
}
