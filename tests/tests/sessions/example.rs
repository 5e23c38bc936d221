//! The example programs: a separate front-end, handlers of input and output, and the runtime platform.

use std::process::{Command, Output};

use sdm_tests::binaries;
use sdm_tests::ordinary::lower;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::united::united;

fn postmortem(place: &Place, what: &str) -> (Option<i32>, String) {
    let program = place.compile("work", Compiler::C);
    let mut command = Command::new(binaries::folder().join("examples/postmortem"));
    command.arg("3").arg(program).arg(what);
    command.current_dir(place.path());
    let output = lower(&mut command).output().expect("it is built");
    let Output { stdout, stderr, .. } = &output;
    let said = [stdout, stderr].map(|bytes| String::from_utf8_lossy(bytes));
    (output.status.code(), said.concat())
}

#[test]
fn example_front_end_shows_the_crash_location() {
    let place = Place::new();
    let (code, said) = postmortem(&place, "segv");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("main () at work.c:"), "{said}");
    assert!(said.contains("write_through () at work.c:"), "{said}");
    let (code, said) = postmortem(&place, "steps");
    assert_eq!(code, Some(0), "{said}");
    assert!(united(&said).contains("[0-2] total 6\n"), "{said}");
}

/// The standard output of an example program.
fn printed(name: &str) -> String {
    let mut command = Command::new(binaries::folder().join("examples").join(name));
    let output = lower(&mut command).output().expect("it is built");
    assert!(output.status.success(), "{name}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn example_handlers_change_input_and_output() {
    assert_eq!(printed("handlers"), "0: HELLO\n1: HELLO\n");
}

#[test]
fn example_platform_reports_elements_to_listeners() {
    let text = printed("platform");
    let of_node: Vec<_> = text.lines().filter(|line| line.contains("node")).collect();
    assert_eq!(
        of_node,
        [
            "on node 3: RoaringBitmap<[7, 8, 9]>",
            "node 3: New(RoaringBitmap<[7, 8, 9]>)",
            "Node: Changed([(\"nodeProcessState\", RoaringBitmap<[3]>)])",
        ]
    );
    let last = "ResourceManager: Removed(RoaringBitmap<[1]>)\n";
    assert!(text.ends_with(last), "{text}");
}
