//! Pointers, allocatable components and polymorphic objects of Fortran, and owning pointers of C++: their objects, not
//! their addresses.

use sdm_tests::editor::Editor;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::Sdm;
use serde_json::{Value, json};

#[test]
fn fortran_polymorphic_objects_are_compared_by_content() {
    let place = Place::new();
    let program = place.compile("classes", Compiler::Fortran);
    let rows = [
        (
            "round",
            "1 of 3 elements differs, first round%_data%radius: 3.5, not 2.5",
        ),
        ("other", "3 of 4 elements differ, first other%_data%side: "),
        (
            "some",
            "1 of 2 elements differs, first some%_data: 4, not 3",
        ),
        (
            "all",
            "1 of 5 elements differs, first all%_data(2)%shape%id: 8, not 7",
        ),
        (
            "own",
            "2 of 9 elements differ, first own%what%_data%shape%id: 6, not 5",
        ),
        (
            "nodes",
            "1 of 16 elements differs, first nodes(2)%heat: 3, not 2",
        ),
        ("nodes(1)", "the same on ranks 0-2 (3)"),
        ("heat", "rank 1: 3.5"),
        ("label", "rank 1: 'odds'"),
        ("own%label", "rank 1: 'odds'"),
        (
            "numbers",
            "1 of 4 elements differs, first numbers%_data(3): 4, not 3",
        ),
        (
            "back",
            "1 of 3 elements differs, first back%_data(1): 5, not 4",
        ),
        (
            "grid",
            "1 of 7 elements differs, first grid%_data(2,3): 3, not 2",
        ),
        (
            "words",
            "1 of 3 elements differs, first words%_data(2): 'six', not 'two'",
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
fn fortran_polymorphic_objects_are_shown_by_content() {
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
fn display_tells_which_ranks_have_no_value() {
    let place = Place::new();
    let program = place.compile("owners", Compiler::Cxx);
    let lines = ["[1] set var odd = 1", "display 8/odd"];
    let done = Sdm::run(&place, 3).lines(&lines).program(&program, &[]);
    let said = "rank 1: 1: 8/odd = 8\nranks 0,2 (2): Division by zero\n";
    done.finish().code(123).expect_part("display 8/odd", said);
}

#[test]
fn smart_pointers_are_compared_by_their_objects() {
    let place = Place::new();
    let program = place.compile("owners", Compiler::Cxx);
    let run = |lines: &[&str], code| {
        let start = ["[1] set var odd = 1", "break look", "continue", "up"];
        let run = Sdm::run(&place, 3).lines(&start).lines(lines);
        run.program(&program, &[]).finish().code(code)
    };
    let rows = [
        ("own", "1 of 2 elements differs, first own->id: 8, not 7"),
        (
            "shared",
            "1 of 2 elements differs, first shared->id: 9, not 8",
        ),
        ("base", "first base->more: 3, not 2"),
        ("same", "the same on ranks 0-2 (3)"),
        ("none", "the same on ranks 0-2 (3)"),
        (
            "wrapped",
            "rank 1: std::reference_wrapper<int> = {get() = 4}",
        ),
        ("list", "first list.next->n: 6, not 5"),
        ("cells", "first cells[1]->id: 3, not 2"),
        ("*&list", "first (*&list).next->n: 6, not 5"),
    ];
    let lines = rows.map(|(name, _)| format!("compare {name}"));
    let done = run(&lines.each_ref().map(String::as_str), 0);
    for ((_, part), line) in rows.iter().zip(&lines) {
        done.expect_part(line, part);
    }
    run(&["[@if:(own->id == 8)] print shared->id"], 0)
        .expect("[@if:(own->id == 8)] print shared->id", "rank 1: 9\n");
    let line = "[@if:(none)] print 1";
    let part = "@if:(none): `std::unique_ptr<Cell> = {get() = 0x0}` is neither true nor false";
    run(&[line], 123).expect_part(line, part);
    // Of an array only the address of the first element is known.
    let line = "compare several";
    let part = "`several` has no value: std::unique_ptr<int []> = {get() = <not followed>}";
    run(&[line], 123).expect_part(line, part);
}

#[test]
fn editor_assigns_to_the_targets_of_fortran_pointers() {
    let place = Place::new();
    let program = place.compile("sorts", Compiler::Fortran);
    let mut editor = Editor::new(&place);
    editor.launch(&json!({"program": program, "ranks": 1, "launcher": "local"}));
    let breakpoints = json!({"breakpoints": [{"name": "look", "condition": "count == 4"}]});
    editor.ask("setFunctionBreakpoints", &breakpoints);
    editor.ask("configurationDone", &Value::Null);
    let stopped = editor.event("stopped");
    let frame = editor.frames(&stopped["threadId"])[0]["id"].clone();
    let scopes = editor.ask("scopes", &json!({"frameId": frame}));
    let arguments = scopes["scopes"][0].clone();
    let set = |editor: &mut Editor, list: &Value, name: &str, value: &str| {
        let set = json!({"variablesReference": list, "name": name, "value": value});
        editor.ask("setVariable", &set)["value"].clone()
    };
    let evaluate = |editor: &mut Editor, expression: &str| {
        let asked = json!({"expression": expression, "frameId": frame, "context": "watch"});
        editor.ask("evaluate", &asked)["result"].clone()
    };
    let reference = &arguments["variablesReference"];
    assert_eq!(set(&mut editor, reference, "count", "6"), "6");
    assert_eq!(evaluate(&mut editor, "more%count * 2"), "12");
    let shown = editor.below(&arguments);
    let more = shown.iter().find(|one| one["name"] == "more");
    let more = more.expect("a variable");
    let members = editor.below(more);
    for (name, before, value, expression) in [
        ("count", "6", "count + 1", "count"),
        ("heat", "2.5", "4.5", "more%heat"),
    ] {
        let member = members.iter().find(|one| one["name"] == name);
        assert_eq!(member.expect(name)["value"], before);
        let result = set(&mut editor, &more["variablesReference"], name, value);
        assert_eq!(evaluate(&mut editor, expression), result);
        assert_ne!(result, before);
    }
    assert_eq!(evaluate(&mut editor, "count"), "7");
    let label = members.iter().find(|one| one["name"] == "label");
    assert_eq!(label.expect("label")["value"], "'even'");
    editor.disconnect();
}
