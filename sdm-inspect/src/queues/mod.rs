//! Pending messages of an MPI library, as its own debug library reports them to `sdm-pmix queues`. Each query runs in a
//! process of its own, so that a crash of the debug library costs only one answer.

mod layout;

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, ExitStatus, Stdio};

use std::os::unix::process::ExitStatusExt;

use sdm_debug::{Failure, FailureCode};
use sdm_foreign::queues::{ProcessQueues, QueuesAnswer, QueuesAsk};
use sdm_foreign::wire::{FRAME_BYTES_MAX, Frames, frame};
use sdm_system::proc;
use sdm_system::programs;
use sdm_system::signal_name;

pub use layout::{COMMUNICATORS, CheckedProcess, VARIABLES, WITH_CLASS, class_symbol, rows, table};

/// Maximum number of bytes that are read at once.
const READ_BYTES: usize = 16 << 10;

/// The answer to a running query of message queues.
pub trait PendingAnswer {
    /// The answer; `None` until it is available.
    fn poll(&mut self) -> Option<Result<ProcessQueues, Failure>>;
}

/// The process that runs the debug library. It is killed when its answer is no longer wanted.
pub struct Helper {
    child: Child,
    socket: UnixStream,
    frames: Frames,
    taken_bytes: usize,
}

impl Helper {
    /// Starts the helper for a process of this user. The helper's questions about memory are answered from that
    /// process.
    ///
    /// # Errors
    /// `sdm-pmix` is not installed or does not start, or the process may not be read.
    pub fn start(pid: i32, ask: &QueuesAsk) -> Result<Self, Failure> {
        let program = sdm_system::own_program("sdm-pmix", None).ok_or_else(|| {
            let text =
                "`queues` needs sdm-pmix, which was found neither in the folder of sdm-server nor on PATH: install it there";
            Failure::new(FailureCode::Unsupported, text)
        })?;
        let memory = File::open(proc::of(pid).living().path("mem"))
            .map_err(|error| system(&format!("cannot read the memory of process {pid}"), &error))?;
        let started = || -> io::Result<(Child, UnixStream)> {
            let (socket, theirs) = UnixStream::pair()?;
            let mut command = programs::at(program);
            command
                .arg("queues")
                .env_clear()
                .env("PATH", "/usr/bin:/bin")
                .current_dir("/")
                .stdin(Stdio::from(OwnedFd::from(theirs)))
                .stdout(Stdio::from(memory))
                .stderr(Stdio::null());
            sdm_system::confine(&mut command);
            sdm_system::goes_with_its_parent(&mut command);
            let child = command.spawn()?;
            sdm_system::set_nonblocking(socket.as_fd())?;
            Ok((child, socket))
        };
        let (child, socket) = started().map_err(|error| system("cannot start sdm-pmix", &error))?;
        let mut helper = Self {
            child,
            socket,
            frames: Frames::default(),
            taken_bytes: 0,
        };
        let bytes = frame(ask).map_err(|error| {
            let text = format!("cannot send the request to sdm-pmix: {error}");
            Failure::new(FailureCode::System, text)
        })?;
        // The question has some kilobytes, which fit into a socket's buffer.
        let asked = helper.socket.write_all(&bytes);
        match asked {
            Ok(()) => Ok(helper),
            // The helper's exit status says more than the error.
            Err(_) => Err(helper.ended()),
        }
    }

    /// The reason why there is no answer, after the helper's end.
    fn ended(&mut self) -> Failure {
        // The helper may have closed its socket without ending. If it has ended, the signal has no effect.
        let _ = self.child.kill();
        let how = match self.child.wait() {
            Ok(status) => how(status),
            Err(error) => error.to_string(),
        };
        let text =
            format!("sdm-pmix, which had loaded the MPI library's debug library, failed: {how}");
        Failure::new(FailureCode::System, text)
    }
}

impl PendingAnswer for Helper {
    fn poll(&mut self) -> Option<Result<ProcessQueues, Failure>> {
        let mut bytes = [0; READ_BYTES];
        loop {
            match self.frames.take() {
                Ok(Some(QueuesAnswer::Known(queues))) => return Some(Ok(queues)),
                Ok(Some(QueuesAnswer::Failed { text })) => {
                    return Some(Err(Failure::new(FailureCode::Unsupported, text)));
                }
                Ok(None) => {}
                Err(error) => {
                    let text = format!("sdm-pmix sent an invalid answer: {error}");
                    return Some(Err(Failure::new(FailureCode::System, text)));
                }
            }
            match self.socket.read(&mut bytes) {
                Ok(0) => return Some(Err(self.ended())),
                Ok(count) => {
                    self.taken_bytes += count;
                    self.frames.push(&bytes[..count]);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Some(Err(self.ended())),
            }
            if self.taken_bytes > FRAME_BYTES_MAX + READ_BYTES {
                let text = format!("sdm-pmix sent an answer longer than {FRAME_BYTES_MAX} bytes");
                return Some(Err(Failure::new(FailureCode::Limit, text)));
            }
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // The helper has answered, or its time is up.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn how(status: ExitStatus) -> String {
    match status.signal() {
        Some(number) => {
            let signal = signal_name(number);
            format!("killed by {signal} before it answered")
        }
        None => format!("ended with {status} before it answered"),
    }
}

fn system(what: &str, error: &io::Error) -> Failure {
    Failure::new(FailureCode::System, format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::process::Command;

    use super::*;

    /// A shell script as helper, which ends or waits; these bytes are its answer, and are sent before it starts.
    fn helper(script: &str, says: &[u8]) -> Helper {
        let (socket, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(says).unwrap();
        let child = Command::new("/bin/sh")
            .args(["-c", script])
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .spawn()
            .unwrap();
        sdm_system::set_nonblocking(socket.as_fd()).unwrap();
        Helper {
            child,
            socket,
            frames: Frames::default(),
            taken_bytes: 0,
        }
    }

    fn answer(mut helper: Helper) -> Result<ProcessQueues, Failure> {
        loop {
            if let Some(answer) = helper.poll() {
                return answer;
            }
            std::thread::yield_now();
        }
    }

    const WHO: &str = "sdm-pmix, which had loaded the MPI library's debug library, failed: ";

    #[test]
    fn queues_helper_returns_its_answer_or_reason() {
        let queues = ProcessQueues::default();
        let bytes = frame(&QueuesAnswer::Known(queues.clone())).unwrap();
        assert_eq!(answer(helper("exec sleep 300", &bytes)), Ok(queues));
        let text = "a reason".to_owned();
        let bytes = frame(&QueuesAnswer::Failed { text }).unwrap();
        let failure = answer(helper("exec sleep 300", &bytes)).unwrap_err();
        assert_eq!(failure.text, "a reason");
    }

    #[test]
    fn failing_queues_helper_yields_an_error_message() {
        let dead = answer(helper("kill -SEGV $$", b"")).unwrap_err().text;
        assert_eq!(dead, format!("{WHO}killed by SIGSEGV before it answered"));
        let code = answer(helper("exit 3", b"\x05\0\0")).unwrap_err().text;
        assert_eq!(
            code,
            format!("{WHO}ended with exit status: 3 before it answered")
        );
        let long = answer(helper("exec sleep 300", &[0xff; 8]))
            .unwrap_err()
            .text;
        assert!(
            long.starts_with("sdm-pmix sent an invalid answer: "),
            "{long}"
        );
        let wrong = answer(helper("exec sleep 300", &[2, 0, 0, 0, 9, 9]))
            .unwrap_err()
            .text;
        assert!(
            wrong.starts_with("sdm-pmix sent an invalid answer: "),
            "{wrong}"
        );
    }

    #[test]
    fn dropped_queues_helper_is_killed() {
        let helper = helper("exec sleep 300", b"");
        let pid = helper.child.id().cast_signed();
        drop(helper);
        assert!(proc::of(pid).stat().is_err());
    }
}
