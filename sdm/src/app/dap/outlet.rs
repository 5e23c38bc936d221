//! Output to a client: a thread of its own writes, so that a client that does not read blocks no other.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum number of queued bytes before the queue counts as full.
const WAITING_BYTES_MAX: usize = 1 << 20;
/// Time limit for a client that does not read, at the end of the process.
const READ_WAIT: Duration = Duration::from_secs(2);

/// The queue of bytes to write, and the state of its reader.
#[derive(Default)]
struct WriteQueue {
    waiting: VecDeque<Vec<u8>>,
    /// Number of queued bytes that are not written, including those of the current write.
    bytes: usize,
    /// Number of writes so far.
    writes: u64,
    /// True if a sender has found no room, and has to be notified once there is some.
    wanted: bool,
    /// True once nothing more is added.
    over: bool,
    /// True once a write has failed. The client's input then ends, too.
    gone: bool,
}

/// State shared by the writing thread and the senders.
#[derive(Default)]
struct SharedOutput {
    unwritten: Mutex<WriteQueue>,
    changed: Condvar,
}

impl SharedOutput {
    fn lock(&self) -> MutexGuard<'_, WriteQueue> {
        self.unwritten
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for queued bytes, and takes all. None at the end.
    fn next(&self) -> Option<Vec<u8>> {
        let mut unwritten = self.lock();
        while unwritten.waiting.is_empty() {
            if unwritten.over {
                return None;
            }
            let waited = self.changed.wait(unwritten);
            unwritten = waited.unwrap_or_else(PoisonError::into_inner);
        }
        let pieces: Vec<_> = unwritten.waiting.drain(..).collect();
        Some(pieces.concat())
    }

    /// Notes that bytes were written, or that the write failed. Returns true if a sender has to be
    /// notified.
    fn note(&self, bytes: usize, written: &io::Result<()>) -> bool {
        let mut unwritten = self.lock();
        unwritten.bytes -= bytes;
        unwritten.writes += 1;
        if written.is_err() {
            unwritten.gone = true;
            unwritten.waiting.clear();
            unwritten.bytes = 0;
        }
        self.changed.notify_all();
        std::mem::take(&mut unwritten.wanted)
    }
}

/// The output to one client. Queued bytes are written even after it is dropped, as long as the client reads
/// them.
pub(super) struct Outlet(Arc<SharedOutput>);

impl Outlet {
    /// Writes to `output` in a thread of its own. `room` is called when a full queue has room again.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn new(
        mut output: impl Write + Send + 'static,
        room: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::<SharedOutput>::default();
        let own = Arc::clone(&shared);
        let writer = thread::Builder::new().name("answers".to_owned());
        writer.spawn(move || {
            while let Some(bytes) = own.next() {
                let written = output.write_all(&bytes).and_then(|()| output.flush());
                if own.note(bytes.len(), &written) {
                    room();
                }
                if written.is_err() {
                    return;
                }
            }
        })?;
        Ok(Self(shared))
    }

    /// True if more may be queued. If not, the caller is notified when that changes. There is always
    /// room for disconnected clients.
    pub(super) fn has_room(&self) -> bool {
        let mut unwritten = self.0.lock();
        let has_room = unwritten.gone || unwritten.bytes < WAITING_BYTES_MAX;
        unwritten.wanted |= !has_room;
        has_room
    }

    /// Queues bytes to be written to the client.
    pub(super) fn put(&self, bytes: Vec<u8>) {
        let mut unwritten = self.0.lock();
        if !unwritten.gone && !bytes.is_empty() {
            unwritten.bytes += bytes.len();
            unwritten.waiting.push_back(bytes);
            self.0.changed.notify_all();
        }
    }

    /// True once all is written, or the client has disconnected.
    pub(super) fn is_done(&self) -> bool {
        self.0.lock().bytes == 0
    }

    /// Waits until all is written, or until no write has succeeded for a time.
    pub(super) fn finish(&self) {
        let mut unwritten = self.0.lock();
        let mut writes = unwritten.writes;
        let mut until = Instant::now() + READ_WAIT;
        while unwritten.bytes > 0 {
            let now = Instant::now();
            if unwritten.writes != writes {
                (writes, until) = (unwritten.writes, now + READ_WAIT);
            }
            if now >= until {
                return;
            }
            let waited = self.0.changed.wait_timeout(unwritten, until - now);
            unwritten = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        self.0.lock().over = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn output_for_unread_client_is_buffered_up_to_a_bound() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (to, told) = channel();
        let outlet = Outlet::new(ours, move || to.send(()).unwrap()).unwrap();
        let piece = vec![b'x'; 1 << 16];
        let mut put = 0;
        while outlet.has_room() {
            outlet.put(piece.clone());
            put += piece.len();
        }
        // The socket takes some of it, whatever its size.
        assert!((WAITING_BYTES_MAX..16 << 20).contains(&put), "{put}");
        outlet.finish();
        assert!(outlet.0.lock().bytes > 0, "nobody has read");
        let mut read = vec![0; put];
        theirs.read_exact(&mut read).unwrap();
        told.recv().unwrap();
        outlet.finish();
        assert!(outlet.has_room());
        assert_eq!(outlet.0.lock().bytes, 0);
        drop(outlet);
        assert_eq!(theirs.read(&mut read).unwrap(), 0, "the way is closed");
    }

    #[test]
    fn output_for_disconnected_client_is_discarded() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        let outlet = Outlet::new(ours, || {}).unwrap();
        outlet.put(b"unheard".to_vec());
        outlet.finish();
        assert!(outlet.0.lock().gone);
        outlet.put(vec![0; 2 * WAITING_BYTES_MAX]);
        assert!(outlet.has_room());
        assert_eq!(outlet.0.lock().bytes, 0);
    }
}
