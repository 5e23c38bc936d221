//! Output to a client: a thread of its own writes, so that a client that does not read blocks no other.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The bytes that wait to be written before nothing more is put behind them.
const WAITING_BYTES_MAX: usize = 1 << 20;
/// The wait for somebody who reads nothing, when everything else is over.
const READ_WAIT: Duration = Duration::from_secs(2);

/// Bytes that wait to be written, and whether anybody reads them.
#[derive(Default)]
struct Unwritten {
    waiting: VecDeque<Vec<u8>>,
    /// The number of bytes that were put in and not written yet, those of the write that is under way included.
    bytes: usize,
    /// The number of writes.
    writes: u64,
    /// Somebody found no room, and is to be told once there is some.
    wanted: bool,
    /// Nothing more is put in.
    over: bool,
    /// Nobody reads any more, which the client's input says as well.
    gone: bool,
}

/// The part that the writing thread shares with those who have something to say.
#[derive(Default)]
struct SharedOutput {
    unwritten: Mutex<Unwritten>,
    changed: Condvar,
}

impl SharedOutput {
    fn lock(&self) -> MutexGuard<'_, Unwritten> {
        self.unwritten
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// All that waits, as one piece; nothing once that is all.
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

    /// So many bytes were written, or cannot be; true where somebody waits for the room.
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

/// The way to one client. What was put in is written also after this is dropped, as far as the client reads it.
pub(super) struct Outlet(Arc<SharedOutput>);

impl Outlet {
    /// Writes to `output` in a thread of its own; `room` is called when there is room again where there was none.
    ///
    /// # Errors
    /// There can be no such thread.
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

    /// Whether more may be put in; where not, it is told when that changes. There is always room for those who are gone.
    pub(super) fn has_room(&self) -> bool {
        let mut unwritten = self.0.lock();
        let has_room = unwritten.gone || unwritten.bytes < WAITING_BYTES_MAX;
        unwritten.wanted |= !has_room;
        has_room
    }

    /// Has bytes written behind all others.
    pub(super) fn put(&self, bytes: Vec<u8>) {
        let mut unwritten = self.0.lock();
        if !unwritten.gone && !bytes.is_empty() {
            unwritten.bytes += bytes.len();
            unwritten.waiting.push_back(bytes);
            self.0.changed.notify_all();
        }
    }

    /// Whether all is written, as far as anybody reads it.
    pub(super) fn is_done(&self) -> bool {
        self.0.lock().bytes == 0
    }

    /// Waits until all is written, or until nothing of it was for a while.
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
    fn nobody_waits_for_a_client_that_does_not_read() {
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
    fn there_is_room_for_who_is_gone() {
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
