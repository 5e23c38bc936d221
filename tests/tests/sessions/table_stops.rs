//! Values of each sort at stops: in conditions, in traces, of watchpoints, and returned.

use std::path::Path;

use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::{Done, Sdm};

use super::table::{CXX, CXX_CONDITIONS, FORTRAN, FORTRAN_CONDITIONS, Row};

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
        "ranks 0-1 (2): stopped at breakpoint 16, make () at ",
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

#[test]
fn watchpoints_show_old_and_new_values_of_each_rank() {
    let place = Place::new();
    let program = place.compile("sorts", Compiler::Cxx);
    for expression in ["number", "holder.number", "pair.both.first"] {
        let watch = format!("watch {expression}");
        let done = run(
            &place,
            &program,
            &["break look", "continue", &watch, "[0-2] continue"],
        );
        changes(&done, expression, ["0 -> 1", "1 -> 2"]);
    }
    let program = place.compile("sorts", Compiler::Fortran);
    for (expression, values) in [
        ("own%id", ["3 -> 4", "4 -> 5"]),
        ("row(20)", ["0.5 -> 1.5", "1.5 -> 2.5"]),
        ("flag", [".FALSE. -> .TRUE.", ".TRUE. -> .FALSE."]),
        ("count", ["4 -> 5", "5 -> 6"]),
    ] {
        let watch = format!("watch {expression}");
        let done = run(
            &place,
            &program,
            &["break change", "continue", &watch, "[0-2] continue"],
        );
        changes(&done, expression, values);
    }
}

/// Checks what a watchpoint has shown of ranks 0 and 1, and of rank 2.
fn changes(done: &Done, expression: &str, values: [&str; 2]) {
    for (ranks, value) in ["ranks 0-1 (2)", "rank 2"].into_iter().zip(values) {
        let stopped = format!("{ranks}: watchpoint 2 ({expression}): {value}, ");
        done.expect_part("[0-2] continue", &stopped);
    }
}

/// The text that `sdm` shows in place of a value that gdb reads wrong.
const REFUSED: &str = "<gdb cannot read a returned value of this type correctly>";

/// A function, what it returns on ranks 0 and 1, and on rank 2.
type Returned = (&'static str, &'static str, &'static str);

#[test]
fn finish_shows_the_returned_value_or_refuses_it() {
    let place = Place::new();
    // Each line of a session is another one.
    const FOCUS: [&str; 6] = [
        "[0-2]", "[2,0-1]", "[0,1-2]", "[0-1,2]", "[0,1,2]", "[2,1,0]",
    ];
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
