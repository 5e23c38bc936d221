//! The server's end of the connection to a shim.

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::rc::Rc;

use nix::libc::SIGKILL;
use sdm_debug::Failure;
use sdm_debug::wire;

use super::channel::{Channel, Received};
use super::message::{Started, ToServer, ToShim};
use crate::ProgramNews;

/// Number of process ends that are remembered: those of the gdbs and programs of the last few starts.
const ENDED_MAX: usize = 16;

/// The shim of one task, from the server's side.
///
/// The exit statuses of a task's gdb and program arrive here, as both are children of the shim: see
/// [`ShimLink::status_of`].
#[derive(Debug)]
pub struct ShimLink {
    channel: RefCell<Channel>,
    ended: RefCell<Vec<(i32, ExitStatus)>>,
    is_gone: Cell<bool>,
    /// Descriptors of links with unsent messages, for the poller.
    blocked: Rc<RefCell<Vec<RawFd>>>,
}

/// A shim's message for the backend.
#[derive(Debug)]
pub enum ShimSays {
    /// A gdb was started; the descriptors are those of gdb's and the program's streams.
    Started(Box<Started>, Vec<OwnedFd>),
    /// The start has failed, for this reason.
    Refused(Failure),
    /// The program runs without a gdb: its pid, its path, and the server's ends of its streams.
    Seized(i32, PathBuf, Vec<OwnedFd>),
    /// The program cannot run without a gdb, and has not begun.
    NeedsGdb,
    /// News of a program that runs without a gdb.
    Program(ProgramNews),
    /// The launcher has asked the shim to end, by this signal; 0 if the launcher has ended.
    Leaving(i32),
    /// The shim has closed the connection.
    Gone,
}

impl ShimLink {
    /// A link over the connection to a shim. `blocked` collects the descriptors of links with unsent messages.
    pub fn new(channel: Channel, blocked: Rc<RefCell<Vec<RawFd>>>) -> Self {
        Self {
            channel: RefCell::new(channel),
            ended: RefCell::default(),
            is_gone: Cell::new(false),
            blocked,
        }
    }

    /// The descriptor to watch.
    pub fn fd(&self) -> RawFd {
        self.channel.borrow().fd()
    }

    /// True once the shim has closed the connection. The processes that it had started end with it.
    pub fn is_gone(&self) -> bool {
        self.is_gone.get()
    }

    /// True if messages wait to be sent.
    pub fn wants_write(&self) -> bool {
        !self.is_gone() && self.channel.borrow().wants_write()
    }

    /// Sends a message. A message to a shim that has ended is dropped, because the next receive reports that end.
    ///
    /// # Errors
    /// [`io::Error`] if the end of the shim is known already, or if the message cannot be queued.
    pub fn send(&self, message: &ToShim) -> io::Result<()> {
        if self.is_gone() {
            return Err(io::Error::other(
                "the launcher's process for this rank has ended",
            ));
        }
        let mut channel = self.channel.borrow_mut();
        channel.send(wire::encode(message), Vec::new())?;
        if channel.wants_write() {
            self.blocked.borrow_mut().push(channel.fd());
        }
        Ok(())
    }

    /// Sends the queued messages, as far as the shim can receive them.
    pub fn flush(&self) {
        // If the shim has ended, the next receive reports that.
        let _ = self.channel.borrow_mut().flush();
    }

    /// Receives a message; `None` if there is none at present. Messages about ended processes are kept for
    /// [`ShimLink::status_of`].
    pub fn receive(&self) -> Option<ShimSays> {
        while !self.is_gone() {
            let heard = self.channel.borrow_mut().receive();
            let (bytes, fds) = match heard {
                Ok(Received::Message(bytes, fds)) => (bytes, fds),
                Ok(Received::Nothing) => return None,
                Ok(Received::Closed) | Err(_) => break,
            };
            match wire::decode::<ToServer>(&bytes) {
                Ok(ToServer::Started(started)) => return Some(ShimSays::Started(started, fds)),
                Ok(ToServer::Refused(failure)) => {
                    return Some(ShimSays::Refused(Failure::decode(&failure)));
                }
                Ok(ToServer::Seized { pid, program }) => {
                    let program = OsString::from_vec(program).into();
                    return Some(ShimSays::Seized(pid, program, fds));
                }
                Ok(ToServer::NeedsGdb) => return Some(ShimSays::NeedsGdb),
                Ok(ToServer::Program(news)) => return Some(ShimSays::Program(news)),
                Ok(ToServer::Leaving { signal }) => return Some(ShimSays::Leaving(signal)),
                Ok(ToServer::Ended { pid, status }) => self.keep(pid, status),
                Ok(ToServer::Hello { .. }) => {}
                Err(error) => {
                    tracing::warn!("sdm-shim sent an invalid message: {error}");
                    break;
                }
            }
        }
        (!self.is_gone.replace(true)).then_some(ShimSays::Gone)
    }

    fn keep(&self, pid: i32, status: i32) {
        let mut ended = self.ended.borrow_mut();
        if ended.len() == ENDED_MAX {
            ended.remove(0);
        }
        ended.push((pid, ExitStatus::from_raw(status)));
    }

    /// Exit status of a process that the shim started; `None` while it runs. If the shim is gone, the process counts as
    /// killed.
    pub fn status_of(&self, pid: i32) -> Option<ExitStatus> {
        let ended = self.ended.borrow();
        let known = ended.iter().rev().find(|(ended, _)| *ended == pid);
        let with_it = || self.is_gone().then(|| ExitStatus::from_raw(SIGKILL));
        known.map(|(_, status)| *status).or_else(with_it)
    }

    /// Forgets the recorded exit status of an earlier process with this pid, as a new process has this pid now.
    pub fn begins(&self, pid: i32) {
        self.ended.borrow_mut().retain(|(ended, _)| *ended != pid);
    }
}

/// The program's ends of its streams, as held by a shim until the program has opened them.
#[derive(Debug)]
pub struct HeldAtShim(pub Rc<ShimLink>);

impl Drop for HeldAtShim {
    fn drop(&mut self) {
        // A shim that has ended holds no descriptors.
        let _ = self.0.send(&ToShim::Opened);
    }
}
