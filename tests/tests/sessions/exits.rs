//! Exit codes of `sdm`, and its messages at the end.

use std::ffi::OsStr;
use std::fs;
use std::process::{Command, Stdio};

use sdm_tests::ordinary::{give, lower};
use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::Sdm;

#[test]
fn program_ended_by_a_signal_gives_exit_code_128_plus_number() {
    let place = Place::new();
    let raises = place.compile("raises", Compiler::C);
    // gdb does not know 16, which is SIGSTKFLT; from 32 on they have numbers only.
    for (number, name) in [
        (11, "SIGSEGV"),
        (16, "SIGSTKFLT"),
        (34, "SIG34"),
        (64, "SIG64"),
    ] {
        let done = Sdm::run(&place, 1).args(["--batch", "--no-report"]);
        let done = done.program(&raises, &[&number.to_string()]).finish();
        let done = done.code(128 + number);
        assert!(done.out.contains(&format!("signal {name}")), "{done}");
    }
    // The same of a program that gdb has left.
    let go = place.path().join("go");
    let done = Sdm::run(&place, 1).lines(&["detach"]).talk();
    let running = done
        .program(&raises, &["34", go.to_str().expect("text")])
        .spawn();
    running.out.wait(0, "sdm waits until");
    fs::write(&go, "").expect("a file");
    let done = running.finish();
    let end = "rank 0: terminated by signal SIG34\n";
    assert!(done.out.contains(end), "{done}");
}

#[test]
fn script_has_the_exit_code_of_a_batch() {
    let place = Place::new();
    let raises = place.compile("raises", Compiler::C);
    let script = place.path().join("script");
    fs::write(&script, "continue\n").expect("a file");
    let crashed = "session ended: ranks 0-1 (2): received signal SIGSEGV";
    let with = |lines: &[&str], signal: &str| {
        let sdm = Sdm::run(&place, 2).lines(lines);
        sdm.program(&raises, &[signal]).finish()
    };
    let done = with(&["continue"], "11").code(139);
    assert!(done.out.contains(crashed), "{done}");
    for (lines, code) in [
        // The user has taken the program past its crash.
        (["continue", "signal 0"], 0),
        (["continue", "kill"], 0),
        (["continue", "quit"], 0),
        (["break main", "print 1"], 0),
        (["continue", "no_such_command"], 123),
    ] {
        let _ = with(&lines, "11").code(code);
    }
    for sdm in [
        Sdm::run(&place, 2).reads(&script),
        Sdm::run(&place, 2).args([OsStr::new("-x"), script.as_os_str()]),
    ] {
        let _ = sdm.program(&raises, &["6"]).finish().code(134);
    }
}

#[test]
fn failed_write_to_standard_output_is_reported() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let said = "sdm: cannot write to standard output: ";
    for (limit, to, why) in [
        ("unlimited", "/dev/full", "No space left on device"),
        ("0", "output", "File too large"),
        ("unlimited", "&-", "Bad file descriptor"),
    ] {
        let script = format!("ulimit -c 0; ulimit -f {limit}; exec \"$@\" >{to}");
        let prefix = ["/bin/sh", "-c", &script, "sh"];
        for options in [&["-c", "continue"][..], &["-c", "continue", "--json"]] {
            let done = Sdm::behind(&prefix, &place, 2).args(options);
            let done = done.program(&work, &[]).finish().code(125);
            assert_eq!(done.err.matches(said).count(), 1, "{to}: {done}");
            assert!(done.err.contains(why), "{to}: {done}");
        }
    }
    let done = Sdm::new(&place, "settings").args(["run"]);
    let done = done.writes("/dev/full").finish().code(125);
    assert!(done.err.contains(said), "{done}");
    let done = Sdm::new(&place, "--help").writes("/dev/full").finish();
    assert!(done.code(125).err.contains(said));
}

#[test]
fn sdm_with_closed_output_exits_as_by_sigpipe() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    for verb in [
        &["run", "--batch", "--no-report", "-n", "1", "--"][..],
        &["--help"],
    ] {
        let done = Sdm::new(&place, verb[0]).args(&verb[1..]).unread();
        let done = match verb.last() {
            Some(&"--") => done.args([&work]),
            _ => done,
        };
        let done = done.finish().code(141);
        assert!(!done.err.contains("write to standard output"), "{done}");
    }
}

/// A file that cannot be written is reported, also by the exit code, and no partial file is left.
#[test]
fn full_disk_leaves_no_empty_output_file() {
    let (place, elsewhere) = (Place::new(), Place::new());
    let work = elsewhere.compile("work", Compiler::C);
    // A full disk has room only for an empty file.
    let prefix = [
        "/bin/sh",
        "-c",
        "ulimit -c 0; ulimit -f 0; exec \"$@\"",
        "sh",
    ];
    let folder = elsewhere.path().join("full");
    fs::create_dir(&folder).expect("a folder");
    give(&folder);
    let path = |name: &str| {
        let path = folder.join(name);
        path.to_str().expect("text").to_owned()
    };
    for (words, option) in [
        (&["diagnose", "--samples", "2"][..], "--dot"),
        (&["diagnose", "--samples", "2"], "--observations"),
        (&["stacks", "--for", "1"], "--flame"),
        (&["stacks", "--for", "1"], "--speedscope"),
    ] {
        let mut process = Command::new(&work);
        process.arg("echo").stdin(Stdio::piped());
        let mut process = lower(process.stdout(Stdio::null())).spawn();
        let process = process.as_mut().expect("it was compiled");
        let sdm = Sdm::wrapped(&prefix, &place, words[0]).args(&words[1..]);
        let sdm = sdm.args([option, &path(option)]);
        let done = sdm.args([process.id().to_string()]).finish().code(125);
        assert!(done.err.contains("File too large"), "{option}: {done}");
        drop(process.stdin.take());
        assert_eq!(process.wait().expect("it is a child").code(), Some(0));
    }
    let report = path("report");
    let sdm = Sdm::behind(&prefix, &place, 1).args(["--batch", "--report", &report]);
    let done = sdm.program(&work, &[]).finish().code(125);
    assert!(done.err.contains("no report: "), "{done}");
    let left = fs::read_dir(&folder).expect("a folder");
    let left: Vec<_> = left.map(|it| it.expect("an entry").file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
}
