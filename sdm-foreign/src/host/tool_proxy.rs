//! A relay between a tool and libpmix, so that a tool that dies while it connects does not harm libpmix.
//!
//! OpenPMIx (4 and 5) crashes if a tool hangs up between its first message and the server's last reply to it. Foreign
//! tools have no keeper as ours have, and a user may interrupt one at any time. So libpmix gets one end of a socket
//! pair, and a thread copies bytes between the other end and the tool. If the tool hangs up too early, libpmix's end
//! stays open until its replies have been written. Processes of the job have no relay: libpmix answers them at once.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Maximum number of tools at a time.
const TOOLS_MAX: usize = 256;
/// Buffer size of the copy, in bytes.
const CHUNK_BYTES: usize = 64 << 10;
/// Time limit for libpmix's first reply to a tool that has hung up.
const REPLIES_TAKE: Duration = Duration::from_secs(10);
/// Time for which libpmix's end stays open after the last reply to a tool that has hung up.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// The bytes before a first message: a number, a tag and the message's length.
const HEADER_BYTES: usize = 16;
/// Client kind in a connection's first message: a process of a job.
const OF_A_JOB: u8 = 0;

static TOOLS: AtomicUsize = AtomicUsize::new(0);

/// True if the first bytes of a connection come from a process of a job. After the header follow the authentication
/// method's name, a zero byte, the length and bytes of its credential, and the kind of the client.
pub(super) fn is_of_a_job(first: &[u8]) -> bool {
    let of = || {
        let message = first.get(HEADER_BYTES..)?;
        let name = message.iter().position(|it| *it == 0)?;
        let (length, rest) = message.get(name + 1..)?.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        rest.get(length).copied()
    };
    of() == Some(OF_A_JOB)
}

/// Returns libpmix's end of a relay to a tool; `None` if there are too many tools, or no resources.
pub(super) fn begin(tool: TcpStream) -> Option<UnixStream> {
    if TOOLS.fetch_add(1, Ordering::SeqCst) >= TOOLS_MAX {
        TOOLS.fetch_sub(1, Ordering::SeqCst);
        return None;
    }
    let begun = UnixStream::pair().and_then(|(library, own)| {
        tool.set_nonblocking(true)?;
        own.set_nonblocking(true)?;
        let thread = std::thread::Builder::new().stack_size(CHUNK_BYTES * 8);
        thread.spawn(move || {
            Relay::new(tool, own).carry();
            TOOLS.fetch_sub(1, Ordering::SeqCst);
        })?;
        Ok(library)
    });
    if begun.is_err() {
        TOOLS.fetch_sub(1, Ordering::SeqCst);
    }
    begun.ok()
}

/// One direction of the relay: the bytes that are read and not yet written.
#[derive(Default)]
struct ByteQueue {
    bytes: Vec<u8>,
    is_ended: bool,
}

impl ByteQueue {
    /// Reads available bytes, if the buffer is empty. Returns true if some were read.
    fn fill(&mut self, from: &mut impl Read) -> bool {
        if !self.bytes.is_empty() || self.is_ended {
            return false;
        }
        let mut chunk = vec![0; CHUNK_BYTES];
        match from.read(&mut chunk) {
            Ok(0) => self.is_ended = true,
            Ok(count) => {
                chunk.truncate(count);
                self.bytes = chunk;
                return true;
            }
            Err(error) if is_for_later(&error) => {}
            Err(_) => self.is_ended = true,
        }
        false
    }

    /// Writes the waiting bytes; false if the receiver is gone.
    fn empty(&mut self, to: &mut impl Write) -> bool {
        while !self.bytes.is_empty() {
            match to.write(&self.bytes) {
                Ok(0) => return false,
                Ok(count) => drop(self.bytes.drain(..count)),
                Err(error) if is_for_later(&error) => return true,
                Err(_) => return false,
            }
        }
        true
    }
}

fn is_for_later(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

struct Relay {
    tool: TcpStream,
    library: UnixStream,
    to_library: ByteQueue,
    to_tool: ByteQueue,
    /// Time of libpmix's last reply; `None` before the first.
    replied: Option<Instant>,
    /// True once the tool has sent data after a reply of libpmix, so that it must have read the replies.
    is_through: bool,
    /// Time at which the tool hung up; `None` while it is connected.
    gone: Option<Instant>,
}

impl Relay {
    fn new(tool: TcpStream, library: UnixStream) -> Self {
        Self {
            tool,
            library,
            to_library: ByteQueue::default(),
            to_tool: ByteQueue::default(),
            replied: None,
            is_through: false,
            gone: None,
        }
    }

    /// Copies bytes until libpmix has ended the connection, or until the tool has hung up and the time for libpmix's
    /// replies is over.
    fn carry(mut self) {
        while !self.is_over() && self.wait().is_ok() {
            if self.to_tool.fill(&mut self.library) {
                self.replied = Some(Instant::now());
            }
            if self.gone.is_some() {
                self.to_tool.bytes.clear();
            } else if !self.to_tool.empty(&mut self.tool) {
                self.gone = Some(Instant::now());
            }
            if self.to_library.fill(&mut self.tool) && self.replied.is_some() {
                self.is_through = true;
            }
            if self.to_library.is_ended && self.gone.is_none() {
                self.gone = Some(Instant::now());
            }
            if !self.to_library.empty(&mut self.library) {
                self.to_tool.is_ended = true;
            }
        }
        let _ = self.tool.shutdown(Shutdown::Both);
    }

    /// Time until which libpmix's end is kept open after the tool has hung up; `None` while the tool is connected.
    fn end(&self) -> Option<Instant> {
        let gone = self.gone?;
        Some(match (self.is_through, self.replied) {
            (true, _) => gone,
            (false, None) => gone + REPLIES_TAKE,
            (false, Some(at)) => at.max(gone) + PAUSE_MAX,
        })
    }

    fn is_over(&self) -> bool {
        let library_is_gone = self.to_tool.is_ended && self.to_tool.bytes.is_empty();
        let is_late = self.end().is_some_and(|end| end <= Instant::now());
        library_is_gone || (is_late && self.to_library.bytes.is_empty())
    }

    fn wait(&self) -> nix::Result<()> {
        let watched = |from: &ByteQueue, to: &ByteQueue| {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::POLLIN, from.bytes.is_empty() && !from.is_ended);
            flags.set(PollFlags::POLLOUT, !to.bytes.is_empty());
            flags
        };
        let mut fds = vec![PollFd::new(
            self.library.as_fd(),
            watched(&self.to_tool, &self.to_library),
        )];
        // One that has hung up would wake this again and again.
        if self.gone.is_none() {
            let flags = watched(&self.to_library, &self.to_tool);
            fds.push(PollFd::new(self.tool.as_fd(), flags));
        }
        let wait = self.end().map_or(PollTimeout::NONE, |end| {
            let wait = end.saturating_duration_since(Instant::now());
            PollTimeout::try_from(wait + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
        });
        match poll(&mut fds, wait) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// The first bytes of a client of this kind.
    fn first(who: u8) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes.extend(b"native\0");
        bytes.extend(3_u32.to_be_bytes());
        bytes.extend(b"abc");
        bytes.push(who);
        bytes
    }

    fn tool() -> (TcpStream, UnixStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it");
        let tool = TcpStream::connect(address).expect("it listens");
        let (taken, _) = listener.accept().expect("the tool");
        (tool, begin(taken).expect("few"))
    }

    #[test]
    fn job_processes_are_distinguished_from_tools() {
        assert!(is_of_a_job(&first(0)));
        for who in 1..8 {
            assert!(!is_of_a_job(&first(who)));
        }
        for length in 0..first(0).len() {
            assert!(!is_of_a_job(&first(0)[..length]));
        }
        assert!(!is_of_a_job(&[0xff; 64]));
    }

    #[test]
    fn relay_forwards_bytes_and_end_of_file() {
        let (mut tool, mut library) = tool();
        let mut found = [0; 5];
        for (text, back) in [(b"first", b"reply"), (b"again", b"other")] {
            tool.write_all(text).expect("it is there");
            library.read_exact(&mut found).expect("it is there");
            assert_eq!(&found, text);
            library.write_all(back).expect("it is there");
            tool.read_exact(&mut found).expect("it is there");
            assert_eq!(&found, back);
        }
        drop(tool);
        assert_eq!(library.read(&mut found).expect("an end"), 0);
    }

    #[test]
    fn library_sees_the_end_of_a_lost_tool_after_its_replies() {
        let (mut tool, mut library) = tool();
        tool.write_all(b"first").expect("it is there");
        let mut found = [0; 5];
        library.read_exact(&mut found).expect("it is there");
        drop(tool);
        for _ in 0..3 {
            library.write_all(b"reply").expect("somebody takes it");
        }
        // Only then the library sees the end of the connection.
        assert_eq!(library.read(&mut found).expect("an end"), 0);
    }
}
