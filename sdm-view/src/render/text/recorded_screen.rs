//! A screen in memory, for tests.

use std::cell::RefCell;
use std::rc::Rc;

use super::{Screen, Style};

/// A screen that records its text. Status lines are recorded as `~ text`.
#[derive(Clone)]
pub struct RecordedScreen {
    /// All text written, including status lines.
    pub text: Rc<RefCell<String>>,
    /// Width in characters. None: unlimited.
    pub width: Option<usize>,
}

impl RecordedScreen {
    /// An empty screen of `width` characters.
    #[must_use]
    pub fn new(width: usize) -> Self {
        Self {
            text: Rc::default(),
            width: Some(width),
        }
    }
}

impl Screen for RecordedScreen {
    fn write(&mut self, text: &str) {
        self.text.borrow_mut().push_str(text);
    }

    fn pass(&mut self, _stderr: bool, bytes: &[u8]) {
        self.write(&String::from_utf8_lossy(bytes));
    }

    fn status(&mut self, line: Option<&str>) {
        if let Some(line) = line {
            self.text.borrow_mut().push_str(&format!("~ {line}\n"));
        }
    }

    fn style(&self) -> Style {
        Style {
            colour: false,
            width: self.width,
            rows: Style::ROWS,
        }
    }
}
