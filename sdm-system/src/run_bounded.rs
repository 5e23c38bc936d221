//! Runs a program to its end, with limits on its time and its output.

use std::io::{self, PipeWriter, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::stream::{Line, Stream};
use crate::sys;

/// The output and exit status of a program.
#[derive(Debug)]
pub struct Said {
    /// The lines of the program's standard output.
    pub lines: Vec<String>,
    /// The lines of the program's standard error.
    pub complaints: Vec<String>,
    /// Exit status of the program.
    pub status: ExitStatus,
}

/// Maximum number of bytes of output of a program.
const BYTES_MAX: usize = 512 << 20;

/// Limits for the run of a program.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Time limit of the program.
    pub wait: Duration,
    /// Maximum number of lines of output, standard output and standard error together.
    pub lines_max: usize,
}

/// Runs a program to its end. The program is killed if it exceeds the limits, and if its caller ends before it in any
/// way.
///
/// # Errors
/// The program cannot be started, or exceeds its limits.
pub fn run(command: &mut Command, input: &[u8], bounds: Bounds) -> io::Result<Said> {
    sys::goes_with_its_parent(command);
    run_unless(command, input, bounds, |_| false)
}

/// Like [`run`], but the program is not killed when its caller ends, nor at its time limit if `is_spared` returns true.
/// `is_spared` gets the lines of standard output so far. A spared program ends by itself, and a thread reaps it.
///
/// # Errors
/// As [`run`].
pub fn run_unless(
    command: &mut Command,
    input: &[u8],
    bounds: Bounds,
    is_spared: impl FnOnce(&[String]) -> bool,
) -> io::Result<Said> {
    let end = Instant::now() + bounds.wait;
    let (mut out, out_writer) = Stream::open(false)?;
    let (mut err, err_writer) = Stream::open(true)?;
    let (stdin, feed): (Stdio, Option<PipeWriter>) = match input {
        [] => (Stdio::null(), None),
        _ => {
            let (reader, writer) = io::pipe()?;
            (reader.into(), Some(writer))
        }
    };
    command.stdin(stdin).stdout(out_writer).stderr(err_writer);
    let mut child = command.spawn()?;
    // The command still holds the pipes' write ends of this process, which are released here.
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut lines = Vec::new();
    let run = || -> io::Result<Said> {
        if let Some(mut feed) = feed {
            feed.write_all(input)?;
        }
        read(&mut child, [&mut out, &mut err], end, bounds, &mut lines)
    };
    let said = run();
    match &said {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::TimedOut && is_spared(&lines) => {
            std::thread::spawn(move || child.wait());
        }
        Err(_) => {
            // The child has ended, or its time is up.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
    said
}

fn read(
    child: &mut Child,
    [out, err]: [&mut Stream; 2],
    end: Instant,
    bounds: Bounds,
    lines: &mut Vec<String>,
) -> io::Result<Said> {
    let ended = sys::watch_child(child.id())?;
    let mut complaints = Vec::new();
    let mut said_bytes = 0;
    let mut status = None;
    loop {
        let mut sort = |line: Line| {
            let to = if line.stderr {
                &mut complaints
            } else {
                &mut *lines
            };
            let text = line.text();
            said_bytes += text.map_or(0, str::len);
            to.extend(text.map(str::to_owned));
        };
        // Each pipe is read once per turn, so that the output of a program that never stops writing is bounded too.
        let more = (out.read(&mut sort) > 0) | (err.read(&mut sort) > 0);
        if let Some(status) = status {
            // Processes that the program left behind may hold its pipes. They are not waited for.
            out.close(&mut sort);
            err.close(&mut sort);
            return Ok(Said {
                lines: std::mem::take(lines),
                complaints,
                status,
            });
        }
        if said_bytes > BYTES_MAX || lines.len() + complaints.len() > bounds.lines_max {
            return Err(io::Error::other(format!(
                "the program printed more than {} lines or {BYTES_MAX} bytes",
                bounds.lines_max
            )));
        }
        if more && Instant::now() < end {
            continue;
        }
        let fds = [out.fd(), err.fd(), Some(ended.as_fd())];
        let fds = fds.into_iter().flatten().collect::<Vec<_>>();
        wait(&fds, end, bounds.wait)?;
        status = child.try_wait()?;
    }
}

fn wait(fds: &[BorrowedFd<'_>], end: Instant, whole: Duration) -> io::Result<()> {
    let left = end.saturating_duration_since(Instant::now());
    let is_over = left.is_zero();
    let left = PollTimeout::try_from(left).map_err(io::Error::other)?;
    let mut fds: Vec<PollFd> = fds
        .iter()
        .map(|fd| PollFd::new(*fd, PollFlags::POLLIN))
        .collect();
    let ready = poll(&mut fds, left);
    // Output that arrives at the deadline is too late.
    let ready = ready.map(|count| if is_over { 0 } else { count });
    match ready {
        Ok(0) => {
            let text = format!("no answer within {} s", whole.as_secs());
            Err(io::Error::new(io::ErrorKind::TimedOut, text))
        }
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{BufRead, BufReader, Read};
    use std::os::fd::{AsRawFd, OwnedFd};

    use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};

    use super::*;

    fn sh(script: &str, input: &[u8], seconds: u64) -> io::Result<Said> {
        let bounds = Bounds {
            wait: Duration::from_secs(seconds),
            lines_max: 1000,
        };
        run(Command::new("/bin/sh").args(["-c", script]), input, bounds)
    }

    /// A pipe whose write end the programs inherit that start in its life: it is at its end once they have ended.
    struct Life {
        start: File,
        end: OwnedFd,
    }

    impl Life {
        fn new() -> Self {
            let (start, end) = nix::unistd::pipe().unwrap();
            let start = File::from(start);
            fcntl(&start, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).unwrap();
            Self { start, end }
        }

        fn assert_over(self) {
            drop(self.end);
            fcntl(&self.start, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
            let read = (&self.start).read(&mut [0]);
            assert_eq!(read.map_err(|error| error.kind()), Ok(0), "it still runs");
        }

        /// The next line that a program has written to the pipe.
        fn line(self) -> String {
            drop(self.end);
            let mut line = String::new();
            BufReader::new(self.start).read_line(&mut line).unwrap();
            line.trim().to_owned()
        }
    }

    #[test]
    fn stdout_and_stderr_are_read_completely() {
        let said = sh("cat; echo b >&2; printf c; exit 3", b"a\n", 60).unwrap();
        assert_eq!(
            (said.lines, said.complaints),
            (vec!["a".to_owned(), "c".to_owned()], vec!["b".to_owned()])
        );
        assert_eq!(said.status.code(), Some(3));
        // A program that leaves a process behind, which holds the program's pipes.
        let said = sh("sleep 1000 & echo $!", b"", 60).unwrap();
        let pid: i32 = said.lines[0].parse().unwrap();
        nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(pid),
            nix::sys::signal::Signal::SIGKILL,
        )
        .unwrap();
    }

    #[test]
    fn slow_or_verbose_command_is_killed() {
        let life = Life::new();
        let error = sh("exec sleep 1000", b"", 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        life.assert_over();
        let life = Life::new();
        let error = sh("while :; do echo; done", b"", 60).unwrap_err();
        assert!(error.to_string().contains("printed more than"), "{error}");
        life.assert_over();
        let said = sh("kill -9 $$", b"", 60).unwrap();
        assert_eq!(said.status.code(), None);
    }

    #[test]
    fn timed_out_command_is_not_killed_if_spared() {
        let bounds = Bounds {
            wait: Duration::from_secs(1),
            lines_max: 1000,
        };
        let life = Life::new();
        let mut command = Command::new("/bin/sh");
        let script = format!("echo $$ >&{}; exec sleep 1000", life.end.as_raw_fd());
        command.args(["-c", &script]);
        let error = run_unless(&mut command, b"", bounds, |_| true);
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::TimedOut);
        // Without the program this is the pipe's end.
        let pid = life.line().parse().expect("the program's pid");
        let pid = nix::unistd::Pid::from_raw(pid);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    }
}
