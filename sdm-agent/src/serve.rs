//! The event loop of an agent, between a client and the thread of a manager.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use sdm_runtime::wire::IdForm;

use crate::service::Service;
use crate::worker::Worker;

/// Maximum size of one write: a pipe that is writable has room for it.
const PIECE_BYTES: usize = 4096;

/// Time for which the output of an ended session is still written to the client.
const END_WAIT: Duration = Duration::from_secs(30);

/// The two byte streams of a client.
pub struct Client {
    /// Bytes from the client.
    pub input: Box<dyn ReadFd>,
    /// Bytes to the client.
    pub output: Box<dyn WriteFd>,
}

/// A stream that can be read and polled.
pub trait ReadFd: Read + AsFd {}
impl<T: Read + AsFd> ReadFd for T {}

/// A stream that can be written and polled.
pub trait WriteFd: Write + AsFd {}
impl<T: Write + AsFd> WriteFd for T {}

/// Serves a client until it has ended the session or has disconnected. `ids` is the form of the elements' ids.
///
/// # Errors
/// The client's bytes do not form messages, or the manager's thread has ended.
pub fn serve(mut client: Client, mut worker: Worker, ids: IdForm) -> io::Result<()> {
    let mut service = Service::new(ids);
    let mut unsent: VecDeque<u8> = VecDeque::new();
    let mut buffer = vec![0; 64 << 10];
    let mut over = None;
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
        let mut until = service.poll_timeout();
        if service.is_over() {
            let over = *over.get_or_insert_with(|| Instant::now() + END_WAIT);
            if over <= Instant::now() {
                return Ok(());
            }
            until = Some(over);
        }
        let heeds = ClientInterest {
            input: service.is_hearing() && !service.is_over(),
            room: !unsent.is_empty(),
        };
        let (input, room, reply) = wait(&client, &worker, heeds, until)?;
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

/// Events of the client to wait for.
#[derive(Clone, Copy)]
struct ClientInterest {
    input: bool,
    room: bool,
}

/// Waits until the manager has replied, the client can be read or written as `heeds` asks, or the time `until` has
/// come. Returns for each whether it is ready: input, room, reply.
fn wait(
    client: &Client,
    worker: &Worker,
    heeds: ClientInterest,
    until: Option<Instant>,
) -> io::Result<(bool, bool, bool)> {
    let mut fds = vec![PollFd::new(worker.bell().as_fd(), PollFlags::POLLIN)];
    // Left out where no room is needed: a hang-up would be reported again and again.
    if heeds.room {
        fds.push(PollFd::new(client.output.as_fd(), PollFlags::POLLOUT));
    }
    if heeds.input {
        fds.push(PollFd::new(client.input.as_fd(), PollFlags::POLLIN));
    }
    let wait = until.map(|until| until.saturating_duration_since(Instant::now()));
    let wait = wait.map_or(PollTimeout::NONE, |wait| {
        // Up to the next millisecond, so that the time has come then.
        PollTimeout::try_from(wait + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
    });
    match poll(&mut fds, wait) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(error) => return Err(error.into()),
    }
    let mut ready = fds
        .iter()
        .map(|fd| fd.revents().is_some_and(|events| !events.is_empty()));
    let reply = ready.next() == Some(true);
    let room = heeds.room && ready.next() == Some(true);
    let input = heeds.input && ready.next() == Some(true);
    Ok((input, room, reply))
}
