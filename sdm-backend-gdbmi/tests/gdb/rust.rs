//! Values of Rust's containers are shown by their contents: gdb shows addresses, which say nothing of the values.

use std::path::PathBuf;
use std::process::Command as Process;

use sdm_debug::command::{BreakSpec, WatchKind, WatchSpec};
use sdm_debug::reply::StopReason;
use sdm_debug::{Command, Reply};

use crate::harness::{Harness, start_in_caller, stopped};
use crate::sorts::{REFUSED, returned};

/// Names of variables in `main` of `boxes.rs`, with the ends of their values.
const VALUES: [(&str, &str); 21] = [
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
    ("shared", "201"),
    ("tuple", r#"(1, "word", 1.5)"#),
    ("tagged", "[boxes::Tagged::Circle(1.5), boxes::Tagged::Dot]"),
    ("slice", "[boxes::Tagged] [boxes::Tagged::Circle(1.5)]"),
    (
        "maybe",
        "[[core::option::Option<i32>::Some(1), core::option::Option<i32>::None], [core::option::Option<i32>::None, core::option::Option<i32>::Some(2)]]",
    ),
    ("queue", "[1, 2, 3, 1]"),
    (
        "hashed",
        r#"{["k1"] = 1, ["k2"] = 2, ["k3"] = 3, ["k4"] = 4}"#,
    ),
    ("members", "{1, 9, 10}"),
    (
        "tree",
        "{[0] = 0, [1] = 0.5, [2] = 1, [3] = 1.5, [4] = 2, [5] = 2.5, [6] = 3, [7] = 3.5, [8] = 4, [9] = 4.5, [10] = 5, [11] = 5.5, [12] = 6, [13] = 6.5}",
    ),
    ("sorted", r#"{"a", "b"}"#),
    ("empty", "{}"),
    ("linked", r#"["a", "b1"]"#),
    ("unlinked", "[]"),
];

/// The program of `boxes.rs`; `None` if this user has no compiler for it.
fn compiled(harness: &Harness) -> Option<PathBuf> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/boxes.rs");
    let program = harness.directory.join("boxes");
    let mut compiler = Process::new("rustc");
    compiler.args(["--edition=2021", "-g", "-C", "opt-level=0", source, "-o"]);
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
    start_in_caller(&mut harness, &program, "boxes::look");
    let Ok(Reply::Variables(locals)) = harness.ask(Command::Locals) else {
        panic!("no locals");
    };
    for (name, expect) in VALUES {
        let value = harness.evaluate(name).unwrap().text;
        assert!(value.ends_with(expect), "{name}: {value}");
        let local = locals.iter().find(|it| it.name == name).expect(name);
        assert_eq!(local.value.text, value, "{name}");
    }
    // gdb itself counts from a reference as from a pointer.
    for (element, expect) in [
        ("row[1]", "3.5"),
        ("rows[1][1]", "core::option::Option<i32>::Some(2)"),
        ("numbers[2] + 1", "2"),
        ("queue[3]", "1"),
        ("linked[1]", r#""b1""#),
        ("row[0]@2", "[2.5, 3.5]"),
    ] {
        assert_eq!(harness.evaluate(element).unwrap().text, expect, "{element}");
    }
    for beyond in ["row[2]", "row[0]@3"] {
        let why = harness.evaluate(beyond).unwrap_err();
        assert_eq!(why.text, "the index 2 is not within the 2 of this value");
    }
    let apart = harness.evaluate("queue[0]@2").unwrap_err();
    assert!(apart.text.contains("may be apart"), "{apart:?}");
    // An object of an unknown type stays where it is.
    let call = harness.evaluate("call").unwrap().text;
    assert!(call.contains("{pointer: 0x"), "{call}");
    // gdb warns of it in front of the value.
    let expression = "call".to_owned();
    let format = String::new();
    let printed = harness.ask(Command::Print { format, expression });
    let Ok(Reply::Value(printed)) = printed else {
        panic!("{printed:?}");
    };
    for text in [&call, &printed.text] {
        assert!(text.starts_with("alloc::boxed::Box<"), "{text}");
    }
    assert_eq!(harness.evaluate("*boxed.0").unwrap().text, "7");
}

/// gdb 13 ends at an enum with data that is not in memory. gdb 18 shows `Some(0)` for the `Some(42)` of `some`, and its
/// call of `either` writes to the address 1.
#[test]
fn rust_enums_that_gdb_misreads_at_a_return_are_refused() {
    let mut harness = Harness::new();
    let Some(program) = compiled(&harness) else {
        return;
    };
    harness.start(&program, &[]);
    for (number, function, call) in [
        (1, "boxes::first", "boxes::first(&numbers[..])"),
        (2, "boxes::small", "boxes::small(rank)"),
        (3, "boxes::either", "boxes::either(rank)"),
        (4, "boxes::some", "boxes::some(rank)"),
    ] {
        let [finished, called] = returned(&mut harness, number, function, call);
        assert_eq!(finished, REFUSED, "{function}");
        assert!(number == 1 || called == REFUSED, "{function}: {called}");
    }
    let order = returned(&mut harness, 5, "boxes::order", "boxes::order(rank)");
    assert_eq!(order, ["core::cmp::Ordering::Less"; 2]);
    assert_eq!(harness.evaluate("rank").unwrap().text, "1");
}

/// Rust has its own rules for small structures, arrays and large integers. gdb shows other numbers.
#[test]
fn rust_values_that_gdb_misreads_at_a_return_are_refused() {
    let mut harness = Harness::new();
    let Some(program) = compiled(&harness) else {
        return;
    };
    harness.start(&program, &[]);
    for (number, function) in (1..).zip(["both", "halves", "wide", "mixed"]) {
        let function = format!("boxes::{function}");
        let expect = match number {
            1 => "(1, 1.5)",
            _ => REFUSED,
        };
        let shown = returned(
            &mut harness,
            number,
            &function,
            &format!("{function}(rank)"),
        );
        assert_eq!(shown, [expect, expect], "{function}");
    }
}

#[test]
fn rust_index_in_a_condition_and_a_watchpoint_is_an_element() {
    let mut harness = Harness::new();
    let Some(program) = compiled(&harness) else {
        return;
    };
    harness.start(&program, &[]);
    for (number, condition) in [(1, "row[1] == 5.5"), (2, "row[1] == 6.5")] {
        let spec = BreakSpec {
            number,
            location: "boxes::grow".to_owned(),
            condition: Some(condition.to_owned()),
            temporary: number == 1,
            ..BreakSpec::default()
        };
        harness.ask(Command::BreakInsert(spec)).unwrap();
    }
    stopped(harness.run_on());
    assert_eq!(harness.evaluate("at").unwrap().text, "4");
    let watch = WatchSpec::new(3, "row[0]", WatchKind::Write);
    harness.ask(Command::WatchInsert(watch)).unwrap();
    let stop = stopped(harness.run_on());
    let StopReason::Watchpoint(hit) = stop.reason else {
        panic!("{stop:?}");
    };
    let hit = *hit;
    let values = [hit.old, hit.new].map(|it| it.expect("a value").text);
    assert_eq!(values, ["4.5", "5.5"]);
    let condition = Some("row[1] == 6.5".to_owned());
    harness
        .ask(Command::BreakCondition {
            number: 3,
            condition,
        })
        .unwrap();
    let stop = stopped(harness.run_on());
    assert!(
        matches!(stop.reason, StopReason::Breakpoint { number: 2, .. }),
        "{stop:?}"
    );
    assert_eq!(harness.evaluate("at").unwrap().text, "6");
    let expression = "row[0] = row[1] + 1.0".to_owned();
    harness.ask(Command::SetVariable { expression }).unwrap();
    assert_eq!(harness.evaluate("row[0]").unwrap().text, "7.5");
    let line = "x/1fg &row[0]".to_owned();
    let Ok(Reply::Text(text)) = harness.ask(Command::Console { line }) else {
        panic!("no text");
    };
    assert!(text.trim_end().ends_with("7.5"), "{text}");
}
