//! The example programs: a separate front-end, handlers of input and output, and the runtime platform.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use sdm_idset::IdSet;
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

/// A front-end, a master and servers of a protocol that SDM does not know are processes of their own. Their handlers
/// change what the backend's programs read and write; their topology, transport and merge rule are their own.
/// Runs an example of a debug manager with four servers, whose programs are this script, and these lines of input.
/// Returns what it prints.
fn manager(name: &str, script: &str, lines: &str) -> (String, String) {
    let mut command = Command::new(binaries::folder().join("examples").join(name));
    command.args(["4", "/bin/sh", "-c", script]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(Stdio::piped());
    let mut front_end = lower(&mut command).spawn().expect("it is built");
    let mut input = front_end.stdin.take().expect("a pipe");
    input.write_all(lines.as_bytes()).expect("it reads");
    drop(input);
    let done = front_end.wait_with_output().expect("it ends");
    assert!(done.status.success(), "{done:?}");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (text(done.stdout), text(done.stderr))
}

const PROGRAM: &str = "while read line; do case $line in PARENT) echo $PPID;; \
                       \\#*) echo $((TASK * 10));; *) echo \"  $((TASK / 2)) $line \";; esac; done";

/// The program of one file is a whole debug manager.
#[test]
fn example_protocol_runs_in_processes_of_its_own() {
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../sdm-core/examples/line_protocol/main.rs"
    );
    let source = std::fs::read_to_string(source).expect("the example");
    assert!(source.lines().count() <= 200 && !source.contains("\nmod "));
    let lines = "0-3 hello\n0,3 parent\n1 good bye\n";
    let (text, _) = manager("line_protocol", PROGRAM, lines);
    let mut lines: Vec<&str> = text.lines().collect();
    lines[..2].sort_unstable();
    lines[2..4].sort_unstable();
    // The handlers of input and output change what passes.
    assert_eq!(lines[..2], ["0-1: 0 HELLO", "2-3: 1 HELLO"], "{text}");
    let server = |line: &str, task: &str| -> u32 {
        let pid = line.strip_prefix(task).map(str::parse);
        pid.and_then(Result::ok).unwrap_or_else(|| panic!("{text}"))
    };
    assert_ne!(server(lines[2], "0: "), server(lines[3], "3: "));
    assert_eq!(lines[4..], ["1: 0 GOOD BYE"], "{text}");
}

/// The same debug manager with a merge rule, a topology and a transport of another crate.
#[test]
fn example_parts_replace_those_of_the_tree() {
    let lines = "0-3 #size\n0-1 #size\n";
    let (text, places) = manager("own_parts", PROGRAM, lines);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines, ["0-3: 30", "0-1: 10", "largest of all: 30"]);
    let mut places: Vec<&str> = places.lines().collect();
    places.sort_unstable();
    let bytes = |set: &str| set.parse::<IdSet>().expect("a set").encoded_len(0);
    let reached = |set: &str| format!("reaches {set} ({} bytes)", bytes(set));
    let expected = [
        format!(
            "master: below front-end, {}, 0-3 by server 0",
            reached("0-3")
        ),
        format!(
            "server 0: below master, {}, 1-3 by server 1",
            reached("0-3")
        ),
        format!(
            "server 1: below server 0, {}, 2-3 by server 2",
            reached("1-3")
        ),
        format!(
            "server 2: below server 1, {}, 3 by server 3",
            reached("2-3")
        ),
        format!("server 3: below server 2, {}", reached("3")),
    ];
    assert_eq!(places, expected);
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
    assert!(text.contains("own command: [\"rack=7\"]\n"), "{text}");
    let last = "ResourceManager: Removed(RoaringBitmap<[1]>)\n";
    assert!(text.ends_with(last), "{text}");
}
