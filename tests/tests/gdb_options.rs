//! How gdb is used, where not as usual.

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
