//! The full-screen mode instead of the plain prompt. A thread of its own owns the terminal while the screen
//! is shown, reads its keys and draws. Messages of the session meanwhile are shown there, and again at the
//! prompt when it returns.

mod actions;
mod line_history;
mod state;
#[cfg(test)]
mod tests;

use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use sdm_screen::{Debugger, Input, Terminal, TerminalError};
use sdm_shell::Control;
use sdm_view::overview::{Overview, Printed};
use sdm_view::render::Names;

use super::wake::Wake;
use crate::cli::LookArgs;
use crate::sink::{Sink, complain};
use crate::user_state;
use line_history::LineHistory;
use state::FullState;
pub(super) use state::LineRequest;

/// Minimum interval between two frames: more than thirty a second are not perceived.
const FRAME: Duration = Duration::from_millis(33);
/// Maximum time that the thread sleeps. Any event wakes it.
const IDLE: Duration = Duration::from_secs(3600);
/// Maximum number of texts that wait to be drawn, or are kept while the screen is not shown.
const TEXTS_MAX: usize = 400;
/// Maximum size of the messages that are repeated at the prompt, in bytes. The last ones are kept.
const MISSED_BYTES_MAX: usize = 64 << 10;
/// Time limit for the end of a session to wait for the terminal, which may be blocked.
const LEAVE_WAIT: Duration = Duration::from_secs(5);
/// Granularity of displayed ages, so that an idle screen is rarely redrawn.
const AGE_STEP: Duration = Duration::from_secs(10);
/// The name under which settings of the screen are kept.
const REMEMBERED: &str = "screen-debugger";
/// Advice for a terminal without full-screen mode.
const OTHERWISE: &str = "without --tui sdm starts at the prompt";

/// The full screen, shown or hidden.
pub(super) struct Full {
    state: Mutex<FullState>,
    changed: Condvar,
    /// A byte that is written here wakes the thread.
    poke: UnixStream,
    woken: UnixStream,
    look: LookArgs,
}

/// The channels from the screen's thread to the shell and the prompt.
pub(super) struct Shared {
    pub(super) controls: Sender<Control>,
    pub(super) wake: Wake,
    pub(super) prompt: Sender<LineRequest>,
    /// Passes an unfinished input line on to the prompt.
    pub(super) keep_typed: Box<dyn Fn(&str) + Send>,
}

/// Checks that the terminal supports full-screen mode.
///
/// # Errors
/// [`TerminalError`] gives the reason.
pub(super) fn check() -> Result<(), TerminalError> {
    sdm_screen::check(OTHERWISE)
}

impl Full {
    /// A hidden screen.
    ///
    /// # Errors
    /// No descriptor is available.
    pub(super) fn new(look: &LookArgs) -> std::io::Result<Self> {
        let (poke, woken) = UnixStream::pair()?;
        poke.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        Ok(Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            poke,
            woken,
            look: look.clone(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, FullState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        self.changed.notify_all();
        // A full pipe wakes the thread anyway.
        let _ = (&self.poke).write(&[0]);
    }

    /// True while the screen has the terminal, or is about to take it.
    pub(super) fn is_on(&self) -> bool {
        let state = self.lock();
        state.on || state.holds
    }

    /// Sets the names of tasks.
    pub(super) fn set_names(&self, names: Names) {
        self.lock().names = Some(names);
    }

    /// Width for the text of messages, in columns. None while it is unknown.
    pub(super) fn width(&self) -> Option<usize> {
        self.lock().width
    }

    /// Shows the screen, or gives the terminal back to the prompt. Returns false if the terminal does not
    /// support it.
    pub(super) fn set(&self, on: bool) -> bool {
        if on && check().is_err() {
            return false;
        }
        self.lock().on = on;
        self.wake();
        true
    }

    /// Enters the screen from the prompt, with its unfinished input line.
    pub(super) fn enter(&self, asked: LineRequest, typed: String) {
        let mut state = self.lock();
        state.on = true;
        state.asked = Some(asked);
        state.typed = Some(typed);
        drop(state);
        self.wake();
    }

    /// Requests a line on the screen. Returns the request if the prompt has to handle it.
    pub(super) fn ask(&self, asked: LineRequest) -> Option<LineRequest> {
        let mut state = self.lock();
        if !state.on && !state.holds {
            return Some(asked);
        }
        state.asked = Some(asked);
        drop(state);
        self.wake();
        None
    }

    /// Changes the prompt of the requested line.
    pub(super) fn set_prompt(&self, prompt: &str) {
        if let Some((said, _)) = &mut self.lock().asked {
            prompt.clone_into(said);
        }
        self.wake();
    }

    /// Adds a message. Returns false if the screen is not shown, so that the prompt prints it.
    pub(super) fn say(&self, text: &str) -> bool {
        let mut state = self.lock();
        if state.texts.len() == TEXTS_MAX {
            state.texts.pop_front();
        }
        state.texts.push_back(uncoloured(text));
        if !state.on && !state.holds {
            return false;
        }
        state.missed.push_str(text);
        let excess = state.missed.len().saturating_sub(MISSED_BYTES_MAX);
        if excess > 0 {
            let rest = state.missed.as_bytes()[excess..].iter();
            let line = rest.take_while(|byte| **byte != b'\n').count();
            let cut = (excess + line + 1).min(state.missed.len());
            state.missed = state.missed.split_off(cut);
        }
        drop(state);
        self.wake();
        true
    }

    /// Adds a line of program output.
    pub(super) fn print(&self, printed: Printed) {
        let mut state = self.lock();
        if state.printed.len() == TEXTS_MAX {
            state.printed.pop_front();
        }
        state.printed.push_back(printed);
        drop(state);
        self.wake();
    }

    /// Sets the status line.
    pub(super) fn tell_status(&self, line: Option<&str>) {
        self.lock().status = line.map(str::to_owned);
        self.wake();
    }

    /// Sets the state of the session.
    pub(super) fn show(&self, board: &Overview) {
        self.lock().board = Some(board.clone());
        self.wake();
    }

    /// Lends the terminal to a local command, or takes it back.
    pub(super) fn lend(&self, lent: bool) {
        let mut state = self.lock();
        state.lent = lent;
        self.wake();
        while lent && state.holds && state.on {
            let waited = self.changed.wait_timeout(state, LEAVE_WAIT);
            let (next, waited) = waited.unwrap_or_else(PoisonError::into_inner);
            state = next;
            if waited.timed_out() {
                break;
            }
        }
    }

    /// Restores the terminal at the end of the session.
    pub(super) fn leave(&self) {
        let mut state = self.lock();
        state.on = false;
        state.asked = None;
        self.wake();
        while state.holds {
            let waited = self.changed.wait_timeout(state, LEAVE_WAIT);
            let (next, waited) = waited.unwrap_or_else(PoisonError::into_inner);
            state = next;
            if waited.timed_out() {
                return;
            }
        }
    }

    /// Starts the thread that owns the terminal while the screen is shown. It runs until the process ends.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn start(self: &Arc<Self>, shared: Shared) -> std::io::Result<()> {
        let full = Arc::clone(self);
        thread::Builder::new()
            .name("screen".to_owned())
            .spawn(move || full.run(&shared))?;
        Ok(())
    }

    fn run(self: &Arc<Self>, shared: &Shared) {
        let mut debugger = None;
        let mut kept = LineHistory::load();
        loop {
            let mut state = self.lock();
            while !state.on || state.lent {
                let waited = self.changed.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
            }
            state.holds = true;
            let names = state.names.clone().unwrap_or_else(Names::ranks);
            drop(state);
            let debugger = debugger.get_or_insert_with(|| self.debugger(names, &kept));
            let guard = Given(self, shared);
            let shown = self.show_until_left(debugger, &mut kept, shared);
            user_state::write(REMEMBERED, &debugger.remembered());
            if let Err(error) = shown {
                complain(format_args!("sdm: {error}"));
                // After a hang-up of the terminal no user can enter anything more.
                if matches!(error, TerminalError::Io(_)) {
                    let _ = shared
                        .controls
                        .send(Control::Terminate(Signal::SIGHUP as u8));
                    (shared.wake)();
                }
                self.lock().on = false;
            }
            drop(guard);
        }
    }

    /// A screen with the settings of the last start.
    fn debugger(&self, names: Names, kept: &LineHistory) -> Debugger {
        let style = self.look.style(Sink::Output.is_coloured());
        let mut debugger = Debugger::new(style, names);
        debugger.bind(self.look.bindings());
        debugger.recall(&self.look.recalled(&user_state::read(REMEMBERED)));
        debugger.recall_lines(kept.lines());
        debugger
    }

    /// Shows the screen until the terminal has to be given back.
    fn show_until_left(
        self: &Arc<Self>,
        debugger: &mut Debugger,
        kept: &mut LineHistory,
        shared: &Shared,
    ) -> Result<(), TerminalError> {
        let mut terminal = Terminal::take(OTHERWISE, !self.look.no_mouse)?;
        debugger.handle_resize();
        self.measure();
        // An idle session is woken, so that it sends its state.
        (shared.wake)();
        let mut drawn = None::<Instant>;
        let mut looked = Instant::now();
        loop {
            let mut state = self.lock();
            if !state.on || state.lent {
                return Ok(());
            }
            state.give_to(debugger);
            drop(state);
            let mut wait = IDLE;
            if debugger.is_aging() {
                let age = looked.elapsed().as_secs() / AGE_STEP.as_secs();
                debugger.handle_age(age * AGE_STEP.as_secs());
                wait = AGE_STEP;
            } else {
                looked = Instant::now();
                debugger.handle_age(0);
            }
            let due = drawn.map_or(Duration::ZERO, |drawn| {
                FRAME.saturating_sub(drawn.elapsed())
            });
            if !due.is_zero() {
                wait = due;
            } else if debugger.take_changed() {
                terminal.draw(|frame| debugger.draw(frame))?;
                drawn = Some(Instant::now());
                continue;
            }
            match terminal.input(wait, Some(self.woken.as_fd()))? {
                Some(Input::Key(key)) => debugger.handle_key(key),
                Some(Input::Mouse(event)) => debugger.handle_mouse(event),
                Some(Input::Resized) => {
                    terminal.renew()?;
                    debugger.handle_resize();
                    self.measure();
                }
                None => {}
            }
            self.take_pokes();
            while let Some(deed) = debugger.poll_action() {
                self.carry_out(deed, &mut terminal, debugger, shared)?;
            }
            kept.keep(&debugger.take_typed());
        }
    }

    /// Measures the width for the text of messages on the current terminal.
    fn measure(&self) {
        let size = Sink::Output.size().unwrap_or((80, 24));
        let short = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
        let width = Debugger::text_width(short(size.0), short(size.1));
        self.lock().width = Some(usize::from(width));
    }

    fn take_pokes(&self) {
        let mut bytes = [0; 256];
        loop {
            match (&self.woken).read(&mut bytes) {
                Ok(1..) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => return,
            }
        }
    }

    /// Returns control to the prompt: prints the messages that came meanwhile, and passes on the request
    /// for a line.
    fn give_back(&self, shared: &Shared) {
        loop {
            let mut state = self.lock();
            let missed = std::mem::take(&mut state.missed);
            if missed.is_empty() || state.lent {
                state.missed = missed;
                state.holds = false;
                let is_prompts = !state.lent && !state.on;
                if let Some(asked) = state.asked.take_if(|_| is_prompts) {
                    // The thread ends only with the process.
                    let _ = shared.prompt.send(asked);
                }
                drop(state);
                self.changed.notify_all();
                return;
            }
            drop(state);
            // A failed write is ignored: the output is not read.
            let _ = Sink::Output.show(&missed);
        }
    }
}

/// Gives the terminal back to the prompt on drop, even if the thread ends.
struct Given<'a>(&'a Full, &'a Shared);

impl Drop for Given<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.lock().on = false;
        }
        self.0.give_back(self.1);
    }
}

/// Removes the escape sequences of colours from a text.
fn uncoloured(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        plain.push_str(before);
        let end = after.find(|c: char| ('@'..='~').contains(&c));
        rest = end.map_or("", |end| &after[end + 1..]);
    }
    plain + rest
}
