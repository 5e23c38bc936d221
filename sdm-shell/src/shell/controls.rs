//! Input to a shell from outside its session: lines, signals, standard input for the programs.
use std::collections::VecDeque;
use std::sync::mpsc::Sender;

/// Input to a shell from outside the session. Its sender also has to wake the session.
#[derive(Clone, Debug)]
pub enum Control {
    /// The requested line.
    Line(ScriptLine),
    /// Completion of a partly typed line. The offset of the completed word, in bytes, and its candidates go
    /// to the sender.
    Complete(String, Sender<(usize, Vec<String>)>),
    /// End of input.
    Eof,
    /// The user pressed Ctrl-C at the prompt, which cleared the input line. An unfinished block or an open question is
    /// dropped.
    Cleared,
    /// The user pressed Ctrl-C, or SIGINT arrived.
    Interrupt,
    /// The user pressed Ctrl-Z, or SIGTSTP arrived.
    Suspend,
    /// A signal warns that the time limit is near.
    Warned,
    /// A signal requests the end of `sdm`: its number.
    Terminate(u8),
    /// Bytes for the programs' standard input, as requested; empty at end of file.
    Input(Vec<u8>),
}

/// A line with its origin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptLine {
    /// The text of the line, without its newline.
    pub text: String,
    /// The origin of the line: `halo.sdm:3`, `-c 2`. Empty for lines that the user typed.
    pub origin: String,
}

/// A source of lines, which delivers each on request.
pub trait LineSource {
    /// Requests the next line, which arrives as a [`Control`]. A question is not a command, so its answer
    /// is not kept in the history.
    fn request(&mut self, prompt: &str, question: bool);

    /// Tells the source a prompt that has changed since the line was requested.
    fn set_prompt(&mut self, _prompt: &str) {}
}

/// A source of the programs' standard input, which delivers each piece on request.
pub trait InputSource {
    /// Requests the next piece, which arrives as [`Control::Input`].
    fn request(&mut self);
}

/// A line source with the lines of files and of the command line.
pub struct Script {
    lines: VecDeque<ScriptLine>,
    to: Sender<Control>,
}

impl Script {
    /// A script that sends its lines to a shell's controls.
    pub fn new(lines: Vec<ScriptLine>, to: Sender<Control>) -> Self {
        Self {
            lines: lines.into(),
            to,
        }
    }
}

impl LineSource for Script {
    fn request(&mut self, _prompt: &str, _question: bool) {
        let control = match self.lines.pop_front() {
            Some(line) => Control::Line(line),
            None => Control::Eof,
        };
        // The shell itself requested the line, so the receiver exists unless the session is over.
        let _ = self.to.send(control);
    }
}

impl ScriptLine {
    /// The lines of a file.
    #[must_use]
    pub fn of_file(name: &str, text: &str) -> Vec<ScriptLine> {
        let numbered = text.lines().zip(1_u32..);
        numbered
            .map(|(line, number)| ScriptLine {
                text: line.to_owned(),
                origin: format!("{name}:{number}"),
            })
            .collect()
    }
}
