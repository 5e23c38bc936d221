//! Merged stacks as a picture: a prefix tree, each frame as wide as there are tasks in it.

use sdm_debug::rules::StackNode;
use sdm_idset::IdSet;

use super::{Escaped, put};
use crate::item::MergedStacks;
use crate::render::{Names, stack_frame};

/// How wide the picture is; all lengths are in its own units.
const WIDTH: f64 = 1000.0;
/// How high a frame is.
const ROW: f64 = 20.0;
/// How wide a character is, at most.
const CHARACTER: f64 = 6.7;
/// What stands between text and the border of its frame.
const PADDING: f64 = 4.0;
/// How wide a place is at least, where there is room for it.
const NARROWEST: f64 = 6.0;
/// How deep the picture is.
const DEPTH_MAX: usize = 64;

/// A frame and how wide it is, its children biggest first.
struct Part<'a> {
    node: &'a StackNode,
    weight: f64,
    below: Vec<Part<'a>>,
}

/// The tree as inline SVG.
pub(super) fn picture(page: &mut String, merged: &MergedStacks, names: &Names) {
    let leaves = leaf_count(&merged.tree.roots);
    if leaves == 0 {
        return;
    }
    let mut whole = 0;
    merged.tree.walk(|_, node| whole += node.here.len());
    #[allow(clippy::cast_precision_loss, reason = "a picture needs no more")]
    let (whole, leaves) = (whole as f64, leaves as f64);
    let narrowest = (whole * NARROWEST / WIDTH).min(whole / leaves / 2.0);
    let parts = parts(&merged.tree.roots, narrowest);
    let depth = parts.iter().map(depth).max().unwrap_or(0);
    let height = to_f64(depth) * ROW;
    put!(
        page,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"stacks\" viewBox=\"0 0 {WIDTH} {height}\" \
         role=\"img\" aria-label=\"merged stacks of {}\">\n",
        Escaped(&names.label(&merged.tasks, 40)),
    );
    let total: f64 = parts.iter().map(|part| part.weight).sum();
    let mut painter = Painter {
        page,
        names,
        few: merged.few(),
        scale: WIDTH / total,
    };
    painter.row(&parts, None, (0.0, 0));
    page.push_str("</svg>\n");
}

fn leaf_count(nodes: &[StackNode]) -> u64 {
    let count = |node: &StackNode| u64::from(!node.here.is_empty()) + leaf_count(&node.children);
    nodes.iter().map(count).sum()
}

/// Biggest first. A frame weighs what stands in it and what its children weigh.
fn parts(nodes: &[StackNode], narrowest: f64) -> Vec<Part<'_>> {
    let mut parts: Vec<_> = nodes
        .iter()
        .map(|node| {
            let below = parts(&node.children, narrowest);
            let sum: f64 = below.iter().map(|part| part.weight).sum();
            #[allow(clippy::cast_precision_loss, reason = "a picture needs no more")]
            let here = match node.here.len() {
                0 => 0.0,
                here => (here as f64).max(narrowest),
            };
            Part {
                node,
                weight: sum + here,
                below,
            }
        })
        .collect();
    parts.sort_by(|a, b| {
        let size = b.node.tasks.len().cmp(&a.node.tasks.len());
        size.then(a.node.tasks.first().cmp(&b.node.tasks.first()))
    });
    parts
}

/// How many rows a part takes.
fn depth(part: &Part<'_>) -> usize {
    let below = part.below.iter().map(depth).max().unwrap_or(0);
    (below + 1).min(DEPTH_MAX)
}

fn to_f64(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

struct Painter<'a> {
    page: &'a mut String,
    names: &'a Names,
    few: Option<u64>,
    scale: f64,
}

impl Painter<'_> {
    /// Parts side by side; `over` is the set of the frame above them.
    fn row(&mut self, parts: &[Part<'_>], over: Option<&IdSet>, (left, level): (f64, usize)) {
        if level == DEPTH_MAX {
            return;
        }
        let mut left = left;
        for part in parts {
            let named = over != Some(&part.node.tasks);
            self.frame(part, named, (left, level));
            self.row(&part.below, Some(&part.node.tasks), (left, level + 1));
            left += part.weight * self.scale;
        }
    }

    /// One frame; `named` where its set is not that of the frame above it.
    fn frame(&mut self, part: &Part<'_>, named: bool, (left, level): (f64, usize)) {
        let width = part.weight * self.scale;
        let tasks = &part.node.tasks;
        let place = stack_frame(&part.node.frame);
        let who = self.names.label(tasks, 60);
        let class = if self.few.is_some_and(|few| tasks.len() <= few) {
            "few".to_owned()
        } else {
            format!("c{}", colour(&part.node.frame.function))
        };
        let top = to_f64(level) * ROW;
        put!(
            self.page,
            "<g class=\"{class}\"><title>{}: {}</title><rect x=\"{left:.2}\" y=\"{top}\" \
             width=\"{:.2}\" height=\"{:.0}\"/>",
            Escaped(&who),
            Escaped(&place),
            (width - 1.0).max(width * 0.5),
            ROW - 1.0,
        );
        let short = self.names.label(tasks, 16);
        let text = match named {
            true => format!("{short}: {place}"),
            false => place,
        };
        if let Some(text) = fitted(&text, width - 1.0 - 2.0 * PADDING) {
            put!(
                self.page,
                "<text x=\"{:.2}\" y=\"{}\">{}</text>",
                left + PADDING,
                top + 13.5,
                Escaped(&text),
            );
        }
        self.page.push_str("</g>\n");
    }
}

/// What fits into a width; nothing where that says nothing.
fn fitted(text: &str, width: f64) -> Option<String> {
    let room = (0_u32..).take_while(|n| f64::from(n + 1) * CHARACTER <= width);
    let room = room.take(4096).count();
    let length = text.chars().count();
    match room {
        _ if length <= room => Some(text.to_owned()),
        0..4 => None,
        _ => Some(text.chars().take(room - 1).chain(['…']).collect()),
    }
}

/// One of eight colours, the same for the same function.
fn colour(function: &str) -> u64 {
    let mix = |sum: u64, byte: u8| sum.wrapping_mul(31).wrapping_add(byte.into());
    function.bytes().fold(7, mix) % 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_to_its_frame_or_left_out() {
        assert_eq!(fitted("main ()", 100.0).as_deref(), Some("main ()"));
        assert_eq!(fitted("exchange_halo ()", 50.0).as_deref(), Some("exchan…"));
        assert_eq!(fitted("exchange_halo ()", 20.0), None);
        assert_eq!(fitted("f", -3.0), None);
    }
}
