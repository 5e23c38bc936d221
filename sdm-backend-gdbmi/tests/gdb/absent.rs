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

#[test]
fn sections_of_fortran_arrays_of_assumed_size_have_their_values() {
    let at = break_spec(1, "look");
    let Some((mut harness, _)) = in_fortran(Harness::new(), "assumed", at) else {
        return;
    };
    let unknown = "<the size of this array is unknown: print a section, as in a(1:10)>";
    let listed = arguments(&mut harness);
    for name in ["a", "from", "b"] {
        assert_eq!(text(&listed, name), unknown, "{name}");
        assert_eq!(printed(&mut harness, "", name), unknown, "{name}");
    }
    for (section, expect) in [
        ("a(2:4)", "(2, 3, 4)"),
        ("a(:3)", "(1, 2, 3)"),
        ("a(1:6:2)", "(1, 3, 5)"),
        ("a(6:1:-2)", "(6, 4, 2)"),
        ("a(5)", "5"),
        ("from(0:2)", "(1, 2, 3)"),
        ("b(:,1)", "(3, 4)"),
        ("b(2,0:2)", "(2, 4, 6)"),
        ("b(1:2,1:2)", "((3, 4) (5, 6))"),
    ] {
        assert_eq!(harness.evaluate(section).unwrap().text, expect, "{section}");
    }
    for open in ["a(3:)", "b(:,:)"] {
        let why = harness.evaluate(open).unwrap_err().text;
        assert!(why.contains("needs an end"), "{open}: {why}");
    }
}

#[test]
fn fortran_texts_of_kind_4_are_assigned_and_compared() {
    let at = break_spec(1, "look");
    let Some((mut harness, _)) = in_fortran(Harness::new(), "assumed", at) else {
        return;
    };
    let up = FrameSelect::Move(1);
    harness.ask(Command::SelectFrame(up)).unwrap();
    for (assignment, target, expect) in [
        ("wide = 'HELLO'", "wide", "4_'HELLO'"),
        ("wide = 'ab'", "wide", "4_'ab   '"),
        ("wide = 'longer text'", "wide", "4_'longe'"),
        // As many bytes, and not as many characters.
        ("wide = '01234567890123456789'", "wide", "4_'01234'"),
        ("narrow = wide", "narrow", "'01234'"),
        ("wide = own%name", "wide", "4_'name '"),
        ("own%name = 'q'", "own%name", "4_'q   '"),
        ("own%name = narrow", "own%name", "4_'0123'"),
    ] {
        let expression = assignment.to_owned();
        harness.ask(Command::SetVariable { expression }).unwrap();
        let value = harness.evaluate(target).unwrap().text;
        assert_eq!(value, expect, "{assignment}");
    }
    for (comparison, expect) in [
        ("wide == 'name'", ".TRUE."),
        ("wide == 'nam'", ".FALSE."),
        ("own%name /= 'other'", ".TRUE."),
    ] {
        let value = harness.evaluate(comparison).unwrap().text;
        assert_eq!(value, expect, "{comparison}");
    }
    assert_eq!(harness.evaluate("wide(2)").unwrap().text, "97 'a'");
}
