//! Errors that sanitizers and Valgrind find in ranks: one stop for all ranks with the same error, and the exit code of
//! a batch run. Also signals for which a rank has a handler.

use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::Sdm;
use serde_json::json;

use super::chosen::{LAUNCHERS, chosen};

#[test]
fn address_sanitizer_error_is_one_stop_of_its_ranks() {
    let line = Place::line("mpi_memory.c", "sum += cells[i]");
    let said = format!(
        "AddressSanitizer: heap-buffer-overflow, read of 8 bytes, add_up () at mpi_memory.c:{line}"
    );
    for (launcher, compiler) in chosen(address_sanitizer_error_is_one_stop_of_its_ranks, &LAUNCHERS)
    {
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
        // Ranks that arrive later are reported separately.
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
fn batch_ends_at_a_sanitizer_error_and_reports_it() {
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

/// LeakSanitizer checks at the process's end, when launchers believe that it has ended; MPI's own leaks are the
/// same in all ranks.
#[test]
fn equal_leaks_are_one_stop_of_their_ranks() {
    let place = Place::new();
    let options = ["-g", "-fsanitize=leak"];
    let program = place.compile_with("mpi_memory", Compiler::Mpich, &options);
    let done = Sdm::run(&place, 4)
        .args(["--launcher", "mpiexec"])
        .lines(&["continue", "[1-3] ranks", "[0] ranks", "continue"])
        .program(&program, &["lose"])
        .finish();
    let of = |ranks: &str| {
        let line = done.out.lines().find(|line| line.starts_with(ranks));
        let line = line.unwrap_or_else(|| panic!("no {ranks} in {done}"));
        let said = line.split_once("LeakSanitizer: ").map(|(_, said)| said);
        let said = said.unwrap_or_else(|| panic!("no leaks in {line}: {done}"));
        let bytes = said.split_once(" byte(s) leaked in ").map(|(it, _)| it);
        let bytes = bytes.and_then(|it| it.parse::<u64>().ok());
        bytes.unwrap_or_else(|| panic!("no number of bytes in {line}: {done}"))
    };
    assert_eq!(of("ranks 1-3 (3)  stopped"), of("rank 0  stopped") + 40_000);
    assert!(done.out.contains("exited with code 23"), "{done}");
}

/// A batch run has no stop at `main`, where the program's libraries are loaded.
#[test]
fn batch_run_reports_address_sanitizer_leaks_at_its_end() {
    let place = Place::new();
    let program = place.compile_with("leaks", Compiler::C, &["-g", "-fsanitize=address"]);
    let run = |blocks: &str, code: i32| {
        let done = Sdm::run(&place, 1).args(["--launcher", "local", "--batch"]);
        done.program(&program, &[blocks]).finish().code(code)
    };
    let clean = run("1", 0);
    assert!(!clean.united().contains("LeakSanitizer"), "{clean}");
    let lost = run("2", 121);
    let said = "AddressSanitizer: 30 byte(s) leaked in 1 allocation(s)";
    assert!(lost.out.contains(said), "{lost}");
}

#[test]
fn races_are_one_stop_of_their_ranks() {
    let place = Place::new();
    let options = ["-g", "-pthread", "-fsanitize=thread"];
    let program = place.compile_with("mpi_memory", Compiler::OpenMpi, &options);
    let line = Place::line("mpi_memory.c", "((long *)cells)[i] = i");
    let said = format!("data race, write of 8 bytes, write_all () at mpi_memory.c:{line}");
    let mut sdm = Sdm::run(&place, 4)
        .args(["--launcher", "mpirun"])
        .talk()
        .program(&program, &["race"])
        .spawn();
    sdm.out.wait(0, "ranks 0-3 (4): at main ()");
    sdm.ask("continue &", "ThreadSanitizer: ");
    sdm.ask("[1-3] wait", "wait");
    sdm.ask(
        "[1-3] ranks",
        &format!("ranks 1-3 (3)  stopped  ThreadSanitizer: {said}"),
    );
    sdm.ask("quit", "quit");
    let _done = sdm.finish().code(0);
}

#[test]
fn json_records_contain_the_sanitizer_error() {
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

/// Valgrind runs ranks that were not built for it; errors in MPI's own libraries stop no rank.
#[test]
fn memcheck_error_is_one_stop_of_its_ranks() {
    let line = Place::line("mpi_memory.c", "sum += cells[i]");
    let said = format!("Memcheck: Invalid read of size 8, add_up () at mpi_memory.c:{line}");
    for (launcher, compiler) in chosen(memcheck_error_is_one_stop_of_its_ranks, &LAUNCHERS) {
        let place = Place::new();
        let program = place.compile("mpi_memory", compiler);
        let mut sdm = Sdm::run(&place, 4)
            .args(["--launcher", launcher, "--memcheck"])
            .talk()
            .program(&program, &[])
            .spawn();
        sdm.out.wait(0, "ranks 0-3 (4): at main ()");
        sdm.ask("continue &", &said);
        sdm.ask("[1-3] wait", "wait");
        sdm.ask("[1-3] ranks", &format!("ranks 1-3 (3)  stopped  {said}"));
        sdm.ask("[1-3] print i", "ranks 1-3 (3): 64\n");
        sdm.ask("quit", "quit");
        let _done = sdm.finish().code(0);
    }
}

#[test]
fn memcheck_leaks_are_in_the_report() {
    for (launcher, compiler) in chosen(memcheck_leaks_are_in_the_report, &LAUNCHERS) {
        let place = Place::new();
        let program = place.compile("mpi_memory", compiler);
        let lost = "Memcheck: 40000 bytes in 5 blocks are definitely lost";
        let done = Sdm::run(&place, 3)
            .args(["--launcher", launcher, "--memcheck"])
            .lines(&["continue", "ranks", "report r.html", "continue"])
            .program(&program, &["lose"])
            .finish();
        let own = done
            .out
            .lines()
            .find(|it| it.starts_with("ranks 1-2 (2)  stopped"));
        assert!(own.is_some_and(|line| line.contains(lost)), "{done}");
        // Leaks of MPI's own start and end are not attributed to a rank.
        assert!(done.out.contains("rank 0: exited normally"), "{done}");
        let report =
            std::fs::read_to_string(place.path().join("r.html")).expect("it was asked for");
        assert!(
            report.contains(lost) && report.contains("lose (mpi_memory.c:"),
            "{report}"
        );
    }
}

/// A crash handler of MPI's or of Fortran's reports a crash and continues. The stop must come before the report.
#[test]
fn crash_stops_the_rank_before_a_crash_handler_reports_it() {
    for (name, compiler, launcher, count) in [
        ("mpi_crash", Compiler::OpenMpi, "mpirun", 2),
        ("mpi_crash", Compiler::Mpich, "mpiexec", 2),
        ("crash", Compiler::Fortran, "local", 1),
    ] {
        let place = Place::new();
        let program = place.compile(name, compiler);
        let done = Sdm::run(&place, count)
            .args(["--launcher", launcher, "--batch", "--no-report"])
            .program(&program, &[])
            .finish()
            .code(139);
        let said = format!("{}{}", done.out, done.err);
        let stop = "received signal SIGSEGV, Segmentation fault";
        assert!(said.contains(stop), "{done}");
        for told in [
            "Process received signal",
            "Caught signal",
            "Backtrace for this error",
        ] {
            assert!(!said.contains(told), "{done}");
        }
    }
}

/// Runtimes have handlers of their own, which only report a crash.
#[test]
fn signals_that_a_rank_handles_are_passed_on() {
    for (launcher, compiler) in chosen(signals_that_a_rank_handles_are_passed_on, &LAUNCHERS) {
        let place = Place::new();
        let program = place.compile_with("handlers", compiler, &["-g", "-DWITH_MPI"]);
        for (settings, what, code) in [
            (&[][..], "live", 0),
            (
                &["--gdb-setting", "handle SIGSEGV nostop noprint pass"],
                "live",
                0,
            ),
            (&[], "die", 139),
        ] {
            let done = Sdm::run(&place, 2)
                .args(["--launcher", launcher, "--batch", "--no-report"])
                .args(settings)
                .program(&program, &[what])
                .finish()
                .code(code);
            assert!(
                done.united().contains("[0-1] 5 faults, 1 probes\n"),
                "{launcher}: {done}"
            );
            let held = "received signal SIGSEGV, Segmentation fault, dies () at handlers.c:";
            assert_eq!(done.out.contains(held), code != 0, "{launcher}: {done}");
        }
    }
}
