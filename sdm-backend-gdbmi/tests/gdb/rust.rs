//! Values of Rust's containers are shown by their contents: gdb shows addresses, which say nothing of the values.

use std::path::PathBuf;
use std::process::Command as Process;

use sdm_debug::command::FrameSelect;
use sdm_debug::{Command, Reply};

use crate::harness::{Harness, stopped};

/// Names of variables in `main` of `boxes.rs`, with the ends of their values.
const VALUES: [(&str, &str); 9] = [
    ("boxed", "::Some(7)"),
    (
        "list",
        "::Some(boxes::Node {id: 11, next: core::option::Option<alloc::boxed::Box<boxes::Node, alloc::alloc::Global>>::None})}",
    ),
    ("numbers", "[1, 2, 1]"),
    ("pairs", "[(1, 1), (2, 3)]"),
    ("none", "[]"),
    ("text", r#""say \0421\042""#),
    (
        "shapes",
        r#"[boxes::Shape::Named(1, "say \0421\042"), boxes::Shape::Empty]"#,
    ),
    ("counted", "101"),
    ("tuple", r#"(1, "word", 1.5)"#),
];

/// The program of `boxes.rs`; `None` if this user has no compiler for it.
fn compiled(harness: &Harness) -> Option<PathBuf> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/boxes.rs");
    let program = harness.directory.join("boxes");
    let mut compiler = Process::new("rustc");
    compiler.args(["-g", "-C", "opt-level=0", source, "-o"]);
    let Ok(status) = compiler.arg(&program).status() else {
        println!("SKIP: no rustc for this user");
        return None;
    };
    assert!(status.success(), "rustc boxes");
    Some(program)
}

#[test]
fn rust_boxes_and_containers_show_their_contents() {
    let mut harness = Harness::new();
    let Some(program) = compiled(&harness) else {
        return;
    };
    harness.start(&program, &[]);
    harness.break_at(1, "boxes::look").unwrap();
    stopped(harness.run_on());
    let up = FrameSelect::Move(1);
    harness.ask(Command::SelectFrame(up)).unwrap();
    let Ok(Reply::Variables(locals)) = harness.ask(Command::Locals) else {
        panic!("no locals");
    };
    for (name, expect) in VALUES {
        let value = harness.evaluate(name).unwrap().text;
        assert!(value.ends_with(expect), "{name}: {value}");
        let local = locals.iter().find(|it| it.name == name).expect(name);
        assert_eq!(local.value.text, value, "{name}");
    }
    // An object of an unknown type stays where it is.
    let call = harness.evaluate("call").unwrap().text;
    assert!(call.contains("{pointer: 0x"), "{call}");
    assert_eq!(harness.evaluate("*boxed.0").unwrap().text, "7");
}
