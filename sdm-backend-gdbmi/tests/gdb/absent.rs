//! Arguments of Fortran that the caller has left out, and texts without a value: gdb shows errors and addresses.

use sdm_debug::command::FrameSelect;
use sdm_debug::reply::Variable;
use sdm_debug::{Command, Reply};

use crate::harness::{Harness, break_spec, in_fortran, stopped};
use crate::pointers::printed;

/// The program of `absent.f90`, stopped in the `at`th call of `look`, with the caller's frame selected.
fn in_caller(at: u32) -> Option<Harness> {
    let (mut harness, _) = in_fortran(Harness::new(), "absent", break_spec(1, "look"))?;
    for _ in 1..at {
        stopped(harness.run_on());
    }
    let up = FrameSelect::Move(1);
    harness.ask(Command::SelectFrame(up)).unwrap();
    Some(harness)
}

fn arguments(harness: &mut Harness) -> Vec<Variable> {
    match harness.ask(Command::Arguments) {
        Ok(Reply::Variables(all)) => all,
        other => panic!("{other:?}"),
    }
}

fn text<'a>(all: &'a [Variable], name: &str) -> &'a str {
    let found = all.iter().find(|it| it.name == name);
    &found
        .unwrap_or_else(|| panic!("{name} in {all:?}"))
        .value
        .text
}

#[test]
fn optional_argument_left_out_is_not_present() {
    let Some(mut harness) = in_caller(1) else {
        return;
    };
    let listed = arguments(&mut harness);
    for name in ["n", "a", "b", "word", "own", "p", "t"] {
        assert_eq!(text(&listed, name), "<not present>", "{name}");
    }
    for (expression, name) in [
        ("n", "n"),
        ("n + rank", "n"),
        ("a", "a"),
        ("a(1)", "a"),
        ("b(2)", "b"),
        ("word", "word"),
        ("word(1:2)", "word"),
        ("own%id", "own"),
        ("t%id", "t"),
        ("p", "p"),
    ] {
        let expect =
            format!("`{name}` is not present: the caller has left out this optional argument");
        let why = harness.evaluate(expression).unwrap_err();
        assert_eq!(why.text, expect, "{expression}");
    }
    let (name, expression) = ("own1".to_owned(), "n".to_owned());
    let Ok(Reply::VarObject(object)) = harness.ask(Command::VarCreate { name, expression }) else {
        panic!("no object");
    };
    assert_eq!(object.value.text, "<not present>");
    // Not allocated is another thing.
    assert_eq!(printed(&mut harness, "", "made"), "<not allocated>");
    assert!(
        !harness
            .evaluate("made(1)")
            .unwrap_err()
            .text
            .contains("present")
    );
}

#[test]
fn optional_argument_that_is_given_has_its_value() {
    let Some(mut harness) = in_caller(2) else {
        return;
    };
    let listed = arguments(&mut harness);
    for (name, expect) in [
        ("n", "4"),
        ("a", "(1, 1)"),
        ("b", "(1, 2, 3)"),
        ("word", "'word'"),
        ("p", "<not present>"),
    ] {
        assert_eq!(text(&listed, name), expect, "{name}");
    }
    let own = printed(&mut harness, "", "own");
    assert_eq!(
        own,
        "( id = 0, w = (1, 1), label = <not allocated or associated> )"
    );
}

#[test]
fn fortran_text_that_gdb_cannot_read_is_shown_as_a_reason() {
    let Some(mut harness) = in_caller(3) else {
        return;
    };
    let listed = arguments(&mut harness);
    let unknown = "<gdb does not know the length of these texts>";
    let missing = "<not allocated or associated>";
    assert_eq!(text(&listed, "label"), missing);
    assert_eq!(printed(&mut harness, "", "label"), missing);
    assert_eq!(text(&listed, "empty"), "''");
    assert_eq!(harness.evaluate("empty").unwrap().text, "''");
    let names = text(&listed, "names");
    assert!([unknown, "('aa', 'bb')"].contains(&names), "{names}");
    assert_eq!(printed(&mut harness, "", "names"), names);
}
