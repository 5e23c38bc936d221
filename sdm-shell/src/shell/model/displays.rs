//! The expressions of `display`, shown after each stop.
use std::collections::BTreeMap;

use sdm_debug::Command;

use crate::commands::Displayed;

/// Maximum number of expressions.
pub(crate) const DISPLAYS_MAX: usize = 32;

/// The expressions of `display`, by number.
#[derive(Debug, Default)]
pub(crate) struct Displays {
    expressions: BTreeMap<u32, Displayed>,
    last: u32,
}

impl Displays {
    /// True if no further expression can be added.
    pub(crate) fn is_full(&self) -> bool {
        self.expressions.len() == DISPLAYS_MAX
    }

    /// True without any expression.
    pub(crate) fn is_empty(&self) -> bool {
        self.expressions.is_empty()
    }

    /// Adds an expression. Returns its number.
    pub(crate) fn add(&mut self, display: Displayed) -> u32 {
        self.last += 1;
        self.expressions.insert(self.last, display);
        self.last
    }

    /// Removes the display that was added last, and reuses its number.
    pub(crate) fn withdraw(&mut self, number: u32) {
        self.expressions.remove(&number);
        self.last = number - 1;
    }

    /// Removes an expression. Returns false if no expression has this number.
    pub(crate) fn remove(&mut self, number: u32) -> bool {
        self.expressions.remove(&number).is_some()
    }

    /// Removes all expressions of `display`.
    pub(crate) fn clear(&mut self) {
        self.expressions.clear();
    }

    /// All displays, in ascending order of their numbers.
    pub(crate) fn all(&self) -> Vec<(u32, Displayed)> {
        let all = self.expressions.iter();
        all.map(|(number, it)| (*number, it.clone())).collect()
    }
}

/// The expression as it was written: `step`, `/x step`.
pub(crate) fn words(display: &Displayed) -> String {
    match display.format.as_str() {
        "" => display.expression.clone(),
        format => format!("/{format} {}", display.expression),
    }
}

/// The command for an expression's value. The formats `i` and `s` examine memory at an address; all others
/// evaluate.
pub(crate) fn question(display: &Displayed) -> Command {
    let Displayed { format, expression } = display;
    if format.is_empty() {
        let expression = expression.clone();
        return Command::Evaluate { expression };
    }
    let word = if format.contains(['i', 's']) {
        "x"
    } else {
        "output"
    };
    Command::Console {
        line: format!("{word}/{format} {expression}"),
    }
}
