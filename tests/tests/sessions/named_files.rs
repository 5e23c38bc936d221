//! Files that gdb's own commands write: each rank of a command has a file of its own, and answers name the user's file.

use std::fs;

use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::Sdm;

#[test]
fn each_rank_writes_the_file_of_its_own_name() {
    let place = Place::new();
    let program = place.compile("kinds", Compiler::C);
    let path = |name: &str| place.path().join(name);
    let log = path("log");
    let name_log = format!("gdb set logging file {}", log.display());
    let done = Sdm::run(&place, 2)
        .lines(&["break look", "continue", "[1] set var whole[1] = 258"])
        .lines(&["gdb dump value part whole[1]", "[1] gdb dump val one bytes"])
        .lines(&["gdb app val part bytes[29]", "gdb gcore core"])
        .lines(&["gdb set logging enabled on", "gdb set logging enabled off"])
        .lines(&[&name_log, "gdb set logg en", "gdb set logging enabled 1"])
        .lines(&["print whole[1]", "gdb set logging enabled 0"])
        .program(&program, &[])
        .finish()
        .code(0);
    for (rank, number) in [(0, 7_u64), (1, 258)] {
        let part = fs::read(path(&format!("part.{rank}"))).expect("the rank's own file");
        let expect = [&number.to_le_bytes()[..], &[255]].concat();
        assert_eq!(part, expect, "{rank}: {done}");
        assert!(path(&format!("core.{rank}")).exists(), "{rank}: {done}");
        let log = fs::read_to_string(path(&format!("log.{rank}"))).expect("the rank's own log");
        assert!(log.contains(&format!("= {number}")), "{rank}: {log}");
    }
    assert!(!path("part").exists() && !path("one.1").exists(), "{done}");
    assert_eq!(fs::read(path("one")).expect("of one rank").len(), 30);
    let united = done.united();
    assert!(!united.contains("/proc/"), "{united}");
    // The default name has the pid, as that of gdb's core files.
    done.expect_part("gdb set logging enabled off", "Done logging to ");
    let names = fs::read_dir(place.path()).expect("the folder is read");
    let names = names.map(|it| it.expect("it is read").file_name());
    let logs = names.filter(|name| name.to_string_lossy().starts_with("gdb.txt."));
    assert_eq!(logs.count(), 2, "{done}");
    for (line, part) in [
        ("gdb set logg en", "Copying output to "),
        ("gdb set logging enabled 1", "Already logging to "),
        ("gdb set logging enabled 0", "Done logging to "),
    ] {
        for rank in [0, 1] {
            let part = format!("{part}{}.{rank}.", log.display());
            done.expect_part(line, &part);
        }
    }
}
