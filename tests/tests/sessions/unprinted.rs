//! Numbers in values that gdb has no printer for, and behind pointers: they are found, or the way to them is named.

use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::{Done, Sdm};

/// Commands to the place where rank 1 has other numbers than rank 0.
const FILLED: [&str; 6] = [
    "break look",
    "continue",
    "up",
    "[1] set var odd = 1",
    "continue",
    "up",
];

fn run(place: &Place, lines: &[&str], code: i32) -> Done {
    let program = place.compile("unprinted", Compiler::Cxx);
    let run = Sdm::run(place, 2).args(["--launcher", "local"]);
    let run = run.lines(&FILLED).lines(lines);
    run.program(&program, &[]).finish().code(code)
}

#[test]
fn commands_find_numbers_in_types_without_a_pretty_printer() {
    const ROWS: [(&str, &str); 8] = [
        (
            "stats field",
            "field: 6 numbers on ranks 0-1 (2)\n  min     1 on",
        ),
        (
            "compare field",
            "1 of 3 elements differs, first field[2]: 4, not 3",
        ),
        ("print field", "std::valarray of length 3 = {1, 2, 3}\n"),
        (
            "stats small",
            "small: 6 numbers on ranks 0-1 (2)\n  min     -1 on ranks 0-1 (2)\n  max     4 on rank 1\n",
        ),
        (
            "stats bytes",
            "bytes: 6 numbers on ranks 0-1 (2)\n  min     1 on ranks 0-1 (2)\n  max     255 on",
        ),
        (
            "export bytes bytes.csv",
            "bytes.csv is written: ranks 0-1 (2), 2 x 3 integers",
        ),
        ("stats missing", "missing: 4 numbers on ranks 0-1 (2)"),
        ("compare seen", "seen: the same on ranks 0-1 (2)"),
    ];
    let place = Place::new();
    let done = run(&place, &ROWS.map(|(line, _)| line), 0);
    for (line, expect) in ROWS {
        done.expect_part(line, expect);
    }
}

#[test]
fn pointer_is_no_number_and_its_target_is_named() {
    let place = Place::new();
    for (line, name, part) in [
        ("stats first", "first", "first[0:9]"),
        ("plot matrix", "matrix", "matrix.storage.data[0:9]"),
        ("export owned no.csv", "owned", "owned[0:9]"),
        ("stats cells", "cells", "cells[0].heat"),
    ] {
        let done = run(&place, &[line], 123);
        done.expect_part(line, &format!("`{name}` has no numeric value"));
        done.expect_part(line, &format!("ask for a part with numbers, as `{part}`"));
    }
    for command in ["stats", "plot", "export"] {
        let line = format!(
            "{command} row->cells{}",
            if command == "export" { " no.csv" } else { "" }
        );
        let done = run(&place, &[&line], 123);
        done.expect_part(
            &line,
            "array `row->cells` has no length: write `row->cells[0]@n`",
        );
    }
    let line = "stats row->cells[0]@2";
    run(&place, &[line], 0).expect_part(line, "row->cells[0]@2: 4 numbers on ranks 0-1 (2)");
    let line = "compare owned";
    let done = run(&place, &[line], 123);
    done.expect_part(line, "ask for a slice, as in `owned[0:9]`");
}

#[test]
fn equal_addresses_are_not_taken_for_equal_numbers() {
    let place = Place::new();
    let lines = [
        "compare first",
        "compare matrix",
        "compare text",
        "compare named",
        "compare object",
        "compare code",
    ];
    let done = run(&place, &lines, 0);
    let note = "`first` has equal addresses; the memory at the address was not compared: `compare first[0:9]` compares it";
    done.expect_part("compare first", note);
    let note = "not compared: `compare matrix.storage.data[0:9]` compares it";
    done.expect_part("compare matrix", note);
    let note = "not compared: `compare named[0:9]` compares it";
    done.expect_part("compare named", note);
    let note = "not compared: `compare *object` compares it";
    done.expect_part("compare object", note);
    for line in ["compare text", "compare code"] {
        assert!(!done.answer(line).contains("addresses"), "{done}");
    }
}

#[test]
fn stats_read_a_fortran_component_over_a_whole_section() {
    const ROWS: [(&str, &str); 4] = [
        (
            "stats own%cells(0:1)%id",
            "own%cells(0:1)%id: 4 numbers on ranks 0-1 (2)\n  min     100 on ranks 0-1 (2)\n  max     101 on",
        ),
        (
            "stats own%many(-1:1)%w(2)",
            "6 numbers on ranks 0-1 (2)\n  min     -2 on",
        ),
        (
            "stats own%cells(1)%w",
            "own%cells(1)%w: 8 numbers on ranks 0-1 (2)\n  min     0 on ranks 0-1 (2)\n  max     3 on",
        ),
        (
            "stats own%cells%id",
            "several: a[0:9].x, in Fortran a(1:9)%x",
        ),
    ];
    let place = Place::new();
    let program = place.compile("parts", Compiler::Fortran);
    let done = Sdm::run(&place, 2)
        .args(["--launcher", "local"])
        .lines(&["break mark", "continue", "up"])
        .lines(&ROWS.map(|(line, _)| line))
        .program(&program, &[])
        .finish()
        .code(123);
    for (line, expect) in ROWS {
        done.expect_part(line, expect);
    }
}
