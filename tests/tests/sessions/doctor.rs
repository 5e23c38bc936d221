//! Findings of `sdm doctor` on this machine, and on one with a fault.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sdm_tests::binaries;
use sdm_tests::fixture::Compiler;
use sdm_tests::job::Folder;
use sdm_tests::place::{Place, script};
use sdm_tests::sdm::{Done, Sdm, command};
use serde_json::Value;

/// The finding of a check, on the machine at this index of the report's `places`.
fn found<'a>(report: &'a Value, place: usize, check: &str) -> &'a Value {
    let findings = report["places"][place]["findings"].as_array();
    let findings = findings.unwrap_or_else(|| panic!("{report:#}"));
    let found = findings.iter().find(|it| it["check"] == check);
    found.unwrap_or_else(|| panic!("nothing of {check}: {report:#}"))
}

fn report(done: &Done) -> Value {
    serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {done}"))
}

/// A script that prints the version text of such a gdb.
fn gdb(place: &Place, version: &str) -> PathBuf {
    script(
        place.path(),
        "old-gdb",
        &format!("echo 'GNU gdb (GDB) {version}'"),
    )
}

#[test]
fn healthy_machine_passes_every_check() {
    let place = Place::new();
    let done = Sdm::new(&place, "doctor").args(["--json"]).finish();
    let report = report(&done);
    for check in [
        "programs",
        "gdb",
        "gdb-python",
        "gdb-registers",
        "kernel",
        "rust",
        "attach",
        "looks",
        "perf-events",
        "descriptors",
        "processes",
        "memory",
        "runtime-folder",
        "ports",
    ] {
        assert_eq!(
            found(&report, 0, check)["verdict"],
            "good",
            "{check}: {report:#}"
        );
    }
    let done = Sdm::new(&place, "doctor").finish();
    assert!(
        done.out.contains("  good    attach         gdb can attach"),
        "{done}"
    );
    assert!(done.out.trim_end().ends_with("unknown"), "{done}");
}

/// A check, and a limit and a gdb to plant; then the expected verdict, and parts of the finding and of the remedy.
type Fault<'a> = (
    &'a str,
    Option<&'a str>,
    Option<&'a Path>,
    &'a str,
    &'a str,
    &'a str,
);

#[test]
fn each_fault_is_reported_with_its_remedy() {
    let place = Place::new();
    let old = gdb(&place, "8.2");
    let bare = place.path().join("nothing");
    fs::create_dir(&bare).expect("there is room");
    let limited = |limit: &str| format!("ulimit {limit}; exec \"$0\" \"$@\"");
    let faults: [Fault<'_>; 5] = [
        (
            "gdb",
            None,
            Some(&old),
            "bad",
            "gdb 8.2 is too old",
            "--gdb",
        ),
        (
            "gdb",
            None,
            Some(Path::new("/nosuch/gdb")),
            "bad",
            "no such gdb",
            "--gdb",
        ),
        (
            "descriptors",
            Some("-n 100"),
            None,
            "bad",
            "at most 100",
            "--tasks-per-server",
        ),
        (
            "ssh",
            None,
            None,
            "unknown",
            "ssh was not found",
            "install an ssh client",
        ),
        ("mpi", None, None, "unknown", "no mpirun", "load the module"),
    ];
    for (check, limit, gdb, verdict, part, remedy) in faults {
        let line = limit
            .map(limited)
            .unwrap_or_else(|| "exec \"$0\" \"$@\"".to_owned());
        let mut sdm = Sdm::wrapped(&["/bin/sh", "-c", &line], &place, "doctor").args(["--json"]);
        if let Some(gdb) = gdb {
            sdm = sdm.args(["--gdb"]).args([gdb]);
        }
        if verdict == "unknown" {
            sdm = sdm.env("PATH", &bare);
        }
        let done = sdm.finish();
        let report = report(&done);
        let found = found(&report, 0, check);
        assert_eq!(found["verdict"], verdict, "{found:#}");
        let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
        assert!(text("found").contains(part), "{found:#}");
        assert!(text("remedy").contains(remedy), "{found:#}");
        if verdict == "bad" {
            assert_eq!(done.code, Some(1), "{done}");
        }
    }
}

#[test]
fn unanswering_slurm_is_reported() {
    let place = Place::new();
    script(place.path(), "srun", "exit 1");
    script(
        place.path(),
        "scontrol",
        "echo 'scontrol: error: no controller' >&2; exit 1",
    );
    let path = std::env::var("PATH").expect("a path");
    let done = Sdm::new(&place, "doctor")
        .args(["--json"])
        .env("PATH", format!("{}:{path}", place.path().display()))
        .finish()
        .code(1);
    let report = report(&done);
    let slurm = found(&report, 0, "slurm");
    assert_eq!(slurm["verdict"], "bad", "{slurm:#}");
    assert!(
        slurm["found"]
            .as_str()
            .is_some_and(|it| it.contains("no controller")),
        "{slurm:#}"
    );
}

#[test]
fn undumpable_process_is_reported() {
    let place = Place::new();
    let folder = Folder::new("undumpable");
    let program = folder.compile(Compiler::C, "undumpable");
    let mut process = Command::new(&program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut ready = [0; 6];
    let out = process.stdout.as_mut().expect("it is a pipe");
    out.read_exact(&mut ready).expect("it says so");
    let pid = process.id().to_string();
    // The owner of such a process is unknown, so the search for left-over processes cannot be done while it exists.
    let said = |words: &[&str]| {
        let mut sdm = command(&place, binaries::folder().join("sdm"));
        let output = sdm.args(words).output().expect("it runs");
        let [out, err] =
            [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
        (output.status.code(), out, err)
    };
    let (code, out, _) = said(&["doctor", "--json", &pid]);
    let report: Value = serde_json::from_str(&out).expect("it is JSON");
    assert_eq!(code, Some(1), "{report:#}");
    assert_eq!(found(&report, 1, "job")["verdict"], "good", "{report:#}");
    let target = found(&report, 1, "target");
    assert_eq!(target["verdict"], "bad", "{target:#}");
    let remedy = target["remedy"].as_str().unwrap_or_default();
    assert!(remedy.contains("PR_SET_DUMPABLE"), "{target:#}");
    // The error names the check.
    let (_, _, err) = said(&["stacks", &pid]);
    assert!(
        err.contains("`sdm doctor TARGET` checks this (target)"),
        "{err}"
    );
    drop(process.stdin.take());
    process.wait().expect("it ends");
    let (_, out, _) = said(&["doctor", "--json", "999999999"]);
    assert!(out.contains("no such process"), "{out}");
}

#[test]
fn too_old_gdb_is_refused_with_the_required_version() {
    let place = Place::new();
    let program = place.compile("work", Compiler::C);
    // A script around the real gdb that reports version 8.2.
    let line = String::from("gdb \"$@\" | sed -u 's/^~\"GNU gdb .*/~\"GNU gdb (GDB) 8.2\\\\n\"/'");
    let old = script(place.path(), "old-gdb", &line);
    let done = Sdm::new(&place, "run")
        .args(["--gdb"])
        .args([&old])
        .lines(&["bt"])
        .program(&program, &[])
        .finish();
    let done = done.code(124);
    let said = format!("{}{}", done.out, done.err);
    for part in [
        "rank 0: gdb 8.2 is too old: gdb 10 or later is required\n",
        "install gdb 10 or later, and select it by --gdb (",
    ] {
        assert!(said.contains(part), "{part}: {done}");
    }
}

#[test]
fn doctor_checks_ssh_server_and_gdb_of_a_remote_host() {
    let place = Place::new();
    // This machine's own name: no ssh is needed, all else is as with any host.
    let done = Sdm::new(&place, "doctor")
        .args(["--json", "--host", "localhost"])
        .finish();
    let report = report(&done);
    assert_eq!(report["places"][1]["place"], "host localhost", "{report:#}");
    for check in ["ssh", "server", "gdb", "attach", "memory"] {
        assert_eq!(
            found(&report, 1, check)["verdict"],
            "good",
            "{check}: {report:#}"
        );
    }
    assert_ne!(
        found(&report, 1, "firewall")["verdict"],
        "bad",
        "{report:#}"
    );
    // A server of another version.
    let server = script(
        place.path(),
        "sdm-server",
        "echo \"error: unexpected argument '--doctor' found\" >&2; exit 2",
    );
    let done = Sdm::new(&place, "doctor")
        .args(["--json", "--host", "localhost", "--server-path"])
        .args([&server])
        .finish()
        .code(1);
    let report = self::report(&done);
    let found = found(&report, 1, "server");
    assert!(
        found["found"]
            .as_str()
            .is_some_and(|it| it.contains("an older version without --doctor")),
        "{found:#}"
    );
}

#[test]
fn support_bundle_has_no_secrets_and_is_written_once() {
    let place = Place::new();
    let file = place.path().join("config.toml");
    fs::write(&file, "[run]\nenv = [\"TOKEN=geheim\"]\ntimeout = 77\n").expect("there is room");
    let bundle = place.path().join("support.json");
    let write = || {
        Sdm::new(&place, "doctor")
            .args(["--bundle", "support.json"])
            .env("SDM_CONFIG", &file)
            .env("SLURM_JWT", "geheim")
            .env("SDM_KEY", "geheim")
            .finish()
    };
    let done = write();
    assert!(
        done.err
            .contains("support.json is written; read it before you send it"),
        "{done}"
    );
    let text = fs::read_to_string(&bundle).expect("it is there");
    assert!(!text.contains("geheim"), "{text}");
    assert!(
        text.contains("SLURM_JWT") && text.contains("\"77\""),
        "{text}"
    );
    let bundled: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(found(&bundled["doctor"], 0, "gdb")["verdict"], "good");
    let mode = fs::metadata(&bundle)
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let done = write().code(2);
    assert!(done.err.contains("support.json: File exists"), "{done}");
}
