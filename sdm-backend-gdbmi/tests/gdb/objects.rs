//! Tests of variable objects on a real gdb: creation, listing of children in parts, assignment.

use sdm_debug::reply::VarObject;
use sdm_debug::{Command, FailureCode, Reply};

use crate::harness::{Answer, Harness, code, start_in_caller, stopped};

fn object(answer: Answer) -> VarObject {
    match answer {
        Ok(Reply::VarObject(object)) => object,
        other => panic!("{other:?}"),
    }
}

fn children(answer: Answer) -> (Vec<VarObject>, bool) {
    match answer {
        Ok(Reply::VarChildren { children, more }) => (children, more),
        other => panic!("{other:?}"),
    }
}

fn create(name: &str, expression: &str) -> Command {
    Command::VarCreate {
        name: name.to_owned(),
        expression: expression.to_owned(),
    }
}

fn list(name: &str, from: u32, count: u32) -> Command {
    Command::VarChildren {
        name: name.to_owned(),
        from,
        count,
    }
}

#[test]
fn children_of_variable_objects_are_listed_in_parts() {
    let mut harness = Harness::new();
    let program = harness.compile("values", &[]);
    harness.start(&program, &[]);
    harness.break_at(1, "overwrite").unwrap();
    stopped(harness.run_on());
    let outer = object(harness.ask(create("o", "*outer")));
    assert_eq!(
        (outer.type_name.as_str(), outer.children),
        ("struct outer", 3)
    );
    let failure = harness.ask(create("x", "nosuch")).unwrap_err();
    assert!(failure.text.contains("nosuch"), "{failure}");
    for name in ["o", "", "1a", "a b", "o.first"] {
        assert_eq!(
            code(harness.ask(create(name, "1"))),
            FailureCode::BadCommand,
            "{name}"
        );
    }
    let (members, more) = children(harness.ask(list("o", 0, 2)));
    let names: Vec<&str> = members.iter().map(|m| m.expression.as_str()).collect();
    assert_eq!((names, more), (vec!["first", "second"], true));
    let (inner, more) = children(harness.ask(list(&members[0].name, 0, 9)));
    assert_eq!((inner[0].value.text.as_str(), more), ("6", false));
}

#[test]
fn variable_object_is_assigned_and_deleted() {
    let mut harness = Harness::new();
    let program = harness.compile("values", &[]);
    harness.start(&program, &[]);
    harness.break_at(1, "overwrite").unwrap();
    stopped(harness.run_on());
    object(harness.ask(create("o", "*outer")));
    children(harness.ask(list("o", 0, 9)));
    children(harness.ask(list("o.first", 0, 9)));
    let assign = Command::VarAssign {
        name: "o.first.number".to_owned(),
        value: "255".to_owned(),
    };
    let Ok(Reply::Value(value)) = harness.ask(assign) else {
        panic!("no value");
    };
    assert_eq!(value.text, "255");
    let delete = || Command::VarDelete {
        name: "o".to_owned(),
    };
    assert_eq!(harness.ask(delete()), Ok(Reply::Done));
    assert_eq!(code(harness.ask(delete())), FailureCode::NoSuchThing);
    assert_eq!(code(harness.ask(list("o", 0, 1))), FailureCode::NoSuchThing);
}

#[test]
fn containers_are_shown_as_their_elements() {
    let mut harness = Harness::new();
    let program = harness.compile_cxx("containers");
    start_in_caller(&mut harness, &program, "thrown");
    let numbers = harness.evaluate("numbers").unwrap().text;
    assert!(numbers.ends_with("= {1, 2, 3}"), "{numbers}");
    let create = Command::VarCreate {
        name: "n".to_owned(),
        expression: "numbers".to_owned(),
    };
    let numbers = object(harness.ask(create));
    assert!(numbers.pretty, "{numbers:?}");
    let list = Command::VarChildren {
        name: "n".to_owned(),
        from: 0,
        count: 2,
    };
    let (elements, more) = children(harness.ask(list));
    let values: Vec<&str> = elements.iter().map(|e| e.value.text.as_str()).collect();
    assert_eq!((values, more), (vec!["1", "2"], true));
}
