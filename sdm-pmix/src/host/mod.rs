//! A PMIx server for the processes that a session starts on this node.
//!
//! It is started with a socket on its standard input where the session's servers of this node connect, and serves one job. It
//! ends when all of them have gone, whoever of them started it; what they are told is in [`sdm_pmix::wire`].

mod board;
mod guard;
mod request;
mod server;
mod value;

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use board::Board;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::SigSet;
use request::{Request, Requests};
use sdm_pmix::wire::{Frames, VERSION, frame};
use sdm_pmix::{FromHost, HostJob, ToHost};
use sdm_system::peer::check_this_user;
use server::Server;

/// How long nobody may come.
const FIRST_WAIT: Duration = Duration::from_secs(120);
/// The most servers of one node.
const PEERS_MAX: usize = 4096;
/// The most that waits for one of them, in bytes.
const UNSENT_BYTES_MAX: usize = 16 << 20;
/// The status of what could be done.
const SUCCESS: i32 = 0;

/// A server of the session.
struct Peer {
    stream: UnixStream,
    frames: Frames,
    unsent: Vec<u8>,
    /// It has said hello, and been answered.
    is_known: bool,
}

/// A server for one job.
struct Host {
    listener: UnixListener,
    requests: Requests,
    peers: Vec<Peer>,
    /// The job, with the answer to everybody who comes; absent before anybody has.
    serving: Option<Serving>,
    board: Board,
}

struct Serving {
    job: HostJob,
    answer: FromHost,
    /// Removed with this.
    _folder: Folder,
}

/// A folder of nobody else's, which is removed at the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // Processes may have left files there; what cannot be removed stays.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Serves until all who were there have gone.
pub(crate) fn run() -> Result<()> {
    setrlimit(Resource::RLIMIT_CORE, 0, 0).context("forbid a core file")?;
    // Who started it may have some of them blocked.
    SigSet::empty().thread_set_mask().context("signals")?;
    let listener = listener()?;
    let mut host = Host {
        listener,
        requests: Requests::open().context("a pipe")?,
        peers: Vec::new(),
        serving: None,
        board: Board::default(),
    };
    let mut came = false;
    while !(came && host.peers.is_empty()) {
        if !host.turn(came)? {
            bail!("nobody came within {FIRST_WAIT:?}");
        }
        came |= !host.peers.is_empty();
    }
    // The library is not asked to end: nobody is left to hear of it, all its files are in the folder, and it can hang there.
    drop(host.serving.take());
    crate::sys::exit()
}

/// The socket on standard input.
#[allow(unsafe_code)]
fn listener() -> Result<UnixListener> {
    let own = std::io::stdin().as_fd().try_clone_to_owned()?;
    // SAFETY: nobody else in this process reads from it.
    drop(unsafe { OwnedFd::from_raw_fd(0) });
    // What is opened next must not become standard input.
    let nothing = fs::File::open("/dev/null").context("/dev/null")?;
    std::mem::forget(nothing);
    let listener = UnixListener::from(own);
    listener.set_nonblocking(true)?;
    listener
        .local_addr()
        .context("standard input is no socket: sdm-pmix host is started by sdm-server")?;
    Ok(listener)
}

impl Host {
    /// Waits and takes in what there is; false where nobody came in time.
    fn turn(&mut self, came: bool) -> Result<bool> {
        let mut fds = vec![PollFd::new(self.listener.as_fd(), PollFlags::POLLIN)];
        fds.push(PollFd::new(self.requests.as_fd(), PollFlags::POLLIN));
        for peer in &self.peers {
            let mut flags = PollFlags::POLLIN;
            flags.set(PollFlags::POLLOUT, !peer.unsent.is_empty());
            fds.push(PollFd::new(peer.stream.as_fd(), flags));
        }
        let wait = match came {
            true => PollTimeout::NONE,
            false => PollTimeout::try_from(FIRST_WAIT).unwrap_or(PollTimeout::MAX),
        };
        match poll(&mut fds, wait) {
            Ok(0) => return Ok(false),
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error).context("wait"),
        }
        let ready: Vec<bool> = fds.iter().map(|fd| fd.any().unwrap_or(true)).collect();
        drop(fds);
        if ready[1] {
            let request = self.requests.take().context("take a request")?;
            self.answer(request);
        }
        for index in (0..self.peers.len()).rev() {
            if ready[index + 2] && !self.hear(index) {
                self.peers.swap_remove(index);
            }
        }
        if ready[0] {
            self.take_in();
        }
        Ok(true)
    }

    fn take_in(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            let is_own = check_this_user(&stream).is_ok();
            if !is_own || self.peers.len() >= PEERS_MAX || stream.set_nonblocking(true).is_err() {
                continue;
            }
            self.peers.push(Peer {
                stream,
                frames: Frames::default(),
                unsent: Vec::new(),
                is_known: false,
            });
        }
    }

    /// Takes in what a server says; false where it has gone or says what cannot be.
    fn hear(&mut self, index: usize) -> bool {
        let peer = &mut self.peers[index];
        if !peer.flush() {
            return false;
        }
        let mut bytes = [0; 16 << 10];
        loop {
            match peer.stream.read(&mut bytes) {
                Ok(0) => return false,
                Ok(count) => peer.frames.push(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        loop {
            match self.peers[index].frames.take::<ToHost>() {
                Ok(None) => return true,
                Ok(Some(ToHost::Hello { version, job })) => {
                    let answer = self.hello(version, job);
                    let peer = &mut self.peers[index];
                    peer.is_known = matches!(answer, FromHost::Ready { .. });
                    if !peer.send(&answer) {
                        return false;
                    }
                }
                Err(error) => {
                    crate::say::say(&format!("a server of the session sends {error}"));
                    return false;
                }
            }
        }
    }

    /// What is answered to who is new.
    fn hello(&mut self, version: u16, job: HostJob) -> FromHost {
        let failed = |text: String| FromHost::Failed { text };
        if version != VERSION {
            return failed(format!("version {version} of the messages, not {VERSION}"));
        }
        if let Err(error) = job.check() {
            return failed(error.to_string());
        }
        if let Some(serving) = &self.serving {
            return match serving.job == job {
                true => serving.answer.clone(),
                false => failed("it serves another job".to_owned()),
            };
        }
        match serve(job) {
            Ok(serving) => self.serving.insert(serving).answer.clone(),
            Err(error) => failed(format!("{error:#}")),
        }
    }

    fn answer(&mut self, request: Request) {
        match request {
            Request::Agreed(done) => done.tell(SUCCESS),
            Request::Fence { bytes, done } => done.tell(SUCCESS, bytes),
            Request::Publish {
                process,
                entries,
                done,
            } => done.tell(self.board.publish(process, entries)),
            Request::Lookup { keys, waits, done } => self.board.look_up(keys, waits, done),
            Request::Unpublish {
                process,
                keys,
                done,
            } => {
                self.board.unpublish(&process, &keys);
                done.tell(SUCCESS);
            }
            Request::Abort {
                process,
                status,
                text,
                done,
            } => {
                let rank = process.rank;
                self.tell_all(&FromHost::Aborted { rank, status, text });
                done.tell(SUCCESS);
            }
            Request::Log {
                process,
                bytes,
                done,
            } => {
                if !bytes.is_empty() {
                    let rank = process.rank;
                    self.tell_all(&FromHost::Log { rank, bytes });
                }
                done.tell(SUCCESS);
            }
        }
    }

    fn tell_all(&mut self, message: &FromHost) {
        self.peers
            .retain_mut(|peer| !peer.is_known || peer.send(message));
    }
}

impl Peer {
    /// Sends a message; false where it cannot be.
    fn send(&mut self, message: &FromHost) -> bool {
        let Ok(bytes) = frame(message) else {
            crate::say::say("something too long to be told was left out");
            return true;
        };
        self.unsent.extend_from_slice(&bytes);
        self.unsent.len() <= UNSENT_BYTES_MAX && self.flush()
    }

    /// Sends what waits, as far as it can be; false where nobody is there.
    fn flush(&mut self) -> bool {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }
}

/// Begins to serve a job.
fn serve(job: HostJob) -> Result<Serving> {
    guard::check_is_found()?;
    let folder = make_folder(&job.namespace)?;
    // SAFETY: this process has had one thread until now.
    #[allow(unsafe_code)]
    let library = unsafe { Server::load() }?;
    let environment = library.serve(&job, &folder.0)?;
    let answer = FromHost::Ready {
        version: VERSION,
        library: library.version.clone(),
        folder: folder.0.to_string_lossy().into_owned(),
        environment,
    };
    Ok(Serving {
        job,
        answer,
        _folder: folder,
    })
}

fn make_folder(namespace: &str) -> Result<Folder> {
    let base = std::env::temp_dir();
    let path = base.join(format!("sdm-pmix-{namespace}"));
    // It fails where anything has that name, whoever made it.
    let made = fs::DirBuilder::new().mode(0o700).create(&path);
    made.with_context(|| format!("make the folder {}", sdm_text::printable_name(&path)))?;
    Ok(Folder(path))
}
