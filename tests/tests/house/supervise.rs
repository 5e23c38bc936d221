//! Tests run isolated from one another, and their leftovers are detected.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use sdm_tests::place::{Place, script};

/// Runs a shell script under `supervise`, as a test program of this name with the test `pmix::it`.
fn supervised(place: &Place, name: &str, text: &str) -> Output {
    let program = script(place.path(), name, text);
    let mut supervise = Command::new(env!("CARGO_BIN_EXE_supervise"));
    supervise.arg(program).args(["--exact", "pmix::it"]);
    supervise.env("SDM_TEST_COSTS", costs(place));
    supervise.env_remove("NEXTEST_TEST_GROUP");
    supervise.output().expect("supervise runs")
}

fn costs(place: &Place) -> std::path::PathBuf {
    place.path().join("costs")
}

fn said(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    format!("{out}{err}")
}

#[test]
fn launcher_test_sees_only_its_own_files() {
    let place = Place::new();
    let shared = Path::new("/dev/shm").join(place.mark());
    std::fs::write(&shared, "").expect("a file in shared memory");
    // It ends with its standard input.
    let mut other = Command::new("sh");
    let mut other = other
        .args(["-c", "read -r line", "outside"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("sh runs");
    let text = "echo \"shm <$(ls -A /dev/shm)>, tmp <$(ls -A \"$TMPDIR\")>\"\n\
                grep -lz '^outside' /proc/[0-9]*/cmdline 2>/dev/null | sed 's/^/other /'\nexit 3";
    let output = supervised(&place, "launchers-probe", text);
    drop(other.stdin.take());
    other.wait().expect("a child");
    std::fs::remove_file(&shared).expect("it is still there");
    let said = said(&output);
    if said.contains("supervise: no namespaces can be had here") {
        println!("SKIP: this user has no namespaces here");
        return;
    }
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("shm <>, tmp <>\n"), "{said}");
    assert!(!said.contains("other /proc/"), "{said}");
    let costs = std::fs::read_to_string(costs(&place)).expect("a line");
    let fields: Vec<&str> = costs.trim_end().split('\t').collect();
    let told = (fields.len(), fields[0], fields[1], fields[4]);
    assert_eq!(told, (5, "launchers", "pmix::it", "3"), "{costs}");
}

#[test]
fn leftover_process_fails_its_test_by_name() {
    let check = |name: &str| {
        let place = Place::new();
        let output = supervised(
            &place,
            name,
            "setsid sleep 1000 </dev/null >/dev/null 2>&1 &",
        );
        let said = said(&output);
        assert_eq!(output.status.code(), Some(101), "{said}");
        assert!(said.contains("left behind by pmix::it:\n"), "{said}");
        assert!(
            said.contains("(sleep)") && said.contains("sleep 1000"),
            "{said}"
        );
    };
    // Each waits as long as a process may take to end.
    std::thread::scope(|scope| {
        scope.spawn(|| check("launchers-probe"));
        check("house-probe");
    });
}
