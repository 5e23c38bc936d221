//! Arrays over elements and ranks: slices of C, C++ and Fortran, files for other programs, lines in characters.

use std::fs;

use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::Sdm;

/// Commands up to the line where all arrays of `cells` are filled, with different numbers on each rank.
const FILLED: [&str; 6] = [
    "[1] set var rank = 1",
    "[2] set var rank = 2",
    "[3] set var rank = 3",
    "break look",
    "continue",
    "up",
];

#[test]
fn statistics_cover_elements_and_ranks_of_a_slice() {
    let place = Place::new();
    let cells = place.compile("cells", Compiler::Cxx);
    let done = Sdm::run(&place, 4)
        .lines(&FILLED)
        .lines(&["stats cell[0:63]", "stats many[2:9]", "stats few[1:2]"])
        .lines(&["stats grid[0:1][1:2]", "stats rods[0:2].heat"])
        .program(&cells, &[])
        .finish()
        .code(0);
    let cell = "cell[0:63]: 256 numbers on ranks 0-3 (4)\n  min     0 on rank 0\n  max     18.75 on rank 3\n  mean    9.375\n";
    done.expect_part("stats cell[0:63]", cell);
    let many = "32 numbers on ranks 0-3 (4)\n  min     2 on ranks 0-3 (4)\n  max     9 on";
    done.expect_part("stats many[2:9]", many);
    done.expect_part("stats few[1:2]", "few[1:2]: 8 numbers");
    let grid = "16 numbers on ranks 0-3 (4)\n  min     10 on rank 0\n  max     63 on rank 3\n";
    done.expect_part("stats grid[0:1][1:2]", grid);
    done.expect_part("stats rods[0:2].heat", "12 numbers");
}

#[test]
fn slice_with_a_stride_has_every_nth_element() {
    let place = Place::new();
    let cells = place.compile("cells", Compiler::Cxx);
    let done = Sdm::run(&place, 4)
        .lines(&FILLED)
        .lines(&["stats many[1:9:4]", "outliers many[1:9:4]"])
        .lines(&["export grid[0:2:2][1:3:2] grid.csv", "outliers rods[0:2:2]"])
        .lines(&["plot cell[0:63:21]", "stats few[0:4:2]"])
        .program(&cells, &[])
        .finish()
        .code(123);
    let many =
        "12 numbers on ranks 0-3 (4)\n  min     1 on ranks 0-3 (4)\n  max     9 on ranks 0-3 (4)\n";
    done.expect_part("stats many[1:9:4]", many);
    done.expect_part("outliers many[1:9:4]", "{1, 5, 9}");
    done.expect_part(
        "outliers rods[0:2:2]",
        "{{rank = 3, heat = 0}, {rank = 3, heat = 1}}",
    );
    let cell = "cell[0:63:21]: 4 elements, from 0 to 18.75\n";
    done.expect_part("plot cell[0:63:21]", cell);
    done.expect_part(
        "stats few[0:4:2]",
        "`few` has 4 elements: none has the index 4",
    );
    let grid = fs::read_to_string(place.path().join("grid.csv")).expect("it was written");
    let expect = "rank,[0][0],[0][1],[1][0],[1][1]\n0,10,30,90,110\n1,11,31,91,111\n";
    assert!(grid.starts_with(expect), "{grid}");
}

#[test]
fn statistics_cover_whole_arrays_and_containers() {
    let place = Place::new();
    let cells = place.compile("cells", Compiler::Cxx);
    let heat = place.compile("heat", Compiler::Fortran);
    let done = Sdm::run(&place, 4)
        .lines(&FILLED)
        .lines(&["stats cell", "stats many", "stats few", "stats grid"])
        .lines(&["export many many.csv", "plot many", "stats rods"])
        .program(&cells, &[])
        .finish()
        .code(123);
    let cell = "cell: 256 numbers on ranks 0-3 (4)\n  min     0 on rank 0\n  max     18.75 on rank 3\n  mean    9.375\n";
    done.expect_part("stats cell", cell);
    let many = "many: 256 numbers on ranks 0-3 (4)\n  min     0 on ranks 0-3 (4)\n  max     63 on";
    done.expect_part("stats many", many);
    done.expect_part("stats few", "few: 16 numbers on ranks 0-3 (4)");
    let grid =
        "grid: 48 numbers on ranks 0-3 (4)\n  min     0 on rank 0\n  max     113 on rank 3\n";
    done.expect_part("stats grid", grid);
    let written = "many.csv is written: ranks 0-3 (4), 4 x 64 floating-point numbers";
    done.expect_part("export many many.csv", written);
    done.expect_part("stats rods", "`rods` has no numeric value on ranks 0-3 (4)");
    let containers = place.compile("containers", Compiler::Cxx);
    let done = Sdm::run(&place, 2)
        .lines(&["break containers.cc:26", "continue", "stats ages"])
        .lines(&["stats seen", "stats grid.cells"])
        .program(&containers, &[])
        .finish()
        .code(0);
    done.expect_part(
        "stats ages",
        "ages: 4 numbers on ranks 0-1 (2)\n  min     31 on",
    );
    done.expect_part("stats seen", "seen: 6 numbers on ranks 0-1 (2)");
    let cells = "grid.cells: 6 numbers on ranks 0-1 (2)\n  min     0.5 on";
    done.expect_part("stats grid.cells", cells);
    let done = Sdm::run(&place, 2)
        .lines(&["break step", "continue", "stats values(0:1)"])
        .lines(&["export values(-1:2) values.csv", "stats cells"])
        .program(&heat, &[])
        .finish()
        .code(0);
    let sum = "values(0:1): 4 numbers on ranks 0-1 (2)\n  min     1.5 on ranks 0-1 (2)\n";
    done.expect_part("stats values(0:1)", sum);
    done.expect_part("stats cells", "cells: 8 numbers on ranks 0-1 (2)");
    let table = fs::read_to_string(place.path().join("values.csv")).expect("it was written");
    let expect = "rank,[0],[1],[2],[3]\n0,0.5,1.5,2.5,3.5\n1,0.5,1.5,2.5,3.5\n";
    assert_eq!(table, expect);
}

#[test]
fn exported_values_have_ranks_as_first_axis() {
    let place = Place::new();
    let cells = place.compile("cells", Compiler::Cxx);
    let done = Sdm::run(&place, 4)
        .lines(&FILLED)
        .lines(&["export cell[0:63] cell.npy", "[1,3] export rank rank.npy"])
        .lines(&["export grid[0:1][1:2] grid.csv", "export rank rank.txt"])
        .program(&cells, &[])
        .finish()
        .code(123);
    let said = "cell.npy is written: ranks 0-3 (4), 4 x 64 floating-point numbers\n";
    done.expect("export cell[0:63] cell.npy", said);
    done.expect_part("export rank rank.txt", ".npy or .csv");
    let read = |name: &str| fs::read(place.path().join(name)).expect("it was written");
    let cell = read("cell.npy");
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (4, 64,), }";
    assert_eq!(cell[10..128].trim_ascii_end(), header.as_bytes());
    assert_eq!(cell.len(), 128 + 4 * 64 * 8);
    assert_eq!(cell[128..136], 0.0_f64.to_le_bytes());
    assert_eq!(cell[cell.len() - 8..], 18.75_f64.to_le_bytes());
    let rank = read("rank.npy");
    let shape = b"'<i8', 'fortran_order': False, 'shape': (2,), ";
    assert!(rank.windows(shape.len()).any(|part| part == shape));
    let both = [1_i64.to_le_bytes(), 3_i64.to_le_bytes()];
    assert_eq!(rank[128..], *both.as_flattened());
    let grid = String::from_utf8(read("grid.csv")).expect("it is text");
    assert!(grid.starts_with("rank,[0][0],[0][1],[1][0],[1][1]\n0,10,20,50,60\n1,11,"));
    assert!(grid.ends_with("\n3,13,23,53,63\n"), "{grid}");
}

#[test]
fn plot_draws_numbers_with_characters() {
    let place = Place::new();
    let cells = place.compile("cells", Compiler::Cxx);
    let done = Sdm::run(&place, 4)
        .lines(&FILLED)
        .lines(&["plot rank", "plot many[0:7]"])
        .program(&cells, &[])
        .finish()
        .code(0);
    done.expect(
        "plot rank",
        "rank: 4 ranks, from 0 to 3\n  ranks 0-3 (4): ▁▃▆█\n",
    );
    let many = "many[0:7]: 8 elements, from 0 to 7\n  ranks 0-3 (4): ▁▂▃▄▅▆▇█\n";
    done.expect("plot many[0:7]", many);
}

/// Commands up to the line where each rank has its values by reference.
const REFERRED: [&str; 4] = [
    "[1] set var rank = 1",
    "[2] set var rank = 2",
    "break look",
    "continue",
];

#[test]
fn references_are_shown_as_values_in_every_command() {
    let place = Place::new();
    let program = place.compile("references", Compiler::Cxx);
    let done = Sdm::run(&place, 3)
        .lines(&REFERRED)
        .lines(&[
            "compare cell",
            "outliers number",
            "display number",
            "stats number",
        ])
        .lines(&["stats array[0:2]", "plot number", "export array[0:2] a.csv"])
        .lines(&["[@if:(number > 1)] print number", "compare number + 0"])
        .lines(&["compare rows", "compare rows[0:1]", "compare array[0:2]"])
        .program(&program, &[])
        .finish()
        .code(0);
    done.expect_part("compare cell", "first cell.id: ");
    done.expect_part("outliers number", "rank 2: 2");
    done.expect_part("display number", "1: number = ");
    done.expect_part("stats number", "max     2 on rank 2\n");
    done.expect_part(
        "stats array[0:2]",
        "9 numbers on ranks 0-2 (3)\n  min     0 on rank 0\n",
    );
    done.expect_part("plot number", "number: 3 ranks, from 0 to 2\n");
    done.expect_part("[@if:(number > 1)] print number", "rank 2: 2\n");
    done.expect_part("compare rows", "rows[1][1]: ");
    done.expect_part("compare rows[0:1]", "rows[0:1][1][1]: ");
    done.expect_part("compare array[0:2]", "array[0:2][1]: ");
    let table = fs::read_to_string(place.path().join("a.csv")).expect("it was written");
    assert_eq!(table, "rank,[0],[1],[2]\n0,1,0,3\n1,1,1,3\n2,1,2,3\n");
}

#[test]
fn compare_finds_differences_beyond_the_print_limit() {
    let place = Place::new();
    let program = place.compile("references", Compiler::Cxx);
    let done = Sdm::run(&place, 3)
        .lines(&REFERRED)
        .lines(&["compare large", "compare many"])
        .lines(&["compare text", "compare held"])
        .program(&program, &[])
        .finish()
        .code(0);
    done.expect_part("compare large", "large[5900]: ");
    done.expect_part("compare many", "many[4400]: ");
    done.expect_part("compare text", "first text[298]: '1', not '0'");
    let held = "1 of 2 elements differs, first held.name[498]: '1', not '0'";
    done.expect_part("compare held", held);
}

#[test]
fn fortran_sections_are_read_completely_or_refused() {
    let place = Place::new();
    let sections = place.compile("sections", Compiler::Fortran);
    let run = |lines: &[&str], code| {
        let run = Sdm::run(&place, 2).lines(&["break look", "continue"]);
        run.lines(lines).program(&sections, &[]).finish().code(code)
    };
    let rows = [
        (
            "stats row(1:40)",
            "80 numbers on ranks 0-1 (2)\n  min     0.5 on ranks 0-1 (2)\n",
        ),
        ("export grid(1:2,1:20) grid.csv", "2 x 20 x 2 integers"),
        ("compare row(1:40)", "the same on ranks 0-1 (2)"),
        // gdb itself counts these from the wrong end.
        (
            "stats back(1:3)",
            "6 numbers on ranks 0-1 (2)\n  min     60 on ranks 0-1 (2)\n",
        ),
        ("export back(2:4) back.csv", "2 x 3 integers"),
        ("print own%view(1:2)", "ranks 0-1 (2): (80, 20)\n"),
        ("print back(5:1:-2)", "ranks 0-1 (2): (20, 60, 100)\n"),
        ("call back(1:2)", "ranks 0-1 (2): (100, 80)\n"),
        ("display back(:2)", "back(:2) = (100, 80)"),
        ("plot back(1:3)", "60"),
        ("[1] set var back(2) = 81", ""),
        (
            "compare own%view(1:2)",
            "first own%view(1:2)(1): 81, not 80",
        ),
        (
            "compare back(1:3)",
            "1 of 3 elements differs, first back(1:3)(2): 81, not 80",
        ),
        ("outliers back(2:3)", "81"),
        ("[@if:(back(2) == 81)] print back(2:2)", "rank 1: (81)"),
    ];
    let done = run(&rows.map(|(line, _)| line), 0);
    for (line, part) in rows {
        done.expect_part(line, part);
    }
    let table = |name| fs::read_to_string(place.path().join(name)).expect("it was written");
    assert!(table("grid.csv").ends_with(",7,7,8\n"));
    assert!(table("back.csv").ends_with("\n1,80,60,40\n"));
    let refusal = "gdb reads parts of `own%view` wrong, because the array has a negative stride";
    run(&["watch own%view(1)"], 123).expect_part("watch own%view(1)", refusal);
    let copy = "gdb may read parts of `$t` wrong, because it is a copy of unknown stride";
    run(&["set $t = back", "print $t(1)"], 123).expect_part("print $t(1)", copy);
}

/// Elements are named as the program would name them, by the bounds of the arrays.
#[test]
fn compare_names_elements_in_fortran() {
    let place = Place::new();
    let sections = place.compile("sections", Compiler::Fortran);
    let done = Sdm::run(&place, 2)
        .lines(&["break fill", "continue", "[1] set var me = 1"])
        .lines(&["break filled", "continue"])
        .lines(&["compare matrix", "compare board", "compare cells"])
        .lines(&["compare cells(3)", "compare matrix(2,1:3)", "compare text"])
        .lines(&["compare word(1:300)", "compare word"])
        .program(&sections, &[])
        .finish()
        .code(0);
    let one = "1 of 6 elements differs, first matrix(2,3): 1, not 0";
    done.expect_part("compare matrix", one);
    let one = "1 of 9 elements differs, first board(2,0): 1, not 0";
    done.expect_part("compare board", one);
    let one = "1 of 6 elements differs, first cells(3)%w(1): 1, not 0";
    done.expect_part("compare cells", one);
    let one = "1 of 3 elements differs, first cells(3)%w(1): 1, not 0";
    done.expect_part("compare cells(3)", one);
    let one = "first matrix(2,1:3)(3): 1, not 0";
    done.expect_part("compare matrix(2,1:3)", one);
    for name in ["text", "word(1:300)", "word"] {
        let one = format!("1 of 300 elements differs, first {name}(299:299): '1', not '0'");
        done.expect_part(&format!("compare {name}"), &one);
    }
}

#[test]
fn ranks_with_equal_references_form_one_class() {
    let place = Place::new();
    let program = place.compile("references", Compiler::Cxx);
    let done = Sdm::run(&place, 3)
        .lines(&REFERRED)
        .lines(&["print &number", "set var number = 7"])
        .lines(&["bt 1", "info args", "print number", "print/x number"])
        .lines(&["[2] set var number = 8", "frame"])
        .program(&program, &[])
        .finish()
        .code(0);
    done.expect_part("print &number", "(3 distinct addresses)");
    done.expect_part("bt 1", "ranks 0-2 (3):\n#0  look (cell=..., number=7, ");
    done.expect_part("info args", "ranks 0-2 (3):\n");
    done.expect_part("info args", "\n  number = 7\n");
    done.expect("print number", "ranks 0-2 (3): 7\n");
    done.expect("print/x number", "ranks 0-2 (3): 0x7\n");
    let frame = "ranks 0-2 (3): #0  look (cell=..., number=..., ";
    done.expect_part("frame", frame);
    done.expect_part("frame", "number: 7 on ranks 0-1 (2); 8 on rank 2\n");
}

#[test]
fn continue_n_counts_hits_and_finish_joins_addresses() {
    let place = Place::new();
    let program = place.compile("returns", Compiler::C);
    let done = Sdm::run(&place, 3)
        .lines(&["break make", "continue", "continue 100", "print number"])
        .lines(&["info breakpoints", "finish"])
        .program(&program, &[])
        .finish()
        .code(0);
    done.expect("print number", "ranks 0-2 (3): 100\n");
    done.expect_part("info breakpoints", "101 times");
    let returned = done.answer("finish");
    assert_eq!(returned.matches("Value returned: ").count(), 1, "{done}");
    done.expect_part("finish", "Value returned: 0x");
    done.expect_part("finish", " ... (3 distinct addresses)\n");
}

/// gdb names only one of the watchpoints that it removes in its report of the stop.
#[test]
fn watchpoints_that_gdb_removed_are_not_listed() {
    let place = Place::new();
    let program = place.compile("returns", Compiler::C);
    let done = Sdm::run(&place, 3)
        .lines(&["break make", "continue", "delete 1"])
        .lines(&["watch made", "watch number", "[0-2] continue"])
        .lines(&["[0-1] continue", "info breakpoints", "[2] continue"])
        .lines(&["info watchpoints"])
        .program(&program, &[])
        .finish()
        .code(0);
    done.expect_part("[0-1] continue", "was removed: the frame has returned");
    let listed = done.answer("info breakpoints");
    assert_eq!(listed.matches("rank 2: watch ").count(), 2, "{done}");
    done.expect("info watchpoints", "No watchpoints.\n");
}

/// `stats` also shows the values themselves.
#[test]
fn stats_refuses_and_names_values_that_are_no_numbers() {
    const ROWS: [(&str, &str); 5] = [
        ("color", "Color::Red"),
        ("flags", "(A | C)"),
        ("phase", "{_M_value = 1 + -1i}"),
        ("name", "\"a, {b\\\"\""),
        ("either", "{whole = 1, part = 1.40129846e-45}"),
    ];
    let place = Place::new();
    let program = place.compile("sorts", Compiler::Cxx);
    let run = |lines: &[String], code| {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        Sdm::run(&place, 2)
            .args(["--launcher", "local"])
            .lines(&["[1] set var odd = 1", "break look", "continue"])
            .lines(&lines)
            .program(&program, &[])
            .finish()
            .code(code)
    };
    let stats = ROWS.map(|(expression, _)| format!("stats {expression}"));
    for ((expression, odd), line) in ROWS.iter().zip(&stats) {
        let done = run(std::slice::from_ref(line), 123);
        done.expect_part(line, &format!("rank 1: {odd}\n"));
        assert!(!done.answer(line).contains("min "), "{line}: {done}");
        let refused = format!("stats: `{expression}` has no numeric value on ranks 0-1 (2)\n");
        done.expect_part(line, &refused);
    }
    let parts = "  ask for its parts: `$_creal(phase._M_value)`, and `$_cimag` likewise\n";
    run(&["stats phase".into()], 123).expect_part("stats phase", parts);
    let wide = "stats beyond";
    let note = "  integers of more than 64 bits are not counted; `compare` and `outliers` show them exactly\n";
    run(&[wide.into()], 123).expect_part(wide, note);
    let real = run(&["stats $_creal(phase._M_value)".into()], 0);
    assert!(
        real.out.contains("\n  min     1 on ranks 0-1 (2)\n"),
        "{real}"
    );
    for expression in ["flags", "phase"] {
        let refused = format!(": `{expression}` has no numeric value\n");
        for line in [
            format!("plot {expression}"),
            format!("export {expression} no.csv"),
        ] {
            run(std::slice::from_ref(&line), 123).expect_part(&line, &refused);
        }
    }
    assert!(!place.path().join("no.csv").exists());
}

#[test]
fn outliers_shows_how_cut_values_differ() {
    let place = Place::new();
    let tails = place.compile("tails", Compiler::Cxx);
    let lines = ["text", "bytes", "rows", "map"].map(|name| format!("outliers {name}"));
    let done = Sdm::run(&place, 3)
        .args(["--launcher", "local"])
        .lines(&["[1] set var rank = 1", "break look", "continue"])
        .lines(&[&lines[0], &lines[1], &lines[2], "up", &lines[3]])
        .program(&tails, &[])
        .finish()
        .code(0);
    for (line, differs) in lines.iter().zip([
        "rank 1: 'x' <repeats 5999 times>, \"1\"  <-- 1 of 3\n",
        "'c' <repeats 19998 times>, \"1\"  <-- 1 of 3\n",
        "first rows[99][99]: 1, not 0  <-- 1 of 3\n",
        "first map[499]: 1, not 0  <-- 1 of 3\n",
    ]) {
        done.expect_part(line, "2 distinct values");
        done.expect_part(line, differs);
    }
}

#[test]
fn info_locals_shows_values_that_differ_only_at_their_end() {
    let place = Place::new();
    let tails = place.compile("tails", Compiler::Cxx);
    let done = Sdm::run(&place, 2)
        .lines(&["[1] set var rank = 1", "break look", "continue"])
        .lines(&["info args", "up", "info locals"])
        .program(&tails, &[])
        .finish()
        .code(0);
    let arguments = done.answer("info args");
    let locals = done.answer("info locals");
    let arguments = ["text", "bytes", "rows"].map(|name| (name, &arguments));
    let locals = [
        "number", "text", "bytes", "few", "many", "words", "rows", "map", "list",
    ]
    .map(|name| (name, &locals));
    for (name, listed) in arguments.into_iter().chain(locals) {
        let begins = format!("  {name}: ");
        let mut lines = listed.lines().filter(|line| line.starts_with(&begins));
        let is_split = lines.any(|line| line.contains(" on rank 0; "));
        assert!(is_split, "{name}: {listed}");
    }
    done.expect_part("info locals", "\n  same = ");
}
