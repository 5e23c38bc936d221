//! Ranks with references to large objects in each frame: gdb never formats these objects whole.

use std::fs;

use sdm_tests::job::below;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes;
use sdm_tests::sdm::Sdm;

const RANKS: u32 = 8;
/// Maximum number of bytes that a gdb may write for a frame. The object alone has 494,543 bytes as text.
const FRAME_BYTES_MAX: u64 = 3 << 9;

/// Number of bytes that gdbs have written so far.
fn written(gdbs: &[u32]) -> u64 {
    let of = |pid: &u32| {
        let io = fs::read_to_string(processes::of(*pid).path("io")).expect("it lives");
        let line = io.lines().find_map(|line| line.strip_prefix("wchar: "));
        line.and_then(|line| line.parse::<u64>().ok())
            .expect("a number")
    };
    gdbs.iter().map(of).sum()
}

#[test]
fn gdb_formats_only_displayed_parts_of_large_objects() {
    let place = Place::new();
    let program = place.compile("domain", Compiler::Cxx);
    let mut sdm = Sdm::run(&place, RANKS)
        .args(["--launcher", "local"])
        .talk()
        .program(&program, &["run"])
        .spawn();
    sdm.out.wait_each(0, "0-7", "at main (");
    sdm.ask("break deepest", "breakpoint 1");
    sdm.ask_each("continue", "0-7", "stopped at breakpoint 1");
    let gdbs = below(sdm.pid(), "gdb");
    assert_eq!(gdbs.len(), RANKS as usize, "{gdbs:?}");
    let mut before = written(&gdbs);
    let mut cost = |line: &str, frames: u64| {
        let now = written(&gdbs);
        let bytes = now - before;
        before = now;
        let bound = u64::from(RANKS) * frames * FRAME_BYTES_MAX;
        assert!(bytes < bound, "{line}: {bytes} bytes, not {bound}");
    };
    for (line, wanted, frames) in [
        ("bt", "#3  main (argc=2)", 4),
        ("up", "#1  middle (domain=..., other=0x", 1),
        ("frame", "#1  middle (domain=..., other=0x", 1),
    ] {
        let said = sdm.ask(line, wanted);
        assert!(said.contains("ranks 0-7 (8):"), "{said}");
        cost(line, frames);
    }
    sdm.ask("delete", "delete");
    sdm.ask("continue &", "continue &");
    cost("continue &", 4);
    // At most nine looks, each at the stack and twice at variables, in the middle of the containers' functions too.
    sdm.ask("diagnose", "No hang seen");
    cost("diagnose", 9 * 3 * 8);
    let _done = sdm.finish().code(0);
}

#[test]
fn report_keeps_the_stack_with_large_objects() {
    let place = Place::new();
    let program = place.compile("domain", Compiler::Cxx);
    let page = place.path().join("end.html");
    let done = Sdm::run(&place, RANKS)
        .args(["--launcher", "local", "--batch", "--report"])
        .args([&page])
        .program(&program, &["crash", "now"])
        .finish()
        .code(121);
    done.expect_part(
        "[@crashed] bt",
        "#3  outer (domain=..., depth=0) at domain.cc:",
    );
    let report = fs::read_to_string(page.with_extension("txt")).expect("it is written");
    let frame = "outer (domain=..., depth=0) at domain.cc:";
    assert!(report.contains(frame), "{report}");
}
