//! The terminal itself: taken, given back whatever happens, and asked for keys.

use std::io::{self, IsTerminal, Stdout, stdin, stdout};
use std::os::fd::AsFd;
use std::sync::Once;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode, size,
};
use ratatui::layout::Rect;

use ratatui::{TerminalOptions, Viewport};

use crate::Top;

/// Why there is no screen.
#[derive(Debug, thiserror::Error)]
pub enum TerminalError {
    /// There is nobody who looks at it.
    #[error("a screen needs a terminal; `sdm jobs --watch` writes lines")]
    NoTerminal,
    /// The terminal cannot move its cursor.
    #[error("TERM={0}: this terminal cannot show a screen; `sdm jobs --watch` writes lines")]
    Dumb(String),
    /// The system says no.
    #[error("the terminal: {0}")]
    Io(#[from] io::Error),
}

/// What comes from the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// A key was pressed.
    Key(KeyEvent),
    /// It has another size.
    Resized,
}

/// The terminal of this process, as a screen while this value lives.
#[derive(Debug)]
pub struct Terminal(ratatui::Terminal<CrosstermBackend<Stdout>>);

impl Terminal {
    /// Takes the terminal. A panic from now on gives it back before it says anything.
    ///
    /// # Errors
    /// There is none, or it can show no screen.
    pub fn take() -> Result<Self, TerminalError> {
        if !stdin().is_terminal() || !stdout().is_terminal() {
            return Err(TerminalError::NoTerminal);
        }
        let kind = std::env::var("TERM").unwrap_or_default();
        if kind.is_empty() || kind == "dumb" {
            return Err(TerminalError::Dumb(sdm_text::printable(kind.as_bytes())));
        }
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                give_back();
                before(panic);
            }));
        });
        let mut terminal = Self(blank()?);
        terminal.resume()?;
        Ok(terminal)
    }

    /// Gives the terminal to others, until [`resume`](Self::resume).
    pub fn suspend(&mut self) {
        give_back();
    }

    /// Takes the terminal again; all is drawn anew.
    ///
    /// # Errors
    /// It is gone.
    pub fn resume(&mut self) -> Result<(), TerminalError> {
        enable_raw_mode()?;
        execute!(stdout(), EnterAlternateScreen)?;
        self.renew()
    }

    /// Begins with an empty screen of the size that the terminal has now.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn renew(&mut self) -> Result<(), TerminalError> {
        self.0 = blank()?;
        execute!(stdout(), Clear(ClearType::All))?;
        Ok(())
    }

    /// Writes what has changed of the frame.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn draw(&mut self, top: &mut Top) -> Result<(), TerminalError> {
        self.0.draw(|frame| top.draw(frame))?;
        Ok(())
    }

    /// What comes within this time.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn input(&mut self, within: Duration) -> Result<Option<Input>, TerminalError> {
        wait(within)?;
        if !event::poll(Duration::ZERO)? {
            return Ok(None);
        }
        Ok(match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => Some(Input::Key(key)),
            Event::Resize(..) => Some(Input::Resized),
            _ => None,
        })
    }
}

/// Waits for a key or another size. Nobody is at the other end of a terminal that has hung up: crossterm, which would wait for its
/// keys, never comes back from that.
fn wait(within: Duration) -> io::Result<()> {
    let input = stdin();
    let mut fds = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
    let within = PollTimeout::try_from(within).unwrap_or(PollTimeout::MAX);
    match poll(&mut fds, within) {
        // The signal that says that the size has changed.
        Ok(_) | Err(Errno::EINTR) => {}
        Err(error) => return Err(error.into()),
    }
    let gone = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL;
    match fds[0].revents() {
        Some(what) if what.intersects(gone) => Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "it has hung up",
        )),
        _ => Ok(()),
    }
}

/// A screen with nothing on it. Its size is fixed: ratatui's own way to follow the terminal's asks that where its cursor is, and
/// fails where that does not answer soon.
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

/// What fails here has nobody to be told: the terminal is gone.
fn give_back() {
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}
