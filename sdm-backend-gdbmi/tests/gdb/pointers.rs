//! Scalars of Fortran behind pointers and allocatables: expressions have their values, not their addresses.

use std::os::unix::fs::PermissionsExt;

use sdm_child::StartConfig;
use sdm_debug::command::{BreakSpec, WatchKind, WatchSpec};
use sdm_debug::reply::{Stop, StopReason};
use sdm_debug::{Command, Event, FailureCode, Reply};

use crate::harness::{Harness, code, in_fortran, stopped};

/// The last line of the loop in `work`.
const LOOP: &str = "pointers.f90:43";

/// A program of `pointers.f90` with a breakpoint; `None` without a Fortran compiler.
fn with_pointers(spec: BreakSpec) -> Option<(Harness, Stop)> {
    in_fortran(Harness::new(), "pointers", spec)
}

pub(crate) fn value_of(harness: &mut Harness, expression: &str) -> String {
    match harness.evaluate(expression) {
        Ok(value) => value.text,
        Err(failure) => panic!("{expression}: {failure:?}"),
    }
}

pub(crate) fn said(harness: &mut Harness, line: &str) -> String {
    let line = line.to_owned();
    match harness.ask(Command::Console { line }) {
        Ok(Reply::Text(text)) => text,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn printed(harness: &mut Harness, format: &str, expression: &str) -> String {
    let (format, expression) = (format.to_owned(), expression.to_owned());
    match harness.ask(Command::Print { format, expression }) {
        Ok(Reply::Value(value)) => value.text,
        Ok(Reply::Text(text)) => text,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn set(harness: &mut Harness, expression: &str) {
    let command = Command::SetVariable {
        expression: expression.to_owned(),
    };
    harness.ask(command).expect(expression);
}

fn at(number: u32, condition: &str) -> BreakSpec {
    BreakSpec {
        number,
        location: LOOP.to_owned(),
        condition: Some(condition.to_owned()),
        ..BreakSpec::default()
    }
}

#[test]
fn fortran_pointers_evaluate_to_their_targets() {
    let Some((mut harness, _)) = with_pointers(at(1, "i == 1")) else {
        return;
    };
    let mut wrong = Vec::new();
    for (expression, expect) in [
        ("count", "1"),
        ("count + 1", "2"),
        ("count*2", "2"),
        ("count == 1", ".TRUE."),
        // gdb takes the name for its function.
        ("rank", "1"),
        ("rank + 1", "2"),
        ("RANK == count .and. kind(i) == 4", ".TRUE."),
        ("heat > 2", ".FALSE."),
        ("heat * 2", "3"),
        ("-p%count", "-11"),
        ("p%heat + heat", "2"),
        ("p%count - q%count", "-9"),
        ("P % Count == 11", ".TRUE."),
        ("flag .or. p%flag", ".TRUE."),
        (".not. p%flag", ".FALSE."),
        ("phase == p%phase", ".FALSE."),
        ("phase", "(1,-2)"),
        ("v(mine)", "6"),
        ("v(mine + 1) + count", "8"),
        ("mod(own, mine + 1)", "2"),
        ("total + made", "302"),
        ("kept::total / 2", "50"),
        ("p%own%id + 1", "4"),
        ("(*p)%count + 1", "12"),
        ("*count + 1", "2"),
        ("word == 'hello'", ".TRUE."),
        ("word /= 'hello'", ".FALSE."),
        ("name == 'a name'", ".TRUE."),
        ("name == 'a name ' .and. 'hello' == word", ".TRUE."),
        ("p%label == 'label' .and. q%label == 'label'", ".FALSE."),
        ("p%label /= '' .and. name == ''", ".FALSE."),
        ("p%label", "'label'"),
        ("q%label", "'other label'"),
        ("associated(none)", ".FALSE."),
        ("associated(count) .and. i == 1", ".TRUE."),
        ("i + box", "2"),
    ] {
        let (evaluated, printed) = (
            value_of(&mut harness, expression),
            printed(&mut harness, "", expression),
        );
        if evaluated != expect || printed != expect {
            wrong.push(format!(
                "{expression}: {evaluated}, {printed}, not {expect}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(printed(&mut harness, "x", "total + 1"), "0x66");
    assert_eq!(said(&mut harness, "output/x total*2"), "0xca");
    assert_eq!(
        said(&mut harness, "with print elements 9 -- output count*3"),
        "3"
    );
    assert_eq!(
        said(&mut harness, "printf \"%d %d\\n\", count + 1, own"),
        "2 8\n"
    );
    let mixed = harness.evaluate("count == 'it'").unwrap_err();
    assert_eq!(mixed.text, "Invalid type combination in equality test.");
    for null in ["none + 1", "2 * p%nothing", "q%heat > 1"] {
        let failure = harness.evaluate(null).expect_err(null);
        let text = "a pointer is not associated, or a variable is not allocated";
        assert_eq!((failure.code, &*failure.text), (FailureCode::Gdb, text));
    }
}

#[test]
fn type_of_variable_named_as_intrinsic_is_shown() {
    let Some((mut harness, _)) = with_pointers(at(1, "i == 1")) else {
        return;
    };
    for full in [false, true] {
        let expression = "rank".to_owned();
        let kind = Reply::Text("type = integer(kind=4)".to_owned());
        assert_eq!(harness.ask(Command::TypeOf { expression, full }), Ok(kind));
    }
    let expression = "nosuch".to_owned();
    let full = false;
    let failure = harness.ask(Command::TypeOf { expression, full });
    let failure = failure.expect_err("there is no such variable");
    assert_eq!(failure.text, "No symbol \"nosuch\" in current context.");
}

#[test]
fn assignment_to_fortran_pointer_changes_its_target() {
    let Some((mut harness, _)) = with_pointers(at(1, "i == 1")) else {
        return;
    };
    set(&mut harness, "count = 7");
    assert_eq!(
        (
            value_of(&mut harness, "count"),
            value_of(&mut harness, "box")
        ),
        ("7".into(), "7".into())
    );
    assert_eq!(printed(&mut harness, "", "count = count + 1"), "8");
    assert_eq!(value_of(&mut harness, "box"), "8");
    for (expression, value) in [
        ("heat", "4.5"),
        ("p%heat", "0.25"),
        ("p%flag", ".FALSE."),
        ("phase", "(5,6)"),
        ("word", "'world'"),
        ("p%label", "'LABEL'"),
        ("total", "55"),
        ("p%own%id", "9"),
        ("i", "2"),
    ] {
        set(&mut harness, &format!("{expression} = {value}"));
        assert_eq!(value_of(&mut harness, expression), value, "{expression}");
    }
    said(&mut harness, "set $t = count + 1");
    assert_eq!(value_of(&mut harness, "$t"), "9");
    set(&mut harness, "p%count = count");
    assert_eq!(value_of(&mut harness, "p%count"), "8");
    let expression = "none = 1".to_owned();
    let failed = harness.ask(Command::SetVariable { expression });
    assert_eq!(code(failed), FailureCode::Gdb);
    // A pointer is given another target by the address of that.
    set(&mut harness, "none = &box");
    assert_eq!(value_of(&mut harness, "none + 1"), "9");
    harness.break_at(2, LOOP).unwrap();
    stopped(harness.run_on());
    assert_eq!(value_of(&mut harness, "box"), "9");
}

#[test]
fn break_condition_compares_targets_of_fortran_pointers() {
    let mut first = at(1, "count == 2 .and. p%count == 12 .and. p%label == 'label'");
    first.temporary = true;
    let Some((mut harness, stop)) = with_pointers(first) else {
        return;
    };
    assert_eq!(stop.reason, StopReason::Breakpoint { number: 1 });
    assert_eq!(value_of(&mut harness, "i"), "2");
    for (number, condition) in [
        (2, "none == 4"),
        (3, "heat > 100"),
        (4, "count == 3"),
        (5, "flag"),
    ] {
        harness
            .ask(Command::BreakInsert(at(number, condition)))
            .unwrap();
    }
    let stop = stopped(harness.run_on());
    assert_eq!(stop.reason, StopReason::Breakpoint { number: 4 });
    assert_eq!(value_of(&mut harness, "i"), "3");
    let begin = "breakpoint 2 does not stop: its condition `none == 4` cannot be evaluated: ";
    let why = "a pointer is not associated";
    harness.wait_event(|event| match event {
        Event::Notice { text } => text.starts_with(begin) && text[begin.len()..].starts_with(why),
        _ => false,
    });
    harness.ask(Command::BreakDelete { number: 2 }).unwrap();
    let mut spec = at(6, "heat > 2");
    spec.ignore = 1;
    harness.ask(Command::BreakInsert(spec)).unwrap();
    let stop = stopped(harness.run_on());
    assert_eq!(stop.reason, StopReason::Breakpoint { number: 6 });
    assert_eq!(value_of(&mut harness, "i"), "5");
    harness.ask(Command::BreakDelete { number: 6 }).unwrap();
    let change = Command::BreakCondition {
        number: 5,
        condition: Some("v(mine) == own - 2 .and. made == 206".to_owned()),
    };
    harness.ask(change).unwrap();
    let lines = "if count == 6;print count + 1;output heat*2;set var count = 50;end".split(';');
    let lines = lines.map(str::to_owned).collect();
    harness
        .ask(Command::BreakCommands { number: 5, lines })
        .unwrap();
    let stop = stopped(harness.run_on());
    assert_eq!(stop.reason, StopReason::Breakpoint { number: 5 });
    harness.wait_event(|event| match event {
        Event::Printed { text, .. } => text == "7\n8",
        _ => false,
    });
    assert_eq!(
        (value_of(&mut harness, "i"), value_of(&mut harness, "box")),
        ("6".into(), "50".into())
    );
}

#[test]
fn watchpoint_on_fortran_pointer_watches_its_target() {
    let Some((mut harness, _)) = with_pointers(at(1, "i == 1")) else {
        return;
    };
    harness.ask(Command::BreakDelete { number: 1 }).unwrap();
    for (expression, location, condition, values) in [
        ("count", false, None, ("1", "2")),
        ("p%count", false, None, ("11", "12")),
        ("heat", false, Some("heat > 2"), ("2", "2.5")),
        ("total + made", false, None, ("304", "305")),
    ] {
        let watch = WatchSpec {
            number: 2,
            expression: expression.to_owned(),
            kind: WatchKind::Write,
            location,
            condition: condition.map(str::to_owned),
            ignore: 0,
        };
        harness.ask(Command::WatchInsert(watch)).unwrap();
        let stop = stopped(harness.run_on());
        let StopReason::Watchpoint(hit) = stop.reason else {
            panic!("{expression}: {stop:?}");
        };
        let text = |value: Option<sdm_debug::reply::Value>| value.map(|it| it.text);
        let expect = (Some(values.0.to_owned()), Some(values.1.to_owned()));
        assert_eq!((text(hit.old), text(hit.new)), expect, "{expression}");
        harness.ask(Command::BreakDelete { number: 2 }).unwrap();
    }
}

#[test]
fn variable_object_of_fortran_pointer_assigns_its_target() {
    let Some((mut harness, _)) = with_pointers(at(1, "i == 1")) else {
        return;
    };
    let create = |name: &str, expression: &str| Command::VarCreate {
        name: name.to_owned(),
        expression: expression.to_owned(),
    };
    let assign = |name: &str, value: &str| Command::VarAssign {
        name: name.to_owned(),
        value: value.to_owned(),
    };
    for (name, expression, value) in [
        ("c", "count", "1"),
        ("d", "count + 1", "2"),
        ("e", "heat > 2", ".FALSE."),
        ("l", "p%label", "'label'"),
        ("n", "none", "0x0"),
        ("p", "p", "{...}"),
    ] {
        match harness.ask(create(name, expression)) {
            Ok(Reply::VarObject(object)) => assert_eq!(object.value.text, value, "{expression}"),
            other => panic!("{expression}: {other:?}"),
        }
    }
    harness.ask(assign("c", "mine + 4")).unwrap();
    assert_eq!(
        (
            value_of(&mut harness, "count"),
            value_of(&mut harness, "box")
        ),
        ("6".into(), "6".into())
    );
    let list = Command::VarChildren {
        name: "p".to_owned(),
        from: 0,
        count: 9,
    };
    let Ok(Reply::VarChildren { children, .. }) = harness.ask(list) else {
        panic!("no children");
    };
    let found = |label: &str| {
        let found = children.iter().find(|it| it.expression == label).unwrap();
        (found.name.clone(), found.value.text.clone())
    };
    let (name, value) = found("count");
    assert_eq!(value, "11");
    harness.ask(assign(&name, "count")).unwrap();
    assert_eq!(value_of(&mut harness, "p%count"), "6");
    assert_eq!(found("label").1, "'label'");
    assert_eq!(found("own").1, "{...}");
    let (name, value) = found("nothing");
    assert_eq!(value, "0x0");
    assert_eq!(
        code(harness.ask(assign(&name, "5"))),
        FailureCode::Unsupported
    );
    assert_eq!(
        code(harness.ask(assign("n", "5"))),
        FailureCode::Unsupported
    );
}

/// A harness with a gdb that executes no Python, and the harness in whose directory that gdb is.
pub(crate) fn without_python() -> (Harness, Harness) {
    let folder = Harness::new();
    let gdb = folder.directory.join("gdb");
    let script = "#!/bin/bash\nfor it; do [[ $it == python* ]] && it=echo; all+=(\"$it\"); done\n\
                  exec \"${SDM_GDB:-gdb}\" \"${all[@]}\"\n";
    std::fs::write(&gdb, script).unwrap();
    std::fs::set_permissions(&gdb, PermissionsExt::from_mode(0o755)).unwrap();
    let harness = Harness::starting(StartConfig {
        gdb: Some(gdb),
        ..StartConfig::default()
    });
    (harness, folder)
}

/// In a gdb without Python the driver evaluates conditions.
#[test]
fn fortran_pointers_are_evaluated_if_gdb_has_no_python() {
    let (harness, _folder) = without_python();
    let mut first = at(1, "count == 2 .and. p%count == 12");
    first.temporary = true;
    let Some((mut harness, stop)) = in_fortran(harness, "pointers", first) else {
        return;
    };
    assert_eq!(stop.reason, StopReason::Breakpoint { number: 1 });
    let line = "show print sdm-references".to_owned();
    harness.ask(Command::Console { line }).unwrap_err();
    assert_eq!(value_of(&mut harness, "i"), "2");
    assert_eq!(value_of(&mut harness, "count + p%count * v(mine)"), "74");
    set(&mut harness, "count = 7");
    assert_eq!(value_of(&mut harness, "box"), "7");
    let mut spec = at(2, "i == 100");
    spec.ignore = 1;
    harness.ask(Command::BreakInsert(spec)).unwrap();
    let change = Command::BreakCondition {
        number: 2,
        condition: Some("heat > 2 .and. .not. flag".to_owned()),
    };
    harness.ask(change).unwrap();
    let stop = stopped(harness.run_on());
    assert_eq!(stop.reason, StopReason::Breakpoint { number: 2 });
    assert_eq!(value_of(&mut harness, "i"), "4");
}
