//! Values of every kind, by every command that shows values.

use sdm_debug::command::{BreakSpec, FrameSelect, WatchKind, WatchSpec};
use sdm_debug::quotes::bare;
use sdm_debug::reply::{BY_TEXT, PRINTED_PART, StopReason, Value};
use sdm_debug::{Command, Reply};

use crate::harness::{Harness, in_fortran, start_in_caller, stopped};

/// Placeholder for a value that differs from run to run.
const ANY: &str = "*";

impl Harness {
    fn print(&mut self, expression: &str) -> Value {
        let print = Command::Print {
            format: String::new(),
            expression: expression.to_owned(),
        };
        match self.ask(print) {
            Ok(Reply::Value(value)) => value,
            other => panic!("{expression}: {other:?}"),
        }
    }

    fn object(&mut self, name: &str, expression: &str) -> String {
        let create = Command::VarCreate {
            name: name.to_owned(),
            expression: expression.to_owned(),
        };
        match self.ask(create) {
            Ok(Reply::VarObject(object)) => object.value.text,
            other => panic!("{expression}: {other:?}"),
        }
    }

    /// Checks that each expression has the expected value, by `evaluate` and by `print`.
    fn check(&mut self, rows: &[(&str, &str)]) {
        let mut wrong = Vec::new();
        for (expression, expect) in rows {
            let fits = |found: &str| match expect.split_once(ANY) {
                Some((begin, end)) => found.starts_with(begin) && found.ends_with(end),
                None => found == *expect,
            };
            let evaluated = self.evaluate(expression).expect(expression).text;
            let printed = self.print(expression).text;
            for (command, found) in [("evaluate", &*evaluated), ("print", bare(&printed))] {
                if !fits(found) {
                    wrong.push(format!("{command} {expression}: {found}, not {expect}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

fn at(location: &str, condition: &str) -> BreakSpec {
    BreakSpec {
        number: 1,
        location: location.to_owned(),
        condition: Some(condition.to_owned()),
        ..BreakSpec::default()
    }
}

/// The variables of `sorts.cc` that look the same in every view.
const VARIABLES: [(&str, &str); 12] = [
    ("cell", "{id = 1, heat = 2.5}"),
    ("array", "{1, 2, 3}"),
    ("number", "5"),
    ("bits", "{low = 5, high = -3}"),
    ("color", "Color::Green"),
    ("maybe", "std::optional<int> = {[contained value] = 4}"),
    ("row", "std::vector of length 3, capacity 3 = {1, 2, 3}"),
    ("ages", "std::map with 1 element = {[\"ann\"] = 31}"),
    ("name", "\"hello\""),
    ("phase", "{_M_value = 1 + 2i}"),
    ("wide", "1.5"),
    ("four", "{1, 2, 3, 4}"),
];

#[test]
fn references_are_shown_as_values_in_every_command() {
    let mut harness = Harness::new();
    let program = harness.compile_cxx("sorts");
    harness.start(&program, &[]);
    let condition = "number == 5 && cell.heat > 2 && array[2] == 3 && either.whole == 3 \
                     && bits.high == -3 && color == Color::Green && flag && pointer->id == 1";
    let mut spec = at("look", condition);
    let lines = "if number == 5;print array;output number;else;print 0;end".split(';');
    spec.commands = lines.map(str::to_owned).collect();
    harness.ask(Command::BreakInsert(spec)).unwrap();
    let stop = stopped(harness.run_on());
    assert_eq!(stop.reason, StopReason::Breakpoint { number: 1 });
    let printed = |event: &_| match event {
        sdm_debug::Event::Printed { text, .. } => text == "{1, 2, 3}\n5",
        _ => false,
    };
    harness.wait_event(printed);
    harness.check(&VARIABLES);
    harness.check(&[
        ("cell.heat", "2.5"),
        ("pointer", "0x*"),
        ("*pointer", "{id = 1, heat = 2.5}"),
        ("array[1]", "2"),
        ("number + 1", "6"),
        ("bits.high", "-3"),
        ("either", "{whole = 3, part = *}"),
        ("letter", "120 'x'"),
        ("flag", "true"),
        ("text", "0x*\"text\""),
        ("$xmm0.v4_int32", "{*}"),
    ]);
    let all = [
        ("number", "5"),
        ("pointer", "0x*"),
        ("color", "Color::Green"),
        ("wide", "1.5"),
        ("name", "\"hello\""),
        ("array", "[3]"),
    ];
    for (name, expect) in all {
        let value = harness.object(&format!("o_{name}"), name);
        let begin = expect.trim_end_matches(ANY);
        assert!(value.starts_with(begin), "{name}: {value}");
    }
    let assign = Command::VarAssign {
        name: "o_number".to_owned(),
        value: "9".to_owned(),
    };
    let Ok(Reply::Value(value)) = harness.ask(assign) else {
        panic!("not assigned");
    };
    assert_eq!(value.text, "9");
    let expression = "number = 5".to_owned();
    harness.ask(Command::SetVariable { expression }).unwrap();
    assert_eq!(harness.evaluate("number").unwrap().text, "5");
    values_are_assigned_and_listed(&mut harness);
    watched_and_returned(&mut harness);
}

fn values_are_assigned_and_listed(harness: &mut Harness) {
    objects_are_assigned(harness);
    locals_are_listed(harness);
    let Ok(Reply::Variables(arguments)) = harness.ask(Command::Arguments) else {
        panic!("no arguments");
    };
    let text = |name: &str| {
        let found = arguments.iter().find(|one| one.name == name).unwrap();
        found.value.text.clone()
    };
    for (name, expect) in [
        ("cell", "{id = 1, heat = 2.5}"),
        ("array", "{1, 2, 3}"),
        ("number", "5"),
        ("color", "Color::Green"),
        ("name", "\"hello\""),
        ("row", "std::vector of length 3, capacity 3 = {1, 2, 3}"),
        ("letter", "120 'x'"),
    ] {
        assert_eq!(text(name), expect, "{name}");
    }
}

/// Assigns to variable objects, as an editor's setVariable does, and restores each value.
fn objects_are_assigned(harness: &mut Harness) {
    for (at, (expression, value, expect)) in [
        ("cell.heat", "3.5", "3.5"),
        ("cell.heat", "2.5", "2.5"),
        ("array[1]", "7", "7"),
        ("array[1]", "2", "2"),
        ("bits.high", "-2", "-2"),
        ("bits.high", "-3", "-3"),
        ("either.whole", "4", "4"),
        ("either.whole", "3", "3"),
        ("color", "Color::Red", "Color::Red"),
        ("color", "Color::Green", "Color::Green"),
        ("pointer->id", "8", "8"),
        ("pointer->id", "1", "1"),
        ("wide", "2.25", "2.25"),
        ("wide", "1.5", "1.5"),
        ("letter", "'y'", "121 'y'"),
        ("letter", "'x'", "120 'x'"),
        ("flag", "false", "false"),
        ("flag", "true", "true"),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("s_{at}");
        harness.object(&name, expression);
        let value = value.to_owned();
        let assigned = harness.ask(Command::VarAssign { name, value });
        assert!(assigned.is_ok(), "{expression}: {assigned:?}");
        assert_eq!(
            harness.evaluate(expression).unwrap().text,
            expect,
            "{expression}"
        );
    }
}

fn locals_are_listed(harness: &mut Harness) {
    let up = Command::SelectFrame(FrameSelect::Move(1));
    harness.ask(up).unwrap();
    let Ok(Reply::Variables(locals)) = harness.ask(Command::Locals) else {
        panic!("no locals");
    };
    for (name, expect) in VARIABLES {
        let found = locals.iter().filter(|one| one.name == name);
        let found: Vec<_> = found.map(|one| &*one.value.text).collect();
        assert_eq!(found, [expect], "{name}");
    }
    let down = Command::SelectFrame(FrameSelect::Move(-1));
    harness.ask(down).unwrap();
}

fn watched_and_returned(harness: &mut Harness) {
    let watch = WatchSpec {
        number: 2,
        expression: "number".to_owned(),
        kind: WatchKind::Write,
        location: false,
        condition: None,
        ignore: 0,
    };
    harness.ask(Command::WatchInsert(watch)).unwrap();
    let stop = stopped(harness.run_on());
    let StopReason::Watchpoint(hit) = stop.reason else {
        panic!("{stop:?}");
    };
    let text = |value: &Option<Value>| value.clone().map(|value| value.text);
    assert_eq!(
        (text(&hit.old), text(&hit.new)),
        (Some("5".to_owned()), Some("6".to_owned()))
    );
    harness.ask(Command::BreakDelete { number: 2 }).unwrap();
    harness.break_at(3, "pick").unwrap();
    stopped(harness.run_on());
    let stop = stopped(harness.ask(Command::Finish));
    let StopReason::FunctionFinished { value: Some(value) } = stop.reason else {
        panic!("{stop:?}");
    };
    assert_eq!(value.text, "{id = 7, heat = 0.5}");
}

#[test]
fn truncated_values_differ_if_their_hidden_elements_differ() {
    let mut harness = Harness::new();
    let program = harness.compile_cxx("sorts");
    harness.start(&program, &[]);
    harness.break_at(1, "look").unwrap();
    stopped(harness.run_on());
    let same = (harness.evaluate("many").unwrap(), harness.print("many"));
    let (evaluated, printed) = same;
    assert!(evaluated.cut.is_some() && printed.cut.is_some());
    // The changed element is far beyond those that gdb prints, so the printed text is the same.
    let expression = "many[4999] = 8".to_owned();
    harness.ask(Command::SetVariable { expression }).unwrap();
    let other = harness.evaluate("many").unwrap();
    assert_eq!(other.text, evaluated.text);
    assert_ne!(other.cut, evaluated.cut);
    assert_ne!(harness.print("many").cut, printed.cut);
    let expression = "many[4999] = 2".to_owned();
    harness.ask(Command::SetVariable { expression }).unwrap();
    assert_eq!(harness.evaluate("many").unwrap(), evaluated);
    let up = Command::SelectFrame(FrameSelect::Move(1));
    harness.ask(up).unwrap();
    let nested = harness.evaluate("nested").unwrap();
    assert!(nested.text.contains("{...}"), "{nested:?}");
    let number = format!("nested.{}number", "within.".repeat(30));
    let expression = format!("{number} = 7");
    harness.ask(Command::SetVariable { expression }).unwrap();
    let other = harness.evaluate("nested").unwrap();
    assert_eq!(other.text, nested.text);
    assert_ne!(other.cut, nested.cut);
}

#[test]
fn listed_variables_compare_by_whole_value_or_by_text() {
    let mut harness = Harness::new();
    let program = harness.compile_cxx("sorts");
    start_in_caller(&mut harness, &program, "look");
    let mut value = |name: &str| {
        let Ok(Reply::Variables(locals)) = harness.ask(Command::Locals) else {
            panic!("no locals");
        };
        let found = locals.into_iter().find(|one| one.name == name);
        let value = found.map(|one| one.value);
        value.unwrap_or_else(|| panic!("no {name}"))
    };
    let many = value("many").cut;
    assert!(many.is_some() && many != Some(BY_TEXT), "{many:?}");
    // Its last elements are beyond those that are compared.
    assert_eq!(value("longer").cut, Some(BY_TEXT));
    // The text that a list shows of these is cut, too.
    let (length, hash) = value("cells").cut.expect("cut");
    assert!(length == PRINTED_PART && hash != 0, "{length} {hash}");
    let is_whole = |text: &str| text.contains("sides = 3") && text.ends_with("length = 8}");
    let shape = value("shape").text;
    assert!(is_whole(&shape), "{shape}");
    // No other value there has a reference.
    harness.break_at(2, "sides_of").unwrap();
    stopped(harness.run_on());
    let Ok(Reply::Variables(arguments)) = harness.ask(Command::Arguments) else {
        panic!("no arguments");
    };
    assert!(is_whole(&arguments[0].value.text), "{arguments:?}");
}

#[test]
fn fortran_values_are_printed_or_refused_if_gdb_misreads_them() {
    let at = at("sorts.f90:20", "own%id == 3");
    let Some((mut harness, _)) = in_fortran(Harness::new(), "sorts", at) else {
        return;
    };
    harness.check(&[
        ("row", "(0.5, 1.5, <repeats 39 times>)"),
        ("row(1)", "0.5"),
        ("row(1:2)", "(0.5, 1.5)"),
        ("part", "((1, 2) (7, 8))"),
        ("part(1,2)", "7"),
        ("back", "(100, 80, 60, 40, 20)"),
        ("back(1)", "100"),
        ("2 * back(2)", "160"),
        ("own%id", "3"),
        ("own%weights(1:3)", "(2.5, 2.5, 2.5)"),
        ("phase", "(1,-2)"),
        ("flag", ".TRUE."),
        ("wide", "1.25"),
        ("word", "'hello'"),
        ("list", "(7, <repeats 30 times>)"),
        // gdb itself counts from the wrong end, and prints 60, 40, 20.
        ("back(1:3)", "(100, 80, 60)"),
    ]);
}

#[test]
fn type_behind_a_reference_to_a_pointer_is_shown() {
    let mut harness = Harness::new();
    let program = harness.compile_cxx("sorts");
    start_in_caller(&mut harness, &program, "look");
    for (expression, kind) in [
        ("holder.kept->id", Ok("type = int")),
        ("holder.kept->nosuch", Err(())),
    ] {
        let expression = expression.to_owned();
        let full = false;
        let found = harness.ask(Command::TypeOf { expression, full });
        let expect = kind.map(|kind| Reply::Text(kind.to_owned()));
        assert_eq!(found.map_err(|_| ()), expect);
    }
    // Nothing is called or assigned to find a type.
    let expression = "holder.kept->id = pick(number).id".to_owned();
    let full = false;
    let _ = harness.ask(Command::TypeOf { expression, full });
    harness.check(&[("number", "5"), ("holder.kept->id", "1")]);
}

/// The message for a returned value that gdb reads wrong.
pub(crate) const REFUSED: &str = "gdb cannot read a returned value of this type correctly";

/// The value that `finish` shows of a function, and that of a call.
pub(crate) fn returned(
    harness: &mut Harness,
    number: u32,
    function: &str,
    call: &str,
) -> [String; 2] {
    harness.break_at(number, function).unwrap();
    stopped(harness.run_on());
    let stop = stopped(harness.ask(Command::Finish));
    let StopReason::FunctionFinished { value: Some(value) } = stop.reason else {
        panic!("{function}: {stop:?}");
    };
    let frame = stop.frame.unwrap();
    assert!(frame.function.ends_with("main"), "{frame:?}");
    // A call would stop there.
    harness.ask(Command::BreakDelete { number }).unwrap();
    let called = harness.evaluate(call);
    let called = called.map_or_else(|failure| failure.text, |value| value.text);
    let finished = value.text.trim_matches(['<', '>']).to_owned();
    [finished, called]
}

/// gdb 13 and 18 show wrong numbers, wait for ever (`eight`) or end (`either`, `mixed`).
#[test]
fn values_that_gdb_misreads_at_a_return_are_refused() {
    let mut harness = Harness::new();
    let program = harness.compile_cxx("returned");
    harness.start(&program, &[]);
    let functions = [
        "outer", "derived", "whole", "four", "eight", "either", "mixed",
    ];
    for (number, function) in (1..).zip(functions) {
        let refused = returned(&mut harness, number, function, &format!("{function}()"));
        assert_eq!(refused, [REFUSED, REFUSED], "{function}");
    }
    let plain = returned(&mut harness, 8, "plain", "plain()");
    assert_eq!(plain, ["{first = 0x0, whole = 0}"; 2]);
    let longer = returned(&mut harness, 9, "longer", "longer()");
    assert_eq!(longer, ["{one = 0.25}"; 2]);
}
