//! Tests of programs that were built with sanitizers, by gcc, and by clang if it is installed.

use std::path::{Path, PathBuf};
use std::process::Command as Process;

use sdm_debug::event::Stream;
use sdm_debug::reply::{Access, Finding, Stop, StopReason};
use sdm_debug::{Command, Reply};

use crate::harness::{Harness, place, stopped};

/// The fixture built with these sanitizers, once for each installed compiler.
fn compiled(harness: &Harness, sanitizers: &str) -> Vec<PathBuf> {
    compiled_by(&["gcc", "clang"], harness, sanitizers)
}

fn compiled_by(compilers: &[&str], harness: &Harness, sanitizers: &str) -> Vec<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/memory.c");
    let compilers = compilers.iter().filter(|compiler| {
        let found = Process::new(compiler).arg("--version").output().is_ok();
        if !found {
            println!("SKIP: no {compiler}, whose sanitizers are tried too");
        }
        found
    });
    compilers
        .filter_map(|compiler| {
            let program = harness.directory.join(format!("memory-{compiler}"));
            let status = Process::new(compiler)
                .args(["-g", "-O0", "-pthread", "-o"])
                .arg(&program)
                .arg(&source)
                .arg(format!("-fsanitize={sanitizers}"))
                .status()
                .unwrap();
            // clang's runtimes are separate packages.
            if *compiler == "clang" && !status.success() {
                println!("SKIP: clang cannot link with -fsanitize={sanitizers}");
                return None;
            }
            assert!(status.success(), "{compiler} -fsanitize={sanitizers}");
            Some(program)
        })
        .collect()
}

fn found(stop: &Stop) -> (&str, &str, Option<(bool, u64)>) {
    match &stop.reason {
        StopReason::Finding(finding) => {
            let Finding { tool, kind, access } = &**finding;
            let access = access.map(
                |Access {
                     is_write,
                     size_bytes,
                 }| (is_write, size_bytes),
            );
            (tool, kind, access)
        }
        reason => panic!("{reason:?}"),
    }
}

#[test]
fn address_sanitizer_error_stops_the_program() {
    let mut harness = Harness::new();
    for program in compiled(&harness, "address") {
        let mut check = |argument, kind, access, at, inside: Option<&str>| {
            let about = format!("{} {argument}", program.display());
            harness.start(&program, &[argument]);
            let stop = stopped(harness.run_on());
            assert_eq!(found(&stop), ("AddressSanitizer", kind, access), "{about}");
            assert_eq!(place(&stop), at, "{about}");
            assert_eq!(stop.inside.as_deref(), inside, "{about}");
            // The report was printed by then, and the program ends as without a debugger.
            harness.wait_output(Stream::Stderr, kind);
            let end = harness.run_on();
            assert!(matches!(end, Ok(Reply::Exited { code: 1, .. })), "{end:?}");
        };
        let over = "heap-buffer-overflow";
        check("over", over, Some((false, 4)), ("sum", 12), None);
        check("fill", over, Some((true, 80)), ("fill", 17), Some("memset"));
        let after = "heap-use-after-free";
        check("write", after, Some((true, 4)), ("main", 69), None);
        check("twice", "double-free", None, ("main", 71), Some("free"));
    }
}

/// LeakSanitizer, alone or as part of AddressSanitizer, checks at the end of a program that gdb traces.
#[test]
fn leak_sanitizer_report_stops_the_program() {
    let mut harness = Harness::new();
    for (sanitizer, tool, code) in [
        ("leak", "LeakSanitizer", 23),
        ("address", "AddressSanitizer", 1),
    ] {
        for program in compiled(&harness, sanitizer) {
            let about = format!("{} {sanitizer}", program.display());
            harness.start(&program, &["lose"]);
            let stop = stopped(harness.run_on());
            let kind = "40 byte(s) leaked in 1 allocation(s)";
            assert_eq!(found(&stop), (tool, kind, None), "{about}");
            harness.wait_output(Stream::Stderr, "in grab ");
            let end = harness.run_on();
            let expect = |end: &_| matches!(end, Ok(Reply::Exited { code: it, .. }) if *it == code);
            assert!(expect(&end), "{about}: {end:?}");
            // A program without leaks ends as without a debugger.
            harness.start(&program, &[]);
            let end = harness.run_on();
            assert!(
                matches!(end, Ok(Reply::Exited { code: 0, .. })),
                "{about}: {end:?}"
            );
        }
    }
}

#[test]
fn undefined_behavior_sanitizer_error_stops_the_program() {
    let mut harness = Harness::new();
    for program in compiled(&harness, "undefined") {
        harness.start(&program, &["add"]);
        let stop = stopped(harness.run_on());
        let kind = "signed integer overflow: N + N cannot be represented in type 'int'";
        assert_eq!(found(&stop), ("UndefinedBehaviorSanitizer", kind, None));
        assert_eq!(place(&stop), ("add", 21));
        // The program continues. Its report has the values, and the error stops it only once.
        let end = harness.run_on();
        assert!(matches!(end, Ok(Reply::Exited { code: 0, .. })), "{end:?}");
        harness.wait_output(Stream::Stderr, "overflow: 2147483642 + 7 cannot");
    }
}

#[test]
fn thread_sanitizer_race_stops_the_program() {
    let mut harness = Harness::new();
    for program in compiled(&harness, "thread") {
        harness.start(&program, &["race"]);
        let stop = stopped(harness.run_on());
        let (tool, kind, access) = found(&stop);
        assert_eq!((tool, kind), ("ThreadSanitizer", "data race"));
        // clang 14 has no frame with the access.
        let is_right = |(_, bytes)| bytes == 4;
        let unknown = program.ends_with("memory-clang");
        assert!(access.map_or(unknown, is_right), "{access:?}");
        assert_eq!(place(&stop), ("count", 25));
        harness.wait_output(Stream::Stderr, "data race");
        harness.ask(Command::Kill).unwrap();
    }
}

#[test]
fn sanitizer_without_error_causes_no_stop() {
    let mut harness = Harness::new();
    for program in compiled(&harness, "undefined") {
        harness.start(&program, &[]);
        let end = harness.run_on();
        assert!(matches!(end, Ok(Reply::Exited { code: 0, .. })), "{end:?}");
    }
}

/// MemorySanitizer, which only clang has, stops the program at its error as AddressSanitizer does.
#[test]
fn memory_sanitizer_error_stops_the_program() {
    let mut harness = Harness::new();
    for program in compiled_by(&["clang"], &harness, "memory") {
        harness.start(&program, &["unset"]);
        let stop = stopped(harness.run_on());
        let kind = "use-of-uninitialized-value";
        assert_eq!(found(&stop), ("MemorySanitizer", kind, None));
        assert_eq!(place(&stop), ("main", 59));
        harness.ask(Command::Kill).unwrap();
    }
}
