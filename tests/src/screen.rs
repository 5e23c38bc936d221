//! Output of a process so far, on which a test can wait.

use std::io::Read;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use sdm_idset::IdSet;

use crate::run::BOUND;

/// Text that grows until its writer ends.
#[derive(Clone, Default)]
pub struct Screen(Arc<(Mutex<Seen>, Condvar)>);

#[derive(Default)]
struct Seen {
    bytes: Vec<u8>,
    ended: bool,
}

impl Screen {
    /// Reads all output of `source` in a separate thread.
    pub fn read(mut source: impl Read + Send + 'static) -> (Self, JoinHandle<()>) {
        let screen = Self::default();
        let filled = screen.clone();
        let reader = thread::spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            // A terminal whose other side is gone ends with an error.
            while let Ok(count @ 1..) = source.read(&mut buffer) {
                filled.lock().bytes.extend_from_slice(&buffer[..count]);
                filled.0.1.notify_all();
            }
            filled.lock().ended = true;
            filled.0.1.notify_all();
        });
        (screen, reader)
    }

    /// All output so far, without escape sequences and carriage returns.
    #[must_use]
    pub fn text(&self) -> String {
        plain(&String::from_utf8_lossy(&self.lock().bytes))
    }

    /// All output so far, escape sequences included.
    #[must_use]
    pub fn raw(&self) -> String {
        String::from_utf8_lossy(&self.lock().bytes).into_owned()
    }

    /// The visible text: without text that was erased or overwritten. Lines are as long as they
    /// were written.
    #[must_use]
    pub fn shown(&self) -> String {
        shown(&String::from_utf8_lossy(&self.lock().bytes))
    }

    /// Length of the text so far, in bytes, for [`Screen::wait`].
    #[must_use]
    pub fn mark(&self) -> usize {
        self.text().len()
    }

    /// Waits until the text since `mark` contains `wanted`; returns the text since `mark`.
    ///
    /// # Panics
    /// If it has not come within [`BOUND`], or nothing more can come.
    pub fn wait(&self, mark: usize, wanted: &str) -> String {
        self.wait_until(mark, wanted, |new| new.contains(wanted))
    }

    /// Waits until `what` was reported of every one of `ranks` since `mark`, at once or one after another, as of
    /// ranks that end by themselves.
    ///
    /// # Panics
    /// As [`Screen::wait`] does.
    pub fn wait_each(&self, mark: usize, ranks: &str, what: &str) -> String {
        let all: IdSet = ranks.parse().expect("a set");
        let wanted = format!("ranks {ranks}: {what}");
        self.wait_until(mark, &wanted, |new| {
            let said: Vec<_> = new
                .lines()
                .filter_map(|line| ranks_of(line, what))
                .collect();
            all.is_subset(&IdSet::union_all(&said))
        })
    }

    /// Waits for a whole line with `wanted` in what has come since `mark`, and gives that line.
    ///
    /// # Panics
    /// As [`Screen::wait`] does.
    #[must_use]
    pub fn wait_line(&self, mark: usize, wanted: &str) -> String {
        self.wait_where(mark, wanted, |line| line.contains(wanted))
    }

    /// Waits for a whole line of which `is_it` holds in what has come since `mark`, and gives that line. `wanted` names
    /// it in an error.
    ///
    /// # Panics
    /// As [`Screen::wait`] does.
    #[must_use]
    pub fn wait_where(&self, mark: usize, wanted: &str, is_it: impl Fn(&str) -> bool) -> String {
        let line = |new: &str| {
            let whole = new
                .split_inclusive('\n')
                .filter_map(|it| it.strip_suffix('\n'));
            whole.map(str::to_owned).find(|it| is_it(it))
        };
        let new = self.wait_until(mark, wanted, |new| line(new).is_some());
        line(&new).expect("it has come")
    }

    fn wait_until(&self, mark: usize, wanted: &str, has_come: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + BOUND;
        let mut seen = self.lock();
        loop {
            let text = plain(&String::from_utf8_lossy(&seen.bytes));
            // A letter that had only half come may have got shorter.
            let new = text.get(mark..).unwrap_or_default();
            if has_come(new) {
                return new.to_owned();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(
                !seen.ended && !left.is_zero(),
                "waited in vain for {wanted:?}; the screen:\n{text}"
            );
            let waited = self.0.1.wait_timeout(seen, left);
            seen = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for the end of the output; false if nothing has come for [`BOUND`] before it.
    #[must_use]
    pub fn wait_end(&self) -> bool {
        let mut seen = self.lock();
        loop {
            let known = seen.bytes.len();
            let same = |seen: &mut Seen| !seen.ended && seen.bytes.len() == known;
            let waited = self.0.1.wait_timeout_while(seen, BOUND, same);
            let (now, over) = waited.unwrap_or_else(PoisonError::into_inner);
            if now.ended || over.timed_out() {
                return now.ended;
            }
            seen = now;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The ranks of which a line reports `what`, as `ranks 0-1,3 (3): exited normally` does.
#[must_use]
pub fn ranks_of(line: &str, what: &str) -> Option<IdSet> {
    let (before, said) = line.split_once(": ")?;
    let ranks = before.rsplit_once("rank")?.1.trim_start_matches('s');
    let ranks = ranks.split_whitespace().next()?;
    said.starts_with(what).then(|| ranks.parse().ok())?
}

/// The visible lines of a terminal whose cursor moves within a line only, as prompts and status lines do. One
/// exception is handled: a redrawn prompt, which goes up one line and down again.
fn shown(text: &str) -> String {
    let text = text.replace("\x1b[A\r\n", "\r");
    let mut lines: Vec<String> = Vec::new();
    let (mut line, mut at): (Vec<char>, usize) = (Vec::new(), 0);
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            '\n' => {
                lines.push(line.drain(..).collect());
                at = 0;
            }
            '\r' => at = 0,
            '\x1b' if chars.clone().next() == Some('[') => {
                chars.next();
                let mut number = 0;
                for char in chars.by_ref() {
                    match char {
                        '0'..='9' => number = number * 10 + char as usize - '0' as usize,
                        'C' => at += number.max(1),
                        'D' => at = at.saturating_sub(number.max(1)),
                        'J' | 'K' => line.truncate(at),
                        _ => {}
                    }
                    if ('@'..='~').contains(&char) {
                        break;
                    }
                }
            }
            char => {
                line.resize(line.len().max(at + 1), ' ');
                line[at] = char;
                at += 1;
            }
        }
    }
    lines.push(line.into_iter().collect());
    lines.join("\n")
}

/// Removes escape sequences and carriage returns from a text.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            '\x1b' => {
                if chars.next() == Some('[') {
                    chars.by_ref().find(|char| ('@'..='~').contains(char));
                }
            }
            '\r' => {}
            char => plain.push(char),
        }
    }
    plain
}
