//! Lines typed into the debug console: gdb's commands over sets of tasks, as at `sdm`'s prompt.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use sdm_debug::Command;
use sdm_idset::IdSet;
use sdm_shell::commands::{self, JobCommand, NameError, Scope, SetExpr, SetName, UserCommand};
use sdm_view::item::{Item, View};
use sdm_view::render::{Names, Screen, Style, TextView};

use crate::answers::Answers;
use crate::error::RequestError;
use crate::tasks::Tasks;

/// The request of a line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LineRequest {
    /// Send this command to tasks and show the answers.
    Ask(Box<Command>),
    /// Stop tasks.
    Interrupt,
    /// Restart the whole job; true to stop at `main`.
    Restart(bool),
    /// A line for the shell; true if the line resumes tasks.
    Shell(bool),
}

/// The request of a line, with its tasks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LineCommand {
    /// The tasks; `None` if the line names none.
    pub(crate) tasks: Option<IdSet>,
    /// The request of the line.
    pub(crate) wish: LineRequest,
}

/// Parses a line; `None` if it is no command, but may be an expression.
///
/// # Errors
/// [`RequestError::Tasks`]: an empty set of tasks, or a command for which the editor has other means.
pub(crate) fn read(line: &str, tasks: &Tasks) -> Result<Option<LineCommand>, RequestError> {
    let refuse = |why: String| Err(RequestError::Tasks(why));
    let parsed = match commands::parse(line) {
        Ok(parsed) => parsed,
        Err(error) if line.starts_with('[') => return refuse(error.to_string()),
        Err(_) => return Ok(None),
    };
    // An expression, such as a variable `rank`, is not taken for an abbreviation of SDM's own (`ranks`).
    if let Some(called) = commands::called(line).filter(|called| !commands::is_command(called.word))
    {
        let word = called.word;
        return match called.to {
            None => Ok(None),
            Some(set) => refuse(format!(
                "`{word}` is not a complete command; to print a value: [{}] print {word}",
                set.text()
            )),
        };
    }
    let wish = match parsed.command {
        UserCommand::Ask(command) => LineRequest::Ask(Box::new(command)),
        UserCommand::Stacks { full } => LineRequest::Ask(Box::new(Command::Stacks { full })),
        UserCommand::Interrupt => LineRequest::Interrupt,
        UserCommand::Job(JobCommand::Run {
            arguments: None,
            to_main,
            ..
        }) => LineRequest::Restart(to_main),
        UserCommand::Job(JobCommand::Run { .. }) => {
            let text =
                "the program's arguments come from launch.json: change them there, and restart";
            return refuse(text.to_owned());
        }
        UserCommand::Nothing { .. } => return Ok(None),
        UserCommand::Run { .. } => LineRequest::Shell(true),
        _ => LineRequest::Shell(false),
    };
    let is_shells = matches!(wish, LineRequest::Shell(_));
    let tasks = match &parsed.to {
        // Sets that only the shell knows, or that select a thread in each task.
        Some(set) if is_shells || set.thread().is_some() => {
            let runs = wish == LineRequest::Shell(true);
            let wish = LineRequest::Shell(runs);
            return Ok(Some(LineCommand { tasks: None, wish }));
        }
        Some(set) => match resolve(set, tasks)? {
            Some(found) => Some(found),
            None => {
                let wish = LineRequest::Shell(false);
                return Ok(Some(LineCommand { tasks: None, wish }));
            }
        },
        None => None,
    };
    Ok(Some(LineCommand { tasks, wish }))
}

/// The expression of a command that evaluates one; `None` for other commands.
pub(crate) fn expression(command: &Command) -> Option<&str> {
    match command {
        Command::Evaluate { expression } | Command::Print { expression, .. } => Some(expression),
        _ => None,
    }
}

/// The tasks in a set; `None` if it has conditions, or names that only the shell knows.
fn resolve(set: &SetExpr, tasks: &Tasks) -> Result<Option<IdSet>, RequestError> {
    let unknown = Cell::new(false);
    let scope = Known {
        tasks,
        all: tasks.live(),
        unknown: &unknown,
    };
    let found = commands::resolve(set, &scope);
    if unknown.get() || !set.conditions().is_empty() {
        return Ok(None);
    }
    let found = found.map_err(|error| RequestError::Tasks(error.to_string()))?;
    match found.is_empty() {
        true => {
            let set = set.text();
            Err(RequestError::Tasks(format!("no rank is in `{set}`")))
        }
        false => Ok(Some(found)),
    }
}

/// The meaning of set names here.
struct Known<'a> {
    tasks: &'a Tasks,
    all: IdSet,
    /// Set to true if a name is unknown here.
    unknown: &'a Cell<bool>,
}

impl Scope for Known<'_> {
    fn tasks(&self) -> &IdSet {
        &self.all
    }

    fn named(&self, name: &SetName) -> Result<IdSet, NameError> {
        match name {
            SetName::Word(word) if word == "stopped" => Ok(self.tasks.standing()),
            SetName::Word(word) if word == "running" => Ok(self.tasks.running()),
            SetName::Word(word) => {
                self.unknown.set(true);
                Err(NameError::Unknown(word.clone()))
            }
            _ => {
                self.unknown.set(true);
                Err(NameError::Unknown("that".to_owned()))
            }
        }
    }
}

/// The answers as text, in the form of the `sdm` prompt.
pub(crate) fn text(answers: &Answers) -> String {
    let lines = Lines::default();
    let mut view = TextView::new(lines.clone(), Names::ranks());
    view.show(Duration::ZERO, &Item::Answer(answers.all.clone()));
    lines.0.take().trim_end_matches('\n').to_owned()
}

/// A screen that keeps its text.
#[derive(Clone, Default)]
struct Lines(Rc<RefCell<String>>);

impl Screen for Lines {
    fn write(&mut self, text: &str) {
        self.0.borrow_mut().push_str(text);
    }

    fn status(&mut self, _line: Option<&str>) {}

    fn pass(&mut self, _stderr: bool, bytes: &[u8]) {
        self.write(&String::from_utf8_lossy(bytes));
    }

    fn style(&self) -> Style {
        Style::PLAIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_that_is_no_complete_command_is_an_expression() {
        let is_command = |line: &str| match read(line, &Tasks::default()) {
            Ok(found) => found.is_some(),
            Err(error) => panic!("{line}: {error}"),
        };
        for line in [
            "ranks",
            "stacks --full",
            "n",
            "cont",
            "info line 3",
            "x/4xw p",
            "!ls",
        ] {
            assert!(is_command(line), "{line}");
        }
        for line in [
            "rank", "rank(2)", "size", "stat", "comp", "set", "plo 3", "out", "fram",
        ] {
            assert!(!is_command(line), "{line}");
        }
        let refused = read("[0] rank", &Tasks::default()).expect_err("no command");
        assert!(refused.to_string().contains("[0] print rank"), "{refused}");
    }
}
