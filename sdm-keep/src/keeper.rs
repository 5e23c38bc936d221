//! The keeper: the process that holds a kept program's pseudo-terminal while terminals connect and disconnect.

use sdm_text::printable_name;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use sdm_system::peer::Peer;

use crate::socket_path::{Name, PlaceError};
use crate::sys;
use crate::terminal_lease::{TerminalId, TerminalLease, TerminalMessage};
use crate::wire::{self, Frame, Size};

/// Output that is kept for the next terminal, in bytes.
const RING_BYTES_MAX: usize = 4 << 20;
/// Output that is read at a time, in bytes.
const READ_BYTES: usize = 32 << 10;
/// Time that a caller has to state its request.
const OPEN_WAIT: Duration = Duration::from_secs(5);
/// Time limit for a released terminal to report its position and close its connection.
const LET_GO_WAIT: Duration = Duration::from_secs(1);
/// Maximum number of simultaneous clients.
const CALLERS_MAX: usize = 32;
/// The line that reports that the keeper listens.
pub(crate) const READY: &str = "ready";

/// The kept program and its settings.
#[derive(Clone, Debug)]
pub struct KeeperOptions {
    /// The session's name.
    pub name: Name,
    /// The program and its arguments; not empty.
    pub command: Vec<OsString>,
    /// Time for which the session stays after the program's end, so that a terminal can still show the end.
    pub wait_after_end: Duration,
}

/// Keeps a program to its end, and then until a terminal has shown that end, at most for `wait_after_end`.
///
/// The keeper leaves the caller's terminal and session, prints `ready` on standard output once it listens, and closes
/// its standard streams.
///
/// # Errors
/// The name is taken, or there is no pseudo-terminal, or the program does not start.
pub fn keep(options: KeeperOptions) -> Result<(), KeepError> {
    // This fails only if the process already leads a session.
    let _ = nix::unistd::setsid();
    let (listener, _file) = options.name.listen()?;
    let (keeper, kept) = start(&options)?;
    // If the starter was killed meanwhile this fails, and the session is not kept, as its user does not know of it.
    writeln!(io::stdout(), "{READY}")?;
    let null = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    for done in [
        nix::unistd::dup2_stdin(&null),
        nix::unistd::dup2_stdout(&null),
        nix::unistd::dup2_stderr(&null),
    ] {
        done.map_err(io::Error::from)?;
    }
    let callers = Arc::clone(&keeper);
    thread::Builder::new()
        .name("accept".to_owned())
        .spawn(move || callers.accept(&listener))?;
    keeper.until_over(kept, options.wait_after_end);
    Ok(())
}

/// The reason why a session was not kept.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// The name is taken, or its socket cannot be made.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The pseudo-terminal or the program could not be started.
    #[error("cannot start {program} in a kept session: {what}")]
    Start {
        /// The program to be kept.
        program: String,
        /// The failed step, and the system's reason.
        what: String,
    },
    /// A thread or a descriptor could not be made.
    #[error("cannot keep the session: {0}")]
    Io(#[from] io::Error),
}

struct Keeper {
    state: Mutex<State>,
    changed: Condvar,
    input: Mutex<Box<dyn Write + Send>>,
    terminal: Mutex<Box<dyn MasterPty + Send>>,
    began: Instant,
    command: String,
}

struct State {
    lease: TerminalLease,
    /// The terminals' connections, kept to shut them down.
    streams: HashMap<TerminalId, UnixStream>,
    callers: usize,
    /// True once the program's output has ended.
    closed: bool,
}

/// The program that runs.
struct TerminalProgram {
    child: Box<dyn Child + Send + Sync>,
    /// A descriptor that is closed at the program's end, for the thread that reads the program's output.
    running: OwnedFd,
}

/// Starts the program on a new pseudo-terminal.
fn start(options: &KeeperOptions) -> Result<(Arc<Keeper>, TerminalProgram), KeepError> {
    let words: Vec<_> = options.command.iter().map(printable_name).collect();
    let failed = |error: &dyn std::fmt::Display| KeepError::Start {
        program: words.first().map_or("nothing", |w| w).to_owned(),
        what: error.to_string(),
    };
    let pair = native_pty_system()
        .openpty(PtySize::default())
        .map_err(|e| failed(&e))?;
    let mut command = CommandBuilder::from_argv(options.command.clone());
    command.cwd(std::env::current_dir()?);
    let child = pair.slave.spawn_command(command).map_err(|e| failed(&e))?;
    drop(pair.slave);
    let output = sys::duplicate(&*pair.master)?;
    let (ended, running) = nix::unistd::pipe2(OFlag::O_CLOEXEC).map_err(io::Error::from)?;
    let input = pair.master.take_writer().map_err(|e| failed(&e))?;
    let keeper = Arc::new(Keeper {
        state: Mutex::new(State {
            lease: TerminalLease::new(RING_BYTES_MAX),
            streams: HashMap::new(),
            callers: 0,
            closed: false,
        }),
        changed: Condvar::new(),
        input: Mutex::new(input),
        terminal: Mutex::new(pair.master),
        began: Instant::now(),
        command: words.join(" "),
    });
    let reads = Arc::clone(&keeper);
    thread::Builder::new()
        .name("output".to_owned())
        .spawn(move || reads.read_output(File::from(output), &ended))?;
    Ok((keeper, TerminalProgram { child, running }))
}

impl Keeper {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let waited = self.changed.wait(state);
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `done` is true, at most for the time `wait`.
    fn wait_until(&self, wait: Duration, mut done: impl FnMut(&mut State) -> bool) {
        let waited = self
            .changed
            .wait_timeout_while(self.lock(), wait, |state| !done(state));
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Reads all output that was written before the program has `ended`. Other processes may have the terminal open
    /// longer, but the kernel has disconnected them then. Reading pauses while the connected terminal lags; without a
    /// terminal it never pauses.
    fn read_output(&self, mut output: File, ended: &OwnedFd) {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            // What is on its way through the pseudo-terminal counts as readable.
            let (master, end) = (output.as_fd(), ended.as_fd());
            let mut fds = [master, end].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
            match poll(&mut fds, PollTimeout::NONE) {
                Err(Errno::EINTR) => continue,
                Ok(_) if fds[0].any() == Some(true) => {}
                _ => break,
            }
            let count = match output.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok(count) if count > 0 => count,
                // Reading a pseudo-terminal ends with an error.
                _ => break,
            };
            let mut state = self.lock();
            state.lease.print(&buffer[..count]);
            self.changed.notify_all();
            while state.lease.is_lagging() {
                state = self.wait(state);
            }
        }
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Waits for the program's end and its last output, and then for a terminal to which the end can be reported.
    fn until_over(&self, kept: TerminalProgram, wait_after_end: Duration) {
        let TerminalProgram { mut child, running } = kept;
        let code = child
            .wait()
            .map_or(-1, |status| i32::try_from(status.exit_code()).unwrap_or(-1));
        drop(running);
        let mut state = self.lock();
        while !state.closed {
            state = self.wait(state);
        }
        state.lease.exit(code);
        drop(state);
        self.changed.notify_all();
        self.wait_until(wait_after_end, |state| state.lease.is_over());
    }

    fn accept(self: &Arc<Self>, listener: &UnixListener) {
        loop {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => {
                    // No descriptors are left. New clients wait in the kernel meanwhile.
                    thread::sleep(Duration::from_millis(100));
                    continue;
                }
            };
            if self.lock().callers >= CALLERS_MAX || !is_ours(&stream) {
                continue;
            }
            self.lock().callers += 1;
            let keeper = Arc::clone(self);
            let spawned = thread::Builder::new()
                .name("caller".to_owned())
                .spawn(move || {
                    // A client whose connection breaks has left.
                    let _ = keeper.serve(&stream);
                    let _ = stream.shutdown(Shutdown::Both);
                    keeper.lock().callers -= 1;
                    keeper.changed.notify_all();
                });
            if spawned.is_err() {
                self.lock().callers -= 1;
            }
        }
    }

    fn serve(self: &Arc<Self>, stream: &UnixStream) -> io::Result<()> {
        stream.set_read_timeout(Some(OPEN_WAIT))?;
        match wire::receive(stream)? {
            Some(Frame::Ask) => wire::send(stream, &self.about()),
            Some(Frame::Detach) => {
                self.lock().lease.let_go();
                self.changed.notify_all();
                self.see_off();
                wire::send(stream, &Frame::LetGo(false))
            }
            Some(Frame::Open(size)) => {
                stream.set_read_timeout(None)?;
                self.resize(size);
                self.lend(stream)
            }
            _ => Ok(()),
        }
    }

    fn about(&self) -> Frame {
        let state = self.lock();
        let mut command = self.command.clone();
        if let Some(code) = state.lease.exit_code() {
            command = format!("(ended with code {code}) {command}");
        }
        // The size of a frame is limited, and a command line may be longer.
        let cut = command.char_indices().nth(4000).map(|(at, _)| at);
        command.truncate(cut.unwrap_or(command.len()));
        Frame::About {
            age_s: self.began.elapsed().as_secs(),
            attached: state.lease.current().is_some(),
            command,
        }
    }

    fn resize(&self, size: Size) {
        let terminal = self.terminal.lock().unwrap_or_else(PoisonError::into_inner);
        // A failed resize is only a blemish, and no reason to end.
        let _ = terminal.resize(PtySize {
            rows: size.rows,
            cols: size.columns,
            pixel_width: 0,
            pixel_height: 0,
        });
    }

    /// Connects a terminal to the program until its connection is closed.
    fn lend(self: &Arc<Self>, stream: &UnixStream) -> io::Result<()> {
        let (sender, for_cutting) = (stream.try_clone()?, stream.try_clone()?);
        let mut state = self.lock();
        let number = state.lease.open();
        state.streams.insert(number, for_cutting);
        drop(state);
        self.changed.notify_all();
        let keeper = Arc::clone(self);
        let spawned = thread::Builder::new()
            .name("terminal".to_owned())
            .spawn(move || {
                keeper.see_off();
                // If the terminal is gone, the reading thread notices.
                let _ = keeper.send_output(number, &sender);
                let _ = sender.shutdown(Shutdown::Write);
            });
        let read = spawned.and_then(|_| self.read_terminal(number, stream));
        let mut state = self.lock();
        state.lease.closed(number);
        state.streams.remove(&number);
        drop(state);
        self.changed.notify_all();
        read
    }

    /// Receives a terminal's frames, also after its release: output that it has shown is not shown again.
    fn read_terminal(&self, number: TerminalId, stream: &UnixStream) -> io::Result<()> {
        while let Some(frame) = wire::receive(stream)? {
            let heard = self.lock().lease.receive(number, frame);
            self.changed.notify_all();
            match heard.map_err(io::Error::other)? {
                Some(TerminalMessage::Typed(bytes)) => {
                    let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
                    input.write_all(&bytes)?;
                    input.flush()?;
                }
                Some(TerminalMessage::Resized(size)) => self.resize(size),
                None => {}
            }
        }
        Ok(())
    }

    /// Waits for released terminals, and cuts off those beyond the time limit.
    fn see_off(&self) {
        let leaving: Vec<TerminalId> = self.lock().lease.leaving().collect();
        let is_here = |state: &State| leaving.iter().any(|id| state.streams.contains_key(id));
        self.wait_until(LET_GO_WAIT, |state| !is_here(state));
        for id in &leaving {
            if let Some(stuck) = self.lock().streams.get(id) {
                // If this fails, the connection is already gone.
                let _ = stuck.shutdown(Shutdown::Both);
            }
        }
    }

    /// Sends the program's output to a terminal, until it is released or has left.
    fn send_output(&self, number: TerminalId, stream: &UnixStream) -> io::Result<()> {
        let mut state = self.lock();
        loop {
            while let Some(frame) = state.lease.poll_frame(number) {
                drop(state);
                self.changed.notify_all();
                wire::send(stream, &frame)?;
                state = self.lock();
            }
            if state.lease.is_done(number) {
                return Ok(());
            }
            state = self.wait(state);
        }
    }
}

/// True if the peer is this user, or root.
fn is_ours(stream: &UnixStream) -> bool {
    Peer::of(stream).is_ok_and(|peer| peer.uid == 0 || peer.is_this_user())
}
