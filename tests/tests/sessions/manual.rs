//! Sessions whose processes are started by hand or by a site's own launcher, and the choice of
//! a launcher where none is named.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use sdm_tests::place::{Compiler, MARK_VARIABLE, Place};
use sdm_tests::sdm::Sdm;

#[test]
fn printed_commands_start_a_session() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let sdm = Sdm::run(&place, 3)
        .args(["--launcher", "manual", "--port", "23400"])
        .env("XDG_RUNTIME_DIR", place.runtime())
        .lines(&["break twice", "continue", "print number"])
        .program(&work, &[])
        .spawn();
    let said = sdm.err.wait(0, "--id 2 --port 23402");
    let commands: Vec<&str> = said
        .lines()
        .map(str::trim_start)
        .filter(|line| line.contains("--handover"))
        .collect();
    let commands = &commands[commands.len() - 4..];
    let key = commands[0].split(' ').nth(2).expect("its file");
    let mode = fs::metadata(key).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{key}");
    let mut started: Vec<Child> = Vec::new();
    for (index, line) in commands.iter().enumerate() {
        let mut command = Command::new("/bin/sh");
        // One server gets the key on its standard input.
        let line = match index {
            3 => format!("exec {} <{key}", line.replace(key, "-")),
            _ => format!("exec {line}"),
        };
        command
            .args(["-c", &line])
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command.env(MARK_VARIABLE, place.mark());
        started.push(command.spawn().expect("a shell"));
    }
    let done = sdm.finish().code(0);
    done.expect_part(
        "continue",
        "ranks 0-2 (3): stopped at breakpoint 1, twice () at work.c:",
    );
    done.expect("print number", "ranks 0-2 (3): 0\n");
    for mut child in started {
        assert!(child.wait().expect("it ends").success());
    }
    assert!(!Path::new(key).exists(), "{key} stays");
}

/// No server is started: the missing ones are named, with the time waited.
#[test]
fn missing_servers_are_named_after_the_wait() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let done = Sdm::run(&place, 2)
        .args(["--launcher", "manual", "--start-wait", "1"])
        .env("XDG_RUNTIME_DIR", place.runtime())
        .program(&work, &[])
        .finish()
        .code(124);
    let said = "neither the master nor the servers of tasks 0-1 answered within 1s";
    assert!(done.err.contains(said), "{done}");
}

#[test]
fn site_specific_launcher_starts_a_session() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sdm-launch-example");
    fs::copy(example, place.path().join("sdm-launch-ours")).expect("a copy");
    let path = std::env::var("PATH").expect("a path");
    let path = format!("{}:{path}", place.path().display());
    let run = || {
        Sdm::run(&place, 3)
            .env("PATH", &path)
            .args(["--launcher", "ours"])
    };
    let done = run()
        .lines(&["break twice", "continue", "print number"])
        .program(&work, &[])
        .finish()
        .code(0);
    done.expect("print number", "ranks 0-2 (3): 0\n");
    let done = run()
        .args(["--launcher-option", "--no-such-option"])
        .program(&work, &[])
        .finish()
        .code(124);
    assert!(
        done.err
            .contains("ours exited with code 2 before all servers"),
        "{done}"
    );
    assert!(
        done.err.contains("unknown option --no-such-option"),
        "{done}"
    );
    let unknown = Sdm::run(&place, 1)
        .args(["--launcher", "nobodys"])
        .program(&work, &[]);
    let done = unknown.finish().code(124);
    assert!(done.err.contains("launcher nobodys: unknown"), "{done}");
}

#[test]
fn launcher_follows_from_the_linked_mpi() {
    for (compiler, said) in [
        (Compiler::OpenMpi, "[launcher] mpirun, since "),
        (Compiler::Mpich, "[launcher] mpiexec, since "),
    ] {
        let place = Place::new();
        let sum = place.compile("mpi_sum", compiler);
        let done = Sdm::run(&place, 2)
            .lines(&["break add_up", "continue", "print contribution"])
            .program(&sum, &[])
            .finish()
            .code(0);
        assert!(done.err.contains(said), "{done}");
        done.expect("print contribution", "rank 0: 1\nrank 1: 2\n");
    }
}
