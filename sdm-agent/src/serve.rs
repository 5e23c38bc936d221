//! The event loop of an agent: a client at one end, a manager's thread at the other.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::Instant;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::service::Service;
use crate::worker::Worker;

/// What is written at once: a pipe that is writable has room for it.
const PIECE_BYTES: usize = 4096;

/// A client's bytes, to and fro.
pub struct Client {
    /// What the client sends.
    pub input: Box<dyn ReadFd>,
    /// What is sent to the client.
    pub output: Box<dyn WriteFd>,
}

/// What can be read and waited for.
pub trait ReadFd: Read + AsFd {}
impl<T: Read + AsFd> ReadFd for T {}

/// What can be written and waited for.
pub trait WriteFd: Write + AsFd {}
impl<T: Write + AsFd> WriteFd for T {}

/// Serves a client until it has ended the session or is gone.
///
/// # Errors
/// The client's bytes are no messages, or the manager's thread is gone.
pub fn serve(mut client: Client, mut worker: Worker) -> io::Result<()> {
    let mut service = Service::new();
    let mut unsent: VecDeque<u8> = VecDeque::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        while let Some(request) = service.poll_request() {
            worker.ask(request);
        }
        if unsent.is_empty() {
            let output = service.take_output(Instant::now());
            unsent = output.map_err(io::Error::other)?.into();
        }
        if unsent.is_empty() && service.is_over() {
            return Ok(());
        }
        let (input, room, reply) =
            wait(&client, &worker, !unsent.is_empty(), service.poll_timeout())?;
        let now = Instant::now();
        if input {
            match client.input.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => service
                    .receive(now, &buffer[..count])
                    .map_err(io::Error::other)?,
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        if room {
            let (piece, _) = unsent.as_slices();
            match client.output.write(&piece[..piece.len().min(PIECE_BYTES)]) {
                Ok(count) => drop(unsent.drain(..count)),
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
            client.output.flush()?;
        }
        if reply {
            service
                .handle_reply(now, worker.reply()?)
                .map_err(io::Error::other)?;
        }
        service.handle_timeout(now);
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
    )
}

/// Waits for input, for room where something is to be sent, for a reply, or for the time.
fn wait(
    client: &Client,
    worker: &Worker,
    sends: bool,
    until: Option<Instant>,
) -> io::Result<(bool, bool, bool)> {
    // Who does not read what it is told is not heard meanwhile.
    let heard = if sends {
        PollFlags::empty()
    } else {
        PollFlags::POLLIN
    };
    let flags = if sends {
        PollFlags::POLLOUT
    } else {
        PollFlags::empty()
    };
    let mut fds = [
        PollFd::new(client.input.as_fd(), heard),
        PollFd::new(client.output.as_fd(), flags),
        PollFd::new(worker.bell().as_fd(), PollFlags::POLLIN),
    ];
    let wait = until.map(|until| until.saturating_duration_since(Instant::now()));
    let wait = wait.map_or(PollTimeout::NONE, |wait| {
        // Up to the next millisecond, so that the time has come then.
        PollTimeout::try_from(wait + std::time::Duration::from_millis(1))
            .unwrap_or(PollTimeout::MAX)
    });
    match poll(&mut fds, wait) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(error) => return Err(error.into()),
    }
    let is_ready = |fd: &PollFd<'_>| fd.revents().is_some_and(|events| !events.is_empty());
    Ok((
        is_ready(&fds[0]),
        sends && is_ready(&fds[1]),
        is_ready(&fds[2]),
    ))
}
