//! The prompt: lines of the user, read in a thread of its own while the session continues.

use std::borrow::Cow;
use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::{io, thread};

use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{
    Cmd, ColorMode, CompletionType, ConditionalEventHandler, Config, Context, Editor, Event,
    EventContext, EventHandler, ExternalPrinter, Helper, RepeatCount,
};
use sdm_shell::commands::{self, CompletionKind};
use sdm_shell::{Control, LineSource, ScriptLine};
use sdm_text::{beginning, columns, printable};
use sdm_view::escape::shown;

use super::full_screen::Shared;
use super::queue::{NOTHING, Queue};
use super::type_ahead::TypedLine;
use super::wake::Wake;
use super::words;

use crate::sink::Sink;

/// Maximum number of lines in the history.
const HISTORY_LINES_MAX: usize = 10_000;
/// A reader of lines from a terminal.
pub(super) struct Prompt {
    asked: Sender<(String, bool)>,
    /// True while the terminal still edits a requested line. A page may have given that line already, so that the shell
    /// requests another one.
    waits: Arc<AtomicBool>,
    queue: Arc<Queue>,
}

impl Prompt {
    /// A prompt on this process's terminal.
    ///
    /// # Errors
    /// The terminal does not support line editing.
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
            // Only with colours does the editor call `highlight_prompt`, which gives the prompt's current
            // text.
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
        let mut printer: Box<dyn ExternalPrinter + Send> = match editor.create_external_printer() {
            Ok(printer) => Box::new(printer),
            Err(_) => Box::new(PlainPrinter),
        };
        let printed = Arc::clone(&queue);
        thread::Builder::new()
            .name("printer".to_owned())
            .spawn(move || printed.print_with(&mut *printer))?;
        let (asked, requests) = channel();
        let leaves = Arc::<AtomicBool>::default();
        let switch = || EventHandler::Conditional(Box::new(Switch(Arc::clone(&leaves))));
        for key in [
            rustyline::KeyEvent::from('a'),
            rustyline::KeyEvent::ctrl('A'),
        ] {
            let keys = vec![rustyline::KeyEvent::ctrl('X'), key];
            editor.bind_sequence(Event::KeySeq(keys), switch());
        }
        let typed = Arc::clone(&queue.typed);
        queue.full.start(Shared {
            controls: controls.clone(),
            wake: Arc::clone(&wake),
            prompt: asked.clone(),
            keep_typed: Box::new(move |text| typed.put_text(text)),
        })?;
        let read = Arc::clone(&queue);
        let waits = Arc::<AtomicBool>::default();
        let waiting = Arc::clone(&waits);
        thread::Builder::new()
            .name("prompt".to_owned())
            .spawn(move || {
                read_lines(
                    &mut editor,
                    &requests,
                    &read,
                    (&controls, &wake),
                    (&leaves, &waiting),
                )
            })?;
        Ok(Self {
            asked,
            waits,
            queue,
        })
    }
}

/// A printer for a terminal without cursor movements (`TERM=dumb`), whose lines the kernel edits. It prints at the
/// current cursor position.
struct PlainPrinter;

impl ExternalPrinter for PlainPrinter {
    fn print(&mut self, text: String) -> rustyline::Result<()> {
        if text != NOTHING {
            Sink::Output.show(&text)?;
        }
        Ok(())
    }
}

impl LineSource for Prompt {
    fn request(&mut self, prompt: &str, question: bool) {
        let asked = self.queue.full.ask((shown(prompt), question));
        match asked {
            Some((prompt, _)) if self.waits.load(Ordering::SeqCst) => {
                self.queue.set_prompt(&prompt)
            }
            Some(asked) => {
                self.waits.store(true, Ordering::SeqCst);
                // The thread ends only with the process.
                let _ = self.asked.send(asked);
            }
            None => {}
        }
    }

    fn set_prompt(&mut self, prompt: &str) {
        let prompt = shown(prompt);
        self.queue.full.set_prompt(&prompt);
        self.queue.set_prompt(&prompt);
    }
}

fn read_lines(
    editor: &mut Editor<Words, FileHistory>,
    requests: &Receiver<(String, bool)>,
    queue: &Queue,
    (controls, wake): (&Sender<Control>, &Wake),
    (leaves, waits): (&AtomicBool, &AtomicBool),
) {
    let history = crate::user_state::folder().map(|it| it.join(crate::user_state::HISTORY));
    if let Some(file) = &history {
        // The first session has no history yet.
        let _ = editor.load_history(file);
    }
    while let Ok((prompt, question)) = requests.recv() {
        waits.store(true, Ordering::SeqCst);
        queue.say(&prompt);
        queue.set_reading(true);
        let read = match queue.typed.take_line() {
            Some(TypedLine::Line(text)) => {
                // A failed write is ignored: the output is not read.
                let _ = Sink::Output.show(&format!("{prompt}{}\n", printable(text.as_bytes())));
                Ok(text)
            }
            Some(TypedLine::End) => Err(ReadlineError::Eof),
            None => editor.readline_with_initial(&prompt, (&queue.typed.take_text(), "")),
        };
        queue.set_reading(false);
        waits.store(false, Ordering::SeqCst);
        if leaves.swap(false, Ordering::SeqCst) {
            // The session still waits for this line.
            let typed = read.unwrap_or_default();
            queue.full.enter((prompt, question), typed);
            wake();
            continue;
        }
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

/// A reader of lines from standard input without a prompt: standard input or output is no terminal, or the output is
/// JSON.
pub(super) struct Piped {
    asked: Sender<()>,
}

impl Piped {
    /// Starts reading lines from this process's standard input.
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

/// Handler of Ctrl-X A: leaves the unfinished line for the full screen.
struct Switch(Arc<AtomicBool>);

impl ConditionalEventHandler for Switch {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, _: &EventContext<'_>) -> Option<Cmd> {
        if super::full_screen::check().is_err() {
            return Some(Cmd::Noop);
        }
        self.0.store(true, Ordering::SeqCst);
        Some(Cmd::AcceptLine)
    }
}

/// Completion of commands, sets and files and, by gdb, of symbols of the program.
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
        if let CompletionKind::File(_) = commands::completions(typed, &[]) {
            let (from, files) = self.files.complete(line, at, context)?;
            let files = files
                .into_iter()
                .filter(|pair| commands::is_plain(&pair.replacement));
            return Ok((from, files.collect()));
        }
        let found = words::ask_session(typed, &self.controls, &self.wake);
        let (from, words) = found.unwrap_or((at, Vec::new()));
        let pair = |word: String| Pair {
            replacement: commands::ended(&word),
            display: word,
        };
        let words = words.into_iter().filter(|word| commands::is_plain(word));
        Ok((from, words.map(pair).collect()))
    }
}

impl Hinter for Words {
    type Hint = String;
}

impl Highlighter for Words {
    /// Returns the current text of the prompt, fitted into the width that the editor has fixed for this line.
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(
        &'s self,
        prompt: &'p str,
        is_own: bool,
    ) -> Cow<'b, str> {
        if is_own {
            let prompt = fitted(&self.queue.prompt(), columns(prompt));
            match self.is_coloured {
                true => in_colours(&prompt).into(),
                false => prompt.into(),
            }
        } else {
            prompt.into()
        }
    }
}

/// Fits a prompt such as `[all 3: 2 stopped, 1 lost] (sdm) ` into the editor's width. The set is dropped
/// first. If that does not suffice, dots replace the states, which would otherwise be out of date.
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

/// Shows the tasks' states faint, and the name bold.
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
    fn changed_prompt_keeps_its_width() {
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
}
