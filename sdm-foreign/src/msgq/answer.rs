//! Sends the only answer of this process to its server. A callback of the MPI library's debug library can send it, too.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;

use anyhow::Result;
use sdm_foreign::queues::QueuesAnswer;
use sdm_foreign::wire::frame;

/// The socket for the answer.
static SOCKET: OnceLock<UnixStream> = OnceLock::new();

/// Sets the socket to which the answer is sent.
pub(super) fn begin(socket: UnixStream) -> &'static UnixStream {
    SOCKET.get_or_init(|| socket)
}

/// Sends a failure as the answer, and ends this process.
pub(super) fn give_up(text: &str) -> ! {
    if let Some(socket) = SOCKET.get() {
        // The requester may have ended; otherwise it sees the end of the socket in any case.
        let _ = give(socket, &failed(text));
    }
    std::process::exit(1)
}

pub(super) fn failed(text: &str) -> QueuesAnswer {
    let text = text.to_owned();
    QueuesAnswer::Failed { text }
}

pub(super) fn give(mut socket: &UnixStream, answer: &QueuesAnswer) -> Result<()> {
    Ok(socket.write_all(&frame(answer)?)?)
}
