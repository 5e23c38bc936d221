//! Common properties of all parts of a screen: names of tasks, colour and width.

use sdm_idset::IdSet;

use super::label::Names;
use super::style::Style;

/// Common properties of all parts of a screen.
pub(super) struct Page<'a> {
    pub(super) names: &'a Names,
    pub(super) style: Style,
}

impl Page<'_> {
    /// The label of a set: `ranks 0-3 (4)`.
    pub(super) fn label(&self, tasks: &IdSet) -> String {
        self.names.label(tasks, self.style.set_width())
    }

    /// A text with the label of its tasks in front: `ranks 0-3 (4): text`. It is wrapped if it is too long.
    pub(super) fn said(&self, tasks: &IdSet, text: &str, bad: bool) -> String {
        self.labelled(&self.label(tasks), text, bad)
    }

    /// The mark of a class with few tasks, because users search for such classes. Empty for larger classes.
    pub(super) fn few(&self, count: u64, whole: u64) -> String {
        if whole < 3 || count > (whole / 8).max(1) {
            return String::new();
        }
        let text = format!("  <-- {count} of {whole}");
        self.style.odd(&text)
    }

    /// A line with this label instead of a set.
    pub(super) fn labelled(&self, label: &str, text: &str, bad: bool) -> String {
        let wrapped = self.style.wrap(&format!("{label}: {text}"), 4);
        let Some(rest) = wrapped.strip_prefix(&format!("{label}: ")) else {
            return wrapped;
        };
        let rest = if bad {
            self.style.bad(rest)
        } else {
            rest.to_owned()
        };
        format!("{}: {rest}", self.style.label(label))
    }

    /// The heading of a block: `ranks 0-3 (4):`.
    pub(super) fn over(&self, tasks: &IdSet) -> String {
        format!("{}:", self.style.label(&self.label(tasks)))
    }
}
