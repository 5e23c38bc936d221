//! Access control of libpmix: only processes of this user and of root may connect.
//!
//! libpmix believes the user id that a client claims. It also waits for the first bytes of one connection after
//! another, and serves no other client meanwhile. So libpmix gets neither connections of other users nor connections
//! that have sent nothing yet: it calls this program's `listen` and `accept`. A thread of this program accepts all
//! connections, finds their users in the kernel's table, and waits for their first bytes. libpmix's apparent listening
//! socket is an eventfd that counts the connections ready for it.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::ffi::{c_int, c_long, c_void};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};
use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use sdm_system::tcp_peer;

use super::tool_proxy;

type Listen = unsafe extern "C" fn(c_int, c_int) -> c_int;
type Accept = unsafe extern "C" fn(c_int, *mut libc::sockaddr, *mut libc::socklen_t) -> c_int;

/// Maximum number of connections that have sent nothing; the oldest is closed. There is no time limit, as a
/// debugger can hold a rank between its first two steps.
const QUIET_MAX: usize = 1024;
/// Pause in accepting connections where the process has no descriptors left.
const TAKE_PAUSE: Duration = Duration::from_millis(100);
/// Maximum number of a connection's first bytes that are inspected.
const FIRST_BYTES_MAX: usize = 4096;

/// Whether libpmix is guarded.
static IS_ON: AtomicBool = AtomicBool::new(false);
/// The queue of each guarded listening socket, with the descriptor number that libpmix uses for the socket.
static DOORS: Mutex<Vec<(c_int, Arc<ConnectionQueue>)>> = Mutex::new(Vec::new());

/// Queue of connections of this user and of root that have sent their first bytes, until libpmix accepts them.
struct ConnectionQueue {
    spoken: Mutex<VecDeque<TcpStream>>,
    /// Number of queued connections. libpmix polls a duplicate of this descriptor in place of its listening socket.
    bell: EventFd,
}

impl ConnectionQueue {
    fn new() -> io::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_SEMAPHORE;
        Ok(Self {
            spoken: Mutex::default(),
            bell: EventFd::from_flags(flags)?,
        })
    }

    /// Queues a connection that has sent its first bytes.
    fn admit(&self, stream: TcpStream) {
        lock(&self.spoken).push_back(stream);
        // The counter cannot overflow: its limit is above the number of descriptors.
        let _ = self.bell.write(1);
    }

    /// The next queued connection; `None` if none is queued.
    fn next(&self) -> Option<TcpStream> {
        self.bell.read().ok()?;
        lock(&self.spoken).pop_front()
    }

    /// Accepts connections for ever, and queues those that are allowed and have sent their first bytes.
    fn keep(&self, listener: &TcpListener) -> ! {
        let mut quiet = VecDeque::new();
        loop {
            let (is_new, heard) = look(listener, &quiet);
            let all = std::mem::take(&mut quiet).into_iter();
            for (stream, has_spoken) in all.zip(heard) {
                match has_spoken {
                    false => quiet.push_back(stream),
                    true if has_words(&stream) => self.admit(stream),
                    true => {}
                }
            }
            if is_new {
                take(listener, &mut quiet);
            }
        }
    }
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Replacement for the C library's `listen`. For a TCP socket of the guarded library, its descriptor then becomes the
/// eventfd that counts the queued connections.
///
/// # Safety
/// As for the C library's `listen`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn listen(socket: c_int, backlog: c_int) -> c_int {
    // SAFETY: it is what the C library's does; that one is not to be had by its name here.
    let listens: c_long = unsafe { libc::syscall(libc::SYS_listen, socket, backlog) };
    if listens != 0 {
        return -1;
    }
    if !IS_ON.load(Ordering::SeqCst) {
        return 0;
    }
    // SAFETY: the caller's, who does not close it while it calls.
    match guard(unsafe { BorrowedFd::borrow_raw(socket) }) {
        Ok(()) => 0,
        Err(error) => {
            crate::messages::say(&format!(
                "cannot restrict access to the socket of the PMIx server: {error}"
            ));
            Errno::ENOMEM.set();
            -1
        }
    }
}

fn guard(socket: BorrowedFd<'_>) -> io::Result<()> {
    let listener = TcpListener::from(socket.try_clone_to_owned()?);
    // A socket without a TCP address is not reachable from the network, and needs no guard.
    if listener.local_addr().is_err() {
        return Ok(());
    }
    listener.set_nonblocking(true)?;
    let door = Arc::new(ConnectionQueue::new()?);
    let number = socket.as_raw_fd();
    {
        let mut doors = lock(&DOORS);
        doors.retain(|(it, _)| *it != number);
        doors.push((number, Arc::clone(&door)));
    }
    // SAFETY: the number is the library's, which knows it by nothing else.
    let placed = unsafe { libc::dup3(door.bell.as_raw_fd(), number, libc::O_CLOEXEC) };
    Errno::result(placed)?;
    let keeper = thread::Builder::new().name("guard".to_owned());
    keeper.spawn(move || door.keep(&listener))?;
    Ok(())
}

/// Replacement for the C library's `accept`. On libpmix's sockets it returns a connection that has sent its first
/// bytes, or for a tool's connection the end of a proxy. It fails where none is queued.
///
/// # Safety
/// As for the C library's `accept`: `address` and `length` must be valid or null.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn accept(
    socket: c_int,
    address: *mut libc::sockaddr,
    length: *mut libc::socklen_t,
) -> c_int {
    let door = lock(&DOORS).iter().find(|(it, _)| *it == socket).cloned();
    let Some((_, door)) = door else {
        // SAFETY: the caller says so.
        return unsafe { libc::accept4(socket, address, length, libc::SOCK_CLOEXEC) };
    };
    while let Some(stream) = door.next() {
        // SAFETY: the caller says so; a connection that has gone has no address, and is heard to have gone.
        let _ = unsafe { libc::getpeername(stream.as_raw_fd(), address, length) };
        if is_of_a_job(&stream) {
            return stream.into_raw_fd();
        }
        match tool_proxy::begin(stream) {
            Some(end) => return end.into_raw_fd(),
            None => crate::messages::say(
                "a PMIx tool was refused, because too many tools are connected",
            ),
        }
    }
    // The one error after which all versions of the library go on.
    Errno::EAGAIN.set();
    -1
}

/// Accepts a new connection, if it is this user's or root's.
fn take(listener: &TcpListener, quiet: &mut VecDeque<TcpStream>) {
    let refused = match listener.accept() {
        Ok((stream, _)) => match tcp_peer::check(&stream) {
            Ok(()) => {
                quiet.push_back(stream);
                if quiet.len() > QUIET_MAX {
                    quiet.pop_front();
                }
                return;
            }
            Err(error) => error,
        },
        // The connection has ended before it was accepted.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
        Err(error) => {
            // No descriptors are left, and the listener would be readable again at once.
            if quiet.pop_front().is_none() {
                thread::sleep(TAKE_PAUSE);
            }
            error
        }
    };
    crate::messages::say(&format!(
        "the PMIx server of this node did not accept a connection: {refused}"
    ));
}

/// True if a readable connection has sent bytes, and has not merely ended.
fn has_words(stream: &TcpStream) -> bool {
    stream.peek(&mut [0]).is_ok_and(|count| count > 0)
}

/// True if the first bytes of a connection come from a process of a job. Such a process sends them in one piece.
fn is_of_a_job(stream: &TcpStream) -> bool {
    let mut first = [0; FIRST_BYTES_MAX];
    let looked = stream
        .set_nonblocking(true)
        .and_then(|()| stream.peek(&mut first));
    let is_it = looked.is_ok_and(|count| tool_proxy::is_of_a_job(&first[..count]));
    // As the library knows it from the kernel.
    let _ = stream.set_nonblocking(false);
    is_it
}

/// Waits for input. Returns whether there is a new connection, and for each connection that has sent nothing yet,
/// whether it has sent bytes or ended.
fn look(listener: &TcpListener, quiet: &VecDeque<TcpStream>) -> (bool, Vec<bool>) {
    let all = std::iter::once(listener.as_fd()).chain(quiet.iter().map(AsFd::as_fd));
    let mut fds: Vec<_> = all.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
    let looked = poll(&mut fds, PollTimeout::NONE);
    let heard = |fd: &PollFd<'_>| looked.is_ok() && fd.any().unwrap_or(false);
    let mut heard = fds.iter().map(heard);
    (heard.next().unwrap_or(false), heard.collect())
}

/// Guards the library that is loaded next. Fails unless the loader finds this program's `listen` and `accept` before
/// those of the C library.
pub(crate) fn begin() -> Result<()> {
    let own: (Listen, Accept) = (listen, accept);
    for (name, own) in [
        (c"listen", own.0 as *const c_void),
        (c"accept", own.1 as *const c_void),
    ] {
        // SAFETY: it looks a name up in what is loaded.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        if found.cast_const() != own {
            bail!(
                "this build of sdm-pmix cannot exclude other users, because it cannot preload a library"
            );
        }
    }
    IS_ON.store(true, Ordering::SeqCst);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Waits until a connection is queued; false after a minute.
    fn rings(door: &ConnectionQueue) -> bool {
        let mut fds = [PollFd::new(door.bell.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::from(60_000_u16)).is_ok_and(|count| count > 0)
    }

    #[test]
    fn connection_is_accepted_when_it_sends_its_first_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        let door = Arc::new(ConnectionQueue::new().unwrap());
        let keeper = Arc::clone(&door);
        thread::spawn(move || keeper.keep(&listener));
        let connect = || TcpStream::connect(address).unwrap();
        let ((mut first, mut second), gone) = ((connect(), connect()), connect());
        drop(gone);
        for one in [&mut second, &mut first] {
            assert!(door.next().is_none(), "nobody has spoken");
            one.write_all(b"words").unwrap();
            assert!(rings(&door));
            let heard = door.next().expect("one has spoken");
            assert_eq!(heard.peer_addr().unwrap(), one.local_addr().unwrap());
        }
        assert!(door.next().is_none());
    }
}
