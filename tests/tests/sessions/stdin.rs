//! Standard input of programs in sessions without a prompt: they read that of `sdm`.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::Sdm;
use sdm_tests::terminal::Terminal;

#[test]
fn stdin_and_its_end_reach_rank_0_or_the_chosen_ranks() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let words = place.path().join("words");
    fs::write(&words, "first\nsecond").expect("a file");
    for (options, readers) in [
        (&["--batch", "--no-report"][..], &[0][..]),
        (&["-c", "continue", "--stdin", "1-2"], &[1, 2]),
        (&["-c", "continue", "--stdin", "none"], &[]),
    ] {
        let done = Sdm::run(&place, 3).args(options).reads(&words);
        let done = done.program(&work, &["echo"]).finish().code(0);
        let united = done.united();
        for rank in 0..3 {
            let lines = if readers.contains(&rank) { 2 } else { 0 };
            let end = format!("end of input after {lines} lines\n");
            let said = united.lines().filter(|line| line.ends_with(end.trim_end()));
            let said: Vec<_> = said.collect();
            let by = said.iter().any(|line| {
                let who = line.split(']').next().unwrap_or_default();
                let set: sdm_idset::IdSet = who.trim_start_matches('[').parse().expect("a set");
                set.contains(sdm_idset::TaskId(rank))
            });
            assert!(by, "no {end:?} of rank {rank} in {done}");
        }
    }
    let done = Sdm::run(&place, 1).args(["--batch", "--no-report"]);
    let done = done.program(&work, &["echo"]).finish().code(0);
    assert!(
        done.out.contains("[0] end of input after 0 lines\n"),
        "{done}"
    );
}

#[test]
fn large_binary_input_is_delivered_despite_ended_ranks() {
    const BYTES: u64 = 12 << 20;
    let place = Place::new();
    let file = place.path().join("bytes");
    let random = File::open("/dev/urandom").expect("Linux has it");
    let mut bytes = File::create(&file).expect("a file");
    std::io::copy(&mut random.take(BYTES), &mut bytes).expect("room for it");
    let name = file.to_str().expect("text");
    let program = ["-", name, ":", "-n", "1", "/bin/true"];
    let done = Sdm::run(&place, 1)
        .args(["--batch", "--no-report", "--stdin", "all"])
        .reads(&file)
        .program(Path::new("/usr/bin/cmp"), &program)
        .finish()
        .code(0);
    assert!(!done.out.contains("differ"), "{done}");
    // A program need not read to the end.
    let done = Sdm::run(&place, 1)
        .args(["--batch", "--no-report"])
        .reads(&file)
        .program(Path::new("/usr/bin/head"), &["-c", "1"]);
    let _ = done.finish().code(0);
}

#[test]
fn script_with_send_replaces_standard_input() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let words = place.path().join("words");
    fs::write(&words, "not this\n").expect("a file");
    let sends = place.path().join("sends");
    fs::write(&sends, "send 0 this\n").expect("a file");
    let done = Sdm::run(&place, 1)
        .lines(&["continue &", "send 0 this", "send 0 --eof", "wait"])
        .reads(&words)
        .program(&work, &["echo"])
        .finish()
        .code(0);
    assert!(done.out.contains("[0] read this\n"), "{done}");
    let from_file = format!("source {}", sends.display());
    let done = Sdm::run(&place, 1).lines(&[&from_file]).reads(&words);
    let done = done.program(&work, &["echo"]).finish().code(123);
    let why = "send: the programs read the standard input of sdm directly\n";
    assert!(done.out.contains(why), "{done}");
}

#[test]
fn sdm_reads_the_terminal_only_while_in_the_foreground() {
    let place = Place::new();
    let go = place.path().join("go");
    let shell = ["--norc", "--noprofile", "-i"];
    let mut terminal = Terminal::run(&place, Path::new("/bin/bash"), &shell, 200);
    let script = "echo re''ady; until test -e go; do sleep 0.1; done; echo we''nt; exec cat";
    let line = format!("sdm run --batch --no-report -n 1 -- /bin/sh -c \"{script}\" &\n");
    terminal.keys(&line);
    terminal.wait("[0] ready");
    // A stopped rank would not show the following output.
    File::create(&go).expect("a file");
    terminal.wait("[0] went");
    terminal.keys("echo ty''ped\n");
    terminal.wait("typed");
    terminal.keys("fg\n");
    terminal.wait("sdm run");
    terminal.keys("for rank 0\n");
    terminal.wait("[0] for rank 0");
    terminal.keys("\x04");
    terminal.wait("exited normally");
    terminal.keys("exit 0\n");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
}
