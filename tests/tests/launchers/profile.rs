//! `sdm profile` of jobs whose ranks run in known functions.

use std::fs;

use sdm_tests::job::{Folder, running};
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes;
use sdm_tests::schema::Schema;
use sdm_tests::sdm::Sdm;
use serde_json::Value;

use super::chosen::chosen;
use super::hangs::job::{Job, Under};

/// The rows of a record that have these words in a field.
fn rows<'a>(record: &'a Value, list: &str, field: &str, word: &str) -> Vec<&'a Value> {
    let rows = record[list].as_array().expect("rows").iter();
    rows.filter(|row| row[field] == word).collect()
}

fn number(row: &Value, field: &str) -> u64 {
    row[field]
        .as_u64()
        .unwrap_or_else(|| panic!("no {field}: {row}"))
}

#[test]
fn profile_shares_match_the_functions_of_ranks() {
    for compiler in chosen(
        profile_shares_match_the_functions_of_ranks,
        &[Compiler::OpenMpi, Compiler::Mpich],
    ) {
        let folder = Folder::new("shares");
        let program = folder.compile(compiler, "mpi_shares");
        let under = Under {
            ranks: 4,
            ..Under::new(compiler)
        };
        let job = Job::start(under, &program, "shares");
        let place = Place::new();
        let [flame, speedscope] = ["flame.svg", "speedscope.json"].map(|it| place.path().join(it));
        let done = Sdm::new(&place, "profile")
            .args([&*job.launcher.id().to_string(), "--for", "2", "--json"])
            .args(["--flame".as_ref(), flame.as_os_str()])
            .args(["--speedscope".as_ref(), speedscope.as_os_str()])
            .finish()
            .code(0);
        for pid in running(&program) {
            assert_eq!(processes::tracer(pid), None, "{done}");
        }
        assert_eq!(running(&program).len(), 4, "{done}");
        let records = done.records();
        let record = records.iter().find(|record| record["kind"] == "profile");
        let record = record.unwrap_or_else(|| panic!("no profile: {done}"));
        check_shares(record);
        let svg = fs::read_to_string(&flame).expect("a flame graph");
        assert!(
            svg.contains("<title>stays () at mpi_shares.c:") && !svg.contains("never"),
            "{svg}"
        );
        let file = fs::read_to_string(&speedscope).expect("a profile");
        let file: Value = serde_json::from_str(&file).expect("JSON");
        Schema::check_speedscope(&file);
        assert_eq!(file["profiles"][0]["endValue"], record["times"], "{file}");
        drop(job);
    }
}

fn check_shares(record: &Value) {
    assert_eq!(record["tasks"], "0-3", "{record}");
    assert!(
        rows(record, "nodes", "function", "never").is_empty(),
        "{record}"
    );
    let [stays, moves, ping, pong] = ["stays", "moves", "ping", "pong"].map(|name| {
        let found = rows(record, "nodes", "function", name);
        assert_eq!(found.len(), 1, "{name}: {record}");
        found[0]
    });
    let still = rows(record, "classes", "tasks", "0,2");
    let [still] = still[..] else {
        panic!("not one class: {record}");
    };
    assert_eq!(
        (&still["moved"], &still["places"]),
        (&Value::Bool(false), &1.into()),
        "{record}"
    );
    assert_eq!(number(still, "times"), number(still, "all"), "{record}");
    assert_eq!(number(still, "all"), number(stays, "times"), "{record}");
    assert_eq!(
        (&stays["tasks"], &moves["tasks"]),
        (&"0,2".into(), &"1,3".into()),
        "{record}"
    );
    let sum = |nodes: [&Value; 2]| nodes.map(|node| number(node, "times")).iter().sum::<u64>();
    assert_eq!(sum([stays, moves]), number(record, "times"), "{record}");
    assert!(
        number(ping, "times") > 0 && number(pong, "times") > 0,
        "{record}"
    );
    assert!(sum([ping, pong]) <= number(moves, "times"), "{record}");
    // Every snapshot was of one rank with one thread.
    assert_eq!(number(record, "looks"), number(record, "times"), "{record}");
    let classes = record["classes"].as_array().expect("classes").iter();
    let moved = classes.filter(|class| class["moved"] == true);
    let moved: u64 = moved.map(|class| number(class, "count")).sum();
    assert_eq!(moved, 2, "{record}");
    assert!(
        number(record, "stood_us") > 0 && number(record, "processor_us") > 0,
        "{record}"
    );
}
