//! The merged stacks as a tree. The tasks of the selected branch are the focus.

use sdm_debug::rules::StackNode;
use sdm_idset::IdSet;
use sdm_text::printable;
use sdm_view::item::MergedStacks;
use sdm_view::readable;
use sdm_view::render::Names;

/// Maximum number of rows of a tree.
const ROWS_MAX: usize = 20_000;
/// Maximum length of a set's text in a row, in bytes.
const SET_WIDTH: usize = 24;

/// The rows of a tree, and the selected one.
#[derive(Debug, Default)]
pub(crate) struct StackView {
    pub(crate) rows: Vec<TreeRow>,
    pub(crate) at: usize,
}

/// A row with one frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreeRow {
    /// The characters that connect it with the frame above.
    pub(crate) guide: String,
    /// The tasks of the frame as text; empty if they are the same as in the frame above.
    pub(crate) who: String,
    pub(crate) place: String,
    pub(crate) tasks: IdSet,
    /// Tasks whose innermost frame is this one.
    pub(crate) here: IdSet,
    /// True if the frame has unusually few tasks.
    pub(crate) is_odd: bool,
}

impl StackView {
    /// Sets the stacks. The selection stays on its frame if the tasks of the frame are the focus. Otherwise it moves to
    /// the innermost frame of the focus, or to the first row.
    pub(crate) fn fill(&mut self, stacks: Option<&MergedStacks>, names: &Names, focus: &IdSet) {
        let before = self.rows.get(self.at).cloned();
        self.rows.clear();
        if let Some(merged) = stacks {
            let mut writer = Writer {
                names,
                few: merged.few(),
                rows: &mut self.rows,
            };
            for root in &merged.tree.roots {
                writer.node(root, "", "", None);
            }
        }
        let same = |row: &TreeRow| {
            let before = before.as_ref();
            before.is_some_and(|it| it.tasks == row.tasks && it.place == row.place)
        };
        let of_focus = |row: &TreeRow| row.tasks == *focus;
        let kept = self.rows.iter().position(same);
        let kept = kept.filter(|at| of_focus(&self.rows[*at]));
        self.at = kept
            .or_else(|| self.rows.iter().rposition(of_focus))
            .unwrap_or(0);
    }

    /// Moves the selection by a number of rows. Returns the tasks of the selected row; None if there are no rows.
    pub(crate) fn step(&mut self, by: isize) -> Option<IdSet> {
        let last = self.rows.len().saturating_sub(1);
        self.at = self.at.saturating_add_signed(by).min(last);
        self.rows.get(self.at).map(|row| row.tasks.clone())
    }
}

struct Writer<'a> {
    names: &'a Names,
    few: Option<u64>,
    rows: &'a mut Vec<TreeRow>,
}

impl Writer<'_> {
    /// Adds a frame and its callees. A single callee with the same tasks is not drawn as a branch.
    fn node(&mut self, node: &StackNode, lead: &str, below: &str, above: Option<&IdSet>) {
        if self.rows.len() >= ROWS_MAX {
            return;
        }
        let who = match above == Some(&node.tasks) {
            true => String::new(),
            false => printable(self.names.label(&node.tasks, SET_WIDTH).as_bytes()),
        };
        let frame = &node.frame;
        let function = readable::function(&frame.function);
        let place = match (frame.file.as_str(), frame.line) {
            ("", _) => function.into_owned(),
            (file, 0) => format!("{function} {file}"),
            (file, line) => format!("{function} {file}:{line}"),
        };
        let repeat = match frame.repeat {
            0 | 1 => String::new(),
            times => format!(" x{times}"),
        };
        self.rows.push(TreeRow {
            guide: lead.to_owned(),
            who,
            place: printable(format!("{place}{repeat}").as_bytes()),
            tasks: node.tasks.clone(),
            here: node.here.clone(),
            is_odd: self.few.is_some_and(|few| node.tasks.len() <= few),
        });
        let forks = node.children.len() > 1 || (node.children.len() == 1 && !node.here.is_empty());
        let count = node.children.len();
        for (at, child) in node.children.iter().enumerate() {
            let (branch, next) = match (forks, at + 1 == count) {
                (false, _) => ("", ""),
                (true, false) => ("\u{251c} ", "\u{2502} "),
                (true, true) => ("\u{2514} ", "  "),
            };
            let lead = format!("{below}{branch}");
            let below = format!("{below}{next}");
            self.node(child, &lead, &below, Some(&node.tasks));
        }
    }
}
