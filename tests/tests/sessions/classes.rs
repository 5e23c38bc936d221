//! Pointers, allocatable components and polymorphic objects of Fortran, and owning pointers of C++: their objects, not
//! their addresses.

use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::Sdm;

#[test]
fn fortran_objects_are_compared_by_what_they_hold() {
    let place = Place::new();
    let program = place.compile("classes", Compiler::Fortran);
    let rows = [
        (
            "round",
            "1 of 3 elements differ, first round%_data%radius: 3.5, not 2.5",
        ),
        ("other", "3 of 4 elements differ, first other%_data%side: "),
        ("some", "1 of 2 elements differ, first some%_data: 4, not 3"),
        (
            "all",
            "1 of 5 elements differ, first all%_data(2)%shape%id: 8, not 7",
        ),
        (
            "own",
            "2 of 9 elements differ, first own%what%_data%shape%id: 6, not 5",
        ),
        (
            "nodes",
            "1 of 16 elements differ, first nodes(2)%heat: 3, not 2",
        ),
        ("nodes(1)", "the same on ranks 0-2 (3)"),
        ("heat", "rank 1: 3.5"),
        ("label", "rank 1: 'odds'"),
        ("own%label", "rank 1: 'odds'"),
        (
            "numbers",
            "1 of 4 elements differ, first numbers%_data(3): 4, not 3",
        ),
        (
            "back",
            "1 of 3 elements differ, first back%_data(1): 5, not 4",
        ),
        (
            "grid",
            "1 of 7 elements differ, first grid%_data(2,3): 3, not 2",
        ),
        (
            "words",
            "1 of 3 elements differ, first words%_data(2): 'six', not 'two'",
        ),
        ("count", "rank 1: 5"),
    ];
    let lines = rows.map(|(name, _)| format!("compare {name}"));
    // gdb 18 stops at the beginning in a scope without `odd`.
    let done = Sdm::run(&place, 3)
        .lines(&["[1] set var classes::odd = 1", "break look", "continue"])
        .lines(&lines.each_ref().map(String::as_str))
        .program(&program, &[])
        .finish()
        .code(0);
    for ((_, part), line) in rows.iter().zip(&lines) {
        done.expect_part(line, part);
    }
}

/// gdb 13 dies of an array of class(*), and gdb 18 does not read its elements.
#[test]
fn fortran_objects_are_shown_by_what_they_hold() {
    let place = Place::new();
    let program = place.compile("classes", Compiler::Fortran);
    let lines = [
        "info args",
        "outliers count",
        "stats heat",
        "print other",
        "print &heat",
        "display label",
        "print heat",
    ];
    let done = Sdm::run(&place, 3)
        .lines(&["[1] set var classes::odd = 1", "break look", "continue"])
        .lines(&lines)
        .program(&program, &[])
        .finish()
        .code(0);
    for (line, part) in [
        ("info args", "count: 4 on ranks 0,2 (2); 5 on rank 1"),
        (
            "info args",
            "numbers: ( _data = (1, 2, 3), _vptr = <__classes_MOD___vtab_INTEGER_4_> ) on ranks 0,2 (2); ( _data = (1, 2, 4), ",
        ),
        ("outliers count", "rank 1: 5"),
        ("stats heat", "max     3.5 on rank 1"),
        (
            "print other",
            "rank 1: ( _data = ( shape = ( id = 0 ), side = 0 ), _vptr = <",
        ),
        (
            "print &heat",
            "(PTR TO -> ( PTR TO -> ( real(kind=8) ) )) 0x",
        ),
        ("display label", "rank 1: 1: label = 'odds'"),
        ("print heat", "ranks 0,2 (2): 2.5"),
    ] {
        done.expect_part(line, part);
    }
    // A list in a circle is not followed for ever, and not taken for equal.
    let done = Sdm::run(&place, 3)
        .lines(&[
            "[1] set var classes::odd = 1",
            "break look",
            "continue",
            "compare list",
        ])
        .program(&program, &[])
        .finish()
        .code(123);
    done.expect_part("compare list", "first list%next%n: 7, not 6");
    done.expect_part("compare list", "which is not compared: <not followed>");
}

#[test]
fn owning_pointers_are_compared_by_their_objects() {
    let place = Place::new();
    let program = place.compile("owners", Compiler::Cxx);
    let run = |lines: &[&str], code| {
        let start = ["[1] set var odd = 1", "break look", "continue", "up"];
        let run = Sdm::run(&place, 3).lines(&start).lines(lines);
        run.program(&program, &[]).finish().code(code)
    };
    let rows = [
        (
            "own",
            "1 of 2 elements differ, first own.get().id: 8, not 7",
        ),
        (
            "shared",
            "1 of 2 elements differ, first shared.get().id: 9, not 8",
        ),
        ("base", "first base.get().more: 3, not 2"),
        ("same", "the same on ranks 0-2 (3)"),
        ("none", "the same on ranks 0-2 (3)"),
        ("list", "first list.next.get().n: 6, not 5"),
        ("cells", "first cells[1].get().id: 3, not 2"),
    ];
    let lines = rows.map(|(name, _)| format!("compare {name}"));
    let done = run(&lines.each_ref().map(String::as_str), 0);
    for ((_, part), line) in rows.iter().zip(&lines) {
        done.expect_part(line, part);
    }
    // Of an array only the address of the first element is known.
    let line = "compare several";
    let part = "`several` has no value: std::unique_ptr<int []> = {get() = <not followed>}";
    run(&[line], 123).expect_part(line, part);
}
