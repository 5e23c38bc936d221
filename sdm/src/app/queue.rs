//! Output while the user edits a line, and the current text of the prompt.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustyline::ExternalPrinter;

use super::full_screen::Full;
use super::type_ahead::Typed;
use crate::blocked_output::{is_given_up, writing};

/// Maximum number of queued texts that are to be printed above the edited line.
const TEXTS_MAX: usize = 256;

/// Text that prints nothing above the line but causes a redraw: the cursor moves up and down again.
pub(super) const NOTHING: &str = "\x1b[A\n";

/// Output to print above the line that the user edits, and the current text of the prompt.
pub(super) struct Queue {
    waiting: Mutex<QueuedTexts>,
    changed: Condvar,
    reading: Arc<AtomicBool>,
    /// True once a line has been requested.
    asked: AtomicBool,
    /// Keys that are typed while no line is edited.
    pub(super) typed: Arc<Typed>,
    /// The full screen, which may be hidden.
    pub(super) full: Arc<Full>,
}

#[derive(Default)]
struct QueuedTexts {
    texts: VecDeque<String>,
    /// The current text of the prompt.
    prompt: String,
    /// True while the displayed prompt is out of date.
    stale: bool,
}

impl Queue {
    pub(super) fn new(reading: Arc<AtomicBool>, full: Full) -> Self {
        Self {
            full: Arc::new(full),
            waiting: Mutex::default(),
            changed: Condvar::new(),
            reading,
            asked: AtomicBool::new(false),
            typed: Arc::default(),
        }
    }

    /// Queues a text if a line is being edited, and waits for room. Returns false if none is; the caller
    /// then prints the text.
    pub(super) fn offer(&self, text: &str) -> bool {
        writing(|| self.offer_reading(text))
    }

    fn offer_reading(&self, text: &str) -> bool {
        let mut waiting = self.lock();
        while self.reading.load(Ordering::SeqCst) {
            if is_given_up() {
                return true;
            }
            if waiting.texts.len() < TEXTS_MAX {
                waiting.texts.push_back(text.to_owned());
                self.changed.notify_all();
                return true;
            }
            // The timeout is for the end of the editing, which does not signal this condition.
            let waited = self
                .changed
                .wait_timeout(waiting, Duration::from_millis(20));
            waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        false
    }

    /// Takes the queued texts that were not printed.
    pub(super) fn take(&self) -> String {
        let texts: Vec<_> = self.lock().texts.drain(..).collect();
        texts.concat()
    }

    /// True once a line has been requested from a user.
    pub(super) fn has_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    /// Sets the text of the prompt for the next line.
    pub(super) fn say(&self, prompt: &str) {
        self.asked.store(true, Ordering::SeqCst);
        let mut waiting = self.lock();
        prompt.clone_into(&mut waiting.prompt);
        waiting.stale = false;
    }

    /// Sets the text of the prompt, also for a line that is being edited.
    pub(super) fn set_prompt(&self, prompt: &str) {
        let mut waiting = self.lock();
        prompt.clone_into(&mut waiting.prompt);
        waiting.stale = true;
        self.changed.notify_all();
    }

    /// Prints queued texts until the printer fails.
    pub(super) fn print_with(&self, printer: &mut (impl ExternalPrinter + ?Sized)) {
        loop {
            let mut waiting = self.lock();
            while (waiting.texts.is_empty() && !waiting.stale)
                || !self.reading.load(Ordering::SeqCst)
            {
                let waited = self.changed.wait(waiting);
                waiting = waited.unwrap_or_else(PoisonError::into_inner);
            }
            let mut text: String = waiting.texts.drain(..).collect();
            waiting.stale = false;
            drop(waiting);
            if text.is_empty() {
                text.push_str(NOTHING);
            }
            self.changed.notify_all();
            if printer.print(text).is_err() {
                return;
            }
        }
    }

    /// The current text of the prompt.
    pub(super) fn prompt(&self) -> String {
        self.lock().prompt.clone()
    }

    fn lock(&self) -> MutexGuard<'_, QueuedTexts> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_reading(&self, reading: bool) {
        self.reading.store(reading, Ordering::SeqCst);
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use rustyline::error::ReadlineError;

    use super::*;

    /// A printer that records its texts, and fails after a number of them.
    struct Printed(Sender<String>, usize);

    impl ExternalPrinter for Printed {
        fn print(&mut self, text: String) -> rustyline::Result<()> {
            self.1 -= 1;
            self.0.send(text).expect("it is listened to");
            match self.1 {
                0 => Err(ReadlineError::Eof),
                _ => Ok(()),
            }
        }
    }

    #[test]
    fn changed_prompt_is_redrawn_with_or_without_output() {
        let queue = Queue::new(
            Arc::default(),
            Full::new(&crate::cli::LookArgs::default()).unwrap(),
        );
        let (to, printed) = channel();
        queue.say("before");
        queue.set_reading(true);
        assert!(queue.offer("text\n"));
        queue.set_prompt("now");
        queue.print_with(&mut Printed(to.clone(), 1));
        assert_eq!(printed.recv().unwrap(), "text\n");
        assert!(!queue.lock().stale);
        queue.set_prompt("later");
        queue.print_with(&mut Printed(to, 1));
        assert_eq!(printed.recv().unwrap(), NOTHING);
        assert_eq!(queue.lock().prompt, "later");
    }
}
