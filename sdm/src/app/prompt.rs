//! The prompt: a person's lines, read in a thread of their own while the session goes on.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::BufRead;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
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
use rustyline::{ColorMode, CompletionType, Config, Context, Editor, ExternalPrinter, Helper};
use sdm_shell::commands::{self, Wanted};
use sdm_shell::{COMPLETE_WAIT, Control, LineSource, ScriptLine};
use sdm_text::{beginning, columns, printable};
use sdm_view::escape::shown;

use super::typed::{Typed, TypedLine};
use super::wake::Wake;
use crate::sink::Sink;
use crate::unread::{is_given_up, writing};

/// The most lines that the history keeps.
const HISTORY_LINES_MAX: usize = 10_000;
/// The most texts that wait to be printed above the line being edited.
const TEXTS_MAX: usize = 256;

/// Printed above the line it leaves nothing there, and the line is drawn anew: up, and down again.
const NOTHING: &str = "\x1b[A\n";

/// Text to be printed above the line that a person edits, and what the prompt before it says.
pub(super) struct Queue {
    waiting: Mutex<QueuedTexts>,
    changed: Condvar,
    reading: Arc<AtomicBool>,
    /// Somebody was asked for a line.
    asked: AtomicBool,
    /// What is typed while nobody edits a line.
    pub(super) typed: Arc<Typed>,
}

#[derive(Default)]
struct QueuedTexts {
    texts: VecDeque<String>,
    /// What the prompt says now.
    prompt: String,
    /// It says something else than what stands there.
    stale: bool,
}

impl Queue {
    pub(super) fn new(reading: Arc<AtomicBool>) -> Self {
        Self {
            waiting: Mutex::default(),
            changed: Condvar::new(),
            reading,
            asked: AtomicBool::new(false),
            typed: Arc::default(),
        }
    }

    /// Takes a text where a line is being edited, waiting for room as long as it is; else the
    /// caller prints it.
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
            // The bound is for the end of the editing, which nobody tells the condition.
            let waited = self
                .changed
                .wait_timeout(waiting, Duration::from_millis(20));
            waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        false
    }

    /// What was offered and not printed yet.
    pub(super) fn take(&self) -> String {
        let texts: Vec<_> = self.lock().texts.drain(..).collect();
        texts.concat()
    }

    /// True once a person was asked for a line, and sits there.
    pub(super) fn has_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    /// What the prompt says from the next line on.
    fn say(&self, prompt: &str) {
        self.asked.store(true, Ordering::SeqCst);
        let mut waiting = self.lock();
        prompt.clone_into(&mut waiting.prompt);
        waiting.stale = false;
    }

    /// What the prompt says from now on, also where a line is being edited.
    fn retell(&self, prompt: &str) {
        let mut waiting = self.lock();
        prompt.clone_into(&mut waiting.prompt);
        waiting.stale = true;
        self.changed.notify_all();
    }

    /// Prints what is offered, for ever.
    fn print_with(&self, printer: &mut impl ExternalPrinter) {
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

    fn lock(&self) -> MutexGuard<'_, QueuedTexts> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
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
            // It colours nothing; else it does not ask what the prompt says.
            .color_mode(ColorMode::Forced)
            .build();
        let mut editor: Editor<Words, FileHistory> = Editor::with_config(config)?;
        editor.set_helper(Some(Words {
            files: FilenameCompleter::new(),
            controls: controls.clone(),
            wake: Arc::clone(&wake),
            queue: Arc::clone(&queue),
            is_coloured: Sink::Output.is_coloured(),
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
        let prompt = shown(prompt);
        self.queue.say(&prompt);
        self.queue.set_reading(true);
        // The thread ends only with the process.
        let _ = self.asked.send((prompt, question));
    }

    fn retell(&mut self, prompt: &str) {
        self.queue.retell(&shown(prompt));
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
        let read = match queue.typed.take_line() {
            Some(TypedLine::Line(text)) => {
                // It is no loss where nobody reads it.
                let _ = Sink::Output.show(&format!("{prompt}{}\n", printable(text.as_bytes())));
                Ok(text)
            }
            Some(TypedLine::End) => Err(ReadlineError::Eof),
            None => editor.readline_with_initial(&prompt, (&queue.typed.take_text(), "")),
        };
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
    let home = || Some(PathBuf::from(set("HOME")?));
    let (base, below) = match set("XDG_STATE_HOME") {
        Some(state) => (PathBuf::from(state), "sdm"),
        None => (home()?, ".local/state/sdm"),
    };
    // Behind sudo it can be another user's home, and what lies there leads anywhere.
    let is_mine = |folder: &Path| {
        let found = std::fs::metadata(folder);
        found.is_ok_and(|it| it.uid() == nix::unistd::geteuid().as_raw() && it.mode() & 0o002 == 0)
    };
    let directory = base.join(below);
    if !base.exists() || is_mine(&base) {
        std::fs::create_dir_all(&directory).ok()?;
    }
    is_mine(&directory).then(|| directory.join("history"))
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
    queue: Arc<Queue>,
    is_coloured: bool,
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
            let (from, files) = self.files.complete(line, at, context)?;
            let files = files.into_iter().filter(|pair| is_plain(&pair.replacement));
            return Ok((from, files.collect()));
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
        let words = words.into_iter().filter(|word| is_plain(word));
        Ok((from, words.map(pair).collect()))
    }
}

/// What cannot be shown as it is cannot be put into the line either.
fn is_plain(word: &str) -> bool {
    shown(word) == word && !word.contains(['\n', '\x1b'])
}

impl Hinter for Words {
    type Hint = String;
}

impl Highlighter for Words {
    /// The editor keeps the prompt's width for as long as it edits a line, not what it says.
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(
        &'s self,
        prompt: &'p str,
        is_own: bool,
    ) -> Cow<'b, str> {
        if is_own {
            let prompt = fitted(&self.queue.lock().prompt, columns(prompt));
            match self.is_coloured {
                true => in_colours(&prompt).into(),
                false => prompt.into(),
            }
        } else {
            prompt.into()
        }
    }
}

/// `[all 3: 2 stopped, 1 lost] (sdm) ` as wide as the editor believes: who is meant may go, and at last there are dots,
/// rather than states that were.
fn fitted(prompt: &str, width: usize) -> String {
    const END: &str = "(sdm) ";
    let head = prompt.strip_suffix(END).unwrap_or(prompt);
    let end = &prompt[head.len()..];
    let room = width.saturating_sub(columns(end));
    let mut heads = vec![head.to_owned()];
    if let Some((_, states)) = head.rsplit_once(": ") {
        heads.push(format!("[{states}"));
        heads.push(format!("[{}", states.trim_end()));
    }
    let fits = heads.into_iter().find(|head| columns(head) <= room);
    let head = fits.unwrap_or_else(|| beginning("[...]", room).to_owned());
    let blanks = room - columns(&head);
    format!("{head}{:blanks$}{end}", "")
}

/// The states of the tasks in less weight, and the name in more.
fn in_colours(prompt: &str) -> String {
    const NAME: &str = "(sdm)";
    match prompt.rsplit_once(NAME) {
        Some((head, end)) => format!("\x1b[2m{head}\x1b[0m\x1b[1m{NAME}\x1b[0m{end}"),
        None => prompt.to_owned(),
    }
}

impl Validator for Words {}
impl Helper for Words {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_that_changes_keeps_its_width() {
        let before = "[all 3: 3 stopped] (sdm) ";
        for (now, shown) in [
            (before, before),
            ("[all 3: 3 lost] (sdm) ", "[all 3: 3 lost]    (sdm) "),
            (
                "[all 3: 2 stopped, 1 lost] (sdm) ",
                "[2 stopped, 1 lost](sdm) ",
            ),
            (
                "[all 3: 1 stopped, 1 running, 1 lost] (sdm) ",
                "[...]              (sdm) ",
            ),
            ("y or n?", "y or n?                  "),
        ] {
            assert_eq!(fitted(now, before.len()), shown);
        }
        assert_eq!(fitted("[all 3: 3 lost] (sdm) ", 8), "[.(sdm) ");
    }

    /// A printer that keeps what it is given, and ends with the last of it.
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
    fn a_prompt_is_drawn_anew_with_what_is_printed_or_else_by_nothing() {
        let queue = Queue::new(Arc::default());
        let (to, printed) = channel();
        queue.say("before");
        queue.set_reading(true);
        assert!(queue.offer("text\n"));
        queue.retell("now");
        queue.print_with(&mut Printed(to.clone(), 1));
        assert_eq!(printed.recv().unwrap(), "text\n");
        assert!(!queue.lock().stale);
        queue.retell("later");
        queue.print_with(&mut Printed(to, 1));
        assert_eq!(printed.recv().unwrap(), NOTHING);
        assert_eq!(queue.lock().prompt, "later");
    }
}
