//! `sdm` ends when a signal asks it to, also while nobody reads its output.

use std::fs::File;
use std::io::{PipeReader, Write, pipe};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::pty::openpty;
use nix::sys::signal::Signal;
use sdm_tests::binaries;
use sdm_tests::job::{look, look_after_kill};
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes;
use sdm_tests::run::BOUND;
use sdm_tests::sdm::command;

use super::killed_together::waiting;

/// `sdm` with a program that prints more than a pipe holds, when the pipe is full; and the pipe's end that is not read.
fn stuck(place: &Place, program: &Path) -> (Child, PipeReader) {
    let (reader, writer) = pipe().expect("a pipe");
    let own = writer.try_clone().expect("another end");
    let mut sdm: Command = command(place, binaries::folder().join("sdm"));
    sdm.args(["run", "-n", "2", "-c", "continue", "-c", "print 1", "--"]);
    sdm.arg(program).args(["lines", "4000000"]).stdout(writer);
    let child = sdm.spawn().expect("sdm starts");
    wait_full(&own);
    (child, reader)
}

/// Waits until a pipe or terminal takes no more output.
fn wait_full(to: &impl AsFd) {
    let deadline = Instant::now() + BOUND;
    let has_room = || {
        let mut fds = [PollFd::new(to.as_fd(), PollFlags::POLLOUT)];
        poll(&mut fds, PollTimeout::ZERO).expect("it is open") > 0
    };
    while has_room() {
        assert!(Instant::now() < deadline, "it has room");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Waits for the end of a process; kills it where it does not come.
fn wait_end(child: &mut Child, what: &str) -> ExitStatus {
    let deadline = Instant::now() + BOUND;
    loop {
        if let Some(status) = child.try_wait().expect("it is a child") {
            return status;
        }
        if Instant::now() >= deadline {
            let _ = child.kill();
            panic!("{what} does not end it");
        }
        thread::sleep(Duration::from_millis(20));
    }
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
        let status = wait_end(&mut child, signal.as_str());
        let code = status.code().or(status.signal().map(|it| 128 + it));
        assert_eq!(code, Some(128 + signal as i32));
        place.assert_gone();
        drop(out);
    }
}

/// The end of a session whose terminal is not read, or of its process.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Terminate,
    HangUp,
    OfProcess,
}

#[test]
#[expect(clippy::zombie_processes, reason = "`wait_end` waits for it")]
fn unread_terminal_delays_no_process_and_no_end() {
    for end in [End::Terminate, End::HangUp, End::OfProcess] {
        let (place, elsewhere) = (Place::new(), Place::new());
        let mut process = waiting(&elsewhere);
        let pid = process.id();
        let before = look(pid);
        let terminal = openpty(None, None).expect("a terminal");
        let mut keys = File::from(terminal.master);
        // The terminal hangs up when this process closes it.
        fcntl(&keys, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).expect("it is open");
        let slave = || Stdio::from(terminal.slave.try_clone().expect("a descriptor"));
        // The terminal is that of the session, which gets a signal when it hangs up.
        let mut sdm = command(&place, "/usr/bin/setsid");
        sdm.arg("--ctty").arg(binaries::folder().join("sdm"));
        sdm.args(["attach", "--by", "gdb", &pid.to_string()]);
        sdm.env("TERM", "xterm").env("XDG_STATE_HOME", place.path());
        sdm.stdin(slave()).stdout(slave()).stderr(slave());
        let mut child = sdm.spawn().expect("sdm starts");
        keys.write_all(b"continue &\ninfo functions\n")
            .expect("it takes keys");
        wait_full(&terminal.slave);
        if end == End::OfProcess {
            drop(process.stdin.take());
            let status = wait_end(&mut process, "the end of its input");
            assert_eq!(status.code(), Some(0));
        }
        match end {
            End::HangUp => drop(keys),
            _ => processes::signal(child.id(), Signal::SIGTERM),
        }
        let status = wait_end(&mut child, "the signal");
        let code = status.code().or(status.signal().map(|it| 128 + it));
        // The output fails before the signal of the terminal comes, or after it.
        let codes = match end {
            End::HangUp => [125, 128 + Signal::SIGHUP as i32],
            _ => [128 + Signal::SIGTERM as i32; 2],
        };
        assert!(codes.map(Some).contains(&code), "{end:?}: {status}");
        place.assert_gone();
        if end != End::OfProcess {
            assert_eq!(look_after_kill(pid), before, "{end:?}");
            drop(process.stdin.take());
            assert_eq!(
                wait_end(&mut process, "the end of its input").code(),
                Some(0)
            );
        }
    }
}
