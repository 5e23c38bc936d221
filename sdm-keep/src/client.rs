//! The client: the process at the user's terminal, which lends that terminal to a kept program.

use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};

use crate::DETACH_KEY;
use crate::keeper::READY;
use crate::socket_path::{Name, PlaceError};
use crate::sys::terminal_size;
use crate::wire::{self, Frame};

/// Time that a keeper has to release a terminal.
const DETACH_WAIT: Duration = Duration::from_secs(10);

/// The reason why a terminal returned to its shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnReason {
    /// The program continues without the terminal.
    Detached,
    /// Another terminal has replaced this one.
    Taken,
    /// The program has ended with this exit code.
    Ended(i32),
}

/// Starts a keeper: `command` must call [`crate::keep`]. It gets a session of its own; errors before it listens go to
/// standard error.
///
/// # Errors
/// The keeper does not start, or ends before it listens.
pub fn start_keeper(command: &mut Command) -> io::Result<()> {
    let mut keeper = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let stdout = keeper.stdout.take().expect("asked for");
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    if line.trim_end() == READY {
        return Ok(());
    }
    let status = keeper.wait()?;
    Err(io::Error::other(format!(
        "the process that keeps the session ended at once: {status}"
    )))
}

/// Connects this process's terminal to a kept session until it is detached, another terminal takes its place, or the
/// session ends.
///
/// # Errors
/// There is no such session, or standard input and output are no terminal.
pub fn resume(name: &Name) -> Result<ReturnReason, PlaceError> {
    let failed = |what: &'static str| {
        let name = name.as_str().to_owned();
        move |error: io::Error| PlaceError::Io {
            name: name.clone(),
            what,
            error,
        }
    };
    let stream = name.connect()?;
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        let what = "standard input and output must be a terminal";
        return Err(failed("cannot attach")(io::Error::other(what)));
    }
    // This is done before any thread is started. All threads inherit the mask, and one waits for the signals.
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGWINCH, Signal::SIGTERM, Signal::SIGHUP] {
        signals.add(signal);
    }
    let blocked = signals.thread_block().map_err(io::Error::from);
    blocked.map_err(failed("cannot set up signal handling"))?;
    let raw = RawTerminal::new().map_err(failed("cannot use the terminal"))?;
    let left =
        lend(stream, signals).map_err(failed("cannot send to the process that keeps the session"));
    drop(raw);
    left
}

/// The terminal in raw mode, in which every key is passed on. Drop restores the earlier mode.
struct RawTerminal {
    before: Termios,
}

impl RawTerminal {
    fn new() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        cfmakeraw(&mut raw);
        tcsetattr(io::stdin(), SetArg::TCSADRAIN, &raw)?;
        Ok(Self { before })
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // The program's line editor may have enabled bracketed paste.
        let _ = io::stdout().write_all(b"\x1b[?2004l");
        let _ = io::stdout().flush();
        // A terminal that is gone needs no restoration.
        let _ = tcsetattr(io::stdin(), SetArg::TCSADRAIN, &self.before);
    }
}

/// The connection to the keeper, shared by several threads.
#[derive(Clone)]
struct ToKeeper {
    stream: Arc<Mutex<UnixStream>>,
    leaving: Arc<AtomicBool>,
}

impl ToKeeper {
    fn send(&self, frame: &Frame) -> io::Result<()> {
        let stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        wire::send(&*stream, frame)
    }
}

fn lend(stream: UnixStream, signals: SigSet) -> io::Result<ReturnReason> {
    let to = ToKeeper {
        stream: Arc::new(Mutex::new(stream.try_clone()?)),
        leaving: Arc::default(),
    };
    to.send(&Frame::Open(terminal_size(&io::stdin())))?;
    let (keys, sizes) = (to.clone(), to.clone());
    let (keys_end, sizes_end) = (stream.try_clone()?, stream.try_clone()?);
    thread::Builder::new()
        .name("keys".to_owned())
        .spawn(move || {
            // The terminal has no further use, however `pass_keys` ended. Typed keys are not lost to the next
            // terminal, since the keeper releases this one only after it has read them all.
            let _ = pass_keys(&keys);
            keys.leaving.store(true, Ordering::SeqCst);
            if keys.send(&Frame::Detach).is_ok() {
                thread::sleep(DETACH_WAIT);
            }
            let _ = keys_end.shutdown(Shutdown::Both);
        })?;
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            while let Ok(Signal::SIGWINCH) = signals.wait() {
                // If the keeper has ended, the reading thread notices.
                let _ = sizes.send(&Frame::Resized(terminal_size(&io::stdin())));
            }
            sizes.leaving.store(true, Ordering::SeqCst);
            let _ = sizes_end.shutdown(Shutdown::Both);
        })?;
    match show(&stream, &to) {
        Err(_) if to.leaving.load(Ordering::SeqCst) => Ok(ReturnReason::Detached),
        shown => shown,
    }
}

/// Sends keys to the keeper until the detach key or the end of the terminal.
fn pass_keys(to: &ToKeeper) -> io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        let count = io::stdin().lock().read(&mut buffer)?;
        let typed = &buffer[..count];
        let upto = typed.iter().position(|byte| *byte == DETACH_KEY);
        let keys = &typed[..upto.unwrap_or(count)];
        if !keys.is_empty() {
            to.send(&Frame::Input(keys.to_vec()))?;
        }
        if upto.is_some() || count == 0 {
            return Ok(());
        }
    }
}

/// Shows the program's output, and reports to the keeper the position up to which it was shown.
fn show(stream: &UnixStream, to: &ToKeeper) -> io::Result<ReturnReason> {
    let mut out = io::stdout();
    let mut shown = 0;
    loop {
        let frame = match wire::receive(stream) {
            // The keeper has ended without reading everything.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => None,
            frame => frame?,
        };
        match frame {
            Some(Frame::Begin { dropped, at }) => {
                shown = at;
                if dropped > 0 {
                    write!(out, "\r\n[{dropped} bytes of output were dropped]\r\n")?;
                    out.flush()?;
                    // The dropped bytes are reported once, and only then count as shown.
                    let _ = to.send(&Frame::Shown(shown));
                }
            }
            Some(Frame::Output(bytes)) => {
                out.write_all(&bytes)?;
                out.flush()?;
                shown += bytes.len() as u64;
                // A keeper that has ended may have sent the reason before.
                let _ = to.send(&Frame::Shown(shown));
            }
            Some(Frame::LetGo(taken)) => {
                return Ok(if taken {
                    ReturnReason::Taken
                } else {
                    ReturnReason::Detached
                });
            }
            Some(Frame::Exited(code)) => return Ok(ReturnReason::Ended(code)),
            Some(_) => return Err(io::ErrorKind::InvalidData.into()),
            None => {
                return Err(io::Error::other(
                    "the process that keeps the session was killed",
                ));
            }
        }
    }
}

/// Tells a session to release its terminal; having none is no error.
///
/// # Errors
/// There is no such session, or its keeper does not answer.
pub fn tell_to_detach(name: &Name) -> Result<(), PlaceError> {
    let stream = name.connect()?;
    let told = stream
        .set_read_timeout(Some(DETACH_WAIT))
        .and_then(|()| wire::send(&stream, &Frame::Detach))
        .and_then(|()| wire::receive(&stream));
    match told {
        Ok(Some(Frame::LetGo(_))) => Ok(()),
        Ok(_) => Err(io::Error::other(
            "the process that keeps the session closed the connection",
        )),
        Err(error) => Err(error),
    }
    .map_err(|error| PlaceError::Io {
        name: name.as_str().to_owned(),
        what: "detach",
        error,
    })
}
