//! A table of commands and kinds of values: each command shows the value itself, and the ranks whose value differs.

use std::fs;

use sdm_tests::editor::Editor;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::{Done, Sdm};
use serde_json::{Value, json};

use super::table_stops::{CXX_CONDITIONS, FORTRAN_CONDITIONS};

/// An expression, its value on ranks 0 and 1, that on rank 2, and where the first element that differs is; empty for
/// the whole value.
pub(super) type Row = (&'static str, &'static str, &'static str, &'static str);

/// The rows for the frame of `look` in `sorts.cc`.
pub(super) const CXX: [Row; 29] = [
    (
        "cell",
        "{id = 0, heat = 2.5}",
        "{id = 1, heat = 2.5}",
        ".id: 1, not 0",
    ),
    (
        "*pointer",
        "{id = 0, heat = 2.5}",
        "{id = 1, heat = 2.5}",
        ".id: 1, not 0",
    ),
    ("pointer->id", "0", "1", ""),
    ("array", "{1, 0, 3}", "{1, 1, 3}", "[1]: 1, not 0"),
    ("array[1]", "0", "1", ""),
    (
        "grid",
        "{{1, 2, 3}, {4, 0, 6}}",
        "{{1, 2, 3}, {4, 1, 6}}",
        "[1][1]: 1, not 0",
    ),
    ("number", "0", "1", ""),
    ("number + 1", "1", "2", ""),
    (
        "bits",
        "{low = 5, high = -3}",
        "{low = 5, high = -2}",
        ".high: -2, not -3",
    ),
    ("bits.high", "-3", "-2", ""),
    (
        "either",
        "{whole = 0, part = 0}",
        "{whole = 1, part = 1.40129846e-45}",
        ".whole: 1, not 0",
    ),
    ("color", "Color::Green", "Color::Red", ""),
    ("flags", "C", "(A | C)", ""),
    (
        "maybe",
        "std::optional<int> [no contained value]",
        "std::optional<int> = {[contained value] = 1}",
        "",
    ),
    (
        "row",
        "std::vector of length 3, capacity 3 = {1, 0, 3}",
        "std::vector of length 3, capacity 3 = {1, 1, 3}",
        "[1]: 1, not 0",
    ),
    (
        "ages",
        r#"std::map with 2 elements = {["ann, \"x\""] = 31, ["bob"] = 0}"#,
        r#"std::map with 2 elements = {["ann, \"x\""] = 31, ["bob"] = 1}"#,
        r#"["bob"]: 1, not 0"#,
    ),
    ("name", "\"hello\"", r#""a, {b\"""#, ""),
    (
        "phase",
        "{_M_value = 1 + -0i}",
        "{_M_value = 1 + -1i}",
        "._M_value: 1 + -1i, not 1 + -0i",
    ),
    ("wide", "1.5", "2.5", ""),
    ("extended", "0.5", "1.5", ""),
    ("four", "{1, 0, 3, 4}", "{1, 1, 3, 4}", "[1]: 1, not 0"),
    ("letter", "120 'x'", "121 'y'", ""),
    ("flag", "false", "true", ""),
    ("chars", r#""a\"c""#, r#""a'c""#, ""),
    (
        "holder",
        "{cell = {id = 0, heat = 2.5}, number = 0, name = \"hello\"}",
        r#"{cell = {id = 1, heat = 2.5}, number = 1, name = "a, {b\""}"#,
        ".cell.id: 1, not 0",
    ),
    ("holder.number", "0", "1", ""),
    (
        "pair",
        "{both = {first = 0, second = {id = 0, heat = 2.5}}}",
        "{both = {first = 1, second = {id = 1, heat = 2.5}}}",
        ".both.first: 1, not 0",
    ),
    (
        "both",
        "std::tuple containing = {[1] = 0, [2] = {id = 0, heat = 2.5}}",
        "std::tuple containing = {[1] = 1, [2] = {id = 1, heat = 2.5}}",
        "[1]: 1, not 0",
    ),
    ("$xmm7.v2_int64", "{0, 0}", "{5, 6}", "[0]: 5, not 0"),
];

/// Expressions of numbers, each with the values of the ranks.
const CXX_NUMBERS: [(&str, &str); 8] = [
    ("pointer->id", "0 0 1"),
    ("array[1]", "0 0 1"),
    ("number", "0 0 1"),
    ("bits.high", "-3 -3 -2"),
    ("either.whole", "0 0 1"),
    ("wide", "1.5 1.5 2.5"),
    ("extended", "0.5 0.5 1.5"),
    ("holder.number", "0 0 1"),
];

/// The rows for the frame of `look` in `sorts.f90`.
pub(super) const FORTRAN: [Row; 20] = [
    (
        "row",
        "(1.5, <repeats 19 times>, 0.5, 1.5, <repeats 20 times>)",
        "(1.5, <repeats 40 times>)",
        "(20): 1.5, not 0.5",
    ),
    ("row(20)", "0.5", "1.5", ""),
    (
        "row(19:21)",
        "(1.5, 0.5, 1.5)",
        "(1.5, 1.5, 1.5)",
        "(2): 1.5, not 0.5",
    ),
    (
        "part",
        "((1, 2) (7, 8))",
        "((1, 2) (7, 9))",
        "(2,2): 9, not 8",
    ),
    ("part(1:2,2)", "(7, 8)", "(7, 9)", "(2): 9, not 8"),
    (
        "back",
        "(100, 80, 60, 40, 20)",
        "(101, 80, 60, 40, 20)",
        "(1): 101, not 100",
    ),
    (
        "own",
        "( id = 3, weights = (2.5, <repeats 30 times>) )",
        "( id = 4, weights = (2.5, <repeats 14 times>, 3.5, 2.5, <repeats 15 times>) )",
        "%id: 4, not 3",
    ),
    ("own%id", "3", "4", ""),
    (
        "own%weights(14:16)",
        "(2.5, 2.5, 2.5)",
        "(2.5, 3.5, 2.5)",
        "(2): 3.5, not 2.5",
    ),
    (
        "cells",
        "(( id = 3, weights = (2, 3) ), ( id = 9, weights = (2, 3) ))",
        "(( id = 3, weights = (2, 3) ), ( id = 9, weights = (2, 4) ))",
        "(2)%weights(2): 4, not 3",
    ),
    ("cells(2)%weights(2)", "3", "4", ""),
    ("phase", "(1,0)", "(1,-1)", ""),
    ("flag", ".FALSE.", ".TRUE.", ""),
    ("wide", "1.25", "2.25", ""),
    ("word", "'hello'", r"'a\'b, '", ""),
    (
        "list",
        "(7, <repeats 30 times>)",
        "(7, <repeats 29 times>, 8)",
        "(30): 8, not 7",
    ),
    ("count", "4", "5", ""),
    ("count + 1", "5", "6", ""),
    ("more%count*2", "8", "10", ""),
    ("more%label", "'even'", "'odd'", ""),
];

const FORTRAN_NUMBERS: [(&str, &str); 8] = [
    ("row(20)", "0.5 0.5 1.5"),
    ("part(2,2)", "8 8 9"),
    ("own%id", "3 3 4"),
    ("wide", "1.25 1.25 2.25"),
    ("cells(2)%weights(2)", "3 3 4"),
    ("count", "4 4 5"),
    ("count*2 - 1", "7 7 9"),
    ("more%heat + count", "6.5 6.5 8.5"),
];

/// The lines that ask for each value of a table and for each condition.
fn questions(rows: &[Row], numbers: &[(&str, &str)], conditions: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    for (expression, ..) in rows {
        for command in ["print", "compare", "outliers", "display"] {
            lines.push(format!("{command} {expression}"));
        }
    }
    for (at, (expression, _)) in numbers.iter().enumerate() {
        lines.push(format!("stats {expression}"));
        lines.push(format!("plot {expression}"));
        lines.push(format!("export {expression} {at}.csv"));
    }
    let of_those = |condition: &&str| format!("[@if:({condition})] print 7 * 6");
    lines.extend(conditions.iter().map(of_those));
    lines
}

/// The expected output for both values, each with its ranks; `what` precedes each value.
fn both(what: &str, even: &str, odd: &str) -> String {
    format!("ranks 0-1 (2): {what}{even}\nrank 2: {what}{odd}")
}

/// Checks that each command has shown the values of the table.
fn check_rows(done: &Done, rows: &[Row]) {
    for (at, (expression, even, odd, differs)) in rows.iter().enumerate() {
        let print = format!("{}\n", both("", even, odd));
        done.expect(&format!("print {expression}"), &print);
        let display = format!("{}: {expression} = ", at + 1);
        done.expect_part(&format!("display {expression}"), &both(&display, even, odd));
        let outliers = format!("  ranks 0-1 (2): {even}\n  rank 2: {odd}  <-- 1 of 3\n");
        done.expect_part(&format!("outliers {expression}"), &outliers);
        let line = format!("compare {expression}");
        done.expect_part(&line, &format!("{expression}: {even} on ranks 0-1 (2)\n"));
        let found = match differs.is_empty() {
            true => format!("\n  rank 2: {odd}  <-- 1 of 3\n"),
            false if expression.starts_with('*') => format!(" first ({expression}){differs}  <-- "),
            false => format!(" first {expression}{differs}  <-- 1 of 3\n"),
        };
        done.expect_part(&line, &found);
    }
}

fn check_numbers(place: &Place, done: &Done, numbers: &[(&str, &str)]) {
    for (at, (expression, values)) in numbers.iter().enumerate() {
        let values: Vec<&str> = values.split(' ').collect();
        let [low, _, high] = values[..] else {
            panic!("{values:?}");
        };
        let ends = format!("min     {low} on ranks 0-1 (2)\n  max     {high} on rank 2\n");
        done.expect_part(&format!("stats {expression}"), &ends);
        let plot = format!("{expression}: 3 ranks, from {low} to {high}\n");
        done.expect_part(&format!("plot {expression}"), &plot);
        let table = fs::read_to_string(place.path().join(format!("{at}.csv")));
        let rows: Vec<_> = values.iter().enumerate().collect();
        let rows: String = rows.iter().map(|(at, it)| format!("{at},{it}\n")).collect();
        let table = table.expect("it is written");
        assert!(table.ends_with(&rows), "{expression}: {table}");
    }
}

fn check_conditions(done: &Done, conditions: &[&str]) {
    for condition in conditions {
        let line = format!("[@if:({condition})] print 7 * 6");
        done.expect_part(&line, "rank 2: 42\n");
        assert!(!done.answer(&line).contains("ranks"), "{line}: {done}");
    }
}

#[test]
fn every_data_command_shows_each_kind_of_cxx_value() {
    let place = Place::new();
    let program = place.compile("sorts", Compiler::Cxx);
    // gdb 13 cannot read a member by reference after `&&`: `Cannot access memory at address 0x0`.
    let all = format!("break look if {}", CXX_CONDITIONS[..16].join(" && "));
    let questions = questions(&CXX, &CXX_NUMBERS, &CXX_CONDITIONS);
    let done = Sdm::run(&place, 3)
        .args(["--launcher", "local"])
        .lines(&[
            "[2] set var odd = 1",
            "[0,1] break look",
            &format!("[2] {all}"),
            "continue",
        ])
        .lines(&[
            "set var $xmm7.v2_int64 = {0, 0}",
            "[2] set var $xmm7.v2_int64 = {5, 6}",
        ])
        .lines(&questions.iter().map(String::as_str).collect::<Vec<_>>())
        .lines(&[
            "info args",
            "undisplay",
            "watch holder.number",
            "continue",
            "delete",
            "info locals",
        ])
        .lines(&[
            "break make",
            "continue",
            "finish",
            "break pick",
            "continue",
            "finish",
        ])
        .lines(&["break may", "continue", "finish"])
        .program(&program, &[])
        .finish()
        .code(0);
    check_rows(&done, &CXX);
    check_numbers(&place, &done, &CXX_NUMBERS);
    check_conditions(&done, &CXX_CONDITIONS);
    for (name, even, odd, _) in CXX
        .iter()
        .filter(|(name, ..)| !name.contains(['.', '-', '*', '[', '+', '$']))
    {
        let argument = format!("\n  {name}: {even} on ranks 0-1 (2); {odd} on rank 2\n");
        done.expect_part("info args", &argument);
    }
    done.expect_part("info locals", "\n  captured: {__cell = {id = 0, heat = 2.5}, __number = 1} on ranks 0-1 (2); {__cell = {id = 1, ");
}

#[test]
fn every_data_command_shows_each_kind_of_fortran_value() {
    let place = Place::new();
    let program = place.compile("sorts", Compiler::Fortran);
    let questions = questions(&FORTRAN, &FORTRAN_NUMBERS, &FORTRAN_CONDITIONS);
    let done = Sdm::run(&place, 3)
        .args(["--launcher", "local"])
        .lines(&["[2] set var odd = 1", "break look", "continue"])
        .lines(&questions.iter().map(String::as_str).collect::<Vec<_>>())
        .lines(&["info args"])
        .program(&program, &[])
        .finish()
        .code(0);
    check_rows(&done, &FORTRAN);
    check_numbers(&place, &done, &FORTRAN_NUMBERS);
    check_conditions(&done, &FORTRAN_CONDITIONS);
    for (name, even, odd, _) in FORTRAN
        .iter()
        .filter(|(name, ..)| !name.contains(['(', '%', '+']))
    {
        let argument = format!("\n  {name}: {even} on ranks 0-1 (2); {odd} on rank 2\n");
        done.expect_part("info args", &argument);
    }
}

#[test]
fn editor_shows_each_kind_of_value() {
    let place = Place::new();
    for (compiler, rows) in [(Compiler::Cxx, &CXX[..]), (Compiler::Fortran, &FORTRAN[..])] {
        let program = place.compile("sorts", compiler);
        let mut editor = Editor::new(&place);
        editor.launch(&json!({"program": program, "ranks": 2, "launcher": "local"}));
        let breakpoints = json!({"breakpoints": [{"name": "look"}]});
        editor.ask("setFunctionBreakpoints", &breakpoints);
        editor.ask("configurationDone", &Value::Null);
        let stopped = editor.event("stopped");
        let frame = editor.frames(&stopped["threadId"])[0]["id"].clone();
        let mut wrong = Vec::new();
        for (expression, even, ..) in rows.iter().filter(|(name, ..)| !name.starts_with('$')) {
            for context in ["hover", "watch", "clipboard"] {
                let arguments =
                    json!({"expression": expression, "frameId": frame, "context": context});
                let body = editor.ask("evaluate", &arguments);
                if body["result"] != *even {
                    wrong.push(format!("{context} {expression}: {}", body["result"]));
                }
            }
        }
        let scopes = editor.ask("scopes", &json!({"frameId": frame}));
        let arguments = &scopes["scopes"][0];
        let shown = editor.below(arguments);
        let is_name = |name: &str| name.chars().all(char::is_alphanumeric);
        for (name, even, ..) in rows.iter().filter(|(name, ..)| is_name(name)) {
            let found = shown.iter().find(|one| one["name"] == *name);
            let value = &found.expect(name)["value"];
            if value != *even {
                wrong.push(format!("variables {name}: {value}"));
            }
        }
        // Members of the structure: setting a reference member sets the value that it refers to.
        if compiler == Compiler::Cxx {
            let holder = shown.iter().find(|one| one["name"] == "holder");
            let holder = holder.expect("a variable");
            let members = editor.below(holder);
            let member = members.iter().find(|one| one["name"] == "number");
            assert_eq!(member.expect("a member")["value"], "0");
            let list = &holder["variablesReference"];
            let set = json!({"variablesReference": list, "name": "number", "value": "9"});
            assert_eq!(editor.ask("setVariable", &set)["value"], "9");
            let number = json!({"expression": "number", "frameId": frame});
            assert_eq!(editor.ask("evaluate", &number)["result"], "9");
        }
        editor.disconnect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

/// Two values as parts of one line, from shortly before the first difference where that is late.
fn both_shortened(even: &str, odd: &str) -> String {
    let alike = even
        .chars()
        .zip(odd.chars())
        .take_while(|(a, b)| a == b)
        .count();
    let from = if alike < 30 { 0 } else { alike - 10 };
    let short = |value: &str| {
        let part: String = value.chars().skip(from).take(40).collect();
        let before = if from > 0 { "..." } else { "" };
        let cut = if value.chars().count() > from + 40 {
            "..."
        } else {
            ""
        };
        format!("{before}{part}{cut}")
    };
    format!("{} [0-1], {} [2]", short(even), short(odd))
}

/// One line of the editor's threads stands for all ranks. The children of a value are the whole values.
#[test]
fn editor_shows_on_which_ranks_values_differ() {
    let place = Place::new();
    for (compiler, rows) in [(Compiler::Cxx, &CXX[..]), (Compiler::Fortran, &FORTRAN[..])] {
        let program = place.compile("sorts", compiler);
        let mut editor = Editor::new(&place);
        editor.launch(&json!({"program": program, "ranks": 3, "launcher": "local",
            "threads": "classes", "stopAtEntry": true}));
        editor.ask("configurationDone", &Value::Null);
        editor.event("stopped");
        let odd = json!({"expression": "[2] set var odd = 1", "context": "repl"});
        editor.ask("evaluate", &odd);
        let breakpoints = json!({"breakpoints": [{"name": "look"}]});
        editor.ask("setFunctionBreakpoints", &breakpoints);
        editor.forget("stopped");
        editor.ask("continue", &json!({"threadId": 1}));
        let mut stopped = editor.event("stopped");
        while stopped["allThreadsStopped"] == false {
            stopped = editor.event("stopped");
        }
        let thread = json!(editor.threads()[0].0);
        let frame = editor.frames(&thread)[0]["id"].clone();
        let mut wrong = Vec::new();
        let arguments = editor.scope(&json!({"id": frame}), "Arguments");
        for (expression, even, odd, _) in rows.iter().filter(|(name, ..)| !name.starts_with('$')) {
            let expect = both_shortened(even, odd);
            let mut check = |what: &str, found: &Value| {
                if *found != expect {
                    wrong.push(format!("{what} {expression}: {found}"));
                }
            };
            for context in ["hover", "watch"] {
                let asked = json!({"expression": expression, "frameId": frame, "context": context});
                check(context, &editor.ask("evaluate", &asked)["result"]);
            }
            let is_name = expression.chars().all(|it| it.is_alphanumeric());
            if is_name {
                let found = arguments.iter().find(|one| one["name"] == *expression);
                let found = found.expect(expression);
                check("variables", &found["value"]);
                let whole: Vec<Value> = editor
                    .below(found)
                    .iter()
                    .map(|it| it["value"].clone())
                    .collect();
                if whole != [*even, *odd] {
                    wrong.push(format!("below {expression}: {whole:?}"));
                }
            }
        }
        editor.disconnect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
