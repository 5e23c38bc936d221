//! State of the dialogue with a user or script: open questions, commands whose lines are still being read,
//! user-defined commands.
use std::collections::BTreeMap;

use sdm_debug::command::BreakSpec;
use sdm_idset::IdSet;
use sdm_text::counted;
use sdm_view::item::Item;

/// Maximum number of user-defined commands.
pub(crate) const DEFINED_MAX: usize = 1024;
/// Maximum number of lines of one block, of `define` or `commands`.
pub(crate) const LINES_MAX: usize = 1000;

/// The state of the dialogue.
#[derive(Debug, Default)]
pub(crate) struct Dialogue {
    /// The line that an empty line repeats.
    pub(crate) repeated: Option<String>,
    /// The question that the next line answers; None if none is open.
    pub(crate) question: Option<Question>,
    /// The lines collected between `commands` or `define` and `end`. None while no block is read.
    pub(crate) collecting: Option<Collecting>,
    /// User-defined commands, by name.
    pub(crate) defined: BTreeMap<String, Vec<String>>,
    /// The last answer, for `more` to show in full. None before the first.
    pub(crate) last_answer: Option<Item>,
    /// The first line of a `list` without an argument.
    pub(crate) list_from: ListFrom,
}

/// The first line of a `list` without an argument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ListFrom {
    /// The lines around that of the selected frame.
    #[default]
    Selected,
    /// The line after the last line that the previous `list` has shown.
    Listed,
}

/// A question that the next line answers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Question {
    /// Whether to kill the started programs before the shell ends.
    Quit,
    /// Whether to end the job in order to restart it.
    Rerun(Rerun),
    /// Whether to carry out a line that loses something.
    Confirm(Confirm),
    /// Whether to keep a breakpoint as pending.
    Pending(Pending),
}

impl Question {
    /// True for a line that answers the question. An empty one is the answer that loses nothing.
    pub(crate) fn is_answer(&self, line: &str) -> bool {
        match line.trim().to_ascii_lowercase().as_str() {
            "" | "y" | "yes" | "n" | "no" => true,
            "d" | "detach" => *self == Self::Quit,
            _ => false,
        }
    }

    /// The request for an answer, after a line that is none.
    pub(crate) fn wanted(&self) -> &'static str {
        match self {
            Self::Quit => "Please answer y, n or detach.",
            _ => "Please answer y or n.",
        }
    }

    /// The text of the question, in a session with this number of live tasks.
    pub(crate) fn text(&self, tasks: u64) -> String {
        let ranks = counted(tasks, "rank");
        match self {
            Self::Quit => format!("kill {ranks} started here? (y/n/detach) "),
            Self::Rerun(_) => {
                format!("end {ranks} and start the job from the beginning? (y or n) ")
            }
            Self::Confirm(asked) => format!("{}? (y or n) ", asked.text),
            Self::Pending(_) => {
                "Make breakpoint pending on future shared library load? (y or [n]) ".to_owned()
            }
        }
    }
}

/// A restart of the job.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rerun {
    /// The line, as entered.
    pub(crate) line: String,
    /// The tasks whose arguments are replaced.
    pub(crate) to: IdSet,
    /// The new arguments. None: the previous ones.
    pub(crate) arguments: Option<Vec<String>>,
    /// True if every task is held at `main`.
    pub(crate) to_main: bool,
    /// True if the first stop is not waited for.
    pub(crate) background: bool,
    /// Nesting depth of sourced files and user-defined commands around the line.
    pub(crate) depth: u32,
}

/// A line that is carried out if the user confirms it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Confirm {
    /// The line, as entered.
    pub(crate) line: String,
    /// The question, without the question mark.
    pub(crate) text: String,
    /// The words for a line that is not confirmed.
    pub(crate) refused: &'static str,
}

/// A breakpoint whose location no task has.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pending {
    /// The line, as entered.
    pub(crate) line: String,
    /// The target set of the line.
    pub(crate) to: IdSet,
    /// The breakpoint, as requested.
    pub(crate) spec: BreakSpec,
}

/// A block of lines that is being read, up to `end`.
#[derive(Debug)]
pub(crate) struct Collecting {
    purpose: Purpose,
    lines: Vec<String>,
    /// Number of nested blocks whose `end` is still missing.
    inner: u32,
}

/// The use of a block of lines that is being read.
#[derive(Debug)]
pub(crate) enum Purpose {
    /// Commands of these breakpoints.
    Breakpoints(Vec<u32>),
    /// The definition of a command with this name.
    Command(String),
}

/// The outcome of adding a line to a block.
#[derive(Debug)]
pub(crate) enum Collected {
    /// One more line was added; the next one is requested.
    More(Collecting),
    /// The block is complete.
    All(Purpose, Vec<String>),
    /// There were more than [`LINES_MAX`] lines, and all are discarded.
    TooMany,
}

impl Collecting {
    /// Begins to read a block for this purpose.
    pub(crate) fn new(purpose: Purpose) -> Self {
        Self {
            purpose,
            lines: Vec::new(),
            inner: 0,
        }
    }

    /// Adds a line to the block, or ends the block.
    pub(crate) fn take(mut self, line: &str) -> Collected {
        let ends = |c: char| c.is_whitespace() || c == '(';
        let word = line.split(ends).next().unwrap_or("");
        if line == "end" && self.inner == 0 {
            return Collected::All(self.purpose, self.lines);
        }
        if self.lines.len() == LINES_MAX {
            return Collected::TooMany;
        }
        if line == "end" {
            self.inner -= 1;
        } else if matches!(word, "commands" | "define" | "if" | "while") {
            self.inner += 1;
        }
        self.lines.push(line.to_owned());
        Collected::More(self)
    }
}
