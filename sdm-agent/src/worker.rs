//! The thread that queries and commands a resource manager. A call may take seconds, and the client is served
//! meanwhile.

use std::io::{self, PipeReader, PipeWriter, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use crate::error::ManagerError;
use crate::manager::{JobChange, Manager, Submission};
use crate::snapshot::Snapshot;

/// A request to the manager.
#[derive(Debug)]
pub enum Request {
    /// Queries all elements of the manager.
    Look,
    /// Starts a job; the number is chosen by the caller and returned in the reply.
    Submit(u64, Submission),
    /// Ends a job.
    Terminate(u64, String),
    /// Changes a job.
    Change(u64, String, JobChange),
}

/// A reply of the manager.
#[derive(Debug)]
pub enum Reply {
    /// The manager's elements, or the error of the query.
    Looked(Result<Box<Snapshot>, ManagerError>),
    /// The number of the request, and the id of the started job or the error.
    Submitted(u64, Result<String, ManagerError>),
    /// The outcome of the request with this number.
    Done(u64, Result<(), ManagerError>),
}

/// A thread that calls a manager, in the order of the requests.
pub struct Worker {
    requests: Sender<Request>,
    replies: Receiver<Reply>,
    /// A pipe that is readable while a reply waits.
    bell: PipeReader,
}

impl Worker {
    /// Starts the thread. It ends after this value is dropped, once the request at hand is done; further requests are
    /// discarded.
    ///
    /// # Errors
    /// [`io::Error`] if the system has no descriptor or thread left.
    pub fn start(mut manager: Box<dyn Manager>) -> io::Result<Self> {
        let (requests, asked) = channel();
        let (said, replies) = channel();
        let (bell, mut ring) = io::pipe()?;
        let work = move || {
            for request in asked {
                if said.send(carry_out(&mut *manager, request)).is_err() || tell(&mut ring).is_err()
                {
                    return;
                }
            }
        };
        thread::Builder::new()
            .name("manager".to_owned())
            .spawn(work)?;
        Ok(Self {
            requests,
            replies,
            bell,
        })
    }

    /// Passes a request to the worker's thread; the reply comes later.
    pub fn ask(&self, request: Request) {
        // This fails only without the thread, which ends only with this value.
        let _ = self.requests.send(request);
    }

    /// The pipe that is readable while a reply waits.
    #[must_use]
    pub fn bell(&self) -> &PipeReader {
        &self.bell
    }

    /// The next reply, once for each time that the bell has become readable.
    ///
    /// # Errors
    /// [`io::Error`] if the thread has ended.
    pub fn reply(&mut self) -> io::Result<Reply> {
        io::Read::read_exact(&mut self.bell, &mut [0])?;
        self.replies.recv().map_err(io::Error::other)
    }
}

fn tell(ring: &mut PipeWriter) -> io::Result<()> {
    ring.write_all(&[1])
}

fn carry_out(manager: &mut dyn Manager, request: Request) -> Reply {
    match request {
        Request::Look => Reply::Looked(manager.look().map(Box::new)),
        Request::Submit(number, job) => Reply::Submitted(number, manager.submit(&job)),
        Request::Terminate(number, job) => Reply::Done(number, manager.terminate(&job)),
        Request::Change(number, job, change) => Reply::Done(number, manager.change(&job, &change)),
    }
}
