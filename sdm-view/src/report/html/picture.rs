//! Merged stacks as a picture: the width of a frame is the number of tasks in it.

use sdm_debug::rules::StackNode;
use sdm_idset::IdSet;

use super::{Escaped, put};
use crate::item::MergedStacks;
use crate::picture::{Part, WIDTH, height, paint};
use crate::render::{Names, stack_frame};

/// Minimum width of a frame, of 1000 for the whole picture, where there is room for it.
const NARROWEST: f64 = 6.0;

/// Writes the tree as inline SVG.
pub(super) fn picture(page: &mut String, merged: &MergedStacks, names: &Names) {
    let leaves = leaf_count(&merged.tree.roots);
    if leaves == 0 {
        return;
    }
    let mut whole = 0;
    merged.tree.walk(|_, node| whole += node.here.len());
    #[allow(clippy::cast_precision_loss, reason = "a picture needs no more")]
    let (whole, leaves) = (whole as f64, leaves as f64);
    let maker = Maker {
        names,
        few: merged.few(),
        narrowest: (whole * NARROWEST / WIDTH).min(whole / leaves / 2.0),
    };
    let parts = maker.parts(&merged.tree.roots, None);
    put!(
        page,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"stacks\" viewBox=\"0 0 {WIDTH} {}\" \
         role=\"img\" aria-label=\"merged stacks of {}\">\n",
        height(&parts),
        Escaped(&names.label(&merged.tasks, 40)),
    );
    paint(page, &parts);
    page.push_str("</svg>\n");
}

fn leaf_count(nodes: &[StackNode]) -> u64 {
    let count = |node: &StackNode| u64::from(!node.here.is_empty()) + leaf_count(&node.children);
    nodes.iter().map(count).sum()
}

struct Maker<'a> {
    names: &'a Names,
    few: Option<u64>,
    narrowest: f64,
}

impl Maker<'_> {
    /// Parts for frames, largest first; `over` is the set of the frame above them.
    fn parts<'n>(&self, nodes: &'n [StackNode], over: Option<&IdSet>) -> Vec<Part<'n>> {
        let mut nodes: Vec<&StackNode> = nodes.iter().collect();
        nodes.sort_by(|a, b| {
            let size = b.tasks.len().cmp(&a.tasks.len());
            size.then(a.tasks.first().cmp(&b.tasks.first()))
        });
        nodes.iter().map(|node| self.part(node, over)).collect()
    }

    /// The part for a frame. Its weight is the number of tasks in it, including its children.
    fn part<'n>(&self, node: &'n StackNode, over: Option<&IdSet>) -> Part<'n> {
        let below = self.parts(&node.children, Some(&node.tasks));
        let sum: f64 = below.iter().map(|part| part.weight).sum();
        #[allow(clippy::cast_precision_loss, reason = "a picture needs no more")]
        let here = match node.here.len() {
            0 => 0.0,
            here => (here as f64).max(self.narrowest),
        };
        let place = stack_frame(&node.frame);
        let label = |width| self.names.label(&node.tasks, width);
        Part {
            title: format!("{}: {place}", label(60)),
            // A task set is shown only where it differs from that of the frame above.
            text: match over == Some(&node.tasks) {
                true => place,
                false => format!("{}: {place}", label(16)),
            },
            function: &node.frame.function,
            is_odd: self.few.is_some_and(|few| node.tasks.len() <= few),
            weight: sum + here,
            below,
        }
    }
}
