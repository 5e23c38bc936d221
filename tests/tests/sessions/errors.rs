//! Errors are reported clearly: in batch mode with an exit code, otherwise with a live prompt.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use sdm_tests::binaries;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::{Done, Sdm};
use sdm_tests::terminal::Terminal;

fn said(done: &Done, words: &str) {
    let said = done.out.contains(words) || done.err.contains(words);
    assert!(said, "no {words:?} in {done}");
}

/// Command lines that start nothing: options, the program, the exit code and a part of the message.
const NOT_STARTED: &[(&str, &str, i32, &str)] = &[
    (
        "-n 2",
        "./nothere",
        127,
        "ranks 0-1 (2): ./nothere: no such file\n",
    ),
    ("-n 2", "nothere", 127, "nothere: not found on PATH\n"),
    (
        "-np 2",
        "work",
        127,
        "ranks 0-1 (2): work: not found on PATH\n  to run the program in this folder, write ./work\n",
    ),
    (
        "-n 30000 --launcher mpirun",
        "./work",
        124,
        "this host allows too few processes for ",
    ),
    (
        "-n 7500 --launcher mpirun",
        "./work",
        124,
        "at least 150000 MiB of memory are needed on this host, but MemAvailable is ",
    ),
    (
        "-n 7500 --launcher mpiexec",
        "./work",
        124,
        "at least 150000 MiB of memory are needed on this host, but MemAvailable is ",
    ),
    (
        "-n 2",
        "./text",
        126,
        "./text: not executable\n  if this file is a program, run chmod +x on it",
    ),
    ("-n 2", "./fifo", 126, "./fifo: is a FIFO of "),
    ("-n 2", "./", 126, "./: is a directory\n"),
    (
        "-n 2",
        "./script",
        124,
        "./script is a script; debug its interpreter",
    ),
    (
        "-n 2 --directory /nowhere",
        "./work",
        126,
        "directory /nowhere: no such file",
    ),
    (
        "-n 2 --gdb /nowhere/gdb",
        "./work",
        124,
        "/nowhere/gdb: no such gdb",
    ),
    ("-n 0", "./work", 2, "invalid value '0'"),
    (
        "-n 2 --stdin 1-2",
        "./work",
        2,
        "--stdin 1-2: the job has only ranks 0-1",
    ),
    ("-n 2 -x nofile", "./work", 2, "read nofile: No such file"),
    (
        "-n 2 --launcher mpirun",
        "./nothere",
        127,
        "ranks 0-1 (2): ./nothere: no such file\n",
    ),
    (
        "-n 2 --launcher mpirun --launcher-option=--what",
        "./work",
        124,
        "option \"--what\"",
    ),
    (
        "-n 2 --launcher mpiexec --launcher-option=-what",
        "./work",
        124,
        "argument what\n",
    ),
];

#[test]
fn failed_start_names_its_reason() {
    let place = Place::new();
    let _work = place.compile("work", Compiler::C);
    let script = place.path().join("script");
    fs::write(&script, "#!/bin/sh\nexit\n").expect("a file");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("it is ours");
    fs::write(place.path().join("text"), "text").expect("a file");
    let fifo = Command::new("mkfifo")
        .arg(place.path().join("fifo"))
        .status();
    assert!(fifo.expect("mkfifo runs").success());
    for (options, program, code, words) in NOT_STARTED {
        let done = Sdm::new(&place, "run")
            .args(options.split(' '))
            .lines(&["bt"])
            .program(program.as_ref(), &[])
            .finish()
            .code(*code);
        said(&done, words);
        assert!(!done.out.contains("(sdm) bt"), "{done}");
    }
}

/// A name of several lines is shown on one line, so that no part of it can pass for a message of SDM.
#[test]
fn line_end_in_a_name_is_escaped() {
    const FORGED: &str = "x\nrank 7: all fine";
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    fs::write(place.path().join(FORGED), "text").expect("a file");
    let work = work.to_str().expect("it is text");
    let missing = format!("./no{FORGED}");
    let there = format!("./{FORGED}");
    for (verb, words) in [
        ("core", vec![work, FORGED]),
        ("core", vec![work, &missing]),
        ("core", vec![&missing, FORGED]),
        ("run", vec!["--batch", "-n", "2", "--", &missing]),
        ("run", vec!["--batch", "-n", "2", "--", &there]),
        ("run", vec!["--batch", "-x", &missing, "--", work]),
        ("run", vec!["--batch", "--hostfile", &missing, "--", work]),
        (
            "run",
            vec![
                "--batch",
                "--gdb-setting",
                "set width 0",
                "--gdb",
                &missing,
                "--",
                work,
            ],
        ),
        ("run", vec!["--batch", "--directory", &missing, "--", work]),
        ("run", vec!["--batch", "-c", FORGED, "--", work]),
        ("run", vec!["--topology", FORGED, "--", work]),
        ("run", vec!["--ex\nrank 7: all fine", "--", work]),
        ("run", vec!["--launcher", FORGED, "--", work]),
        ("emulate", vec!["--scenario", &missing]),
        ("stacks", vec![FORGED]),
    ] {
        let done = Sdm::new(&place, verb).args(words.iter().copied()).finish();
        assert_ne!(done.code, Some(0), "{verb} {words:?}: {done}");
        let said = format!("{}{}", done.out, done.err);
        let forged = said.lines().any(|line| line.starts_with("rank 7"));
        assert!(
            !forged && said.contains("x\\x0arank 7"),
            "{verb} {words:?}: {done}"
        );
    }
}

#[test]
fn missing_gdb_or_launcher_is_named() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let run = |launcher| {
        let run = Sdm::run(&place, 2).env("PATH", binaries::folder());
        let run = run.args(["--launcher", launcher]);
        run.program(&work, &[]).finish().code(124)
    };
    said(
        &run("local"),
        "gdb: no such gdb on this host\n  install gdb, or select one with --gdb",
    );
    said(
        &run("mpirun"),
        "launcher mpirun was not found: no mpirun.openmpi on PATH",
    );
    said(
        &run("mpiexec"),
        "launcher mpiexec was not found: no mpiexec.hydra on PATH",
    );
}

#[test]
fn program_without_main_stops_at_its_entry_point() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let strip = Command::new("strip").arg(&work).status();
    assert!(strip.expect("strip runs").success());
    let done = Sdm::run(&place, 2)
        .lines(&["bt", "stacks", "continue"])
        .program(&work, &[])
        .finish()
        .code(0);
    let held = "ranks 0-1 (2): at the entry point (gdb finds no main), work+0x";
    assert!(done.beginning().starts_with(held), "{done}");
    done.expect_part("bt", "ranks 0-1 (2):\n#0  work+0x");
    done.expect_part("stacks", "work+0x");
    done.expect(
        "continue",
        "[0-1] total 6\nranks 0-1 (2): exited normally\n",
    );
}

/// Commands that cannot be carried out, each with a part of the message.
const REFUSED: &[(&str, &str)] = &[
    (
        "frobnicate",
        "Undefined command: \"frobnicate\".  Try \"help\", or \"gdb frobnicate\" if gdb has it.\n  frobnicate\n  ^\n",
    ),
    (
        "[7] bt",
        "no such rank: 7 (this session has ranks 0-1)\n  [7] bt\n   ^\n",
    ),
    (
        "focus 1-9",
        "no such ranks: 2-9 (this session has ranks 0-1)\n  focus 1-9\n        ^\n",
    ),
    (
        "[1-0] bt",
        "expected a last rank not smaller than the first\n",
    ),
    ("[0 bt", "]"),
    (
        "break nowhere",
        "ranks 0-1 (2): Function \"nowhere\" not defined.\n",
    ),
    ("break work.c:9999", "line 9999 in file \"work.c\".\n"),
    ("delete 5", "No breakpoint number 5.\n"),
    (
        "print nothing",
        "ranks 0-1 (2): No symbol \"nothing\" in current context.\n",
    ),
    ("frame 77", "ranks 0-1 (2): no frame 77\n"),
    ("step -1", "expected a count of 1 or more, not `-1`\n"),
    ("send 1 x", "send: standard input is empty on rank 1\n"),
    ("source nofile", "nofile: No such file or directory"),
];

#[test]
fn failed_commands_end_a_script_but_not_the_prompt() {
    let place = Place::new();
    let _work = place.compile("work", Compiler::C);
    for (line, words) in &REFUSED[..2] {
        let done = Sdm::run(&place, 2)
            .lines(&[line, "print 1"])
            .program("./work".as_ref(), &[]);
        let done = done.finish().code(123);
        done.expect_part(line, words);
        done.expect_part(line, &format!("session ended: `{line}` failed (-c 1)\n"));
    }
    let mut terminal = Terminal::start(&place, &["run", "-n", "2", "--", "./work"], 200);
    terminal.wait("(sdm) ");
    for (line, words) in REFUSED {
        if line.starts_with("break ") {
            terminal.keys(&format!("{line}\n"));
            terminal.wait(words);
            terminal.wait("(y or [n]) ");
            terminal.keys("n\n");
            terminal.wait("(sdm) ");
            continue;
        }
        terminal.ask(line, words);
    }
    terminal.ask("print 40 + 2", "ranks 0-1 (2): 42\n");
    terminal.keys("quit\ny\n");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
}

#[test]
fn prompt_stays_after_a_repairable_failed_start() {
    let place = Place::new();
    let _work = place.compile("work", Compiler::C);
    let gdb = place.path().join("mygdb");
    let words = ["run", "-n", "2", "--gdb", "./mygdb", "--", "./work"];
    let mut terminal = Terminal::start(&place, &words, 100);
    terminal.wait("./mygdb: no such gdb on this host\n");
    terminal.wait("(sdm) ");
    terminal.ask("print 1", "ranks 0-1 (2): not started\n");
    std::os::unix::fs::symlink("/usr/bin/gdb", gdb).expect("a link");
    terminal.ask("start", "at main ()");
    let held = "ranks 0-1 (2): at main ()";
    assert!(terminal.united().contains(held), "{}", terminal.text());
    terminal.keys("quit\ny\n");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
}

#[test]
fn missing_program_ends_sdm_without_a_prompt() {
    let place = Place::new();
    fs::write(place.path().join("text"), "text").expect("a file");
    for (program, words, expect) in [
        ("./nothere", "ranks 0-1 (2): ./nothere: no such file\n", 127),
        ("./text", "./text: not executable\n", 126),
    ] {
        let words_of = ["run", "-n", "2", "--", program];
        let mut terminal = Terminal::start(&place, &words_of, 100);
        terminal.wait(words);
        let (code, screen) = terminal.finish();
        assert_eq!(code, expect, "{screen}");
        let end = "session ended: the program could not be started";
        assert!(
            screen.contains(end) && !screen.contains("(sdm)"),
            "{screen}"
        );
    }
}

#[test]
fn environment_variable_breaking_gdb_python_is_named() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let folder = place.path().join("modules");
    fs::create_dir_all(folder.join("encodings")).expect("a folder");
    fs::write(folder.join("encodings/__init__.py"), "raise OSError\n").expect("a file");
    for (name, value) in [
        ("PYTHONHOME", "/nowhere".as_ref()),
        ("PYTHONPATH", folder.as_path()),
    ] {
        // Some gdbs have a Python of their own, which ignores both variables.
        let mut gdb = Command::new("gdb");
        gdb.args(["-nx", "--batch", "-ex", "python print(1)"]);
        let plain = gdb.env(name, value).output().expect("gdb runs");
        let heeds = !plain.stdout.starts_with(b"1");
        let run = Sdm::run(&place, 2).env(name, value).lines(&["bt"]);
        let done = run.program(&work, &[]).finish();
        let done = done.code(if heeds { 124 } else { 0 });
        if !heeds {
            continue;
        }
        said(&done, &format!("{name}={} ", value.display()));
    }
}

#[test]
fn command_line_arguments_are_escaped_in_messages() {
    let place = Place::new();
    for binary in ["sdm", "sdm-server", "sdm-master"] {
        let program = binaries::folder().join(binary);
        let mut terminal = Terminal::run(&place, &program, &["--a\x1b[2Jb"], 100);
        terminal.wait("For more information");
        let (code, screen) = terminal.finish();
        assert_eq!(code, 2, "{screen}");
        assert!(
            screen.contains("--a") && !screen.contains("\x1b[2J"),
            "{screen:?}"
        );
    }
    let done = Sdm::new(&place, "no\nsuch").finish().code(2);
    said(&done, "unrecognized subcommand 'no\\x0asuch'");
    let mut terminal = Terminal::start(&place, &["run", "--keep=a\nb", "--", "./work"], 100);
    terminal.wait("session 'a\\x0ab': a name has 1 to 40 letters");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 2, "{screen}");
    let done = Sdm::new(&place, "stacks")
        .args(["no\nsuch"])
        .finish()
        .code(2);
    said(&done, "none of your processes has the name `no\\x0asuch`");
}

/// All verbs of `sdm` but `help`, by its own help.
fn verbs(place: &Place) -> Vec<String> {
    let done = Sdm::new(place, "--help").finish().code(0);
    let (_, list) = done.out.split_once("Commands:\n").expect("a list");
    let (list, _) = list.split_once("\nOptions:").expect("options behind it");
    let words = list.lines().filter_map(|line| line.strip_prefix("  "));
    let words = words.filter(|line| !line.starts_with([' ']) && !line.starts_with("help "));
    let verbs: Vec<String> = words
        .filter_map(|line| line.split(' ').next().map(str::to_owned))
        .collect();
    assert!(
        verbs.len() > 20 && verbs.contains(&"run".to_owned()),
        "{verbs:?}"
    );
    verbs
}

#[test]
fn help_and_errors_show_no_rust_or_debug_text() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let work = work.to_str().expect("a path");
    for verb in verbs(&place) {
        for option in ["-h", "--help"] {
            let done = Sdm::new(&place, &verb).args([option]).finish().code(0);
            for mark in ["[`", "`]", "](", "Self::", "crate::", "sdm_", "(os error"] {
                assert!(
                    !done.out.contains(mark),
                    "{verb} {option} has {mark}: {done}"
                );
            }
        }
    }
    for words in [
        &["core", work, "nothing"][..],
        &["core", "./nothing", "nothing"],
        &["run", "-x", "nothing", work],
        &["run", "--launcher", "ssh", "--hostfile", "nothing", work],
        &["run", "--directory", "nothing", work],
        &["run", "--gdb", "./nothing", work],
        &["run", "-c", "source nothing", work],
        &["run", "-c", "load nothing", work],
        &["run", "-c", "cd nothing", work],
        &["run", "-c", "save nothing/file", work],
        &["run", "--batch", "--report", "nothing/report.html", work],
        &["emulate", "-n", "2", "--scenario", "nothing"],
        &["diagnose", "--from", "nothing"],
        &["attach", "./nothing"],
        &["stacks", "999999999"],
        &["resume", "nothing"],
        &["man", "/proc/nothing"],
        &["submit", "./nothing"],
        &["doctor", "--host", "nothing.invalid"],
    ] {
        let done = Sdm::new(&place, words[0]).args(&words[1..]).finish();
        assert!(
            !done.err.is_empty() || !done.out.is_empty(),
            "{words:?}: {done}"
        );
        let text = format!("{}{}", done.out, done.err);
        assert!(!text.contains("(os error"), "{words:?}: {done}");
    }
}
