//! `sdm` ends when a signal asks it to, also while nobody reads its output.

use std::io::{PipeReader, pipe};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use sdm_tests::binaries;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes;
use sdm_tests::run::BOUND;
use sdm_tests::sdm::command;

/// `sdm` with a program that prints more than a pipe holds, when the pipe is full; and the pipe's end that is not read.
fn stuck(place: &Place, program: &Path) -> (Child, PipeReader) {
    let (reader, writer) = pipe().expect("a pipe");
    let own = writer.try_clone().expect("another end");
    let mut sdm: Command = command(place, binaries::folder().join("sdm"));
    sdm.args(["run", "-n", "2", "-c", "continue", "-c", "print 1", "--"]);
    sdm.arg(program).args(["lines", "4000000"]).stdout(writer);
    let child = sdm.spawn().expect("sdm starts");
    let deadline = Instant::now() + BOUND;
    let has_room = || {
        let mut fds = [PollFd::new(own.as_fd(), PollFlags::POLLOUT)];
        poll(&mut fds, PollTimeout::ZERO).expect("a pipe") > 0
    };
    while has_room() {
        assert!(Instant::now() < deadline, "the pipe has room");
        thread::sleep(Duration::from_millis(20));
    }
    (child, reader)
}

#[test]
fn termination_signals_end_sdm_with_unread_output() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    for (signal, times) in [(Signal::SIGTERM, 1), (Signal::SIGHUP, 2)] {
        let (mut child, out) = stuck(&place, &work);
        for _ in 0..times {
            processes::signal(child.id(), signal);
        }
        let deadline = Instant::now() + BOUND;
        let status = loop {
            if let Some(status) = child.try_wait().expect("it is a child") {
                break status;
            }
            if Instant::now() >= deadline {
                let _ = child.kill();
                panic!("{signal} does not end it");
            }
            thread::sleep(Duration::from_millis(20));
        };
        let code = status.code().or(status.signal().map(|it| 128 + it));
        assert_eq!(code, Some(128 + signal as i32));
        place.assert_gone();
        drop(out);
    }
}
