//! Fortran arrays whose elements are not contiguous in memory: gdb reads parts of them from wrong addresses.

use sdm_debug::command::{BreakSpec, WatchKind, WatchSpec};
use sdm_debug::reply::{StopReason, VarObject};
use sdm_debug::{Command, Event, FailureCode, Reply};

use crate::harness::{Harness, break_spec, in_fortran, stopped};

/// The line of the loop in `strides.f90`, and the line in `look`.
const LOOP: &str = "strides.f90:43";
const LOOK: &str = "strides.f90:16";

fn watchpoint(expression: &str, location: bool) -> WatchSpec {
    WatchSpec {
        number: 2,
        expression: expression.to_owned(),
        kind: WatchKind::Write,
        location,
        condition: None,
        ignore: 0,
    }
}

impl Harness {
    /// A program of `strides.f90` that has stopped at a breakpoint at `line`; `None` without a Fortran compiler.
    fn strided(line: &str) -> Option<Self> {
        let (harness, _) = in_fortran(Self::new(), "strides", break_spec(1, line))?;
        Some(harness)
    }

    /// Checks that a command is refused because of a negative stride of `array`.
    fn refuses(&mut self, array: &str, command: Command) {
        let text =
            format!("gdb reads parts of `{array}` wrong, because the array has a negative stride");
        let failure = self.ask(command.clone()).expect_err(&text);
        assert_eq!(
            (failure.code, failure.text),
            (FailureCode::Unsupported, text),
            "{command:?}"
        );
    }

    /// The number of a variable object's children, and the label and value of each descendant without children.
    fn counted(&mut self, name: &str) -> (usize, Vec<String>) {
        let list = Command::VarChildren {
            name: name.to_owned(),
            from: 0,
            count: 100,
        };
        let Ok(Reply::VarChildren { children, more }) = self.ask(list) else {
            panic!("{name}");
        };
        assert!(!more, "{name}");
        let (count, mut all) = (children.len(), Vec::new());
        for child in children {
            let VarObject {
                name,
                expression,
                value,
                ..
            } = child;
            if child.children == 0 {
                all.push(format!("{expression}={}", value.text));
                continue;
            }
            let (count, below) = self.counted(&name);
            assert_eq!(count, child.children as usize, "{name}");
            all.extend(below.iter().map(|part| format!("{expression}.{part}")));
        }
        (count, all)
    }

    fn parts(&mut self, name: &str) -> Vec<String> {
        self.counted(name).1
    }

    /// Makes a variable object, and checks its parts.
    fn opens(&mut self, name: &str, expression: &str, expect: &[&str]) {
        let create = Command::VarCreate {
            name: name.to_owned(),
            expression: expression.to_owned(),
        };
        self.ask(create).expect(expression);
        assert_eq!(self.parts(name), expect, "{expression}");
    }
}

fn console(line: &str) -> Command {
    let line = line.to_owned();
    Command::Console { line }
}

fn set(expression: &str) -> Command {
    let expression = expression.to_owned();
    Command::SetVariable { expression }
}

#[test]
fn elements_with_negative_strides_are_read_correctly() {
    let Some(mut harness) = Harness::strided(LOOP) else {
        return;
    };
    for (element, expect) in [
        ("down(1)", "52"),
        ("one%seen(2)", "39"),
        ("2 * one % seen (1)", "96"),
        ("(*one)%seen(1)", "48"),
        ("all%inner%seen(3)", "18"),
        ("all%plane(1,2)", "54"),
        ("turned(1)%id", "105"),
        ("turned(2)%seen(1)", "36"),
        ("down(one%id - 102)", "30"),
    ] {
        assert_eq!(harness.evaluate(element).unwrap().text, expect, "{element}");
        let (format, expression) = (String::new(), element.to_owned());
        let printed = harness.ask(Command::Print { format, expression });
        let is_it = matches!(&printed, Ok(Reply::Value(value)) if value.text == expect);
        assert!(is_it, "{element}: {printed:?}");
        let output = harness.ask(console(&format!("output {element}")));
        assert_eq!(output, Ok(Reply::Text(expect.to_owned())), "{element}");
        harness.ask(set(&format!("i = {element}"))).unwrap();
        assert_eq!(harness.evaluate("i").unwrap().text, expect, "{element}");
    }
    harness.ask(set("down(1) = 7")).unwrap();
    assert_eq!(harness.evaluate("down").unwrap().text, "(7, 30, 9)");
    assert_eq!(harness.evaluate("line(17)").unwrap().text, "7");
    let failure = harness.evaluate("down(4)").unwrap_err();
    assert_eq!(failure.text, "no such vector element");
}

#[test]
fn array_sections_with_negative_strides_are_read_correctly() {
    let Some(mut harness) = Harness::strided(LOOP) else {
        return;
    };
    for (section, expect) in [
        ("down(1:2)", "(52, 30)"),
        ("down(:2)", "(52, 30)"),
        ("down(3:1:-2)", "(9, 52)"),
        ("parts(2)%seen(one%id - 102:3)", "(15, 6)"),
        ("all%plane(1,:)", "(51, 54, 57)"),
        ("all%plane(2,2:3)", "(24, 27)"),
        ("all%plane(:,2)", "(54, 24)"),
        ("all%plane(1:2,1:2)", "((51, 21) (54, 24))"),
        ("every(2:3)", "(33, 52)"),
        (
            "turned(:)",
            "(( id = 105, seen = (60, 52, 42, 33, 24, 15, 6) ), ( id = 103, seen = (36, 27, 18, 9) ), ( id = 101, seen = (12) ))",
        ),
    ] {
        assert_eq!(harness.evaluate(section).unwrap().text, expect, "{section}");
        let (format, expression) = (String::new(), section.to_owned());
        let printed = harness.ask(Command::Print { format, expression });
        let is_it = matches!(&printed, Ok(Reply::Value(value)) if value.text == expect);
        assert!(is_it, "{section}: {printed:?}");
        let output = harness.ask(console(&format!("output {section}")));
        assert_eq!(output, Ok(Reply::Text(expect.to_owned())), "{section}");
    }
    harness.opens("s", "down(2:3)", &["1=30", "2=9"]);
    harness.opens("p", "all%plane(1,2:3)", &["1=54", "2=57"]);
    let behind = "down(1) == 52 .and. sizeof(down(2:3)) == 8";
    assert_eq!(harness.evaluate(behind).unwrap().text, ".TRUE.");
    // What a copy does not hold is refused by name.
    let failure = harness.evaluate("turned(2:3)").unwrap_err().text;
    assert_eq!(
        failure,
        "gdb reads this array wrong, as it has a negative stride; its elements are right"
    );
    assert!(harness.evaluate("down(2:4)").is_err());
}

#[test]
fn mi_x_and_watch_commands_refuse_negative_strides() {
    let Some(mut harness) = Harness::strided(LOOP) else {
        return;
    };
    let line = "-data-evaluate-expression \"down(1)\"".to_owned();
    harness.refuses("down", Command::Mi { line });
    harness.refuses("one%seen", console("x/1dw &one%seen(1)"));
    let watch = |expression: &str| Command::WatchInsert(watchpoint(expression, false));
    harness.refuses("down", watch("down(1)"));
    harness.refuses("one%seen", watch("one%seen(1)"));
    let line = "(3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 33, 36, 39, 42, 45, 48, 52, 54, 57, 60, 63, 66, 69, 72)";
    for (expression, expect) in [
        ("line", line),
        ("down", "(52, 30, 9)"),
        ("every(2)", "33"),
        ("odd(2)%id", "104"),
        ("parts(3)%id", "103"),
    ] {
        assert_eq!(harness.evaluate(expression).unwrap().text, expect);
    }
}

#[test]
fn children_of_strided_array_objects_are_read_correctly() {
    let Some(mut harness) = Harness::strided(LOOP) else {
        return;
    };
    harness.opens("d", "down", &["1=52", "2=30", "3=9"]);
    harness.opens("e", "every", &["1=15", "2=33", "3=52", "4=69"]);
    let planes = ["1.1=51", "1.2=21", "2.1=54", "2.2=24", "3.1=57", "3.2=27"];
    let inner = ["id=103", "seen.1=36", "seen.2=27", "seen.3=18", "seen.4=9"];
    let planes = planes.iter().map(|it| format!("plane.{it}"));
    let all = planes.chain(inner.iter().map(|it| format!("inner.{it}")));
    let all: Vec<String> = all.collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    harness.opens("a", "all", &all);
    let odd = [
        "1.id=102",
        "1.seen.1=24",
        "1.seen.2=15",
        "1.seen.3=6",
        "2.id=104",
        "2.seen.1=48",
        "2.seen.2=39",
        "2.seen.3=30",
        "2.seen.4=21",
        "2.seen.5=12",
        "3.id=106",
    ];
    let create = Command::VarCreate {
        name: "o".to_owned(),
        expression: "odd".to_owned(),
    };
    harness.ask(create).unwrap();
    assert_eq!(harness.parts("o")[..odd.len()], odd);
    // Once more: the objects of the parts are there already.
    assert_eq!(harness.parts("o")[..odd.len()], odd);
    let name = "o".to_owned();
    harness.ask(Command::VarDelete { name }).unwrap();
    let create = Command::VarCreate {
        name: "t".to_owned(),
        expression: "turned".to_owned(),
    };
    harness.ask(create).unwrap();
    let turned = harness.parts("t");
    assert_eq!(turned[..2], ["1.id=105", "1.seen.1=60"]);
    assert!(turned.contains(&"2.id=103".to_owned()), "{turned:?}");
    harness.opens("l", "table(2:2,3:4)", &["1.1=23", "2.1=24"]);
}

#[test]
fn children_of_array_arguments_keep_their_lower_bounds() {
    let Some(mut harness) = Harness::strided(LOOK) else {
        return;
    };
    harness.opens("w", "wide", &["1=6", "2=21", "3=36", "4=51"]);
    let low = ["-3=63", "-2=51", "-1=39", "0=27", "1=15", "2=3"];
    harness.opens("l", "low", &low);
    let assign = Command::VarAssign {
        name: "l.1".to_owned(),
        value: "1".to_owned(),
    };
    harness.ask(assign).unwrap();
    assert_eq!(
        harness.evaluate("low").unwrap().text,
        "(1, 51, 39, 27, 15, 3)"
    );
}

#[test]
fn condition_reads_elements_with_negative_strides() {
    let Some(mut harness) = Harness::strided("work") else {
        return;
    };
    let at = |number, condition: &str, temporary, ignore| {
        Command::BreakInsert(BreakSpec {
            number,
            location: LOOP.to_owned(),
            condition: Some(condition.to_owned()),
            temporary,
            ignore,
            ..BreakSpec::default()
        })
    };
    // gdb itself reads 9, that of `down(3)`.
    harness.ask(at(2, "down(1) == 9", false, 0)).unwrap();
    harness.ask(at(3, "down(1:2) == 12", true, 0)).unwrap();
    harness.ask(at(4, "every(2) == 33", false, 1)).unwrap();
    let stop = stopped(harness.run_on());
    assert_eq!(stop.reason, StopReason::Breakpoint { number: 4 });
    assert_eq!(harness.evaluate("i").unwrap().text, "2");
    harness.wait_event(|event| match event {
        Event::Notice { text } => text.starts_with("breakpoint 3 does not stop: "),
        _ => false,
    });
    let condition = |number, condition: &str| Command::BreakCondition {
        number,
        condition: Some(condition.to_owned()),
    };
    harness.ask(condition(4, "down(1) == 9")).unwrap();
    harness.ask(condition(2, "down(3) == 10")).unwrap();
    let lines = vec!["output down(1)".to_owned()];
    let commands = Command::BreakCommands { number: 2, lines };
    harness.ask(commands).unwrap();
    let stop = stopped(harness.run_on());
    assert_eq!(stop.reason, StopReason::Breakpoint { number: 2 });
    assert_eq!(harness.evaluate("i").unwrap().text, "3");
    harness.wait_event(|event| match event {
        Event::Printed { text, .. } => text == "52",
        _ => false,
    });
}

/// gdb itself refuses `watch -l` in Fortran.
#[test]
fn location_of_a_fortran_variable_is_watched_by_name() {
    let Some(mut harness) = Harness::strided(LOOP) else {
        return;
    };
    let watch = Command::WatchInsert(watchpoint("line(10)", true));
    harness.ask(watch).unwrap();
    // It is at the address behind the assignment.
    harness.ask(Command::BreakDelete { number: 1 }).unwrap();
    let stop = stopped(harness.run_on());
    let StopReason::Watchpoint(hit) = &stop.reason else {
        panic!("{stop:?}");
    };
    assert_eq!(hit.new.as_ref().map(|it| it.text.as_str()), Some("31"));
}

#[test]
fn elements_of_an_assumed_rank_argument_are_read() {
    let line = break_spec(1, "ranked.f90:12");
    let Some((mut harness, _)) = in_fortran(Harness::new(), "ranked", line) else {
        return;
    };
    for (expression, expect) in [
        ("any", "((1, 2) (3, 4) (5, 6))"),
        ("any(2,3)", "6"),
        ("any(2,1) + any(1,3)", "7"),
        ("any(:,2)", "(3, 4)"),
    ] {
        let value = harness.evaluate(expression).expect(expression);
        assert_eq!(value.text, expect, "{expression}");
    }
    let beyond = harness.evaluate("any(3,1)").unwrap_err();
    assert_eq!(beyond.text, "no such vector element");
    stopped(harness.run_on());
    let why = harness.evaluate("any(1,1)").unwrap_err().text;
    assert!(why.contains("negative stride"), "{why}");
    let condition = Some("any(2,3) == 6".to_owned());
    let change = Command::BreakCondition {
        number: 1,
        condition,
    };
    harness.ask(change).unwrap();
    stopped(harness.run_on());
    assert_eq!(harness.evaluate("any(2,3)").unwrap().text, "6");
}
