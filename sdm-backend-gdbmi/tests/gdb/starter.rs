//! The exec wrapper between gdb and a program, without gdb.

use std::fs::Permissions;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Command as Process, Output};

use nix::fcntl::{FcntlArg, fcntl};
use sdm_debug::command::StopAt;
use sdm_debug::event::Stream;
use sdm_debug::{Command, FailureCode};

use crate::harness::{Harness, code, spec};

fn starter(orders: &[&str], command: &[&str]) -> Process {
    let mut process = Process::new(env!("CARGO_BIN_EXE_sdm-starter"));
    process.arg("--exec-program").args(orders).arg("--");
    process.args(command);
    process
}

fn said(output: &Output) -> (Option<i32>, &str) {
    let text = std::str::from_utf8(&output.stderr).unwrap();
    (output.status.code(), text)
}

#[test]
fn exec_wrapper_restores_stdio_and_closes_copied_descriptors() {
    for lowest in [3, 40] {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let copies = [0, 1, 2].map(|_| fcntl(&theirs, FcntlArg::F_DUPFD(lowest)).unwrap());
        drop(theirs);
        let [stdin, stdout, stderr] = copies.map(|copy| format!("copy:{copy}"));
        let orders = ["-0", &*stdin, "-1", &*stdout, "-2", &*stderr];
        let [first, second, third] = copies;
        let script = format!(
            "read -r line; echo $line; echo second >&2; for fd in {first} {second} {third}; do \
             [ -L /proc/$$/fd/$fd ] && echo left $fd; done; exit 3"
        );
        let mut process = starter(&orders, &["/bin/sh", "-c", &script]);
        let mut process = process.spawn().unwrap();
        for copy in copies {
            nix::unistd::close(copy).unwrap();
        }
        ours.write_all(b"first\n").unwrap();
        ours.shutdown(Shutdown::Write).unwrap();
        assert_eq!(process.wait().unwrap().code(), Some(3));
        let mut text = String::new();
        ours.read_to_string(&mut text).unwrap();
        assert_eq!(text, "first\nsecond\n", "{copies:?}");
    }
}

#[test]
fn exec_failure_is_reported_as_by_a_shell() {
    let output = starter(&[], &["/nosuch"]).output().unwrap();
    let text = "sdm-starter: /nosuch: No such file or directory\n";
    assert_eq!(said(&output), (Some(127), text));
    let output = starter(&[], &["/etc/passwd"]).output().unwrap();
    let text = "sdm-starter: /etc/passwd: Permission denied\n";
    assert_eq!(said(&output), (Some(126), text));
    let output = starter(&["-1", "/nosuch/tty"], &["/bin/true"]).output();
    let text =
        "sdm-starter: standard stream 1: /nosuch/tty: No such file or directory (os error 2)\n";
    assert_eq!(said(&output.unwrap()), (Some(126), text));
    let output = starter(&["-z", "1"], &["/bin/true"]).output().unwrap();
    let text = "sdm-starter: \"1\": invalid argument of the exec wrapper\n";
    assert_eq!(said(&output), (Some(126), text));
    let output = starter(&[], &[]).output().unwrap();
    let text = "sdm-starter: expected a program\n";
    assert_eq!(said(&output), (Some(126), text));
}

#[test]
fn missing_loader_fails_with_the_program_name() {
    let mut harness = Harness::new();
    let program = harness.compile("steps", &["-Wl,--dynamic-linker=/nosuch/ld.so"]);
    let mut start = spec(&program, &[]);
    start.stop = StopAt::Nowhere;
    assert_eq!(
        code(harness.ask(Command::Start(start))),
        FailureCode::NoProgram
    );
    let text = format!("{}: No such file or directory", program.display());
    harness.wait_output(Stream::Stderr, &text);
}

#[test]
fn input_and_output_pass_if_a_gdb_wrapper_closes_descriptors() {
    let mut harness = Harness::new();
    let gdb = std::env::var("SDM_GDB").unwrap_or_else(|_| "gdb".to_owned());
    let script = harness.directory.join("gdb");
    let closed = "3>&- 4>&- 5</dev/null 6>&- 7>&- 8>&- 9>&-";
    let text = format!("#!/bin/sh\nexec {closed}\nexec {gdb} \"$@\"\n");
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    let program = harness.compile("stream", &[]);
    let mut start = spec(&program, &["cat"]);
    start.gdb = Some(script.into_os_string().into_encoded_bytes());
    start.stdin_tasks = "0".parse().unwrap();
    harness.ask(Command::Start(start)).unwrap();
    let bytes = b"through".to_vec();
    let eof = true;
    let fed = harness.ask(Command::Stdin {
        offset: 0,
        bytes,
        eof,
    });
    fed.unwrap();
    harness.run_on().unwrap();
    harness.wait_output_end();
    assert_eq!(harness.output(Stream::Stdout), b"through");
    assert_eq!(harness.output(Stream::Stderr), b"eof after 7\n");
}
