//! The terminal device: setup, guaranteed restoration, and input.

use std::io::{self, IsTerminal, Read, Stdout, Write, stdin, stdout};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Once;
use std::time::Duration;

use base64::Engine;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind, MouseEvent};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode, size,
};
use ratatui::layout::Rect;

use ratatui::{Frame, TerminalOptions, Viewport};
use signal_hook::SigId;
use signal_hook::consts::SIGWINCH;

/// Enables reports of mouse buttons and the wheel. Reports of moves would be too much for a slow
/// connection.
const MOUSE_ON: &[u8] = b"\x1b[?1000h\x1b[?1006h";
const MOUSE_OFF: &[u8] = b"\x1b[?1006l\x1b[?1000l";

/// The reason why there is no full screen.
#[derive(Debug, thiserror::Error)]
pub enum TerminalError {
    /// Input or output is not a terminal.
    #[error("a screen needs a terminal; {0}")]
    NoTerminal(&'static str),
    /// The terminal cannot move its cursor.
    #[error("TERM={0}: this terminal cannot show a screen; {1}")]
    Dumb(String, &'static str),
    /// A system call has failed.
    #[error("cannot use the terminal: {0}")]
    Io(#[from] io::Error),
}

/// An input from the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// A key was pressed.
    Key(KeyEvent),
    /// A mouse event.
    Mouse(MouseEvent),
    /// The terminal's size has changed.
    Resized,
}

/// The terminal of this process in full-screen mode, which ends on drop.
#[derive(Debug)]
pub struct Terminal {
    screen: ratatui::Terminal<CrosstermBackend<Stdout>>,
    /// True if mouse reports are enabled.
    has_mouse: bool,
    resizes: Resizes,
}

/// A pipe with a byte per change of the terminal's size. The signal may be delivered to any thread, so it
/// does not reliably interrupt a wait.
#[derive(Debug)]
struct Resizes {
    told: UnixStream,
    id: SigId,
}

impl Resizes {
    fn listen() -> io::Result<Self> {
        let (told, tells) = UnixStream::pair()?;
        told.set_nonblocking(true)?;
        let id = signal_hook::low_level::pipe::register(SIGWINCH, tells)?;
        Ok(Self { told, id })
    }

    /// True if the size has changed since the last call.
    fn take(&self) -> bool {
        let mut bytes = [0; 64];
        let mut has_changed = false;
        while matches!((&self.told).read(&mut bytes), Ok(1..)) {
            has_changed = true;
        }
        has_changed
    }
}

impl Drop for Resizes {
    fn drop(&mut self) {
        signal_hook::low_level::unregister(self.id);
    }
}

impl Terminal {
    /// Takes over the terminal. A panic restores it before its message. `otherwise` is advice for the error
    /// without a terminal; `has_mouse` enables mouse reports.
    ///
    /// # Errors
    /// There is no terminal, or it cannot show a full screen.
    pub fn take(otherwise: &'static str, has_mouse: bool) -> Result<Self, TerminalError> {
        check(otherwise)?;
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                give_back();
                before(panic);
            }));
        });
        let mut terminal = Self {
            screen: blank()?,
            has_mouse,
            resizes: Resizes::listen()?,
        };
        terminal.resume()?;
        Ok(terminal)
    }

    /// Releases the terminal for other programs, until [`resume`](Self::resume).
    pub fn suspend(&mut self) {
        give_back();
    }

    /// Takes over the terminal again, and redraws everything.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn resume(&mut self) -> Result<(), TerminalError> {
        enable_raw_mode()?;
        execute!(stdout(), EnterAlternateScreen)?;
        if self.has_mouse {
            let mut out = stdout().lock();
            out.write_all(MOUSE_ON)?;
            out.flush()?;
        }
        self.renew()
    }

    /// Begins with an empty screen of the terminal's current size.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn renew(&mut self) -> Result<(), TerminalError> {
        self.screen = blank()?;
        execute!(stdout(), Clear(ClearType::All))?;
        Ok(())
    }

    /// Draws a frame, and writes only the changed cells.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> Result<(), TerminalError> {
        self.screen.draw(draw)?;
        Ok(())
    }

    /// Copies a text to the terminal's clipboard, if the terminal supports OSC 52.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn copy(&mut self, text: &str) -> Result<(), TerminalError> {
        let encoded = base64::engine::general_purpose::STANDARD.encode(text);
        let mut out = stdout().lock();
        write!(out, "\x1b]52;c;{encoded}\x07")?;
        out.flush()?;
        Ok(())
    }

    /// Waits up to this time for an input. None on time-out, or if `woken` becomes readable first.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn input(
        &mut self,
        within: Duration,
        woken: Option<BorrowedFd<'_>>,
    ) -> Result<Option<Input>, TerminalError> {
        // Keys that came together are read together: those behind the first one wait in here, and not in the terminal.
        wait(Duration::ZERO, &self.resizes.told, woken)?;
        if !event::poll(Duration::ZERO)? {
            wait(within, &self.resizes.told, woken)?;
        }
        if self.resizes.take() {
            return Ok(Some(Input::Resized));
        }
        if !event::poll(Duration::ZERO)? {
            return Ok(None);
        }
        Ok(match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => Some(Input::Key(key)),
            Event::Mouse(mouse) => Some(Input::Mouse(mouse)),
            Event::Resize(..) => Some(Input::Resized),
            _ => None,
        })
    }
}

/// Checks that this process has a terminal that can show a screen.
///
/// # Errors
/// [`TerminalError`] gives the reason, with `otherwise` as advice.
pub fn check(otherwise: &'static str) -> Result<(), TerminalError> {
    if !stdin().is_terminal() || !stdout().is_terminal() {
        return Err(TerminalError::NoTerminal(otherwise));
    }
    let kind = std::env::var("TERM").unwrap_or_default();
    if kind.is_empty() || kind == "dumb" {
        let kind = sdm_text::printable(kind.as_bytes());
        return Err(TerminalError::Dumb(kind, otherwise));
    }
    Ok(())
}

/// Waits at most `within` for a key, a change of size or a wake-up. Returns an error if the terminal has hung up,
/// because crossterm would wait for its keys forever.
fn wait(within: Duration, resizes: &UnixStream, woken: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let input = stdin();
    let fds = [input.as_fd(), resizes.as_fd()];
    let mut fds: Vec<_> = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).into();
    fds.extend(woken.map(|woken| PollFd::new(woken, PollFlags::POLLIN)));
    let within = PollTimeout::try_from(within).unwrap_or(PollTimeout::MAX);
    match poll(&mut fds, within) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(error) => return Err(error.into()),
    }
    let gone = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL;
    match fds[0].revents() {
        Some(what) if what.intersects(gone) => Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the terminal was closed",
        )),
        _ => Ok(()),
    }
}

/// An empty screen of fixed size. ratatui's own tracking of the size queries the cursor's position, and
/// fails if the terminal does not answer soon.
fn blank() -> io::Result<ratatui::Terminal<CrosstermBackend<Stdout>>> {
    let (columns, lines) = size()?;
    let viewport = Viewport::Fixed(Rect::new(0, 0, columns, lines));
    let options = TerminalOptions { viewport };
    ratatui::Terminal::with_options(CrosstermBackend::new(stdout()), options)
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back();
    }
}

/// Restores the terminal. Errors are ignored, because then the terminal is gone and no one can see them.
fn give_back() {
    let _ = stdout().write_all(MOUSE_OFF);
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}
