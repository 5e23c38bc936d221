//! Lines that a person types to the debugger: gdb's words over sets of tasks, as at the prompt of `sdm`.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use sdm_debug::Command;
use sdm_idset::IdSet;
use sdm_shell::commands::{self, NameError, Scope, SetExpr, SetName, UserCommand};
use sdm_view::item::{Item, View};
use sdm_view::render::{Names, Screen, Style, TextView};

use crate::answers::Answers;
use crate::error::RequestError;
use crate::tasks::Tasks;

/// What a line asks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Wish {
    /// A question that tasks answer.
    Ask(Command),
    /// Tasks are to run, by this command.
    Run(Command),
    /// Tasks are to stop.
    Interrupt,
    /// Which threads there are.
    Threads,
    /// Nothing of the tasks: this is the answer.
    Text(String),
}

/// What a line asks, and whom.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    /// Whom, where the line says so.
    pub(crate) tasks: Option<IdSet>,
    /// What.
    pub(crate) wish: Wish,
}

/// Reads a line; nothing where it is no command, but may be an expression.
///
/// # Errors
/// [`RequestError::Tasks`]: a set that nobody is in, or a command that the editor has other means for.
pub(crate) fn read(line: &str, tasks: &Tasks) -> Result<Option<Asked>, RequestError> {
    let refuse = |why: String| Err(RequestError::Tasks(why));
    let parsed = match commands::parse(line) {
        Ok(parsed) => parsed,
        Err(error) if line.starts_with('[') => return refuse(error.to_string()),
        Err(_) => return Ok(None),
    };
    let wish = match parsed.command {
        UserCommand::Ask(command) => Wish::Ask(command),
        UserCommand::Stacks { full } => Wish::Ask(Command::Stacks { full }),
        UserCommand::Run { command, .. } => Wish::Run(command),
        UserCommand::Interrupt => Wish::Interrupt,
        UserCommand::Ranks(None) => Wish::Threads,
        UserCommand::Help(word) => match commands::help(word.as_deref()) {
            Ok(text) => Wish::Text(text),
            Err(error) => return refuse(error.to_string()),
        },
        UserCommand::Nothing { .. } => return Ok(None),
        _ => {
            let text =
                format!("`{line}` is not for the debug console; it is known at the prompt of sdm");
            return refuse(text);
        }
    };
    let tasks = match &parsed.to {
        Some(set) => Some(resolve(set, tasks)?),
        None => None,
    };
    Ok(Some(Asked { tasks, wish }))
}

/// The expression of a question about a value.
pub(crate) fn expression(command: &Command) -> Option<&str> {
    match command {
        Command::Evaluate { expression } | Command::Print { expression, .. } => Some(expression),
        _ => None,
    }
}

fn resolve(set: &SetExpr, tasks: &Tasks) -> Result<IdSet, RequestError> {
    let scope = Known {
        tasks,
        all: tasks.live(),
    };
    let found = commands::resolve(set, &scope);
    let found = found.map_err(|error| RequestError::Tasks(error.to_string()))?;
    match found.is_empty() {
        true => Err(RequestError::Tasks(format!(
            "nobody is in `{}`",
            set.text()
        ))),
        false => Ok(found),
    }
}

/// What names of sets mean here.
struct Known<'a> {
    tasks: &'a Tasks,
    all: IdSet,
}

impl Scope for Known<'_> {
    fn tasks(&self) -> &IdSet {
        &self.all
    }

    fn named(&self, name: &SetName) -> Result<IdSet, NameError> {
        match name {
            SetName::Word(word) if word == "stopped" => Ok(self.tasks.standing()),
            SetName::Word(word) if word == "running" => Ok(self.tasks.running()),
            SetName::Word(word) => Err(NameError::Unknown(word.clone())),
            _ => Err(NameError::Unknown("that".to_owned())),
        }
    }
}

/// Answers as text, as the prompt of `sdm` shows them.
pub(crate) fn text(answers: &Answers) -> String {
    let lines = Lines::default();
    let mut view = TextView::new(lines.clone(), Names::ranks());
    view.show(Duration::ZERO, &Item::Answer(answers.0.clone()));
    lines.0.take().trim_end_matches('\n').to_owned()
}

/// Text that is kept.
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
