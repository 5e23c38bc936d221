//! Fortran's classes by the plain names of their components, and structures behind negative strides.

use std::path::{Path, PathBuf};
use std::process::Command as Process;

use sdm_debug::command::{BreakSpec, WatchKind, WatchSpec};
use sdm_debug::reply::{BreakpointPlace, StopReason};
use sdm_debug::{Command, Event, FailureCode, Reply};

use crate::harness::{Harness, code, in_fortran, stopped};
use crate::pointers::{printed, said, set, value_of, without_python};

/// The line of `classes.f90` in the loop of `look`.
const LOOP: &str = "classes.f90:32";

fn at(number: u32, condition: &str) -> BreakSpec {
    BreakSpec {
        number,
        location: LOOP.to_owned(),
        condition: Some(condition.to_owned()),
        ..BreakSpec::default()
    }
}

/// A program of `classes.f90` that has stopped at this breakpoint; `None` without a Fortran compiler.
fn with_classes(harness: Harness, spec: BreakSpec) -> Option<Harness> {
    let (harness, _) = in_fortran(harness, "classes", spec)?;
    Some(harness)
}

#[test]
fn fortran_class_components_evaluate_by_plain_name() {
    let Some(mut harness) = with_classes(Harness::new(), at(1, "self%id == 3")) else {
        return;
    };
    let mut wrong = Vec::new();
    for (expression, expect) in [
        ("i", "2"),
        ("self%id", "3"),
        ("Self % ID + 1", "4"),
        ("self%_data%id", "3"),
        ("self%wings", "2"),
        ("self%weights", "(1, 2, 3)"),
        ("self%weights(i) * 2", "4"),
        ("self%weights(2:3)", "(2, 3)"),
        ("self%label", "'leo'"),
        ("self%label(1:2)", "'le'"),
        ("self%label == 'leo' .and. self%kind == 'animal'", ".TRUE."),
        ("size(self%weights) + size(many)", "6"),
        ("near%id", "50"),
        ("many(1)%id", "9"),
        ("many(i)%id + many(3)%id", "15"),
        ("many(2)%wings", "2"),
        ("k%pet%id", "60"),
        ("k%other%id - k%own%id", "-20"),
        ("k%own%label(2:4)", "'wne'"),
        ("k%herd(2)%id", "12"),
        ("k%herd(2)%animal%id", "12"),
        ("k%turned(2)%id", "103"),
        ("k%turned(1)%label", "'xxxxx'"),
        ("k%turned(3)%id == 101", ".TRUE."),
        ("numbers(2) * 2", "6"),
        ("numbers(3)", "1"),
        ("words(2)", "'two'"),
        ("k%some + 1", "42"),
        ("associated(k%other)", ".TRUE."),
        ("allocated(k%herd)", ".TRUE."),
        (
            "allocated(k%pet) .and. .not. allocated(k%own%label)",
            ".FALSE.",
        ),
        ("allocated(k%some)", ".TRUE."),
        ("self%label(1:2) == 'le' .and. i > 1", ".TRUE."),
        ("i > 1 .and. self%label(2:) /= 'le'", ".TRUE."),
        ("i > 2 .or. self%kind(:3) == 'ani'", ".TRUE."),
    ] {
        let (evaluated, printed) = (
            harness.evaluate(expression),
            printed(&mut harness, "", expression),
        );
        if evaluated.as_ref().map(|value| &*value.text) != Ok(expect) || printed != expect {
            wrong.push(format!(
                "{expression}: {evaluated:?}, {printed}, not {expect}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let turned = value_of(&mut harness, "k%turned");
    assert!(turned.starts_with("(( id = 105, "), "{turned}");
    assert!(turned.contains(", label = 'x', "), "{turned}");
    assert_eq!(said(&mut harness, "output self%id*2"), "6");
    assert_eq!(said(&mut harness, "output lbound(self%weights)"), "(1)");
    let expression = "self%nosuch".to_owned();
    let failure = harness.ask(Command::Evaluate { expression }).unwrap_err();
    assert_eq!(failure.text, "There is no member named nosuch.");
    let whatis = Command::TypeOf {
        expression: "self%id".to_owned(),
        full: false,
    };
    let kind = Reply::Text("type = integer(kind=4)".to_owned());
    assert_eq!(harness.ask(whatis), Ok(kind));
}

/// gdb 13 ends itself when it prints such elements.
#[test]
fn elements_of_unlimited_polymorphic_array_are_refused() {
    let refused = |harness: &mut Harness| {
        let expression = "numbers%_data".to_owned();
        let failure = harness.ask(Command::Evaluate { expression }).unwrap_err();
        let begin = "gdb does not know the elements of ";
        assert!(failure.text.starts_with(begin), "{failure:?}");
        assert_eq!(value_of(harness, "i"), "1");
    };
    let (harness, _folder) = without_python();
    for harness in [Harness::new(), harness] {
        let Some(mut harness) = with_classes(harness, at(1, "i == 1")) else {
            return;
        };
        refused(&mut harness);
    }
}

#[test]
fn plain_component_names_are_evaluated_if_gdb_has_no_python() {
    let (harness, _folder) = without_python();
    let Some(mut harness) = with_classes(harness, at(1, "self%id == 3")) else {
        return;
    };
    for (expression, expect) in [
        ("i", "2"),
        ("self%id", "3"),
        ("self%id + 1", "4"),
        ("self%weights(2)", "2"),
        ("k%pet%id + k%own%id", "130"),
        ("k%herd(2)%id", "12"),
    ] {
        assert_eq!(value_of(&mut harness, expression), expect, "{expression}");
    }
    set(&mut harness, "self%id = 20");
    assert_eq!(value_of(&mut harness, "self%_data%id"), "20");
    let expression = "k%turned(1)%id".to_owned();
    let refused = harness.ask(Command::Evaluate { expression });
    assert_eq!(code(refused), FailureCode::Unsupported);
}

#[test]
fn components_of_classes_are_assigned_and_watched() {
    let Some(mut harness) = with_classes(Harness::new(), at(1, "i == 1")) else {
        return;
    };
    for (expression, value) in [
        ("self%weights(2)", "7.5"),
        ("self%wings", "4"),
        ("many(2)%id", "80"),
        ("k%own%id", "71"),
        ("k%turned(2)%id", "303"),
        ("k%some", "43"),
    ] {
        set(&mut harness, &format!("{expression} = {value}"));
        let value_now = value_of(&mut harness, &format!("{expression} + 0"));
        assert_eq!(value_now, value, "{expression}");
    }
    harness.ask(Command::BreakDelete { number: 1 }).unwrap();
    let watch = WatchSpec {
        number: 2,
        expression: "self%id".to_owned(),
        kind: WatchKind::Write,
        location: false,
        condition: Some("self%id > 3".to_owned()),
        ignore: 0,
    };
    harness.ask(Command::WatchInsert(watch)).unwrap();
    let stop = stopped(harness.run_on());
    let StopReason::Watchpoint(hit) = stop.reason else {
        panic!("{stop:?}");
    };
    assert_eq!(hit.new.map(|value| value.text).as_deref(), Some("4"));
    harness.ask(Command::BreakDelete { number: 2 }).unwrap();
    // gdb itself does not know a component of the type that the object has.
    let wings = WatchSpec::new(3, "self%wings", WatchKind::Write);
    harness.ask(Command::WatchInsert(wings)).unwrap();
    let stop = stopped(harness.run_on());
    let StopReason::Watchpoint(hit) = stop.reason else {
        panic!("{stop:?}");
    };
    let values = [hit.old, hit.new].map(|it| it.map(|value| value.text));
    assert_eq!(values, ["4", "8"].map(|it| Some(it.to_owned())));
}

#[test]
fn text_assigned_in_fortran_is_cut_or_padded_to_its_length() {
    let Some(mut harness) = with_classes(Harness::new(), at(1, "i == 1")) else {
        return;
    };
    for (assignment, expect) in [
        ("self%kind = 'cat'", "'cat   '"),
        ("self%kind = 'elephant'", "'elepha'"),
        ("self%kind(2:3) = 'x'", "'ex pha'"),
        ("self%label = 'LEO'", "'LEO'"),
        ("self%kind = self%label", "'LEO   '"),
    ] {
        set(&mut harness, assignment);
        let name = if expect.len() > 5 {
            "self%kind"
        } else {
            "self%label"
        };
        assert_eq!(value_of(&mut harness, name), expect, "{assignment}");
    }
    for text in ["'longer'", "'x'"] {
        let expression = format!("self%label = {text}");
        let failure = harness
            .ask(Command::SetVariable { expression })
            .unwrap_err();
        let begin = "this text of deferred length has 3 characters";
        assert!(failure.text.starts_with(begin), "{failure:?}");
        assert_eq!(value_of(&mut harness, "self%label"), "'LEO'");
    }
}

#[test]
fn children_of_a_reversed_array_are_its_elements() {
    let Some(mut harness) = with_classes(Harness::new(), at(1, "i == 1")) else {
        return;
    };
    let create = |name: &str, expression: &str| Command::VarCreate {
        name: name.to_owned(),
        expression: expression.to_owned(),
    };
    let mut children = |name: &str, expression: &str| {
        let object = harness.ask(create(name, expression)).expect(expression);
        let list = Command::VarChildren {
            name: name.to_owned(),
            from: 0,
            count: 9,
        };
        let children = harness.ask(list).expect(expression);
        match (object, children) {
            (Reply::VarObject(object), Reply::VarChildren { children, .. }) => (object, children),
            other => panic!("{other:?}"),
        }
    };
    let (object, elements) = children("t", "k%turned");
    assert_eq!(object.children, 3);
    let names: Vec<&str> = elements.iter().map(|it| &*it.expression).collect();
    assert_eq!(names, ["1", "2", "3"]);
    let (_, parts) = children("u", "k%turned(2)");
    assert_eq!(parts[0].value.text, "103");
    let (object, _) = children("s", "self%weights");
    assert_eq!(object.children, 3);
    let (object, _) = children("i", "self%id");
    assert_eq!(object.value.text, "2");
    let name = parts.iter().find(|it| it.expression == "kind").unwrap();
    let assign = Command::VarAssign {
        name: name.name.clone(),
        value: "'cat'".to_owned(),
    };
    harness.ask(assign).unwrap();
    assert_eq!(value_of(&mut harness, "k%turned(2)%kind"), "'cat   '");
}

/// Compiles a fixture into a library of the test's folder; `None` without the compiler.
fn compile_library(harness: &Harness, compiler: &str, fixture: &str) -> Option<PathBuf> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let library = harness.directory.join("late.so");
    let status = Process::new(compiler)
        .args(["-g", "-O0", "-fPIC", "-shared", "-o"])
        .args([&library, &fixtures.join(fixture)])
        .current_dir(&harness.directory)
        .status();
    let Ok(status) = status else {
        assert_eq!(compiler, "gfortran");
        println!("SKIP: no gfortran");
        return None;
    };
    assert!(status.success(), "{compiler} {fixture}");
    Some(library)
}

/// Stops in a library that is loaded later, and checks the values there; `None` without its compiler.
fn check_late(
    compiler: &str,
    fixture: &str,
    spec: BreakSpec,
    values: &[(&str, &str)],
) -> Option<()> {
    let mut harness = Harness::new();
    let library = compile_library(&harness, compiler, fixture)?;
    let program = harness.compile("loads", &["-ldl"]);
    harness.start(&program, &[library.to_str().unwrap()]);
    let name = format!("{fixture} {spec:?}");
    let added = harness.ask(Command::BreakInsert(spec));
    let is_pending = matches!(
        added,
        Ok(Reply::Breakpoint(BreakpointPlace { pending: true, .. }))
    );
    assert!(is_pending, "{name}: {added:?}");
    let stop = stopped(harness.run_on());
    assert_eq!(stop.reason, StopReason::Breakpoint { number: 1 }, "{name}");
    for (expression, expect) in values {
        assert_eq!(
            value_of(&mut harness, expression),
            *expect,
            "{name}: {expression}"
        );
    }
    // A function of C++ has another place, in the table of the linker, where it has no variables.
    let is_told = |event: &(_, Event)| matches!(event.1, Event::Notice { .. });
    assert!(
        compiler == "c++" || !harness.events.iter().any(is_told),
        "{:?}",
        harness.events
    );
    harness.ask(Command::Kill).unwrap();
    Some(())
}

/// The language of a place that is not loaded yet is not known: `id % step` is a component in Fortran.
#[test]
fn pending_condition_is_evaluated_in_the_language_of_its_place() {
    let spec = |location: &str, condition: Option<&str>| BreakSpec {
        number: 1,
        location: location.to_owned(),
        condition: condition.map(str::to_owned),
        pending: true,
        ..BreakSpec::default()
    };
    for location in ["late.f90:11", "grow"] {
        let mut fourth = spec(location, Some("self%id == 6 .and. step == 2"));
        check_late("gfortran", "late.f90", fourth.clone(), &[("self%id", "6")]);
        (fourth.condition, fourth.ignore) = (Some("self%id >= 6".to_owned()), 2);
        check_late("gfortran", "late.f90", fourth.clone(), &[("self%id", "10")]);
        (fourth.temporary, fourth.ignore) = (true, 0);
        check_late("gfortran", "late.f90", fourth, &[("self%id", "6")]);
    }
    check_late(
        "gfortran",
        "late.f90",
        spec("late.f90:11", None),
        &[("self%id", "0")],
    );
    for location in ["late.cc:5", "Cell::grow"] {
        let eighth = spec(location, Some("id % step == 0 && id > 5 * step"));
        check_late("c++", "late.cc", eighth.clone(), &[("id", "12")]);
        let plain = spec(location, Some("id == 4"));
        check_late("c++", "late.cc", plain, &[("id", "4"), ("this->id", "4")]);
    }
}
