//! Elements beyond the end of an array, and values that gdb cannot read.

use std::fs;

use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::{Done, Sdm};

/// Commands up to the line where the arrays are filled: with as many elements as the rank, or one more.
const FILLED: [&str; 5] = [
    "[1] set var rank = 1",
    "[2] set var rank = 2",
    "break look",
    "continue",
    "up",
];

fn run(place: &Place, line: &str, code: i32) -> Done {
    let program = place.compile("lengths", Compiler::Cxx);
    let run = Sdm::run(place, 3).lines(&FILLED).lines(&[line]);
    run.program(&program, &[]).finish().code(code)
}

#[test]
fn slice_beyond_the_end_is_refused_on_its_ranks() {
    let place = Place::new();
    let one = "rank 0: `automatic` has 1 element: none has the index 1";
    let stats = "automatic[0:1]: 4 numbers on ranks 1-2 (2)\n  min     6 on rank 1\n  max     7 on rank 2\n";
    let done = run(&place, "stats automatic[0:1]", 123);
    done.expect_part("stats automatic[0:1]", stats);
    done.expect_part("stats automatic[0:1]", one);
    run(&place, "compare automatic[0:1]", 123).expect_part("compare automatic[0:1]", one);
    for line in ["export grown[0:1] grown.csv", "compare grown[0:1]"] {
        let done = run(&place, line, 123);
        let none = "rank 0: `grown` has 0 elements: none has the index 1";
        done.expect_part(line, none);
        let few = "rank 1: `grown` has 1 element: none has the index 1";
        done.expect_part(line, few);
    }
    let table = fs::read_to_string(place.path().join("grown.csv")).expect("it was written");
    assert_eq!(table, "rank,[0],[1]\n2,7,7\n");
    for text in ["text", "seen_text", "wide"] {
        let line = format!("compare {text}[0:2]");
        let short = format!("rank 0: `{text}` has 2 elements: none has the index 2");
        run(&place, &line, 123).expect_part(&line, &short);
    }
    let short = "ranks 0-2 (3): `fixed` has 4 elements: none has the index 5";
    run(&place, "stats fixed[2:5]", 123).expect_part("stats fixed[2:5]", short);
    run(&place, "stats fixed[0:3]", 0).expect_part("stats fixed[0:3]", "12 numbers");
}

#[test]
fn unreadable_values_are_never_reported_as_equal() {
    let place = Place::new();
    let unread = "0x10 <error: Cannot access memory at address 0x10>";
    for line in ["compare lost", "outliers lost"] {
        let text = format!("ranks 0-2 (3): `lost` has no value: {unread}");
        let done = run(&place, line, 123);
        done.expect_part(line, &text);
        assert!(!done.answer(line).contains("the same"), "{done}");
    }
    let done = run(&place, "compare named", 123);
    let other = "1 of 2 elements differs, first named.id: 1, not 0";
    done.expect_part("compare named", other);
    let part = "`named` has a part without a value, which is not compared: <error: Cannot access";
    done.expect_part("compare named", part);
}
