//! Values of each sort at stops: in conditions, in traces, of watchpoints, and returned.

use std::path::Path;

use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::{Done, Sdm};

use super::table::{CXX, FORTRAN, Row};

/// Conditions that hold on rank 2 alone.
pub(super) const CXX_CONDITIONS: [&str; 18] = [
    "cell.id == 1",
    "pointer->id == 1",
    "array[1] == 1",
    "grid[1][1] == 1",
    "number == 1",
    "bits.high == -2",
    "either.whole == 1",
    "color == Color::Red",
    "flags == 5",
    "wide > 2",
    "four[1] == 1",
    "letter == 'y'",
    "flag",
    "extended > 1",
    r"chars[1] == '\''",
    "$_cimag(phase._M_value) < 0",
    "holder.number == 1",
    "pair.both.first == 1",
];

pub(super) const FORTRAN_CONDITIONS: [&str; 12] = [
    "row(20) == 1.5",
    "part(2,2) == 9",
    "back(1) == 101",
    "word /= 'hello'",
    "own%id == 4",
    "flag",
    "wide > 2",
    "list(30) == 8",
    "cells(2)%weights(2) == 4",
    "count == 5",
    "more%heat > 3",
    "more%label == 'odd'",
];

/// Runs three ranks, of which rank 2 has other values.
fn run(place: &Place, program: &Path, lines: &[&str]) -> Done {
    Sdm::run(place, 3)
        .args(["--launcher", "local"])
        .lines(&["[2] set var odd = 1"])
        .lines(lines)
        .program(program, &[])
        .finish()
        .code(0)
}

#[test]
fn break_conditions_stop_only_ranks_where_they_hold() {
    let place = Place::new();
    let program = place.compile("sorts", Compiler::Cxx);
    let breaks = CXX_CONDITIONS.map(|condition| format!("break look if {condition}"));
    let mut lines: Vec<&str> = breaks.iter().map(String::as_str).collect();
    lines.extend(["break make", "continue", "[2] info breakpoints"]);
    let done = run(&place, &program, &lines);
    for condition in CXX_CONDITIONS {
        let hit = format!("stop only if {condition}\n");
        let counted = done.answer("[2] info breakpoints").split(&hit).nth(1);
        let counted = counted.unwrap_or_else(|| panic!("no {condition} in {done}"));
        let counted = counted.lines().next().unwrap_or_default().trim_start();
        assert_eq!(
            counted, "breakpoint already hit 1 time on rank 2",
            "{condition}: {done}"
        );
    }
    done.expect_part(
        "continue",
        "ranks 0-1 (2): stopped at breakpoint 19, make () at ",
    );
    let program = place.compile("sorts", Compiler::Fortran);
    let all = format!("[2] break look if {}", FORTRAN_CONDITIONS.join(" .and. "));
    let any = format!("[0,1] break look if {}", FORTRAN_CONDITIONS.join(" .or. "));
    let done = run(&place, &program, &[&all, &any, "break change", "continue"]);
    done.expect_part(
        "continue",
        "ranks 0-1 (2): stopped at breakpoint 3, sorts::change () at ",
    );
    done.expect_part(
        "continue",
        "rank 2: stopped at breakpoint 1, sorts::look () at ",
    );
}

#[test]
fn traces_show_each_kind_of_value() {
    let place = Place::new();
    let check = |compiler, rows: &[Row], place_of: &str| {
        let program = place.compile("sorts", compiler);
        let rows = || rows.iter().filter(|(name, ..)| !name.starts_with('$'));
        let names: Vec<&str> = rows().map(|(name, ..)| *name).collect();
        let trace = format!("trace {place_of} {}", names.join(", "));
        let done = run(&place, &program, &[&trace, "continue"]);
        let text = |which: fn(&Row) -> &'static str| {
            let all: Vec<String> = rows()
                .map(|row| format!("{} = {}", row.0, which(row)))
                .collect();
            all.join(", ")
        };
        for (ranks, text) in [
            ("ranks 0-1 (2)", text(|row| row.1)),
            ("rank 2", text(|row| row.2)),
        ] {
            let printed = format!("{ranks}: breakpoint 1 printed\n  {text}\n");
            done.expect_part("continue", &printed);
        }
    };
    let line = Place::line("sorts.cc", "number += 1;");
    check(Compiler::Cxx, &CXX, &format!("sorts.cc:{line}"));
    let line = Place::line("sorts.f90", "print *, row(1)");
    check(Compiler::Fortran, &FORTRAN, &format!("sorts.f90:{line}"));
}

/// The same ranks, each time in other words: each line of a session is another one.
const FOCUS: [&str; 9] = [
    "[0-2]", "[2,0-1]", "[0,1-2]", "[0-1,2]", "[0,1,2]", "[2,1,0]", "[1,0,2]", "[1,2,0]", "[0,2,1]",
];

/// An expression, with its old and new value on ranks 0 and 1, and on rank 2.
type Change = (&'static str, &'static str, &'static str);

/// Watches each expression in the order in which they change, from a stop in a function on.
fn watch(compiler: Compiler, function: &str, changes: &[Change]) {
    let place = Place::new();
    let program = place.compile("sorts", compiler);
    let mut lines = vec![format!("break {function}"), "continue".to_owned()];
    for (number, ((expression, ..), focus)) in (2..).zip(changes.iter().zip(FOCUS)) {
        lines.push(format!("watch {expression}"));
        lines.push(format!("{focus} continue"));
        lines.push(format!("delete {number}"));
    }
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let done = run(&place, &program, &lines);
    for (number, ((expression, even, odd), focus)) in (2..).zip(changes.iter().zip(FOCUS)) {
        for (ranks, values) in [("ranks 0-1 (2)", even), ("rank 2", odd)] {
            let stopped = format!("{ranks}: watchpoint {number} ({expression}): {values}, ");
            done.expect_part(&format!("{focus} continue"), &stopped);
        }
    }
}

#[test]
fn watchpoints_show_old_and_new_values_of_each_rank() {
    watch(
        Compiler::Cxx,
        "look",
        &[
            ("pair.both.first", "0 -> 1", "1 -> 2"),
            ("bits.high", "-3 -> -2", "-2 -> -1"),
            ("either.whole", "0 -> 1", "1 -> 2"),
            (
                "color",
                "Color::Green -> Color::Red",
                "Color::Red -> Color::Green",
            ),
            ("letter", "120 'x' -> 121 'y'", "121 'y' -> 122 'z'"),
            ("flag", "false -> true", "true -> false"),
            ("four[1]", "0 -> 1", "1 -> 2"),
            ("wide", "1.5 -> 2.5", "2.5 -> 3.5"),
            ("holder.number", "1 -> 6", "2 -> 11"),
        ],
    );
    watch(
        Compiler::Fortran,
        "change",
        &[
            ("count", "4 -> 5", "5 -> 6"),
            ("own%id", "3 -> 4", "4 -> 5"),
            ("row(20)", "0.5 -> 1.5", "1.5 -> 2.5"),
            ("flag", ".FALSE. -> .TRUE.", ".TRUE. -> .FALSE."),
        ],
    );
}

/// The text that `sdm` shows in place of a value that gdb reads wrong.
const REFUSED: &str = "<gdb cannot read a returned value of this type correctly>";

/// A function, what it returns on ranks 0 and 1, and on rank 2.
type Returned = (&'static str, &'static str, &'static str);

#[test]
fn finish_shows_the_returned_value_or_refuses_it() {
    let place = Place::new();
    let check = |compiler, rows: &[Returned]| {
        let program = place.compile("sorts", compiler);
        let mut lines = Vec::new();
        for ((function, ..), focus) in rows.iter().zip(FOCUS) {
            let finish = format!("{focus} finish");
            lines.extend([format!("break {function}"), "continue".to_owned(), finish]);
        }
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let done = run(&place, &program, &lines);
        for ((function, even, odd), focus) in rows.iter().zip(FOCUS) {
            let united = done.united();
            let answer = united.split(&format!("(sdm) {focus} finish\n")).nth(1);
            let answer = answer.unwrap_or_else(|| panic!("no {focus} finish: {done}"));
            let answer = answer.split("(sdm) ").next().unwrap_or_default();
            let values = answer
                .lines()
                .filter_map(|line| line.strip_prefix("Value returned: "));
            let ranks = answer
                .lines()
                .filter_map(|line| line.split_once(": finished, "));
            let shown: Vec<_> = ranks.map(|(ranks, _)| ranks).zip(values).collect();
            match even == odd {
                true => assert_eq!(shown, [("ranks 0-2 (3)", *even)], "{function}: {done}"),
                false => {
                    let both = [("ranks 0-1 (2)", *even), ("rank 2", *odd)];
                    assert_eq!(shown, both, "{function}: {done}");
                }
            }
        }
    };
    check(
        Compiler::Cxx,
        &[
            (
                "make",
                "{cell = {id = 0, heat = 0.5}, number = 0, name = \"even\"}",
                "{cell = {id = 1, heat = 0.5}, number = 1, name = \"odd\"}",
            ),
            ("pick", "{id = 0, heat = 0.5}", "{id = 1, heat = 0.5}"),
            (
                "may",
                "std::optional<int> = {[contained value] = 4}",
                "std::optional<int> = {[contained value] = 5}",
            ),
            ("wider", REFUSED, REFUSED),
        ],
    );
    check(
        Compiler::Fortran,
        &[
            ("whole", "3", "4"),
            ("heat", "0.5", "1.5"),
            ("is_odd", ".FALSE.", ".TRUE."),
            ("turn", "(1,0)", "(1,-1)"),
            ("wider", REFUSED, REFUSED),
            // gdb 13 ends at its value.
            ("made", REFUSED, REFUSED),
        ],
    );
}
