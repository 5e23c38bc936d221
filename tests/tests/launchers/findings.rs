//! What sanitizers find in ranks: one stop for all that have done the same, and the exit code of a batch.

use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::Sdm;
use serde_json::json;

/// The launcher of each MPI.
const LAUNCHERS: [(&str, Compiler); 2] =
    [("mpirun", Compiler::OpenMpi), ("mpiexec", Compiler::Mpich)];

#[test]
fn what_address_sanitizer_finds_is_one_stop_of_all_that_do_it() {
    let line = Place::line("mpi_memory.c", "sum += cells[i]");
    let said = format!(
        "AddressSanitizer: heap-buffer-overflow, read of 8 bytes, add_up () at mpi_memory.c:{line}"
    );
    for (launcher, compiler) in LAUNCHERS {
        let place = Place::new();
        let options = ["-g", "-fsanitize=address"];
        let program = place.compile_with("mpi_memory", compiler, &options);
        let mut sdm = Sdm::run(&place, 4)
            .args(["--launcher", launcher])
            .talk()
            .program(&program, &[])
            .spawn();
        sdm.out.wait(0, "ranks 0-3 (4): at main ()");
        sdm.ask("continue &", "AddressSanitizer: ");
        // Who comes later says it for itself.
        sdm.ask("[1-3] wait", "wait");
        sdm.ask("[1-3] ranks", &said);
        sdm.ask("[1-3] print i", "ranks 1-3 (3): 64\n");
        sdm.ask("[@crashed] print count", "ranks 1-3 (3): 65\n");
        sdm.ask("quit", "quit");
        let done = sdm.finish().code(0);
        assert!(done.out.contains("is located 0 bytes"), "{done}");
    }
}

#[test]
fn a_batch_ends_at_what_is_found_and_reports_it() {
    let place = Place::new();
    let options = ["-g", "-fsanitize=undefined"];
    let program = place.compile_with("mpi_memory", Compiler::OpenMpi, &options);
    let line = Place::line("mpi_memory.c", "return number + 1000");
    let kind = "signed integer overflow: N + N cannot be represented in type 'int'";
    let said = format!("UndefinedBehaviorSanitizer: {kind}, next () at mpi_memory.c:{line}");
    let done = Sdm::run(&place, 4)
        .args(["--launcher", "mpirun", "--batch"])
        .program(&program, &["count"])
        .finish()
        .code(121);
    assert!(done.out.contains(&said), "{done}");
    done.expect_part("[@crashed] bt", "next (number=");
    let read = |name: &str| std::fs::read_to_string(place.path().join(name)).expect(name);
    assert!(
        read("report.txt").contains("UndefinedBehaviorSanitizer: "),
        "{done}"
    );
    assert!(
        read("report.html").contains("UndefinedBehaviorSanitizer: "),
        "{done}"
    );
    assert!(
        read("report.json").contains("UndefinedBehaviorSanitizer"),
        "{done}"
    );
}

#[test]
fn programs_read_it_in_records() {
    let place = Place::new();
    let options = ["-g", "-fsanitize=address"];
    let program = place.compile_with("mpi_memory", Compiler::OpenMpi, &options);
    let done = Sdm::run(&place, 2)
        .args(["--launcher", "mpirun", "--json", "--batch"])
        .program(&program, &[])
        .finish()
        .code(121);
    let records = done.records();
    let stop = records.iter().find(|record| record["reason"] == "finding");
    let stop = stop.unwrap_or_else(|| panic!("no such stop in {done}"));
    let said = [
        &stop["tool"],
        &stop["error"],
        &stop["access"],
        &stop["bytes"],
    ];
    let expect = json!(["AddressSanitizer", "heap-buffer-overflow", "read", 8]);
    assert_eq!(json!(said), expect, "{done}");
    assert_eq!(stop["frame"]["function"], "add_up", "{done}");
}
