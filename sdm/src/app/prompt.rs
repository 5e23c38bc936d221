//! The prompt: a person's lines, read in a thread of their own while the session goes on.

use std::collections::VecDeque;
use std::io::BufRead;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{io, thread};

use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, ExternalPrinter, Helper};

use super::Wake;
use crate::commands::{self, Wanted};
use crate::shell::{COMPLETE_WAIT, Control, LineSource, ScriptLine};

/// The most lines that the history keeps.
const HISTORY_LINES_MAX: usize = 10_000;
/// The most texts that wait to be printed above the line being edited.
const TEXTS_MAX: usize = 256;

/// Text to be printed above the line that a person edits.
pub(super) struct Queue {
    texts: Mutex<VecDeque<String>>,
    changed: Condvar,
    reading: Arc<AtomicBool>,
}

impl Queue {
    pub(super) fn new(reading: Arc<AtomicBool>) -> Self {
        Self {
            texts: Mutex::default(),
            changed: Condvar::new(),
            reading,
        }
    }

    /// Takes a text where a line is being edited, waiting for room as long as it is; else the
    /// caller prints it.
    pub(super) fn offer(&self, text: &str) -> bool {
        let mut texts = self.lock();
        while self.reading.load(Ordering::SeqCst) {
            if texts.len() < TEXTS_MAX {
                texts.push_back(text.to_owned());
                self.changed.notify_all();
                return true;
            }
            // The bound is for the end of the editing, which nobody tells the condition.
            let waited = self.changed.wait_timeout(texts, Duration::from_millis(20));
            texts = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        false
    }

    /// What was offered and not printed yet.
    pub(super) fn take(&self) -> String {
        let texts: Vec<_> = self.lock().drain(..).collect();
        texts.concat()
    }

    /// Prints what is offered, for ever.
    fn print_with(&self, printer: &mut impl ExternalPrinter) {
        loop {
            let mut texts = self.lock();
            while texts.is_empty() || !self.reading.load(Ordering::SeqCst) {
                let waited = self.changed.wait(texts);
                texts = waited.unwrap_or_else(PoisonError::into_inner);
            }
            let text: String = texts.drain(..).collect();
            drop(texts);
            self.changed.notify_all();
            if printer.print(text).is_err() {
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_reading(&self, reading: bool) {
        self.reading.store(reading, Ordering::SeqCst);
        self.changed.notify_all();
    }
}

/// Reads lines from a terminal.
pub(super) struct Prompt {
    asked: Sender<(String, bool)>,
    queue: Arc<Queue>,
}

impl Prompt {
    /// A prompt on this process's terminal.
    ///
    /// # Errors
    /// A terminal that cannot be used so.
    pub(super) fn start(
        queue: Arc<Queue>,
        controls: Sender<Control>,
        wake: Wake,
    ) -> rustyline::Result<Self> {
        let config = Config::builder()
            .max_history_size(HISTORY_LINES_MAX)?
            .history_ignore_space(true)
            .auto_add_history(false)
            .completion_type(CompletionType::List)
            .build();
        let mut editor: Editor<Words, FileHistory> = Editor::with_config(config)?;
        editor.set_helper(Some(Words {
            files: FilenameCompleter::new(),
            controls: controls.clone(),
            wake: Arc::clone(&wake),
        }));
        let mut printer = editor.create_external_printer()?;
        let printed = Arc::clone(&queue);
        thread::Builder::new()
            .name("printer".to_owned())
            .spawn(move || printed.print_with(&mut printer))?;
        let (asked, requests) = channel();
        let read = Arc::clone(&queue);
        thread::Builder::new()
            .name("prompt".to_owned())
            .spawn(move || read_lines(&mut editor, &requests, &read, &controls, &wake))?;
        Ok(Self { asked, queue })
    }
}

impl LineSource for Prompt {
    fn request(&mut self, prompt: &str, question: bool) {
        self.queue.set_reading(true);
        // The thread ends only with the process.
        let _ = self.asked.send((prompt.to_owned(), question));
    }
}

fn read_lines(
    editor: &mut Editor<Words, FileHistory>,
    requests: &Receiver<(String, bool)>,
    queue: &Queue,
    controls: &Sender<Control>,
    wake: &Wake,
) {
    let history = history_file();
    if let Some(file) = &history {
        // There is none on the first day.
        let _ = editor.load_history(file);
    }
    while let Ok((prompt, question)) = requests.recv() {
        let read = editor.readline(&prompt);
        queue.set_reading(false);
        let control = match read {
            Ok(text) => {
                if !question && !text.trim().is_empty() {
                    // A history that cannot be kept is no reason to stop.
                    let _ = editor.add_history_entry(text.as_str());
                    let _ = history.as_ref().map(|file| editor.append_history(file));
                }
                Control::Line(ScriptLine {
                    text,
                    origin: String::new(),
                })
            }
            Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => Control::Cleared,
            Err(_) => Control::Eof,
        };
        if controls.send(control).is_err() {
            return;
        }
        wake();
    }
}

/// `~/.local/state/sdm/history`, its directory made.
fn history_file() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let state = set("XDG_STATE_HOME").map(PathBuf::from);
    let state = state.or_else(|| Some(PathBuf::from(set("HOME")?).join(".local/state")))?;
    let directory = state.join("sdm");
    std::fs::create_dir_all(&directory).ok()?;
    Some(directory.join("history"))
}

/// Reads lines from a standard input that is no terminal.
pub(super) struct Piped {
    asked: Sender<()>,
}

impl Piped {
    /// Lines of this process's standard input.
    pub(super) fn start(controls: Sender<Control>, wake: Wake) -> io::Result<Self> {
        let (asked, requests) = channel();
        thread::Builder::new()
            .name("stdin".to_owned())
            .spawn(move || {
                let mut lines = io::stdin().lock().lines();
                let mut number = 0_u64;
                while let Ok(()) = requests.recv() {
                    number += 1;
                    let control = match lines.next() {
                        Some(Ok(text)) => Control::Line(ScriptLine {
                            text,
                            origin: format!("stdin:{number}"),
                        }),
                        _ => Control::Eof,
                    };
                    if controls.send(control).is_err() {
                        return;
                    }
                    wake();
                }
            })?;
        Ok(Self { asked })
    }
}

impl LineSource for Piped {
    fn request(&mut self, _prompt: &str, _question: bool) {
        // The thread ends only with the process.
        let _ = self.asked.send(());
    }
}

/// Completes commands, sets, files, and by gdb what belongs to the program.
struct Words {
    files: FilenameCompleter,
    controls: Sender<Control>,
    wake: Wake,
}

impl Completer for Words {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = &line[..at];
        if let Wanted::File(_) = commands::completions(typed, &[]) {
            return self.files.complete(line, at, context);
        }
        let (answer, answered) = channel();
        let asked = self
            .controls
            .send(Control::Complete(typed.to_owned(), answer));
        (self.wake)();
        let found = asked
            .ok()
            .and_then(|()| answered.recv_timeout(COMPLETE_WAIT * 2).ok());
        let (from, words) = found.unwrap_or((at, Vec::new()));
        let pair = |word: String| Pair {
            // A name that others begin with is not at its end.
            replacement: match word.ends_with([':', '(', '@', '/', '.']) {
                true => word.clone(),
                false => format!("{word} "),
            },
            display: word,
        };
        Ok((from, words.into_iter().map(pair).collect()))
    }
}

impl Hinter for Words {
    type Hint = String;
}
impl Highlighter for Words {}
impl Validator for Words {}
impl Helper for Words {}
