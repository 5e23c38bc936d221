//! How gdb is used, where not as usual.

use std::fs;
use std::path::Path;

use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::Sdm;

#[test]
fn a_wrapper_and_settings_reach_every_gdb() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let done = Sdm::run(&place, 2)
        .args(["--wrapper", "nice -n 0 env BOUND='to 1'"])
        .args(["--gdb-setting", "set print address off", "--no-holds"])
        .lines(&["print (char *) getenv (\"BOUND\")", "continue"])
        .program(&work, &["exit"])
        .finish()
        .code(0);
    done.expect_part(
        "print (char *) getenv (\"BOUND\")",
        "ranks 0-1 (2): \"to 1\"\n",
    );
    done.expect_part("continue", "ranks 0-1 (2): exited normally\n");
}

/// Makes a program's debug strings look as large as memory is nowhere.
fn blow_up(program: &Path) {
    let mut bytes = fs::read(program).expect("it was compiled");
    let number = |at: usize, size: usize| {
        let part = bytes[at..at + size].iter().rev();
        part.fold(0, |number, byte| number << 8 | usize::from(*byte))
    };
    let (table, size) = (number(0x28, 8), number(0x3a, 2));
    let (count, names) = (number(0x3c, 2), number(0x3e, 2));
    let names = number(table + names * size + 0x18, 8);
    let header = (0..count).map(|index| table + index * size).find(|header| {
        let name = names + number(*header, 4);
        bytes[name..].starts_with(b".debug_str\0")
    });
    let at = header.expect("it has debug information") + 0x20;
    bytes[at..at + 8].copy_from_slice(&(1_u64 << 42).to_le_bytes());
    fs::write(program, bytes).expect("it is ours");
}

#[test]
fn more_gdbs_than_memory_are_not_started_but_by_force() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    blow_up(&work);
    let run = |options: &[&str]| {
        let run = Sdm::run(&place, 5).args(options).lines(&["continue"]);
        run.program(&work, &[]).finish()
    };
    let refused = run(&[]).code(124);
    let said = "5 gdbs would need about 51200 GB of memory, and ";
    assert!(
        refused.err.contains(said) || refused.out.contains(said),
        "{refused}"
    );
    assert!(!refused.out.contains("total 6"), "{refused}");
    // gdb then makes of it what it can.
    let forced = run(&["--force"]).code(0);
    assert!(forced.out.contains("total 6\n"), "{forced}");
}
